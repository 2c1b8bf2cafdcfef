"""Loading a program as the class that the caller expects."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from synmod.errors import LoadError

T = TypeVar("T")


def load_as(cls: type[T], path: str | os.PathLike[str], **options: Any) -> T:
    """Load a file whose root is a `cls`.

    Args:
        cls: The class expected.
        path: The file.
        **options: Those of `sm.load`.

    Returns:
        The program.

    Raises:
        LoadError: The root is of another class; names it. Else as `sm.load`.
    """
    from synmod.saving import load

    loaded = load(path, **options)
    if isinstance(loaded, cls):
        return loaded
    file = os.fsdecode(path)
    found = type(loaded).__name__
    raise LoadError(
        f"{file}: /graph/root: the file holds a {found}, which is no {cls.__name__}: load it with sm.load.",
        where="/graph/root",
        file=file,
    )
