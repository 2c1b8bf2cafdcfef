"""State: the values of a program by path. Frozen, ordered, plain data to filter, mix, compare and fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, NoReturn, TypeVar, overload

from synmod.errors import FieldError, StateError
from synmod.leaves.frozen import Json
from synmod.leaves.names import KeyPath, did_you_mean, parse_path, path_str

from .content import canonical_json, class_text
from .filters import Everything, Filter, FilterLike, to_filter
from .fitting import Fault, Finder, Leaf, StateLike, checked_leaf, fit, leaves_of, raise_faults
from .graphdef import GraphDef
from .variable import VariableState, snapshot

T = TypeVar("T")

Change = tuple[VariableState | None, VariableState | None]


class State(Mapping[KeyPath, VariableState]):
    """A frozen, ordered mapping from path to `VariableState`.

    Iterates over leaf paths in definition order. `state[path]` takes a tuple of steps, a path text or one key, and
    returns a leaf or the State below; `state.encoder` works for identifiers.

    Args:
        leaves: Leaves by path, as tuples or texts.

    Raises:
        StateError: A path is not one, is given twice, or is below another leaf; a leaf is not a VariableState.

    Example:
        >>> from synmod.tree import Param, state
        >>> state({"a": Param("x")}).to_json()
        {'a': 'x'}

    Source: Flax NNX `State`; differs: frozen, values always valid.
    """

    __slots__ = ("__weakref__", "_fingerprint", "_leaves")

    _leaves: Mapping[KeyPath, VariableState]
    _fingerprint: str | None

    def __init__(self, leaves: Mapping[KeyPath | str, VariableState] | None = None) -> None:
        object.__setattr__(self, "_leaves", _checked(leaves or {}))
        object.__setattr__(self, "_fingerprint", None)

    @classmethod
    def of_leaves(cls, leaves: Mapping[KeyPath, VariableState]) -> State:
        """Make a State of leaves that are known to fit together."""
        new = cls.__new__(cls)
        object.__setattr__(new, "_leaves", leaves)
        object.__setattr__(new, "_fingerprint", None)
        return new

    @classmethod
    def from_flat(cls, leaves: Mapping[KeyPath | str, VariableState]) -> State:
        """Make a State of leaves by path; the reverse of `flat`.

        Raises:
            StateError: A path is not one, or is below another leaf; a leaf is not a VariableState.
        """
        return cls(leaves)

    @classmethod
    def from_json(cls, graphdef: GraphDef[Any], json: StateLike) -> State:
        """Read what `to_json` returned; types and key types come from the graph.

        Raises:
            StateError: A path is not in the graph.
            StateSchemaError: A value does not satisfy its schema.
        """
        definitions: Any = graphdef.definitions
        fitted = fit(Finder(graphdef), [json], lambda index: definitions[index].schema, "State.from_json")
        raise_faults("State.from_json", fitted.all_faults("Got state for static field"))
        leaves: dict[KeyPath, VariableState] = {}
        for path, index in graphdef.leaf_paths.items():
            if index in fitted.leaves:
                definition = definitions[index]
                leaves[path] = snapshot(
                    definition.type, fitted.leaves[index].value, definition.schema, definition.metadata
                )
        return cls.of_leaves(leaves)

    def flat(self) -> dict[KeyPath, VariableState]:
        """Return `{path: leaf}` as a plain dict."""
        return dict(self._leaves)

    def to_json(self) -> dict[str, Json]:
        """Return `{path text: value}`; the values are frozen."""
        return {path_str(path): leaf.value for path, leaf in self._leaves.items()}

    def filter(self, filter: FilterLike) -> State:  # noqa: A002  (the word of the contract)
        """Return the State of the leaves that a filter takes."""
        wanted = to_filter(filter)
        return State.of_leaves({p: leaf for p, leaf in self._leaves.items() if wanted.matches(p, leaf, False)})

    @overload
    def split(self, only: FilterLike = ..., /) -> State: ...
    @overload
    def split(self, first: FilterLike, second: FilterLike, /, *more: FilterLike) -> tuple[State, ...]: ...
    @overload
    def split(self, *filters: FilterLike) -> State | tuple[State, ...]: ...
    def split(self, *filters: FilterLike) -> State | tuple[State, ...]:
        """Put every leaf into the State of the first filter that takes it.

        Returns:
            A State for one filter, a tuple of them for more.

        Raises:
            StateError: A leaf is left over (contains 'Non-exhaustive'), or `...` is not the last.
        """
        leaves = [(path, leaf, False) for path, leaf in self._leaves.items()]
        parts = [State.of_leaves(dict(part)) for part in partition(leaves, [to_filter(each) for each in filters])]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def map(self, fn: Callable[[KeyPath, VariableState], Json]) -> State:
        """Replace every value by `fn(path, leaf)`.

        Raises:
            StateSchemaError: A result does not satisfy its schema; lists every path.
        """
        return self._with({path: fn(path, leaf) for path, leaf in self._leaves.items()}, "map")

    def replace(self, json: StateLike) -> State:
        """Set given leaves.

        Args:
            json: A State, or values by path text.

        Raises:
            StateError: A path is not in this State.
            StateSchemaError: A value does not satisfy its schema.
        """
        texts = {path_str(path): path for path in self._leaves}
        given: dict[KeyPath, Any] = {}
        unknown: list[str] = []
        for path, value in leaves_of(json, "replace"):
            known = texts.get(path) if isinstance(path, str) else path if path in self._leaves else None
            if known is None:
                text = path if isinstance(path, str) else path_str(path)
                unknown.append(f"{text!r}{did_you_mean(text, texts)}")
            else:
                given[known] = value
        return self._with(given, "replace", unknown)

    def _with(self, values: Mapping[KeyPath, Any], what: str, unknown: Sequence[str] = ()) -> State:
        """This State with some values changed, all checked."""
        faults = [Fault(len(self), f"Unknown keys: {', '.join(unknown)}")] if unknown else []
        new = dict(self._leaves)
        for order, (path, leaf) in enumerate(self._leaves.items()):
            if path in values:
                checked: Leaf | None = checked_leaf(path, values[path], leaf.schema, order, faults)
                if checked is not None:
                    new[path] = snapshot(leaf.type, checked.value, leaf.schema, leaf.metadata)
        raise_faults(what, faults)
        return State.of_leaves(new)

    def diff(self, other: State) -> dict[str, Change]:
        """Return `{path text: (old, new)}` of what differs; None where the path is absent."""
        mine, theirs = self._leaves, other._leaves
        changes: dict[str, Change] = {}
        for path, old in mine.items():
            new = theirs.get(path)
            if new is None or (old is not new and old != new):
                changes[path_str(path)] = old, new
        changes.update({path_str(path): (None, new) for path, new in theirs.items() if path not in mine})
        return changes

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of paths, types, values, schemas and metadata: equal for equal States, in every process."""
        known = self._fingerprint
        if known is None:
            rows = [
                [list(path), class_text(leaf.type), leaf.value, leaf.schema, leaf.metadata]
                for path, leaf in self._leaves.items()
            ]
            texts = sorted(map(canonical_json, rows))
            known = hashlib.sha256("\n".join(texts).encode()).hexdigest()
            object.__setattr__(self, "_fingerprint", known)
        return known

    def __getitem__(self, path: KeyPath | str | int) -> Any:
        found = self._find(path)
        if found is None:
            known = [path_str(each) for each in self._leaves]
            text = path_str(path) if isinstance(path, tuple) else str(path)
            raise FieldError(f"There is nothing at {path!r:.200}.{did_you_mean(text, known)}")
        return found

    def __contains__(self, path: object) -> bool:
        return isinstance(path, tuple | str | int) and self._find(path) is not None  # pyright: ignore[reportUnknownArgumentType]

    def _find(self, path: KeyPath | str | int) -> Any:
        """The leaf or the State below a path; None where there is neither."""
        if isinstance(path, str):
            steps = parse_path(path)
            found = self._at(tuple(map(str, steps)), by_text=True)
            return self._at((path,), by_text=True) if found is None else found  # one raw key
        return self._at(path if isinstance(path, tuple) else (path,), by_text=False)

    def _at(self, steps: tuple[Any, ...], *, by_text: bool) -> Any:
        if not by_text and any(type(step) not in (str, int) for step in steps):
            return None
        leaf = self._leaves.get(steps)
        if leaf is not None:
            return leaf
        depth = len(steps)
        below: dict[KeyPath, VariableState] = {}
        for path, leaf in self._leaves.items():
            head = path[:depth]
            if head == steps or (by_text and tuple(map(str, head)) == steps):
                if len(path) == depth:
                    return leaf
                below[path[depth:]] = leaf
        return State.of_leaves(below) if below or not depth else None

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("_") else self._at((name,), by_text=False)
        if found is None:
            raise FieldError(f"State has no leaf and no method {name!r}.")
        return found

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self._leaves)

    def __len__(self) -> int:
        return len(self._leaves)

    def keys(self) -> KeysView[KeyPath]:
        """The paths, in definition order."""
        return self._leaves.keys()

    def values(self) -> ValuesView[VariableState]:
        """The leaves, in definition order."""
        return self._leaves.values()

    def items(self) -> ItemsView[KeyPath, VariableState]:
        """`(path, leaf)` pairs, in definition order."""
        return self._leaves.items()

    def __or__(self, other: State) -> State:
        if not isinstance(other, State):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            return NotImplemented
        leaves = {**self._leaves, **other._leaves}
        if len(leaves) > max(len(self), len(other)):  # each has paths of its own
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

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"State is frozen: {name!r} cannot be set. Make a new one with replace().")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"State is frozen: {name!r} cannot be deleted.")

    def __copy__(self) -> State:
        return self

    def __deepcopy__(self, memo: object) -> State:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (dict(self._leaves),)

    def __repr__(self) -> str:
        inside = ", ".join(f"{path_str(path)!r}: {leaf!r}" for path, leaf in list(self._leaves.items())[:20])
        more = f", ... {len(self) - 20} more" if len(self) > 20 else ""
        return f"State({{{inside}{more}}})"


def partition(leaves: Iterable[tuple[KeyPath, T, bool]], filters: Sequence[Filter]) -> list[list[tuple[KeyPath, T]]]:
    """Put each leaf to the first filter that takes it.

    Args:
        leaves: Path, leaf, and whether a frozen module is above it.
        filters: Without one, everything is one part.

    Returns:
        A list of `(path, leaf)` for each filter, order kept.

    Raises:
        StateError: `...` stands before the last place, or leaves are left over.
    """
    for index, each in enumerate(filters[:-1]):
        if isinstance(each, Everything):
            raise StateError(f"Filter {index}: `...` (or True) can only be used as the last of {len(filters)} filters.")
    if not filters:
        return [[(path, leaf) for path, leaf, _ in leaves]]
    parts: list[list[tuple[KeyPath, T]]] = [[] for _ in filters]
    remainder: list[KeyPath] = []
    for path, leaf, masked in leaves:
        for part, each in zip(parts, filters, strict=True):
            if each.matches(path, leaf, masked):
                part.append((path, leaf))
                break
        else:
            remainder.append(path)
    if remainder:
        names = ", ".join(repr(path_str(path)) for path in remainder)
        raise StateError(f"Non-exhaustive filters: no filter takes {names}. Add `...` as the last one.")
    return parts


def _checked(leaves: Mapping[KeyPath | str, VariableState]) -> dict[KeyPath, VariableState]:
    """Check paths and leaves that somebody put together by hand."""
    checked: dict[KeyPath, VariableState] = {}
    for path, leaf in leaves.items():
        steps = parse_path(path) if isinstance(path, str) else path
        if not isinstance(steps, tuple) or not all(_is_step(step) for step in steps):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise StateError(f"{path!r:.200} is not a path: write a tuple of steps, each a str (not empty) or an int.")
        if not isinstance(leaf, VariableState):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            raise StateError(f"At {path_str(steps)!r}: a leaf must be a VariableState, not {type(leaf).__name__}.")
        if steps in checked:
            raise StateError(f"{path_str(steps)!r} is given twice.")
        checked[steps] = leaf
    _check_apart(checked)
    return checked


def _is_step(step: object) -> bool:
    return type(step) is int or (type(step) is str and step != "")


def _check_apart(paths: Iterable[KeyPath]) -> None:
    """Raise StateError for leaves that no program can have at once: written alike, or one below another."""
    faults: list[str] = []
    above: KeyPath | None = None
    for path in sorted(paths, key=_texts):
        texts, lead = _texts(path), () if above is None else _texts(above)
        if above is None or texts[: len(lead)] != lead:
            above = path
        elif texts == lead:
            faults.append(f"{above!r} and {path!r} are both written {path_str(path)!r}")
        else:
            faults.append(f"{path_str(path)!r} lies below the leaf {path_str(above)!r}")
    if faults:
        raise StateError(f"{'; '.join(faults)}.")


def _texts(path: KeyPath) -> tuple[str, ...]:
    return tuple(map(str, path))
