"""Reading a file whose content nobody vouches for: a regular file, of limited size, opened once."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from synmod.saving.text.faults import load_fault, malformed

if TYPE_CHECKING:
    from synmod.saving.text.limits import FileLimits

__all__ = ["file_bytes"]

_BLOCK = 1 << 20


def file_bytes(path: str | os.PathLike[str], limits: FileLimits) -> bytes:
    """Read a whole file.

    Raises:
        FileNotFoundError: There is none.
        LoadError: It is a folder, a pipe or a device.
        FormatError: It is larger than `max_bytes`.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)  # without waiting: opening a pipe would wait for a writer
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise load_fault((), "this is no regular file, but a folder, pipe, socket or device.")
        size = found.st_size
        blocks: list[bytes] = []
        if size <= limits.max_bytes:
            size = 0
            while size <= limits.max_bytes:
                block = os.read(descriptor, min(_BLOCK, limits.max_bytes + 1 - size))
                if not block:
                    return b"".join(blocks)
                blocks.append(block)
                size += len(block)
    finally:
        os.close(descriptor)
    raise malformed(
        (), f"{size:,} bytes, and max_bytes is {limits.max_bytes:,}: limits=sm.FileLimits(max_bytes=...) raises it."
    )
