"""Places of a schema: all that may describe the JSON at one point; alternatives, references and lists expanded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from synmod.data.subschemas import target_of
from synmod.leaves.frozen import FrozenDict, is_array

_ALTERNATIVES = ("anyOf", "oneOf", "allOf", "prefixItems")
_ITEMS = ("items", "unevaluatedItems")
_OBJECT_KEYWORDS = frozenset({"properties", "additionalProperties", "patternProperties"})


class Place:
    """One point of a schema.

    Attributes:
        objects: The schemas there that declare an object.
        names: The fields they declare, in order.
        is_open: Whether one of them admits further keys.
    """

    __slots__ = ("_children", "_places", "is_open", "names", "objects")

    def __init__(self, places: Places, objects: list[FrozenDict]) -> None:
        self._places = places
        self._children: dict[str | None, Place] = {}
        self.objects = objects
        self.names = dict.fromkeys(name for node in objects for name in node.get("properties", ()))
        self.is_open = any(any(True for _ in extra_schemas(node)) for node in objects)

    def below(self, name: str | None) -> Place:
        """Give the place of a declared field; None stands for any key that is not declared."""
        if name not in self._children:
            schemas: list[Any] = []
            for node in self.objects:
                declared = node.get("properties", {})
                schemas.extend((declared[name],) if name in declared else extra_schemas(node))
            self._children[name] = self._places.of(schemas)
        return self._children[name]


class Places:
    """The places of one schema whose references all go to definitions."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._known: dict[frozenset[int], Place] = {}
        self.root = self.of([schema])

    def of(self, schemas: Iterable[Any]) -> Place:
        """Give the place that these schemas describe together; equal sets give one place."""
        objects = {id(node): node for node in self._expanded(schemas) if declares_object(node)}
        key = frozenset(objects)
        if key not in self._known:
            self._known[key] = Place(self, list(objects.values()))
        return self._known[key]

    def target(self, reference: str) -> Any:
        """Give what a reference goes to."""
        return target_of(self._schema, reference)

    def _expanded(self, schemas: Iterable[Any]) -> Iterator[FrozenDict]:
        pending, seen = list(schemas)[::-1], set[int]()
        while pending:
            node = pending.pop()
            if not isinstance(node, FrozenDict) or id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if isinstance(node.get("$ref"), str):
                pending.append(self.target(node["$ref"]))
            for keyword in _ALTERNATIVES:
                pending.extend(reversed(node.get(keyword, ())))
            pending.extend(node[keyword] for keyword in _ITEMS if keyword in node)


def declares_object(node: FrozenDict) -> bool:
    """Tell whether a schema itself declares an object."""
    kind = node.get("type")
    if kind is None:
        return not _OBJECT_KEYWORDS.isdisjoint(node)
    return kind == "object" or (is_array(kind) and "object" in kind)


def extra_schemas(node: FrozenDict) -> Iterator[Any]:
    """Give what a schema admits at keys it does not declare; nothing if it admits none."""
    yield from node.get("patternProperties", {}).values()
    extra = node.get("additionalProperties", True)
    if extra is not False:
        yield extra
