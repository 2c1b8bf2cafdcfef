"""Steps: which keys of dicts and nodes can stand in a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from synmod.errors import GraphError
from synmod.leaves.frozen import INT_END
from synmod.leaves.names import path_str

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synmod.leaves.names import KeyPath


class BadKey(NamedTuple):
    """A key that cannot be a step.

    Attributes:
        key: The key, as text.
        why: What is wrong with it.
        is_step: Whether it could be one where only plain values are below.
    """

    key: str
    why: str
    is_step: bool


def bad_key(pairs: Sequence[tuple[Any, Any]], *, may_repeat: bool) -> BadKey | None:
    """Find a key that cannot be a step: the first of another type than str and int, else one that is not unique.

    Args:
        pairs: `(key, child)` pairs.
        may_repeat: Whether one key may come twice, as in no dict.
    """
    compare = may_repeat
    empty: BadKey | None = None
    for key, _ in pairs:
        if type(key) is str:
            if not key:
                empty = BadKey("''", "is empty", is_step=True)
        elif type(key) is not int:
            return BadKey(f"{key!r:.200}", f"is of type {type(key).__name__}", is_step=False)
        elif not -INT_END < key < INT_END:
            return BadKey(f"of {key.bit_length()} bits", "is an int of too many digits", is_step=False)
        else:
            compare = True
    return empty or (_repeated(pairs) if compare else None)


def refuse_key(bad: BadKey, path: KeyPath) -> NoReturn:
    """Raise for a bad key on the way to a node or Variable."""
    raise GraphError(f"{where(path)}: the key {bad.key} {bad.why}, and a node or Variable is below: {_RULE}.")


def where(path: KeyPath) -> str:
    """Say where, for the beginning of a message."""
    return f"At {path_str(path)!r}" if path else "At the root"


_RULE: Final = "keys on the way to one must be str (not empty) or int, and differ as text"


def _repeated(pairs: Sequence[tuple[Any, Any]]) -> BadKey | None:
    """Find a key that is written like one before it."""
    texts: set[str] = set()
    for key, _ in pairs:
        if str(key) in texts:
            return BadKey(repr(key), "looks like another key when written as text", is_step=True)
        texts.add(str(key))
    return None
