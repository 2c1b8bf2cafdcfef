"""From ids of a file to objects of code: this call's custom objects, then the registry, and nothing else, ever."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError
from synmod.leaves.names import did_you_mean
from synmod.registry import check_registrable, load_own, lookup, registered
from synmod.saving.text.faults import load_fault, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Resolver"]

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*>[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)

Where = tuple[str | int, ...]


class Resolver:
    """Finds the objects that one file names.

    Args:
        custom_objects: `{id or bare name: object}`; None for an id says "take the schema of the file".

    Raises:
        ArgumentError: It is no mapping with str keys.
        RegistryError: An object in it, once a file uses it, is of a kind that files may not name.
    """

    def __init__(self, custom_objects: Mapping[str, Any] | None) -> None:
        load_own()
        custom: Any = {} if custom_objects is None else custom_objects
        if not hasattr(custom, "items") or not all(isinstance(key, str) for key in custom):
            raise ArgumentError("custom_objects: wanted a mapping from id or bare name to a class or function.")
        self._custom: dict[str, Any] = dict(custom)
        self._found: dict[str, Any] = {}
        self._bare: dict[str, str] = {}

    def find(self, public_id: Any, where: Where) -> Any:
        """Give the object of an id.

        Raises:
            LoadError: It is no id, or nobody registered it.
        """
        found = self.find_or_none(public_id, where)
        if found is None:
            raise load_fault(where, f"{shown(public_id)} is not registered. {_remedy(public_id)}")
        return found

    def find_or_none(self, public_id: Any, where: Where) -> Any:
        """Give the object of an id, None where nobody registered it or the caller wants none.

        Raises:
            LoadError: It is no id.
        """
        if type(public_id) is not str or not _ID.fullmatch(public_id):
            raise load_fault(
                where, f"{shown(public_id)} is no id: ids have the form 'package>Name'; a path of code means nothing."
            )
        if public_id not in self._found:
            self._found[public_id] = self._look_up(public_id, where)
        return self._found[public_id]

    def find_class(self, public_id: Any, where: Where, fits: Callable[[type], bool], wanted: str) -> type:
        """Give the class of an id.

        Raises:
            LoadError: It is not registered, or an object of another kind.
        """
        found = self.find(public_id, where)
        if not isinstance(found, type) or not fits(found):
            raise load_fault(where, f"{shown(public_id)} is {_kind(found)}, wanted {wanted}.")
        return found

    def _look_up(self, public_id: str, where: Where) -> Any:
        """Ask the caller's objects, then the registry."""
        bare = public_id.partition(">")[2]
        for key in (public_id, bare):
            if key in self._custom:
                if key == bare and self._bare.setdefault(bare, public_id) != public_id:
                    raise load_fault(
                        where,
                        f"{bare!r} in custom_objects could mean {self._bare[bare]!r} or {public_id!r}: write the id.",
                    )
                found = self._custom[key]
                if found is not None:
                    check_registrable(found, key)
                return found
        return lookup(public_id)


def _remedy(public_id: str) -> str:
    """Say what to do about an id that nobody registered."""
    package = public_id.partition(">")[0]
    return (
        f"Import the package that registers it ({shown(package)}) before loading; the loader never imports it. Or pass "
        f"custom_objects={{{shown(public_id)}: ...}}.{did_you_mean(public_id, registered())}"
    )


def _kind(found: Any) -> str:
    """Name the kind of an object that stands where another belongs."""
    return f"the class {found.__qualname__}" if isinstance(found, type) else f"a {type(found).__name__}"
