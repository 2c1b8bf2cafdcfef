"""Which classes answer for their config themselves."""

from __future__ import annotations

__all__ = ["is_overridden"]


def is_overridden(cls: type, method: str) -> bool:
    """Whether a class of one's own defines the method; the bases that synmod itself offers do not count."""
    for base in cls.__mro__:
        if method in vars(base):
            return not vars(base).get("_is_module_base", False)
    return False
