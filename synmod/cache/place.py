"""The place of a database file: making it, and moving aside what is there. A new file never meets the log of an old."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

try:
    import fcntl
except ImportError:  # Windows: two processes that make one file at the same moment are left to SQLite
    fcntl = None


def make_place(path: str) -> None:
    """Make folders (0700) and an empty file (0600) where there are none.

    What is left of a file that somebody deleted is removed before: SQLite shortens the shared memory that it finds, and
    whoever still had it open would crash. One process does so at a time, lest it meet what another has just begun.

    Raises:
        OSError: It cannot be made.
    """
    folder = Path(path).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.path.exists(path):
        return
    with _locked(folder):
        if os.path.exists(path):
            return
        for end in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(f"{path}{end}")
        with suppress(FileExistsError):  # a symlink that leads nowhere yet: SQLite will make what it names
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold the lock of a folder."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def move_aside(path: str) -> str:
    """Give a database file another name, beside it: the first of `.corrupt-1`, `.corrupt-2`, ... that is free.

    Its log goes with it, and the shared memory that whoever has it open still uses.

    Returns:
        The new name.

    Raises:
        OSError: It cannot be renamed, or is not there.
    """
    with _locked(Path(path).parent):
        os.stat(path)
        target = next(name for number in count(1) if not os.path.lexists(name := f"{path}.corrupt-{number}"))
        with suppress(FileNotFoundError):
            os.replace(f"{path}-wal", f"{target}-wal")
        os.replace(path, target)
        with suppress(FileNotFoundError):
            os.unlink(f"{path}-shm")
        return target
