"""Fitting: leaves handed in by path, found in a graph and checked against its schemas; every fault is collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from synmod.data import Schema, problems
from synmod.errors import ArgumentError, DataError, Problem, StateError, StateSchemaError
from synmod.leaves.frozen import FrozenDict, Json, frozen, json_equal
from synmod.leaves.names import KeyPath, did_you_mean, parse_path, path_str

from .graphdef import ContainerDef, GraphDef, NodeDef, StaticDef, Term, VariableRef
from .variable import Variable, VariableState

StateLike: TypeAlias = Any
"""A State, or a dict `{path text: value}`; its paths may be tuples, and its leaves VariableStates too."""

_LAST = float("inf")
_MOST_HINTS, _MOST_NAMES = 3, 1_000  # unknown paths for which, and paths among which, a near one is looked for


class Fault(NamedTuple):
    """One thing that does not fit: its place in definition order, what to write of it, and schema problems."""

    order: float
    text: str
    problems: tuple[Problem, ...] = ()


def raise_faults(what: str, faults: Sequence[Fault]) -> None:
    """Raise one error for all faults, in definition order; nothing if there are none.

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


class Misfit(NamedTuple):
    """Why a path does not lead to a Variable.

    Attributes:
        kind: `"unknown"` (nothing is there), `"static"`, or `"shape"` (a leaf for a subgraph or the reverse).
        text: What to write of it.
    """

    kind: str
    text: str


class Leaf(NamedTuple):
    """A checked leaf: the path it was given at, its frozen value, and metadata and type where it came with them."""

    path: KeyPath
    value: Json
    metadata: FrozenDict | None = None
    type: type[Any] | None = None


class Finder:
    """Finds the Variable at a path of a graph, which may be an alias.

    Args:
        graphdef: The graph; its canonical paths are looked up, others followed step by step.
    """

    def __init__(self, graphdef: GraphDef[Any]) -> None:
        self._graphdef = graphdef
        self._texts: dict[str, int] | None = None
        self._opened: dict[int, dict[Any, Term]] = {}
        self._sought = 0

    @property
    def texts(self) -> Mapping[str, int]:
        """The index of each Variable by canonical path text."""
        if self._texts is None:
            self._texts = {path_str(path): index for path, index in self._graphdef.leaf_paths.items()}
        return self._texts

    def find(self, path: KeyPath | str) -> int | Misfit:
        """The index of the Variable at a path or path text; why there is none."""
        index = self.texts.get(path) if isinstance(path, str) else self._graphdef.leaf_paths.get(path)
        if index is not None:
            return index
        steps = parse_path(path) if isinstance(path, str) else path
        term: Any = self._graphdef.root
        for depth, step in enumerate(steps):
            here = path_str(steps[:depth])
            if isinstance(term, VariableRef):
                return Misfit("shape", f"Expected a leaf at {here!r}, got {path_str(steps)!r}")
            if isinstance(term, StaticDef):
                return Misfit("unknown", f"{path_str(steps)!r} ({here!r} holds nothing)")
            below = self._below(term, by_text=isinstance(path, str))
            if step not in below:
                return self._unknown(term, steps, step)
            term = below[step]
        if isinstance(term, VariableRef):
            return term.index
        text = path_str(steps)
        if isinstance(term, StaticDef):
            return Misfit("static", f"{text!r} ({type(term.value).__name__})")
        return Misfit("shape", f"Expected a subgraph at {text!r} ({term.type.__name__}), got a leaf")

    def _below(self, term: Any, *, by_text: bool) -> dict[Any, Term]:
        """What stands below a place, by step or by its text."""
        definition: Any = term if isinstance(term, ContainerDef) else self._graphdef.definitions.get(term.index)
        key = id(definition) * 2 + by_text
        if key not in self._opened:
            pairs: Iterable[tuple[Any, Term]] = ()
            if isinstance(definition, ContainerDef):
                pairs = zip(definition.steps, definition.children, strict=True)
            elif isinstance(definition, NodeDef):
                pairs = definition.attributes
            self._opened[key] = {str(step) if by_text else step: child for step, child in pairs}
        return self._opened[key]

    def _unknown(self, term: Any, steps: KeyPath, step: Any) -> Misfit:
        text = path_str(steps)
        if isinstance(term, ContainerDef) and term.type in (list, tuple) and str(step).isdecimal():
            return Misfit("unknown", f"{text!r} (the index is out of range: {len(term.children)} there)")
        self._sought += 1
        known: Mapping[str, int] = self.texts
        if self._sought > _MOST_HINTS or len(known) > _MOST_NAMES:
            known = {}
        shown = repr(steps) if text in known else repr(text)  # a str in the place of an int, or the reverse
        return Misfit("unknown", f"{shown}{did_you_mean(text, known)}")


class Fitted:
    """Leaves by the index of their Variable, and what does not fit.

    Attributes:
        leaves: What fits.
        misfits: Why the other leaves have no Variable, in the order in which they came.
        faults: Values that do not satisfy their schemas, and paths with two values.
    """

    __slots__ = ("faults", "leaves", "misfits")

    def __init__(self) -> None:
        self.leaves: dict[int, Leaf] = {}
        self.misfits: list[Misfit] = []
        self.faults: list[Fault] = []

    def all_faults(self, static: str, *, allow_unknown: bool = False) -> list[Fault]:
        """Every fault; `static` is the phrase for a value where a static stands."""
        faults = list(self.faults)
        for kind, text in self.misfits:
            if kind != "unknown":
                faults.append(Fault(_LAST, f"{static} {text}" if kind == "static" else text))
        unknown = [text for kind, text in self.misfits if kind == "unknown"]
        if unknown and not allow_unknown:
            faults.append(Fault(_LAST, f"Unknown keys: {', '.join(unknown)}"))
        return faults


def fit(
    finder: Finder,
    states: Iterable[StateLike],
    schema_of: Callable[[int], Schema],
    what: str,
    *,
    overwrite: bool = False,
) -> Fitted:
    """Find the Variable of each leaf that was handed in, and check the leaf against its schema.

    Args:
        finder: Where leaves go.
        states: What was handed in; later ones win with `overwrite`, else two values for one Variable are a fault.
        schema_of: The schema of a Variable by index.
        what: The name of the function, for errors.
        overwrite: Whether a later State wins.

    Raises:
        ArgumentError: Something is neither a State nor a dict of one.
    """
    fitted = Fitted()
    for state in states:
        for path, given in leaves_of(state, what):
            index = finder.find(path)
            if isinstance(index, Misfit):
                fitted.misfits.append(index)
                continue
            steps = parse_path(path) if isinstance(path, str) else path
            leaf = checked_leaf(steps, given, schema_of(index), index, fitted.faults)
            if leaf is None:
                continue
            before = fitted.leaves.get(index)
            if before is not None and not overwrite and not json_equal(before.value, leaf.value):
                at = " and ".join(dict.fromkeys((repr(path_str(before.path)), repr(path_str(steps)))))
                values = f"{before.value!r:.80}, {leaf.value!r:.80}"
                fitted.faults.append(Fault(index, f"{at}: two different values for one Variable: {values}"))
            fitted.leaves[index] = leaf
    return fitted


def leaves_of(state: StateLike, what: str) -> Iterator[tuple[KeyPath | str, Any]]:
    """The leaves of a State, or of a dict by path.

    Raises:
        ArgumentError: It is neither.
    """
    if not isinstance(state, Mapping):
        raise ArgumentError(f"{what} takes a State, or a dict {{path text: value}}; got {state!r:.200}.")
    for path, leaf in state.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(path, str | tuple):
            raise ArgumentError(f"{what}: {path!r:.200} is not a path: write a str or a tuple of steps.")
        yield path, leaf  # pyright: ignore[reportUnknownArgumentType]


def checked_leaf(path: KeyPath, given: Any, schema: Schema, order: float, faults: list[Fault]) -> Leaf | None:
    """Freeze and validate one leaf; a fault is noted."""
    metadata = kind = None
    if isinstance(given, VariableState):
        if given.schema is schema:
            return Leaf(path, given.value, given.metadata, given.type)
        value, metadata, kind = given.value, given.metadata, given.type
    else:
        try:
            if isinstance(given, Variable):
                raise DataError("a Variable is not a value: give its `.value` or `.to_state()`")
            value = frozen(given)
        except DataError as error:
            at = f"{path_str(path)}#"
            faults.append(Fault(order, f"{at}: {error}", (Problem(at, "JSON", type(given).__name__),)))
            return None
    missed = tuple(problems(schema, value))
    if missed:
        text = path_str(path)
        lines = "; ".join(f"{text}#{p.pointer}: wanted {p.wanted}, got {p.got}" for p in missed)
        faults.append(Fault(order, lines, tuple(Problem(f"{text}#{p.pointer}", p.wanted, p.got) for p in missed)))
        return None
    return Leaf(path, value, metadata, kind)
