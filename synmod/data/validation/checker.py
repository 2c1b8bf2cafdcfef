"""A schema compiled into plain functions, which only tell whether a value is valid, and do that fast.

Each subschema becomes a `Node` when it is first needed; a node sorts its checks by the kind of value they speak of, so
that a value meets only those that concern it. Schemas that hold together (`$ref`, `allOf`) become one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.data.schemas.closed import target_of
from synmod.data.schemas.keywords import ASSERTIONS
from synmod.leaves.frozen import FrozenDict, FrozenList, frozen_dict, is_array, is_object

from .array_checks import array_checks
from .check import ANYTHING, NOTHING, Check, Node
from .combination_checks import combination_checks
from .object_checks import object_checks
from .scalar_checks import number_checks, string_checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from synmod.data.schemas.check_budget import CheckBudget

ALL_KINDS: Final = frozenset({"array", "boolean", "fraction", "integer", "null", "object", "string"})
"""The kinds of JSON values; a number is an integer, which 1.0 is too, or a fraction."""


class Checker:
    """Compiles the subschemas of one schema, each once, when a value first meets them."""

    __slots__ = ("_nodes", "_targets", "root", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        # A copy that shares all parts: the checker is kept with the schema, and must not keep it alive.
        self.schema: Final = frozen_dict(schema)
        self._nodes: dict[int, Node] = {}
        self._targets: dict[str, Any] = {}
        self.root: Final = self.node(self.schema)

    def node(self, schema: Any) -> Node:
        """Give the node of a subschema; bare references lead to the node of what they name."""
        schema = self.behind_references(schema)
        if not is_object(schema):
            return ANYTHING if schema else NOTHING
        if ASSERTIONS.isdisjoint(schema):
            return ANYTHING
        node = self._nodes.get(id(schema))
        if node is None:
            node = Node(NOTHING.check, self._accepted(schema))
            node.check = self._compiling(node, schema)
            self._nodes[id(schema)] = node
        return node

    def target(self, schema: Mapping[str, Any]) -> Any:
        """Give the schema that the `$ref` of a schema names."""
        reference = schema["$ref"]
        if reference not in self._targets:
            self._targets[reference] = target_of(self.schema, reference)
        return self._targets[reference]

    def alternatives(self, schema: Any) -> list[Any] | None:
        """Give the arms of a schema that is nothing but alternatives."""
        schema = self.behind_references(schema)
        return schema["anyOf"] if _asks_only("anyOf", schema) else None

    def together(self, schema: Mapping[str, Any]) -> list[Any]:
        """Give the schema and all that must hold with it, references and `allOf` followed; each once."""
        found: dict[int, Any] = {}
        pending: list[Any] = [schema]
        while pending:
            part = pending.pop()
            if id(part) not in found:
                found[id(part)] = part
                if is_object(part):
                    pending.extend(reversed(part.get("allOf", ())))
                    if "$ref" in part:
                        pending.append(self.target(part))
        return list(found.values())

    def behind_references(self, schema: Any) -> Any:
        """Follow references that stand alone, to what they name."""
        while _asks_only("$ref", schema):
            schema = self.target(schema)
        return schema

    def _accepted(self, schema: Any, within: int = 3) -> frozenset[type]:
        """Give the types of which every value is valid, as far as types and alternatives of types show it."""
        schema = self.behind_references(schema)
        if not is_object(schema):
            return frozenset()
        if _asks_only("type", schema):
            kinds = kinds_of(schema)
            types = frozenset(kind_type for kind in kinds for kind_type in _CERTAIN.get(kind, ()))
            return types | {float} if "fraction" in kinds else types
        if _asks_only("anyOf", schema) and within:
            return frozenset[type]().union(*(self._accepted(arm, within - 1) for arm in schema["anyOf"]))
        return frozenset()

    def _compiling(self, node: Node, schema: Mapping[str, Any]) -> Check:
        """Give a check that compiles the schema at its first call, and steps aside."""

        def compiling(value: Any, budget: CheckBudget) -> bool:
            node.check = self.compiled(schema)
            return node.check(value, budget)

        return compiling

    def compiled(self, schema: Mapping[str, Any]) -> Check:
        """Compile a schema that stands in the whole, its subschemas apart."""
        parts = self.together(schema)
        if any(part is False for part in parts):
            return NOTHING.check
        objects = [part for part in parts if is_object(part)]
        cost = sum(len(ASSERTIONS & part.keys()) for part in objects)
        table = self._checks_by_type(objects)
        return _checking(table, cost) if any(table.values()) else _of_type(frozenset(table), cost)

    def _checks_by_type(self, parts: list[dict[str, Any]]) -> dict[type, tuple[Check, ...]]:
        """Sort the checks by the type of value they concern; a type that is not there is not allowed."""
        kinds = ALL_KINDS.intersection(*(kinds_of(part) for part in parts if "type" in part))
        always = [check for part in parts for check in combination_checks(part, self)]
        numbers = [check for part in parts for check in number_checks(part)]
        whole: list[Check] = [] if "fraction" in kinds else [lambda number, _: number.is_integer()]
        by_kind: dict[str, tuple[tuple[type, ...], Iterable[Check]]] = {
            "null": ((type(None),), ()),
            "boolean": ((bool,), ()),
            "string": ((str,), (check for part in parts for check in string_checks(part))),
            "array": ((list, FrozenList), (check for part in parts for check in array_checks(part, self))),
            "object": ((dict, FrozenDict), (check for part in parts for check in object_checks(part, self))),
        }
        table: dict[type, tuple[Check, ...]] = {}
        for kind, (types, checks) in by_kind.items():
            if kind in kinds:
                table.update(dict.fromkeys(types, (*checks, *always)))
        if "integer" in kinds:
            table[int] = (*numbers, *always)
            table[float] = (*whole, *numbers, *always)
        return table


def _asks_only(keyword: str, schema: Any) -> bool:
    """Tell whether a keyword is the only one of a schema that asks something of a value."""
    return is_object(schema) and keyword in schema and len(ASSERTIONS.intersection(schema)) == 1


_CERTAIN: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "string": (str,),
    "array": (list, FrozenList),
    "object": (dict, FrozenDict),
}
"""The types whose values are of a kind, whatever the value; an integer may be a float as well."""


def kinds_of(schema: Mapping[str, Any]) -> set[str]:
    """Give the kinds that `type` allows; a number is an integer or a fraction."""
    names: Any = schema["type"]
    kinds = set[str](names if is_array(names) else (names,))
    return kinds | {"integer", "fraction"} if "number" in kinds else kinds


def _of_type(types: frozenset[type], cost: int) -> Check:
    """Check the type, where nothing else is asked."""

    def of_type(value: Any, budget: CheckBudget) -> bool:
        budget.left -= cost
        return type(value) in types or (isinstance(value, FrozenDict) and FrozenDict in types)

    return of_type


def _checking(table: Mapping[type, tuple[Check, ...]], cost: int) -> Check:
    """Run the checks that concern the type of the value."""

    def checking(value: object, budget: CheckBudget) -> bool:
        budget.left -= cost
        if budget.left < 0:
            budget.run_out()
        checks = table.get(type(value))
        if checks is None:
            if not isinstance(value, FrozenDict) or FrozenDict not in table:
                return False
            checks = table[FrozenDict]
        for check in checks:  # noqa: SIM110  (all() of a generator costs twice the time)
            if not check(value, budget):
                return False
        return True

    return checking
