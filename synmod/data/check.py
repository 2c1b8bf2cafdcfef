"""What a compiled schema is made of: checks, and nodes that hold the check of one subschema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from .check_budget import CheckBudget

Check: TypeAlias = Callable[[Any, CheckBudget], bool]
"""Tells whether a value passes; counts on the budget."""


class Node:
    """The check of one subschema; compiled when it is first called."""

    __slots__ = ("check",)

    def __init__(self, check: Check) -> None:
        self.check = check


ANYTHING: Final = Node(lambda _, __: True)
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
