"""A cache file of this process: reads from any thread, writes by one thread that commits what has gathered together.

The thread runs while there is something to do, and a little longer. It alone opens, mends and writes the file; whoever
finds it damaged only says so. What the file cannot take is remembered in memory instead.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import sqlite3
import threading
from typing import TYPE_CHECKING, Final

from synmod.cache.database import Database, Row
from synmod.cache.entries import Entry, entry_from
from synmod.cache.faults import Unusable, fault_of
from synmod.cache.place import move_aside
from synmod.leaves import aio

if TYPE_CHECKING:
    from synmod.cache.memory import Memory

_LOG: Final = logging.getLogger("synmod.cache")
_IDLE_S: Final = 1.0
_MOST_USES: Final = 4_000
_TRIES: Final = 3
_LOOKS: Final = 50
_PAUSE_S: Final = 0.005
_UNUSED: Final = object()
_ERRORS: Final = (sqlite3.Error, OSError, UnicodeError, Unusable)  # a message of SQLite may quote damaged text


class _Batch:
    """What is committed together, and the signal that it was."""

    __slots__ = ("done", "entries", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.entries: dict[str, Entry] = {}
        self.done = aio.Signal()


class CacheFile:
    """The file of a cache, in one process.

    Args:
        path: Where it is.
        max_bytes: How many bytes its entries may count for together.
        memory: What takes over where the file cannot.

    Attributes:
        process: The process that made it: a forked child needs one of its own.
        failed: Whether nothing can be written there.
    """

    def __init__(self, path: str, max_bytes: int, memory: Memory) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._memory = memory
        self._lock = threading.RLock()  # a finaliser may run wherever it is held
        self._at_work = threading.RLock()  # taken before the other: the thread, or who closes when there is none
        self._wakes: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True: finish. Its `put` is safe in a finaliser
        self._thread: threading.Thread | None = None
        self._database: Database | None = None
        self._damaged: Database | None = None
        self._opened = aio.Signal()
        self._batch = self._writing = _Batch()
        self._uses: dict[str, object] = {}
        self._abandoned = False
        self.process = os.getpid()
        self.failed = False

    # -- asked by any thread ------------------------------------------------------------------------------------------

    async def find(self, key: str) -> Entry | None:
        """Give an entry, committed or about to be, and note its use.

        Where another process opens or closes the file right now, or another thread this one, it looks again.
        """
        for _ in range(_LOOKS):
            if self._database is None and not self.failed:
                await self._ready()
            waiting = self._batch.entries.get(key) or self._writing.entries.get(key)  # in the order in which they move
            database = self._database
            if waiting is not None or (database is None and self.failed):
                return waiting
            if database is None:
                continue
            try:
                row = database.read(key)
            except _ERRORS as error:
                if fault_of(error) == "corrupt":
                    self._report(database)
                    return None
                await aio.sleep(_PAUSE_S)
                continue
            entry = None if row is None else entry_from(key, row)
            if entry is not None:
                self._note_use(key)
            return entry
        return None

    async def _ready(self) -> None:
        """Wait until the file is open, or has failed."""
        while self._database is None and not self.failed:
            with self._lock:
                opened = self._opened
                self._wake()
            await opened.wait()

    def put(self, key: str, entry: Entry, text: str) -> aio.Signal:
        """Hand an entry to the thread; the signal says that it is committed, or in memory."""
        with self._lock:
            batch = self._batch
            batch.rows[key] = Row(key, text, round(entry.made * 1e6), entry.size)
            batch.entries[key] = entry
            self._wake()
        return batch.done

    def close(self) -> None:
        """Commit what is under way and let go of the file; the next use opens it again."""
        atexit.unregister(self.close)
        if self.process != os.getpid():  # connections and thread are the parent's
            return
        with self._lock:
            thread = self._thread
        if thread is not None:
            self._wakes.put(True)
            thread.join()
        self._finish()

    def let_go(self) -> None:
        """Close when nobody holds the cache any more: called by the collector, anywhere."""
        atexit.unregister(self.close)
        if self.process != os.getpid():
            return
        self._abandoned = True
        self._wakes.put(True)
        with self._lock:
            idle = self._thread is None
        if idle:
            self._drop()

    def _report(self, database: Database) -> None:
        """Tell the thread that a read found damage."""
        with self._lock:
            if self._database is database:
                self._database, self._damaged = None, database
                self._opened = aio.Signal()  # the old one is set
                self._wake()

    def _note_use(self, key: str) -> None:
        """Remember that an entry was used, until the next commit."""
        uses = self._uses  # without the lock: a use that is lost while the thread takes them does no harm
        if uses.pop(key, _UNUSED) is _UNUSED and len(uses) == _MOST_USES:
            with self._lock:
                self._wake()
        uses[key] = None

    def _wake(self) -> None:
        """Wake the thread, or start it. Under the lock."""
        self._wakes.put(False)
        if self._thread is not None:
            return
        atexit.unregister(self.close)
        atexit.register(self.close)  # its callbacks run before daemon threads stop
        self._thread = threading.Thread(target=self._run, name="synmod-cache", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is going down, and no thread starts any more
            self._thread = None
            self._work()

    # -- done by the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Work until there has been nothing to do for a while, or somebody asks to finish."""
        try:
            leave = False
            while not self._is_done(leave):
                leave = self._wakes.get()
                while not (leave or self._wakes.empty()):
                    leave = self._wakes.get()
                if leave:
                    self._finish()
                else:
                    self._work()
        finally:
            with self._lock:
                if self._thread is threading.current_thread():  # something that nobody foresaw
                    self._thread = None
        if self._abandoned:
            self._drop()

    def _is_done(self, leave: bool) -> bool:
        """Wait for something to do; without, the thread is no longer there to be woken."""
        try:
            self._wakes.put(self._wakes.get(not leave, _IDLE_S))
        except queue.Empty:
            with self._lock:
                if not self._wakes.empty():
                    return False
                self._thread = None
                return True
        return False

    def _finish(self) -> None:
        """Do what is left, and close."""
        with self._at_work:
            while self._batch.rows or self._uses:
                self._commit()
            self._drop()
            self.failed = False  # the next use tries again

    def _work(self) -> None:
        """Open the file if it is not, and commit what has gathered."""
        with self._at_work:
            self._commit()

    def _commit(self) -> None:
        """Take what has gathered, and put it into the file or into memory."""
        with self._lock:
            batch = self._writing = self._batch
            self._batch = _Batch()
            uses, self._uses = self._uses, {}
        committed = False
        try:
            committed = self._committed(batch, uses)
        finally:
            if not committed:
                self._keep_in_memory(batch)
            with self._lock:
                self._writing = self._batch
                self.failed = self.failed or self._database is None
                opened = self._opened
            opened.set()
            batch.done.set()

    def _committed(self, batch: _Batch, uses: dict[str, object]) -> bool:
        """Write a batch; a file that turns out to be damaged, or is gone, is begun anew."""
        for _ in range(_TRIES):
            if self.failed:
                break
            try:
                database = self._open()
                if batch.rows or uses:
                    database.write(batch.rows.values(), uses, self._max_bytes)
                return True
            except _ERRORS as error:
                fault = fault_of(error)
                if fault == "corrupt":
                    self._set_aside(error)
                    continue
                self.failed = fault == "unwritable" or self._database is None
                _LOG.warning("Cache %s: %s. It goes on in memory.", self._path, error)
                break
        return False

    def _open(self) -> Database:
        """Give the open file."""
        if self._damaged is not None:
            raise Unusable("corrupt", "a read found damage")
        if self._database is not None and not self._database.is_in_place:
            self._drop()
        if self._database is None:
            self._database = Database(self._path)
        return self._database

    def _set_aside(self, error: Exception) -> None:
        """Move a damaged file away, unless somebody else has."""
        database = self._damaged or self._database
        in_place = database is None or database.is_in_place
        self._drop()
        try:
            target = move_aside(self._path) if in_place else None
        except FileNotFoundError:
            target = None
        except OSError as reason:
            self.failed = True
            _LOG.warning("Cache %s: %s. It cannot be moved (%s) and goes on in memory.", self._path, error, reason)
            return
        if target is not None:
            _LOG.warning("Cache %s: %s. It was moved to %s, and begins anew.", self._path, error, target)

    def _drop(self) -> None:
        """Close the connections, whatever state they are in."""
        with self._lock:
            database = self._database or self._damaged
            self._database = self._damaged = None
            opened, self._opened = self._opened, aio.Signal()
        opened.set()  # who still waits by it asks anew
        if database is not None:
            database.close()

    def _keep_in_memory(self, batch: _Batch) -> None:
        """Remember for this process what the file did not take."""
        for key, entry in batch.entries.items():
            self._memory.keep(key, entry)
