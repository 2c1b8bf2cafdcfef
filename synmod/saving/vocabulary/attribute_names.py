"""Which attribute names a file may hold: a file that could set `__class__` or `call` would be code."""

from __future__ import annotations

import types

from synmod.module import Module

__all__ = ["AttributeNames"]

_LONGEST_STEP = 10
_REMEMBERED = 10_000
_DECLARATIONS = frozenset({"input_spec", "output_spec"})
"""Names that Module answers by a descriptor and that an instance may set."""


class AttributeNames(dict[tuple[type, str], str | None]):
    """The fault of each name in each class, None for a good one; found out once a document."""

    def __missing__(self, key: tuple[type, str]) -> str | None:
        fault = _fault(*key)
        if len(self) < _REMEMBERED:
            self[key] = fault
        return fault


def _fault(cls: type, name: str) -> str | None:
    """Say why instances of a class cannot have a saved attribute of this name."""
    if len(name) < _LONGEST_STEP and name.isdecimal() and name.isascii() and str(int(name)) == name:
        return None  # an int step, such as a member of a Sequential: no attribute that code could mean
    if not name.isidentifier():
        return "an attribute name that is no identifier"
    if name.startswith("__") and name.endswith("__"):
        return "an attribute with the name of a special method"
    if name in Module.__slots__:
        return "an attribute with the name of the base class's own bookkeeping"
    if name in _DECLARATIONS:
        return None
    for base in cls.__mro__:
        if name in vars(base):
            found: object = vars(base)[name]
            if isinstance(found, types.MemberDescriptorType):
                return None
            if hasattr(type(found), "__get__"):
                return f"an attribute that hides {name!r} of class {base.__name__}"
    return None
