"""Moving a file aside: nothing is deleted, and what takes its place never meets what was beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count


def move_aside(path: str) -> str:
    """Give a database file another name, beside it: the first of `.corrupt-1`, `.corrupt-2`, ... that is free.

    Its log goes first: a new file must never find the log of an old one.

    Returns:
        The new name.

    Raises:
        OSError: It cannot be renamed, or is not there.
    """
    os.stat(path)
    for number in count(1):
        target = f"{path}.corrupt-{number}"
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # the name is ours
        except FileExistsError:
            continue
        with suppress(FileNotFoundError):
            os.replace(f"{path}-wal", f"{target}-wal")
        with suppress(FileNotFoundError):
            os.unlink(f"{path}-shm")
        os.replace(path, target)
        return target
    raise AssertionError  # names never end
