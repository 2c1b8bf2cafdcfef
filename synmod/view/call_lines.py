"""Lines of data flow as the last recorded call drew them: values are followed from the call that gave them.

A value is known by being the very object that came out of an earlier call. Where a module made a new value of it, its
fields are: a text or a list that was put into another data model is still the same object.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from synmod.data import JsonDataModel
from synmod.flow import leaves
from synmod.leaves.frozen import FrozenDict, FrozenList
from synmod.view.recorded import calls_below
from synmod.view.schema_text import title_text

if TYPE_CHECKING:
    from synmod.module import Module
    from synmod.scope import TraceNode
    from synmod.view.picture import Node
    from synmod.view.sketch import Sketch

_MOST_PARTS: Final = 1000
_SHORTEST_TEXT: Final = 2  # Python keeps one object for each shorter text, whoever made it

Giver = tuple["Node", float]
"""A node that gave a value, and when it was there."""


def draw_calls(sketch: Sketch, root: TraceNode, modules: dict[str, Module], drawn: set[str]) -> set[str]:
    """Draw what flowed inside the modules of a recorded call whose insides are not drawn yet.

    Args:
        sketch: Where to.
        root: The recorded entry call.
        modules: The modules by path.
        drawn: The paths of those whose insides are known better, from their graph.

    Returns:
        The paths of those that were drawn here.
    """
    found: set[str] = set()
    for call in calls_below(root):
        if call.children and call.inputs is not None and call.path in modules and call.path not in drawn:
            found.add(call.path)
            _Inside(sketch, call, modules[call.path]).draw()
    return found


class _Inside:
    """One call of a module, seen from inside: who gave which value, when."""

    def __init__(self, sketch: Sketch, call: TraceNode, module: Module) -> None:
        self.sketch = sketch
        self.call = call
        self.holder = sketch.by_path[call.path]
        self.module = module
        self.values: dict[int, list[Giver]] = {}
        self.parts: dict[int, list[Giver]] = {}

    def draw(self) -> None:
        """Draw the lines between what went in, the calls below, and what came out."""
        for name, value in self._arguments():
            port = self.sketch.port(self.holder, "input", name, getattr(value, "_schema", None))
            self._give(value, port, self.call.start)
        children = [(child, self.sketch.by_path.get(child.path)) for child in self.call.children]
        for child, node in children:
            if node is not None and child.end is not None:
                for value in _values(child.outputs):
                    self._give(value, node, child.end)
        for givers in (*self.values.values(), *self.parts.values()):
            givers.sort(key=itemgetter(1))
        for child, node in children:
            if node is not None:
                for value in _values([child.inputs, child.kwargs]):
                    self._take(value, node, child.start)
        for index, value in enumerate(_values(self.call.outputs)):
            name = "output" if not index else f"output_{index}"
            port = self.sketch.port(self.holder, "output", name, value._schema)
            self._take(value, port, float("inf"))

    def _arguments(self) -> Iterator[tuple[str, JsonDataModel[Any]]]:
        """The values that went in, with the names of their parameters."""
        signature = self.module._record.declaration.call
        named: list[tuple[str, Any]] = []
        for index, argument in enumerate(self.call.inputs or ()):
            parameter = signature.parameter(index)
            named.append((f"input_{index}" if parameter is None else parameter.name, argument))
        for name, argument in [*named, *(self.call.kwargs or {}).items()]:
            for index, value in enumerate(_values(argument)):
                yield f"{name}_{index}" if index else name, value

    def _give(self, value: JsonDataModel[Any], node: Node, at: float) -> None:
        """Note that a node gave a value."""
        self.values.setdefault(id(value), []).append((node, at))
        for part in _parts(value):
            self.parts.setdefault(id(part), []).append((node, at))

    def _take(self, value: JsonDataModel[Any], node: Node, at: float) -> None:
        """Draw the lines to a node that took a value."""
        title = title_text(value._schema)
        giver = _latest(self.values.get(id(value), ()), at)
        found = [giver] if giver else [_first(self.parts.get(id(part), ()), at) for part in _parts(value)]
        for source in dict.fromkeys(each.id for each in found if each is not None):
            self.sketch.connect(self.sketch.by_path[source], node, "data", title)


def _latest(givers: Sequence[Giver], at: float) -> Node | None:
    """The node that gave a value last before a moment: a module may hand on what it was given."""
    index = bisect_right(givers, at, key=itemgetter(1))
    return givers[index - 1][0] if index else None


def _first(givers: Sequence[Giver], at: float) -> Node | None:
    """The node that gave a part first: it may have gone on in the values of others."""
    return givers[0][0] if givers and givers[0][1] <= at else None


def _values(nest: Any) -> list[JsonDataModel[Any]]:
    """The values of a nest."""
    return [leaf for leaf in leaves(nest) if isinstance(leaf, JsonDataModel)]


def _parts(value: JsonDataModel[Any]) -> Iterator[Any]:
    """The texts, lists and objects in a value that are objects of their own."""
    waiting: list[Any] = [value._json]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        if isinstance(part, FrozenDict | FrozenList):
            yield part
            waiting += part.values() if isinstance(part, FrozenDict) else part
        elif isinstance(part, float) or (isinstance(part, str) and len(part) >= _SHORTEST_TEXT):
            yield part
