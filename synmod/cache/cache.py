"""Cache: what was paid for once, kept in memory or in a file."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

from synmod.cache.entries import Entry, entry_of
from synmod.cache.memory import Memory
from synmod.errors import ArgumentError, ConfigError, DataError
from synmod.leaves.aio import Signal
from synmod.leaves.clock import wall_time

if TYPE_CHECKING:
    from synmod.cache.file import CacheFile
    from synmod.leaves.frozen import FrozenDict, Json

_GIB: Final = 1 << 30
_LARGEST: Final = 1 << 28  # SQLite takes no text of a thousand million bytes


class Cache:
    """Remembers JSON objects by key: in memory, or in a file that other processes may use at the same time.

    A file is SQLite in WAL mode, made when it is first used (0600). One thread writes it, many entries in one commit;
    what was acknowledged survives a `kill -9`. Damage costs entries, never an error: a damaged row is not found, a
    damaged file, or one of a newer format, is moved aside (`.corrupt-1`), and where nothing can be written the cache
    goes on in memory; both are logged to `synmod.cache`. The entry whose use is longest ago goes first when there is
    no room.

    One Cache serves any number of modules, tasks, threads and event loops. No file of a program names it: copies share
    it, a pickle opens the same path, and a loaded program is given one by hand.

    Args:
        path: The file; folders that are missing are made. None for memory.
        max_bytes: How many bytes the entries may count for together; the file is about as large.
        ttl_s: How many seconds an entry is good for; None for ever.

    Raises:
        ConfigError: `path` is no path, `max_bytes` no int above 0, `ttl_s` no number above 0.

    Example:
        >>> async def main(cache):
        ...     await cache.keep("question", {"answer": "Paris"})
        ...     found = await cache.find("question")
        ...     await cache.aclose()
        ...     return found
        >>> sm.run(main, Cache("answers.db"))
        {'answer': 'Paris'}

    Source: DiskCache; differs: JSON instead of pickle (CVE-2025-69872), awaited commits, damage is a miss.
    """

    __module__ = "synmod.cache"
    __slots__ = ("__weakref__", "_file", "_inherited", "_making", "_memory", "max_bytes", "path", "ttl_s")

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, max_bytes: int = _GIB, ttl_s: float | None = None
    ) -> None:
        self.path = None if path is None else _checked_path(path)
        if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise ConfigError(f"Cache: max_bytes is {max_bytes!r:.100}; give a whole number above 0.")
        self.max_bytes = max_bytes
        self.ttl_s = checked_ttl("Cache", ttl_s)
        self._memory = Memory(max_bytes)
        self._file: CacheFile | None = None
        self._inherited: list[CacheFile] = []
        self._making = threading.Lock()

    async def find(self, key: str, *, ttl_s: float | None = None) -> FrozenDict | None:
        """Give what is remembered under a key.

        Waits only where the file is opened or closed; not a cancellation point otherwise.

        Args:
            key: A short ASCII text, such as `key_of` gives.
            ttl_s: How many seconds it may be old here; where the cache has a `ttl_s` too, the shorter one holds.

        Returns:
            The frozen JSON object; None where there is none, or it is too old or damaged.

        Raises:
            ArgumentError: The key is no ASCII text.
        """
        _check_key(key)
        file = None if self.path is None else self._own_file()
        entry = self._memory.find(key) if file is None or file.failed else None
        if file is not None and entry is None:
            entry = await file.find(key) or self._memory.find(key)
        return None if entry is None or self._is_too_old(entry, ttl_s) else entry.value

    async def keep(self, key: str, value: Json) -> None:
        """Remember a JSON object; returns when it is committed.

        A cancellation while it waits takes nothing back.

        Args:
            key: A short ASCII text, such as `key_of` gives.
            value: A JSON object.

        Raises:
            ArgumentError: The key is no ASCII text.
            DataError: The value is no JSON object.
        """
        _check_key(key)
        if not isinstance(value, dict):
            raise DataError(f"A cache remembers JSON objects, not a {type(value).__name__}: write {{'value': ...}}.")
        entry, text = entry_of(value, wall_time())
        file = None if self.path is None else self._own_file()
        if file is None or file.failed:
            self._memory.keep(key, entry)
        elif entry.size <= min(self.max_bytes, _LARGEST):
            await file.put(key, entry, text).wait()

    def close(self) -> None:
        """Commit what is under way and let go of the file; what comes later opens it again. Memory is kept."""
        file = self._file
        if file is not None:
            file.close()

    async def aclose(self) -> None:
        """The same without holding up the event loop."""
        if self._file is None:
            return
        closed = Signal()

        def close() -> None:
            try:
                self.close()
            finally:
                closed.set()

        threading.Thread(target=close, name="synmod-cache-close", daemon=True).start()
        await closed.wait()

    def _own_file(self) -> CacheFile:
        """Give the file of this process."""
        file, process = self._file, os.getpid()
        if file is not None and file.process == process:
            return file
        if file is not None:  # a forked child: what is the parent's is neither used nor closed
            self._inherited.append(file)
            self._making = threading.Lock()
            self._file = None
        with self._making:
            if self._file is None:
                self._file = self._new_file()
            return self._file

    def _new_file(self) -> CacheFile:
        """Make what opens the file when it is first used."""
        from synmod.cache.file import CacheFile  # sqlite3 is for those who need it

        assert self.path is not None
        file = CacheFile(self.path, self.max_bytes, self._memory)
        weakref.finalize(self, file.let_go).atexit = False  # the file itself sees to the end of the process
        return file

    def _is_too_old(self, entry: Entry, ttl_s: float | None) -> bool:
        """Whether one of both limits is over."""
        limits = [limit for limit in (self.ttl_s, ttl_s) if limit is not None]
        return bool(limits) and wall_time() - entry.made > min(limits)

    def __copy__(self) -> Cache:
        return self

    def __deepcopy__(self, memo: object) -> Cache:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self.path, self.max_bytes, self.ttl_s)

    def __repr__(self) -> str:
        return f"Cache({self.path!r}, max_bytes={self.max_bytes}, ttl_s={self.ttl_s})"


def checked_ttl(kind: str, ttl_s: Any) -> float | None:
    """Give the age that entries may have back.

    Raises:
        ConfigError: It is neither None nor a number above 0.
    """
    if ttl_s is not None and (isinstance(ttl_s, bool) or not isinstance(ttl_s, (int, float)) or not ttl_s > 0):
        raise ConfigError(f"{kind}: ttl_s is {ttl_s!r:.100}; give a number of seconds above 0, or None.")
    return ttl_s


def _checked_path(path: Any) -> str:
    """Make a path absolute, so that a later change of folder does not matter."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        text = ""
    if not text or "\0" in text:
        raise ConfigError(f"Cache: path is {path!r:.100}; give the path of a file, or None for memory.")
    return os.path.abspath(text)


def _check_key(key: Any) -> None:
    """Refuse what a file could not tell apart."""
    if not isinstance(key, str) or not key.isascii():
        raise ArgumentError(f"A key of a cache is a short ASCII text, not {key!r:.100}: key_of(json) makes one.")


def _remade(path: str | None, max_bytes: int, ttl_s: float | None) -> Cache:
    """Make a Cache in another process: the same file, or an empty memory."""
    return Cache(path, max_bytes=max_bytes, ttl_s=ttl_s)
