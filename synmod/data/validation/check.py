"""What a compiled schema is made of: checks, and nodes that hold the check of one subschema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from synmod.data.schemas.check_budget import CheckBudget
from synmod.leaves.frozen import FrozenDict, FrozenList

Check: TypeAlias = Callable[[Any, CheckBudget], bool]
"""Tells whether a value passes; counts on the budget."""


class Node:
    """The check of one subschema; compiled when it is first called.

    Values of the types in `accepts` are valid without a call; of all others only `check` knows.
    """

    __slots__ = ("accepts", "check")

    def __init__(self, check: Check, accepts: frozenset[type] = frozenset()) -> None:
        self.check = check
        self.accepts = accepts


ALL_TYPES: Final = frozenset({type(None), bool, int, float, str, list, FrozenList, dict, FrozenDict})
"""The types of JSON values."""

ANYTHING: Final = Node(lambda _, __: True, ALL_TYPES)
"""The node of every schema that asks nothing."""

NOTHING: Final = Node(lambda _, __: False)
"""The node of the schema false."""


class Compiler(Protocol):
    """What the keywords need of the schema they stand in."""

    def node(self, schema: Any) -> Node:
        """Give the node of a subschema."""
        ...

    def alternatives(self, schema: Any) -> list[Any] | None:
        """Give the arms of a schema that is nothing but alternatives."""
        ...

    def behind_references(self, schema: Any) -> Any:
        """Follow references that stand alone, to what they name."""
        ...

    def target(self, schema: Mapping[str, Any]) -> Any:
        """Give the schema that the `$ref` of a schema names."""
        ...
