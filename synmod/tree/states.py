"""State: the values of a program by path; and `fit`, which assigns values given by path to the Variables of a graph.

A State is frozen, ordered, plain data to filter, combine, compare and fingerprint. `fit` finds the Variable at each
path and checks the value against its schema; it collects all faults, which are raised together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

from synmod.data import Schema, problems
from synmod.errors import ArgumentError, DataError, FieldError, Problem, StateError, StateSchemaError
from synmod.leaves import FrozenDict, Json, KeyPath, did_you_mean, frozen, json_equal, parse_path, path_str

from .filters import Everything, Filter, FilterLike, to_filter
from .graphdef import GraphDef, canonical_json, class_text
from .paths import Edges
from .variable import Immutable, Variable, VariableState, snapshot
from .walk import Visit

T = TypeVar("T")

StateLike: TypeAlias = Any
"""A State, or a dict `{path text: value}`; paths may also be tuples, and values may also be VariableStates."""

Change = tuple[VariableState | None, VariableState | None]


class State(Immutable, Mapping[KeyPath, VariableState]):
    """A frozen, ordered mapping from path to `VariableState`.

    Iterates over leaf paths in definition order. `state[path]` takes a tuple of steps, a path text or one key, and
    returns a leaf or the State below; `state.encoder` works for identifiers.

    Args:
        leaves: Leaves by path, as tuples or texts.

    Raises:
        StateError: A path is invalid, given twice, or below another leaf; or a leaf is not a VariableState.

    Example:
        >>> from synmod.tree import Param, state
        >>> state({"a": Param("x")}).to_json()
        {'a': 'x'}

    Source: Flax NNX `State`; differs: frozen, values are always valid.
    """

    __slots__ = ("__weakref__", "_fingerprint", "_leaves")

    _leaves: Mapping[KeyPath, VariableState]
    _fingerprint: str | None

    def __init__(self, leaves: Mapping[KeyPath | str, VariableState] | None = None) -> None:
        self._put(_leaves=_check_leaves(leaves or {}), _fingerprint=None)

    @classmethod
    def of_leaves(cls, leaves: Mapping[KeyPath, VariableState]) -> State:
        """Make a State of leaves that are known to be valid together."""
        new = cls.__new__(cls)
        cls._put(new, _leaves=leaves, _fingerprint=None)
        return new

    @classmethod
    def from_flat(cls, leaves: Mapping[KeyPath | str, VariableState]) -> State:
        """Make a State of leaves by path; the reverse of `flat`.

        Raises:
            StateError: A path is invalid or below another leaf; or a leaf is not a VariableState.
        """
        return cls(leaves)

    @classmethod
    def from_json(cls, graphdef: GraphDef[Any], json: StateLike) -> State:
        """Read the JSON that `to_json` returned; types and key types come from the graph.

        Raises:
            StateError: A path is not in the graph.
            StateSchemaError: A value does not satisfy its schema.
        """
        definitions: Any = graphdef.definitions
        fitted, faults = fit(graphdef, [json], "State.from_json")
        raise_faults("State.from_json", faults)
        leaves: dict[KeyPath, VariableState] = {}
        for path, index in graphdef.leaf_paths.items():
            if index in fitted:
                definition = definitions[index]
                leaves[path] = snapshot(definition.type, fitted[index].value, definition.schema, definition.metadata)
        return cls.of_leaves(leaves)

    def flat(self) -> dict[KeyPath, VariableState]:
        """Return `{path: leaf}` as a plain dict."""
        return dict(self._leaves)

    def to_json(self) -> dict[str, Json]:
        """Return `{path text: value}`; the values are frozen."""
        return {path_str(path): leaf.value for path, leaf in self._leaves.items()}

    def filter(self, filter: FilterLike) -> State:  # noqa: A002  (the public name)
        """Return the State of the leaves that a filter takes."""
        selection = to_filter(filter)
        return State.of_leaves({p: leaf for p, leaf in self._leaves.items() if selection.matches(p, leaf, False)})

    @overload
    def split(self, only: FilterLike = ..., /) -> State: ...
    @overload
    def split(self, first: FilterLike, second: FilterLike, /, *more: FilterLike) -> tuple[State, ...]: ...
    def split(self, *filters: FilterLike) -> State | tuple[State, ...]:
        """Put every leaf into the State of the first filter that takes it.

        Returns:
            A State for one filter, a tuple of them for more.

        Raises:
            StateError: A leaf matches no filter (contains 'Non-exhaustive'), or `...` is not the last filter.
        """
        leaves = [(path, leaf, False) for path, leaf in self._leaves.items()]
        parts = [State.of_leaves(dict(part)) for part in partition(leaves, list(map(to_filter, filters)))]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def map(self, fn: Callable[[KeyPath, VariableState], Json]) -> State:
        """Return a State in which every value is replaced by `fn(path, leaf)`.

        Raises:
            StateSchemaError: A result does not satisfy its schema; lists every path.
        """
        return self._with({path: fn(path, leaf) for path, leaf in self._leaves.items()}, "map")

    def replace(self, json: StateLike) -> State:
        """Return a State in which the given leaves are replaced.

        Args:
            json: A State, or values by path text.

        Raises:
            StateError: A path is not in this State.
            StateSchemaError: A value does not satisfy its schema.
        """
        texts = {path_str(path): path for path in self._leaves}
        values = {
            path if isinstance(path, str) else path_str(path): value for path, value in leaves_of(json, "replace")
        }
        unknown = [f"{text!r}{did_you_mean(text, texts)}" for text in values if text not in texts]
        return self._with({path: values[text] for text, path in texts.items() if text in values}, "replace", unknown)

    def _with(self, values: Mapping[KeyPath, Any], what: str, unknown: Sequence[str] = ()) -> State:
        """Return this State with some values changed; all are checked."""
        faults = [LeafFault(len(self), f"Unknown keys: {', '.join(unknown)}")] if unknown else []
        new = dict(self._leaves)
        for order, (path, value) in enumerate(values.items()):
            old = new[path]
            checked = check_leaf(path, value, old.schema, order, faults)
            if checked is not None:
                new[path] = snapshot(old.type, checked.value, old.schema, old.metadata)
        raise_faults(what, faults)
        return State.of_leaves(new)

    def diff(self, other: State) -> dict[str, Change]:
        """Return `{path text: (old, new)}` for the leaves that differ; None where a path is absent."""
        before, after = self._leaves, other._leaves
        changes: dict[str, Change] = {}
        for path, old in before.items():
            new = after.get(path)
            if new is None or (old is not new and old != new):
                changes[path_str(path)] = old, new
        changes.update({path_str(path): (None, new) for path, new in after.items() if path not in before})
        return changes

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of paths, types, values, schemas and metadata: equal for equal States, in every process."""
        digest = self._fingerprint
        if digest is None:
            rows = [
                [list(path), class_text(leaf.type), leaf.value, leaf.schema, leaf.metadata]
                for path, leaf in self._leaves.items()
            ]
            texts = sorted(map(canonical_json, rows))
            digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
            self._put(_fingerprint=digest)
        return digest

    def __getitem__(self, path: KeyPath | str | int) -> Any:
        result = self._find(path)
        if result is None:
            paths = [path_str(leaf_path) for leaf_path in self._leaves]
            text = path_str(path) if isinstance(path, tuple) else str(path)
            raise FieldError(f"There is nothing at {path!r:.200}.{did_you_mean(text, paths)}")
        return result

    def __contains__(self, path: object) -> bool:
        return isinstance(path, tuple | str | int) and self._find(path) is not None  # pyright: ignore[reportUnknownArgumentType]

    def _find(self, path: KeyPath | str | int) -> Any:
        """Return the leaf, or the State below, at a path, path text or single key; None if there is neither."""
        if isinstance(path, str):
            result = self._at(parse_path(path))
            return self._at((path,)) if result is None else result
        return self._at(path if isinstance(path, tuple) else (path,))

    def _at(self, steps: KeyPath) -> Any:
        leaf = self._leaves.get(steps)
        if leaf is not None:
            return leaf
        depth, texts = len(steps), _texts(steps)
        below = {path[depth:]: leaf for path, leaf in self._leaves.items() if _texts(path[:depth]) == texts}
        return below.get(()) or (State.of_leaves(below) if below or not depth else None)

    def __getattr__(self, name: str) -> Any:
        result = None if name.startswith("_") else self._at((name,))
        if result is None:
            raise FieldError(f"State has no leaf and no method {name!r}.")
        return result

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self._leaves)

    def __len__(self) -> int:
        return len(self._leaves)

    def items(self) -> ItemsView[KeyPath, VariableState]:
        """`(path, leaf)` pairs, in definition order."""
        return self._leaves.items()

    def __or__(self, other: State) -> State:
        if not isinstance(other, State):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            return NotImplemented
        leaves = {**self._leaves, **other._leaves}
        if len(leaves) > max(len(self), len(other)):  # each has paths that the other lacks
            _check_apart(leaves)
        return State.of_leaves(leaves)

    def __sub__(self, other: State) -> State:
        if not isinstance(other, State):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            return NotImplemented
        return State.of_leaves({path: leaf for path, leaf in self._leaves.items() if path not in other._leaves})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self is other or dict(self._leaves) == dict(other._leaves)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (dict(self._leaves),)

    def __repr__(self) -> str:
        inside = ", ".join(f"{path_str(path)!r}: {leaf!r}" for path, leaf in list(self._leaves.items())[:20])
        more = f", ... {len(self) - 20} more" if len(self) > 20 else ""
        return f"State({{{inside}{more}}})"


def partition(leaves: Iterable[tuple[KeyPath, T, bool]], filters: Sequence[Filter]) -> list[list[tuple[KeyPath, T]]]:
    """Assign each leaf to the first filter that takes it.

    Args:
        leaves: Path, leaf, and whether a frozen module is above it.
        filters: The filters; without any, all leaves are one part.

    Returns:
        A list of `(path, leaf)` for each filter, in the given order.

    Raises:
        StateError: `...` is not the last filter, or leaves match no filter.
    """
    for index, part_filter in enumerate(filters[:-1]):
        if isinstance(part_filter, Everything):
            raise StateError(f"Filter {index}: `...` (or True) can only be used as the last of {len(filters)} filters.")
    if not filters:
        return [[(path, leaf) for path, leaf, _ in leaves]]
    parts: list[list[tuple[KeyPath, T]]] = [[] for _ in filters]
    remainder: list[KeyPath] = []
    for path, leaf, masked in leaves:
        for part, part_filter in zip(parts, filters, strict=True):
            if part_filter.matches(path, leaf, masked):
                part.append((path, leaf))
                break
        else:
            remainder.append(path)
    if remainder:
        names = ", ".join(repr(path_str(path)) for path in remainder)
        raise StateError(f"Non-exhaustive filters: no filter takes {names}. Add `...` as the last one.")
    return parts


def _check_leaves(leaves: Mapping[KeyPath | str, VariableState]) -> dict[KeyPath, VariableState]:
    """Check paths and leaves given by a user."""
    checked: dict[KeyPath, VariableState] = {}
    for path, leaf in leaves.items():
        steps = parse_path(path) if isinstance(path, str) else path
        if not isinstance(steps, tuple) or not all(type(x) is int or (type(x) is str and x) for x in steps):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise StateError(f"{path!r:.200} is not a path: write a tuple of steps, each a non-empty str or an int.")
        if not isinstance(leaf, VariableState):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            raise StateError(f"At {path_str(steps)!r}: a leaf must be a VariableState, not {type(leaf).__name__}.")
        if steps in checked:
            raise StateError(f"{path_str(steps)!r} is given twice.")
        checked[steps] = leaf
    _check_apart(checked)
    return checked


def _check_apart(paths: Iterable[KeyPath]) -> None:
    """Raise StateError for paths that exclude each other: the same as text, or one below another."""
    faults: list[str] = []
    previous: KeyPath | None = None
    for path in sorted(paths, key=_texts):
        texts, lead = _texts(path), () if previous is None else _texts(previous)
        if previous is None or texts[: len(lead)] != lead:
            previous = path
        elif texts == lead:
            faults.append(f"{previous!r} and {path!r} have the same path text {path_str(path)!r}")
        else:
            faults.append(f"{path_str(path)!r} is below the leaf {path_str(previous)!r}")
    if faults:
        raise StateError(f"{'; '.join(faults)}.")


def _texts(path: KeyPath) -> tuple[str, ...]:
    return tuple(map(str, path))


# -- fitting -----------------------------------------------------------------------------------------------------------

_LAST = float("inf")
_MOST_HINTS, _MOST_NAMES = 3, 1_000  # limits of 'did you mean': unknown paths with a hint, known paths to search


class LeafFault(NamedTuple):
    """One given value that does not fit: its place in definition order, the text to report, and schema problems."""

    order: float
    text: str
    problems: tuple[Problem, ...] = ()


def raise_faults(what: str, faults: Sequence[LeafFault]) -> None:
    """Raise one error for all faults, in definition order; do nothing without faults.

    Raises:
        StateSchemaError: A value does not satisfy its schema.
        StateError: Anything else.
    """
    if not faults:
        return
    ordered = sorted(faults, key=lambda fault: fault.order)
    text = "\n".join([f"{what}: the State does not fit.", *(f"  {fault.text}" for fault in ordered)])
    problems = [problem for fault in ordered for problem in fault.problems]
    raise StateSchemaError(text, problems) if problems else StateError(text)


class Leaf(NamedTuple):
    """A checked leaf: the path it was given at, its frozen value, and metadata and type if they were given."""

    path: KeyPath
    value: Json
    metadata: FrozenDict | None = None
    type: type[Any] | None = None


def fit(
    graphdef: GraphDef[Any],
    states: Iterable[StateLike],
    what: str,
    *,
    static: str = "Got state for static field",
    overwrite: bool = False,
    allow_unknown: bool = False,
) -> tuple[dict[int, Leaf], list[LeafFault]]:
    """Find the Variable of each given leaf, and check the leaf against its schema.

    Args:
        graphdef: The graph; alias paths are followed step by step.
        states: The given States.
        what: The name of the function, for errors.
        static: The phrase for a value given for a static.
        overwrite: Whether a later State wins; if not, two different values for one Variable are a fault.
        allow_unknown: Whether unknown paths are skipped.

    Returns:
        Leaves by the index of their Variable, and the faults.

    Raises:
        ArgumentError: An argument is neither a State nor a dict by path.
    """
    definitions: Any = graphdef.definitions
    leaves: dict[int, Leaf] = {}
    faults: list[LeafFault] = []
    unknown: list[tuple[str, ...]] = []
    edges: Edges | None = None
    for path, value in (pair for state in states for pair in leaves_of(state, what)):
        index = graphdef.leaf_paths.get(path) if isinstance(path, tuple) else None
        steps = parse_path(path) if isinstance(path, str) else path
        if index is None:
            edges = edges or Edges(graphdef.visits())
            visit, rest = edges.follow(_texts(steps))
            if rest and visit.kind != "variable":
                unknown.append(_texts(steps))
                continue
            if rest or visit.index is None or visit.kind != "variable":
                faults.append(LeafFault(_LAST, _misfit(steps, visit, rest, static)))
                continue
            index = visit.index
        leaf = check_leaf(steps, value, definitions[index].schema, index, faults)
        if leaf is None:
            continue
        before = leaves.get(index)
        if before is not None and not overwrite and not json_equal(before.value, leaf.value):
            at = " and ".join(dict.fromkeys((repr(path_str(before.path)), repr(path_str(steps)))))
            values = f"{before.value!r:.80}, {leaf.value!r:.80}"
            faults.append(LeafFault(index, f"{at}: two different values for one Variable: {values}"))
        leaves[index] = leaf
    if unknown and edges is not None and not allow_unknown:
        faults.append(LeafFault(_LAST, f"Unknown keys: {', '.join(_hints(unknown, edges))}"))
    return leaves, faults


def _misfit(steps: KeyPath, visit: Visit, rest: Sequence[str], static: str) -> str:
    """Describe a path that does not end at a Variable."""
    text = path_str(steps)
    if rest:
        return f"Expected a leaf at {path_str(steps[: -len(rest)])!r}, got {text!r}"
    return f"{static} {text!r}" if visit.kind == "static" else f"Expected a subgraph at {text!r}, got a leaf"


def _hints(unknown: Sequence[tuple[str, ...]], edges: Edges) -> Iterator[str]:
    """Yield unknown paths, the first ones with the known path that was perhaps meant."""
    names = [path_str(visit.path) for visit in edges.variables] if len(edges.variables) <= _MOST_NAMES else []
    for number, steps in enumerate(unknown):
        (visit, rest), text = edges.follow(steps), path_str(steps)
        keys = [key for key, _ in visit.children]
        if rest[0].isdecimal() and keys == [*range(len(keys))]:
            yield f"{text!r} (index out of range: length {len(keys)})"
        else:
            yield f"{text!r}{did_you_mean(text, names) if number < _MOST_HINTS else ''}"


def leaves_of(state: StateLike, what: str) -> Iterator[tuple[KeyPath | str, Any]]:
    """Yield the leaves of a State, or of a dict by path.

    Raises:
        ArgumentError: `state` is neither.
    """
    if not isinstance(state, Mapping):
        raise ArgumentError(f"{what} takes a State, or a dict {{path text: value}}; got {state!r:.200}.")
    for path, leaf in state.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(path, str | tuple):
            raise ArgumentError(f"{what}: {path!r:.200} is not a path: write a str or a tuple of steps.")
        yield path, leaf  # pyright: ignore[reportUnknownArgumentType]


def check_leaf(path: KeyPath, source: Any, schema: Schema, order: float, faults: list[LeafFault]) -> Leaf | None:
    """Freeze and validate one leaf; append a fault and return None if it is invalid."""
    metadata = kind = None
    if isinstance(source, VariableState):
        if source.schema is schema:
            return Leaf(path, source.value, source.metadata, source.type)
        value, metadata, kind = source.value, source.metadata, source.type
    else:
        try:
            if isinstance(source, Variable):
                raise DataError("a Variable is not a value: pass its `.value` or `.to_state()`")
            value = frozen(source)
        except DataError as error:
            at = f"{path_str(path)}#"
            faults.append(LeafFault(order, f"{at}: {error}", (Problem(at, "JSON", type(source).__name__),)))
            return None
    missed = tuple(problems(schema, value))
    if missed:
        text = path_str(path)
        lines = "; ".join(f"{text}#{p.pointer}: wanted {p.wanted}, got {p.got}" for p in missed)
        faults.append(LeafFault(order, lines, tuple(Problem(f"{text}#{p.pointer}", p.wanted, p.got) for p in missed)))
        return None
    return Leaf(path, value, metadata, kind)
