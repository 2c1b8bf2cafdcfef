"""Where leaves go: paths, aliases and nested JSON, looked up in a graph definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from synmod.errors import ArgumentError
from synmod.leaves.names import KeyPath, did_you_mean, parse_path, path_str
from synmod.tree.graphs.defs import ContainerDef, NodeDef, StaticDef, VariableRef
from synmod.tree.states.path_map import PathMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.tree.graphs.defs import Definition, NodeRef, Term

Graph: TypeAlias = "tuple[Term, Mapping[int, Definition]]"

StateLike: TypeAlias = Any
"""A State, or raw JSON: nested by key, or by path texts; its leaves may be VariableStates too."""

_MANY = 1_000  # names among which, and words for which, no near one is sought


ABSENT = ("unknown", "lost", "range")
"""Kinds of a path that leads nowhere."""


class Misfit(NamedTuple):
    """Why no leaf can be put at a path.

    Attributes:
        kind: `unknown` (its holder is there), `lost` (not even that), `range` (an index that is not there), `static`,
            `subgraph` (a leaf came, parts are there) or `leaf` (the reverse).
        path: The path, as it was given.
        text: What to say of it.
        holder: The path of the deepest thing that is there, for `unknown`.
    """

    kind: str
    path: KeyPath
    text: str
    holder: KeyPath = ()


class Given(NamedTuple):
    """One leaf that somebody handed in: its path as given, the index of the Variable (or why there is none), itself."""

    path: KeyPath
    target: int | Misfit
    leaf: Any


class Layout:
    """Finds the Variable that a path means.

    Args:
        graph: Gives what stands at the root, and the definitions by index; asked only for what is no canonical path.
        leaf_paths: Index of each Variable by canonical path.
        texts: Likewise by path text, where somebody has them.
    """

    def __init__(
        self, graph: Callable[[], Graph], leaf_paths: Mapping[KeyPath, int], texts: Mapping[str, int] | None = None
    ) -> None:
        self._graph = graph
        self._known: Graph | None = None
        self._leaf_paths = leaf_paths
        self._texts = texts
        self._opened: dict[int, dict[str, tuple[Any, Term]]] = {}
        self._sought = 0

    def given(self, state: StateLike, what: str) -> Iterator[Given]:
        """Go through the leaves of a State or of raw JSON.

        Raises:
            ArgumentError: It is neither.
        """
        if isinstance(state, PathMap):
            known = self._leaf_paths
            for path, leaf in state.items():  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                index = known.get(path)
                yield Given(path, self.find(path) if index is None else index, leaf)
        elif () in self._leaf_paths and not _is_by_path(state):
            yield Given((), self._leaf_paths[()], state)
        elif isinstance(state, Mapping | list):
            raw = state if isinstance(state, Mapping) else enumerate(state)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from self._raw(dict(raw))  # pyright: ignore[reportUnknownArgumentType]
        else:
            raise ArgumentError(f"{what} takes a State, or its JSON by nested keys or path texts; got {state!r:.200}.")

    def find(self, path: KeyPath | str) -> int | Misfit:
        """Find the Variable at a path, which may be an alias, or at a path text."""
        if isinstance(path, str):
            index = self._by_text().get(path)
            if index is not None:
                return index
        else:
            index = self._leaf_paths.get(path)
            if index is not None:
                return index
        reached, steps = self._reach(self._root(), (), path)
        if isinstance(reached, VariableRef):
            return reached.index
        return reached if isinstance(reached, Misfit) else _no_leaf(reached, steps)

    def _root(self) -> Term:
        """Give what stands at the root."""
        if self._known is None:
            self._known = self._graph()
        return self._known[0]

    def _by_text(self) -> Mapping[str, int]:
        if self._texts is None:
            self._texts = {path_str(path): index for path, index in self._leaf_paths.items()}
        return self._texts

    def _raw(self, json: Mapping[Any, Any]) -> Iterator[Given]:
        """Go through raw JSON, iteratively: at each level a key is a step, or a path text from there."""
        texts = self._by_text()
        if all(type(key) is str and key in texts for key in json):
            for key, value in json.items():
                yield Given(parse_path(key), texts[key], value)
            return
        root = self._root()
        pending: list[tuple[Term, KeyPath, Any, Any]] = [(root, (), key, json[key]) for key in _backwards(json)]
        while pending:
            term, above, key, value = pending.pop()
            reached, steps = self._reach(term, above, key)
            if isinstance(reached, Misfit):
                yield Given(steps, reached, value)
            elif isinstance(reached, VariableRef):
                yield Given(steps, reached.index, value)
            elif isinstance(reached, StaticDef) or not isinstance(value, Mapping | list):
                yield Given(steps, _no_leaf(reached, steps), value)
            elif isinstance(value, list):
                pending += [(reached, steps, at, value[at]) for at in range(len(value) - 1, -1, -1)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            else:
                pending += [(reached, steps, at, value[at]) for at in _backwards(value)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def _reach(self, term: Term, above: KeyPath, key: Any) -> tuple[Term | Misfit, KeyPath]:
        """Follow a key from a place: one step, a path text, or a tuple of exact steps."""
        if isinstance(key, tuple):
            return self._descend(term, above, key, exact=True)  # pyright: ignore[reportUnknownArgumentType]
        if type(key) is int:
            return self._descend(term, above, (key,), exact=True)
        if not isinstance(key, str):
            path = (*above, str(key))
            return Misfit("unknown", path, f"{path_str(path)!r} (a key of type {type(key).__name__})", above), path
        found = self._descend(term, above, parse_path(key), exact=False)
        if isinstance(found[0], Misfit) and ("/" in key or "~" in key):
            raw = self._descend(term, above, (key,), exact=False)
            return found if isinstance(raw[0], Misfit) else raw
        return found

    def _descend(self, term: Term, above: KeyPath, steps: KeyPath, *, exact: bool) -> tuple[Term | Misfit, KeyPath]:
        """Go down step by step; `exact` tells 1 and "1" apart."""
        way: list[str | int] = []
        for count, step in enumerate(steps):
            inner = None if isinstance(term, VariableRef | StaticDef) else term
            found = None if inner is None else self._open(inner).get(str(step))
            if found is None or (exact and (type(found[0]) is not type(step) or found[0] != step)):
                path, whole = (*above, *way), (*above, *way, *steps[count:])
                if inner is not None:
                    return self._unknown(inner, path, whole, last=count == len(steps) - 1), whole
                return _past_the_end(term, path, whole), whole
            way.append(found[0])
            term = found[1]
        return term, (*above, *way)

    def _open(self, term: NodeRef | ContainerDef) -> dict[str, tuple[Any, Term]]:
        """Give what is below a place, by step text."""
        assert self._known is not None
        definition = term if isinstance(term, ContainerDef) else self._known[1].get(term.index, term)
        below = self._opened.get(id(definition))
        if below is None:
            pairs: Any = ()
            if isinstance(definition, ContainerDef):
                pairs = zip(definition.steps, definition.children, strict=True)
            elif isinstance(definition, NodeDef):
                pairs = definition.attributes
            below = self._opened[id(definition)] = {str(step): (step, child) for step, child in pairs}
        return below

    def _unknown(self, term: NodeRef | ContainerDef, holder: KeyPath, path: KeyPath, *, last: bool) -> Misfit:
        """Say that nothing is at a path."""
        text = path_str(path)
        if isinstance(term, ContainerDef) and term.type in (list, tuple) and _is_index(path[len(holder)]):
            return Misfit(
                "range",
                path,
                f"{text!r} (the index is out of range: {len(term.children)} there)",
                holder if last else (),
            )
        self._sought += 1
        known = self._by_text() if self._sought <= 3 and len(self._leaf_paths) <= _MANY else ()
        shown = repr(path) if text in known else repr(text)  # a str in the place of an int, or the reverse
        return Misfit("unknown" if last else "lost", path, f"{shown}{did_you_mean(text, known)}", holder)


def _past_the_end(term: Term, path: KeyPath, whole: KeyPath) -> Misfit:
    """Say that a path goes on where nothing is below."""
    if isinstance(term, VariableRef):
        return Misfit("leaf", whole, f"Expected a leaf at {path_str(path)!r}, got {path_str(whole)!r}")
    return Misfit("lost", whole, f"{path_str(whole)!r} ({path_str(path)!r} is no holder)", path)


def _no_leaf(reached: Term, path: KeyPath) -> Misfit:
    """Say that what is at a path is no Variable."""
    text = path_str(path)
    if isinstance(reached, StaticDef):
        return Misfit("static", path, f"{text!r} ({type(reached.value).__name__})")
    return Misfit("subgraph", path, f"Expected a subgraph at {text!r} ({reached.type.__name__}), got a leaf")


def _is_by_path(state: Any) -> bool:
    """Tell whether something given for a bare Variable names its path, which is empty."""
    return isinstance(state, Mapping) and len(state) == 1 and next(iter(state)) in ("", ())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _is_index(step: Any) -> bool:
    return type(step) is int or (isinstance(step, str) and step.isdecimal())


def _backwards(keys: Mapping[Any, Any]) -> list[Any]:
    return list(reversed(list(keys)))
