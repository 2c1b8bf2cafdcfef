"""Atomic files: after a crash at any moment the target is the old file or the new one, never a mix.

One function writes every file that synmod makes. The writer holds a lock on its temporary file, so that the next
writer of the same target can tell work under way from what a crash left behind.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from synmod.errors import SaveError, SaveProblem

if TYPE_CHECKING:
    from collections.abc import Generator

try:
    import fcntl
except ImportError:  # Windows: no locks there, hence nothing abandoned is ever removed
    fcntl = None

__all__ = ["path_below", "write_atomic"]

_NEW_FILE = 0o600
_NEW_FOLDER = 0o700
_TRIES = 100  # each lost try means that another writer's cleaning met us between making and locking our file
_LONGEST_STEM = 200  # a name may have 255 bytes, and ours adds 22
_NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_OLD_STANDS = "What stood there before is untouched."


def write_atomic(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file whole or not at all.

    Makes a temporary file in the same folder, writes, syncs, puts it in the place of the target and syncs the folder.
    Missing folders are made (0700); a new file is 0600, a replaced one keeps its permission bits.

    Args:
        path: Where to; a symlink at its end is followed.
        data: The content; a str is written as UTF-8.

    Returns:
        The path as given.

    Raises:
        SaveError: An operation failed; the message has the path and the step, the cause is the OSError. Up to the
            replacement the old file is intact; where only the last sync of the folder failed, the text says that the
            new file stands.

    Example:
        >>> import tempfile
        >>> path = write_atomic(tempfile.mkdtemp() + "/notes/a.json", "{}")
        >>> path.read_text()
        '{}'

    Source: SQLite's atomic commit, `write-file-atomic`; differs: abandoned files are told by a lock, not by age.
    """
    content = data.encode() if isinstance(data, str) else data
    with _step(path, "finding the file"):
        target = _final_target(os.fsdecode(path))
        mode = _mode_for(target)
    folder, stem = _split(target)
    with _step(path, "making the folder"):
        _make_folders(folder)
    with _step(path, "removing abandoned temporary files"):
        _remove_abandoned(folder, stem)
    with _step(path, "making the temporary file"):
        temporary, descriptor = _open_temporary(folder, stem)
    _fill_and_replace(path, content, target, mode, temporary, descriptor)
    with _step(path, "the last sync of the folder", "The new file stands whole; a power cut could still undo it."):
        _sync_folder(folder)
    return Path(path)


def path_below(root: str | os.PathLike[str], name: str) -> Path:
    """Turn a name that comes from data into a path below `root`.

    Args:
        root: The folder that must hold it.
        name: Steps joined by `/`; characters beside letters, digits, `.`, `_`, `-` become `-`.

    Returns:
        The path; nothing is made.

    Raises:
        SaveError: The name is empty or absolute, has NUL or a `.` or `..` step, or leads through a symlink.

    Example:
        >>> path_below("runs", "agent/epoch 1").as_posix()
        'runs/agent/epoch-1'

    Source: Zip Slip, and every tool that unpacked `../../etc/passwd`.
    """
    steps = name.split("/")
    if "\0" in name or any(step in {"", ".", ".."} for step in steps):
        raise SaveError(f"{name!r} cannot be a name below {os.fspath(root)}: write plain words joined by '/'.")
    found = Path(root)
    for step in steps:
        found /= re.sub(r"[^A-Za-z0-9._-]", "-", step)
        if found.is_symlink():
            raise SaveError(f"{name!r} leads through the symlink {found}: names from data may not; remove it.")
    return found


@contextmanager
def _step(path: str | os.PathLike[str], doing: str, outcome: str = _OLD_STANDS) -> Generator[None]:
    """Turn an OSError into a SaveError that names the path and the step; a NUL in a path is Python's ValueError."""
    try:
        yield
    except (OSError, ValueError) as error:
        name = os.fsdecode(path)
        why = getattr(error, "strerror", None) or str(error)
        problem = SaveProblem(name, f"{doing}: {why}", outcome)
        raise SaveError(f"{name}: {doing} failed: {why}. {outcome}", (problem,)) from error


def _final_target(path: str) -> str:
    """Follow the symlink at the end of the path, also one that leads to nothing yet."""
    if not path or path.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, and a file name is needed", path)
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise OSError(errno.ELOOP, "the symlinks lead in a circle", path)
    return target


def _mode_for(target: str) -> int:
    """The permission bits of the new file: those of the file it replaces; nothing but a file is ever replaced."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return _NEW_FILE
    if stat.S_ISREG(found.st_mode):
        return stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, and a file name is needed", target)
    raise OSError(errno.EINVAL, "this is a pipe, socket or device, and only a regular file is replaced", target)


def _split(target: str) -> tuple[str, str]:
    """The folder, and what the names of the target's temporary files begin with."""
    folder, name = os.path.split(target)
    if len(os.fsencode(name)) > _LONGEST_STEM:
        name = os.fsencode(name)[: _LONGEST_STEM // 2].hex()[:_LONGEST_STEM]
    return folder, f".{name}."


def _make_folders(folder: str) -> None:
    """Make what is missing of a folder, each part 0700 (`os.makedirs` would give that to the last only)."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each, _NEW_FOLDER)


def _open_temporary(folder: str, stem: str) -> tuple[str, int]:
    """Make and lock a temporary file; begin anew where another writer took ours for an abandoned one."""
    for _ in range(_TRIES):
        temporary = os.path.join(folder, f"{stem}{os.urandom(8).hex()}.tmp")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(temporary, flags | getattr(os, "O_BINARY", 0), _NEW_FILE)
        kept = False
        try:
            kept = _lock(descriptor) is not False and _leads_to(temporary, descriptor)
        except BaseException:
            _drop(temporary)
            raise
        finally:
            if not kept:
                os.close(descriptor)
        if kept:
            return temporary, descriptor
    raise OSError(errno.EBUSY, "other writers keep taking the temporary file away", folder)


def _fill_and_replace(
    path: str | os.PathLike[str], content: bytes, target: str, mode: int, temporary: str, descriptor: int
) -> None:
    """Write, sync and put in place; on any failure, interrupts included, the temporary file goes."""
    replaced = False
    try:
        with _step(path, "writing the temporary file"):
            _write_all(descriptor, content)
            if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
                os.chmod(temporary if os.name == "nt" else descriptor, mode)
        with _step(path, "syncing the temporary file"):
            os.fsync(descriptor)
        with _step(path, "replacing the file"):
            os.replace(temporary, target)
        replaced = True
    finally:
        if not replaced:
            _drop(temporary)
        with suppress(OSError):  # all is on the disk already, or the write has failed with an error of its own
            os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    """Write everything: one `os.write` may take only a part."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: str) -> None:
    """Bring the new name to the disk; a file system that cannot sync folders says EINVAL."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _remove_abandoned(folder: str, stem: str) -> None:
    """Remove the temporary files of this target that nobody holds."""
    if fcntl is None:
        return
    pattern = re.compile(re.escape(stem) + r"[0-9a-f]{16}\.tmp")
    with suppress(PermissionError):  # a folder that may be written but not listed
        for name in os.listdir(folder):
            if pattern.fullmatch(name):
                _remove_if_abandoned(os.path.join(folder, name))


def _remove_if_abandoned(temporary: str) -> None:
    """Unlink one temporary file, only while we hold its lock."""
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return  # gone meanwhile, or another user's
    try:
        if _lock(descriptor) is True and _leads_to(temporary, descriptor):
            os.unlink(temporary)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Take the lock of an open file without waiting: False if another holds it, None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # never lockf: that lock dies with any other descriptor
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS_HERE:
            return None
        raise
    return True


def _leads_to(name: str, descriptor: int) -> bool:
    """Whether the name still leads to the open file."""
    try:
        found = os.stat(name, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))


def _drop(temporary: str) -> None:
    """Remove a temporary file if possible."""
    with suppress(OSError):
        os.unlink(temporary)
