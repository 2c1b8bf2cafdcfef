"""The algebra of data models as functions: `sm.ops`.

Every function takes values, classes, symbols and, where its table says so, None. Each operation is a plan that is made
once from schemas, with every name decided: applied to values at once, and recorded where a symbol takes part, so that a
program replays it and an operand that is None this time cannot shift a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

from pydantic import BaseModel

from synmod.errors import ArgumentError, DataError, SchemaError
from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list
from synmod.leaves.names import did_you_mean, unused

from .masks import Mask, Pattern, patterns_of
from .merge import Concatenation, any_of, either
from .operators import OPERATORS, Operand, OperandClass
from .parts import Parts, parts_of
from .schema import Schema
from .subschema import contains, holds
from .symbols import RECORDERS, Described, SymbolicDataModel, schema_of, symbol, traced_path
from .value import JsonDataModel, to_value, wrap

__all__ = [
    "OPERATIONS",
    "concat",
    "contains",
    "factorize",
    "in_mask",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "out_mask",
    "prefix",
    "suffix",
]

Operands: TypeAlias = Sequence[Schema | None]
Values: TypeAlias = Sequence[JsonDataModel[Any] | None]
Kwargs: TypeAlias = Mapping[str, Any]

_Change: TypeAlias = Callable[[Schema], tuple[Schema, Callable[[FrozenDict], Any]]]
"""Makes the schema of a result, and the function that makes its JSON."""


class Plan(Protocol):
    """An operation that can be replayed."""

    @property
    def schema(self) -> Schema | None:
        """Schema of the result; None if it is always None."""
        ...

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:
        """Run on values, one for each operand, None where it is absent; `where` begins the message of an error."""
        ...


class Concat:
    """`concat` and `logical_and`: `C` of all operands; a None is an error for the one, the result of the other."""

    def __init__(self, operands: Operands, *, none_passes: bool) -> None:
        self._none_passes = none_passes
        self._merge: Concatenation | None = None
        self.schema: Schema | None = None
        present = [parts_of(schema) for schema in operands if schema is not None]
        if len(present) == len(operands):
            self._merge = Concatenation(present)
            self.schema = self._merge.parts.schema
        elif not none_passes:
            raise _none_operand(operands, "")

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:
        """Merge, by the names decided. Hot."""
        values = [value._json for value in args if value is not None]
        if len(values) < len(args) and not self._none_passes:
            raise _none_operand(args, where)
        if len(values) < len(args) or self._merge is None or self.schema is None:
            return None
        return wrap(self._merge(values), self.schema)


class Or:
    """`logical_or`: a left fold; of each two operands both merged, or the one that is there."""

    def __init__(self, operands: Operands) -> None:
        self._positions = [position for position, schema in enumerate(operands) if schema is not None]
        self._merges: list[Concatenation] = []
        parts: Parts | None = None
        for schema in operands:
            if schema is None:
                continue
            if parts is None:
                parts = parts_of(schema)
            else:
                merge = Concatenation([parts, parts_of(schema)])
                self._merges.append(merge)
                parts = either([merge.parts, *merge.operands])
        self.schema = parts.schema if parts else None

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (used by concat alone)
        """Fold; the result has the schema of the symbol, whoever is there."""
        folded = model = None
        for number, position in enumerate(self._positions):
            value = args[position]
            if value is not None:
                model = value._model if folded is None else None
                folded = value._json if folded is None else self._merges[number - 1]((folded, value._json))
        return None if folded is None or self.schema is None else wrap(folded, self.schema, model)


class Xor:
    """`logical_xor`: the one operand that is there, None if none or more than one is."""

    def __init__(self, operands: Operands) -> None:
        present = [parts_of(schema) for schema in operands if schema is not None]
        self.schema = either(present).schema if len(present) > 1 else present[0].schema if present else None

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (used by concat alone)
        """Pick it; it gets the schema of the symbol."""
        there = [value for value in args if value is not None]
        return wrap(there[0]._json, self.schema, there[0]._model) if len(there) == 1 and self.schema else None


class Not:
    """`logical_not`: the schema of the operand, but None at run time."""

    def __init__(self, operands: Operands) -> None:
        (self.schema,) = operands

    def apply(self, args: Values, where: str = "") -> None:
        """Return None: present becomes absent, and absent has no schema to become."""


class Reshape:
    """An operation of one operand that maps its JSON: masks, prefix, suffix and factorize.

    Args:
        operands: Schema of the operand; None if it is always None.
        change: Makes the schema of the result, and the function that makes its JSON.
    """

    def __init__(self, operands: Operands, change: _Change) -> None:
        (schema,) = operands
        self.schema: Schema | None = None
        if schema is not None:
            self.schema, self._json_of = change(schema)

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (used by concat alone)
        """Change the value; None stays None."""
        (value,) = args
        return None if value is None or self.schema is None else wrap(self._json_of(value._json), self.schema)


def _none_operand(operands: Sequence[Any], where: str) -> DataError:
    """Return the error of a None that `concat` met."""
    return DataError(
        f"{where + ': ' if where else ''}concat: operand {list(operands).index(None)} is None, and `+` needs every "
        "operand; write `&` (sm.ops.logical_and) to let None pass."
    )


def _masked(patterns: Sequence[Pattern], *, keep: bool) -> _Change:
    """Keep or remove the fields that patterns name."""

    def change(schema: Schema) -> tuple[Schema, Callable[[FrozenDict], Any]]:
        mask = Mask(schema, patterns, keep=keep)
        return mask.schema, mask

    return change


def _renamed(before: str, after: str) -> _Change:
    """Rename every top-level field, extra keys included."""

    def change(schema: Schema) -> tuple[Schema, Callable[[FrozenDict], Any]]:
        parts = parts_of(schema)
        fields = frozen_dict({f"{before}{name}{after}": field for name, field in parts.fields.items()})
        required = [f"{before}{name}{after}" for name in parts.required]
        renamed = Parts(fields, required, parts.extra, parts.definitions, parts.title, parts.description)
        return renamed.schema, lambda json: frozen_dict({f"{before}{key}{after}": json[key] for key in json})

    return change


def _factorized(names: Mapping[str, str]) -> _Change:
    """Gather fields `k, k_1 .. k_n` in one array at the place of `k`."""

    def change(schema: Schema) -> tuple[Schema, Callable[[FrozenDict], Any]]:
        parts = parts_of(schema)
        groups = _groups(parts.fields)
        for head in names:
            if head not in groups:
                raise SchemaError(
                    f"factorize: {head!r} does not head a group of numbered fields; the groups are {list(groups)}."
                    f"{did_you_mean(head, groups)}"
                )
        members = {member for group in groups.values() for member in group}
        taken = {name for name in parts.fields if name not in members}
        arrays: dict[str, str] = {}
        for head in groups:
            arrays[head] = unused(names.get(head, f"{head}_list"), taken)
            taken.add(arrays[head])
        fields: dict[str, Any] = {}
        for name, field in parts.fields.items():
            if name in groups:
                items = any_of(parts.fields[member] for member in groups[name])
                least = sum(member in parts.required for member in groups[name])
                fields[arrays[name]] = frozen_dict(
                    {"items": items, "maxItems": len(groups[name]), "minItems": least, "type": "array"}
                )
            elif name not in members:
                fields[name] = field
        required = [name for name in fields if name in parts.required or name in arrays.values()]
        gathered = Parts(frozen_dict(fields), required, parts.extra, parts.definitions, parts.title, parts.description)

        def gather(json: FrozenDict) -> FrozenDict:
            new: dict[str, Any] = {}
            for name in parts.fields:
                if name in groups:
                    new[arrays[name]] = frozen_list([json[member] for member in groups[name] if member in json])
                elif name in json and name not in members:
                    new[name] = json[name]
            taken = set(fields)
            for key, content in json.items():
                if key not in parts.fields:  # an extra key gives way to the names of the schema
                    name = unused(key, taken)
                    taken.add(name)
                    new[name] = content
            return frozen_dict(new)

        return gathered.schema, gather if groups else lambda json: json

    return change


def _groups(fields: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the groups, in field order: a field and its numbered repeats, without a gap from 1."""
    groups: dict[str, list[str]] = {}
    grouped = set[str]()
    for head in fields:
        group = [head]
        while (member := f"{head}_{len(group)}") in fields and member not in grouped:
            group.append(member)
        if len(group) > 1 and head not in grouped:
            groups[head] = group
            grouped.update(group)
    return groups


class Operation(NamedTuple):
    """An operation of the algebra.

    Attributes:
        name: Its name in `sm.ops`, which a saved program uses.
        keyword: The keyword argument it has; JSON, so that a file can hold it.
        one: Whether it takes one operand; otherwise two or more.
    """

    name: str
    keyword: str | None = None
    one: bool = False

    def plan(self, args: Sequence[Any], kwargs: Kwargs | None = None) -> Plan:
        """Return the plan for operands given by their schemas, None, or constants with a schema; kept.

        Raises:
            DataError: An operand that must be there is None, or a name cannot be.
            SchemaError: A pattern of a mask, or a name, matches nothing.
            ArgumentError: Too many or too few operands, or keyword arguments that the operation does not have.
        """
        given = kwargs or {}
        if (len(args) == 1) != self.one or not args:
            raise ArgumentError(f"{self.name} takes {'one operand' if self.one else 'two or more'}, got {len(args)}.")
        if not given.keys() <= {self.keyword}:
            raise ArgumentError(f"{self.name} takes {self.keyword or 'no keyword'}, got {sorted(given)}.")
        return _plan(self.name, [x if x is None or isinstance(x, Schema) else schema_of(x) for x in args], given)


OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        **{name: Operation(name) for name in ("concat", "logical_and", "logical_or", "logical_xor")},
        "logical_not": Operation("logical_not", one=True),
        "in_mask": Operation("in_mask", "mask", one=True),
        "out_mask": Operation("out_mask", "mask", one=True),
        "prefix": Operation("prefix", "prefix", one=True),
        "suffix": Operation("suffix", "suffix", one=True),
        "factorize": Operation("factorize", "names", one=True),
    }
)
"""The operations that a program may record, by name."""


def _made(name: str, operands: Operands, argument: Any) -> Plan:
    """Make the plan of an operation; `argument` is the value of its keyword."""
    match name:
        case "concat" | "logical_and":
            return Concat(operands, none_passes=name == "logical_and")
        case "logical_or":
            return Or(operands)
        case "logical_xor":
            return Xor(operands)
        case "logical_not":
            return Not(operands)
        case "in_mask" | "out_mask":
            return Reshape(operands, _masked(patterns_of(argument), keep=name == "in_mask"))
        case "prefix":
            return Reshape(operands, _renamed(f"{checked_prefix(argument)}_", ""))
        case "suffix":
            return Reshape(operands, _renamed("", f"_{checked_suffix(argument)}"))
        case _:
            return Reshape(operands, _factorized(_checked_names(argument)))


_MOST_PLANS: Final = 4_096
_MOST_FIELDS: Final = 1_000  # of a plan that is kept: a growing sum would keep every step of its way
_NO_KWARGS: Final[Kwargs] = {}
_plans: dict[tuple[Any, ...], tuple[Plan, Operands]] = {}  # with the schemas, so that their ids stay theirs


def _plan(name: str, schemas: Operands, kwargs: Kwargs) -> Plan:
    """Return the plan of an operation on these schemas; kept by their identity. Hot."""
    key = (name, repr(kwargs) if kwargs else "", *map(id, schemas))
    kept = _plans.get(key)
    if kept is not None:
        return kept[0]
    plan = _made(name, schemas, next(iter(kwargs.values()), None))
    if plan.schema is None or len(plan.schema.get("properties", ())) <= _MOST_FIELDS:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = (plan, schemas)
    return plan


def _is_operand(x: Any) -> bool:
    """Whether an operator takes `x`; where not, Python raises its own TypeError (DataError for an awaitable)."""
    if x is None or isinstance(x, Operand | OperandClass):
        return True
    _refuse_awaitable(x, "an operator")
    return False


def _as_operand(x: Any, name: str) -> Any:
    """Return `x` as an operation takes it: instances become values; classes, symbols and None stay.

    Raises:
        DataError: `x` is a coroutine or another awaitable.
        ArgumentError: It is not data.
    """
    if isinstance(x, Operand):
        return to_value(x) if isinstance(x, BaseModel) else cast("Any", x)
    if x is None or isinstance(x, OperandClass):
        return x
    _refuse_awaitable(x, name)
    cls = x if isinstance(x, type) else type(x)
    if issubclass(cls, BaseModel):
        raise ArgumentError(
            f"{name}: {cls.__name__} is a pydantic model without operators: derive it from sm.DataModel."
        )
    raise ArgumentError(f"{name} takes data models, symbols and None, got {x!r:.100} of type {type(x).__name__}.")


def _refuse_awaitable(x: Any, name: str) -> None:
    if inspect.isawaitable(x):
        if inspect.iscoroutine(x):
            x.close()  # nobody can run it any more, so nobody is warned that it never ran
        raise DataError(f"{name} got a coroutine in place of data: write `await` before the call.")


def _merged(values: Sequence[JsonDataModel[Any]]) -> Any:
    """Concatenate values. Hot."""
    return _plan("concat", [value._schema for value in values], _NO_KWARGS).apply(values)


def _combined(name: str, operands: Sequence[Any]) -> Any:
    """Apply an operation of two or more operands; one of values alone is done at once."""
    for x in operands:
        if type(x) is not JsonDataModel:
            break
    else:
        if len(operands) > 1:
            return None if name == "logical_xor" else _merged(operands)
    if len(operands) < 2:
        raise ArgumentError(f"{name} takes two or more operands, got {len(operands)}.")
    operands = [_as_operand(x, name) for x in operands]
    present = [x for x in operands if x is not None]
    if len(present) < len(operands):
        if name == "concat":
            raise _none_operand(operands, traced_path())
        if name == "logical_and" or not present:
            return None
        if len(present) == 1:
            (x,) = present
            return symbol(schema_of(x), x) if isinstance(x, type) else x
    if all(type(x) is JsonDataModel for x in present):
        return None if name == "logical_xor" else _merged(present)
    return _recorded(name, operands, _NO_KWARGS)


def _changed(name: str, x: Any, kwargs: Kwargs) -> Any:
    """Apply an operation of one operand."""
    x = x if type(x) is JsonDataModel else _as_operand(x, name)
    if type(x) is JsonDataModel:
        return _plan(name, (x._schema,), kwargs).apply((x,))
    return None if x is None else _recorded(name, (x,), kwargs)


def _recorded(name: str, operands: Sequence[Any], kwargs: Kwargs) -> SymbolicDataModel | None:
    """Plan an operation on symbols or classes, and record it where a symbol takes part.

    Raises:
        DataError: A class stands beside a value or a symbol.
    """
    cls = next((x for x in operands if isinstance(x, type)), None)
    if cls is not None and any(isinstance(x, Described) for x in operands):
        raise DataError(
            f"{name}: the class {cls.__name__} stands beside data, but a class has no value at run time: write an "
            "instance, or `sm.Input(data_model=...)` in a program."
        )
    plan = OPERATIONS[name].plan(operands, kwargs)
    if plan.schema is None:
        return None
    output = symbol(plan.schema)
    if cls is None and "operation" in RECORDERS:
        RECORDERS["operation"](name, plan, tuple(operands), dict(kwargs), output)
    return output


def checked_prefix(prefix: object) -> str:
    """Return the prefix if it is an identifier (DataError)."""
    if isinstance(prefix, str) and prefix.isidentifier():
        return prefix
    raise DataError(f"The prefix {prefix!r:.100} is not an identifier: write one such as 'my'.")


def checked_suffix(suffix: object) -> str:
    """Return the suffix if it can be part of an identifier (DataError)."""
    if isinstance(suffix, str) and suffix and f"_{suffix}".isidentifier():
        return suffix
    raise DataError(f"The suffix {suffix!r:.100} cannot be part of an identifier: write one such as 'old' or '2'.")


def _checked_names(names: Any) -> dict[str, str]:
    """Return the names of arrays by field as a plain dict (ArgumentError)."""
    if names is None:
        return {}
    if isinstance(names, Mapping):
        given = dict(cast("Mapping[object, object]", names))
        if all(isinstance(word, str) for pair in given.items() for word in pair):
            return cast("dict[str, str]", given)
    raise ArgumentError(f"factorize: names must be a dict of array names by field, got {names!r:.100}.")


def concat(*operands: Any) -> Any:
    """Return one object with the fields of all operands: `+`.

    A field whose name is taken gets the suffix `_1`, `_2`, ... .

    Args:
        *operands: Two or more values, symbols or classes; a left fold.

    Returns:
        A value; a symbol where an operand is a symbol or all are classes.

    Schemas:
        result: `C(A, B)`: the fields of B after those of A

    Raises:
        DataError: An operand is None, a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> a = sm.JsonDataModel({"x": 1}, schema={"type": "object", "properties": {"x": {"type": "integer"}}})
        >>> concat(a, a).get_json()
        {'x': 1, 'x_1': 1}

    Source: Synalinks' `concat`; differs: one suffix rule, made from schemas.
    """
    return _combined("concat", operands)


def logical_and(*operands: Any) -> Any:
    """Return all operands put together, or None if one is None: `&`.

    Args:
        *operands: Two or more values, symbols, classes or None; a left fold.

    Returns:
        As `concat`; None if an operand is None.

    Raises:
        DataError: An operand is a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> logical_and(None, None) is None
        True

    Source: Synalinks' `logical_and`.
    """
    return _combined("logical_and", operands)


def logical_or(*operands: Any) -> Any:
    """Return the operands that are there, put together: `|`.

    Args:
        *operands: Two or more values, symbols, classes or None; a left fold.

    Returns:
        `C` of the two if both are there, the one that is there otherwise, None if none is. For symbols a symbol that
        stands for all of that.

    Schemas:
        result: of symbols `U(C(A, B), A, B)`

    Raises:
        DataError: An operand is a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> logical_or(None, None) is None
        True

    Source: Synalinks' `logical_or`.
    """
    return _combined("logical_or", operands)


def logical_xor(*operands: Any) -> Any:
    """Return the one operand that is there: `^`.

    Args:
        *operands: Two or more values, symbols, classes or None.

    Returns:
        The one that is there, None if none or more than one is. For symbols a symbol that stands for any of them.

    Schemas:
        result: of symbols `U` of all

    Raises:
        DataError: An operand is a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> logical_xor(None, None) is None
        True

    Source: Synalinks' `logical_xor`.
    """
    return _combined("logical_xor", operands)


def logical_not(x: Any) -> Any:
    """Return None for what is there: `~`.

    Args:
        x: A value, symbol, class or None.

    Returns:
        None; for a symbol or class a symbol of the same schema, which is None when the program runs.

    Raises:
        DataError: The operand is a coroutine.
        ArgumentError: It is not data.

    Example:
        >>> logical_not(None) is None
        True

    Source: Synalinks' `logical_not`.
    """
    operand = _as_operand(x, "logical_not")
    return (
        None if operand is None or type(operand) is JsonDataModel else _recorded("logical_not", (operand,), _NO_KWARGS)
    )


def in_mask(x: Any, mask: Any, *, recursive: bool = False) -> Any:
    """Return only the fields named.

    Args:
        x: A value, symbol, class, or None.
        mask: A pattern, a list of patterns, or a data model (its top-level names). Steps of a pattern are joined by
            `/`, or written as a tuple; `*` and `?` are wild, `**` is any number of steps; lists are transparent.
        recursive: Short for `**/` before each pattern.

    Returns:
        The same kind of thing with those fields, in their order; None for None.

    Raises:
        SchemaError: A pattern matches nothing in the schema, or there is none.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is not data, or `mask` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        >>> in_mask(sm.JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'a': 1}

    Source: Synalinks' `in_mask`; differs: paths are exact, and a pattern without a match is an error.
    """
    return _changed("in_mask", x, {"mask": patterns_of(mask, recursive=recursive)})


def out_mask(x: Any, mask: Any, *, recursive: bool = False) -> Any:
    """Return all but the fields named.

    Args:
        x: A value, symbol, class, or None.
        mask: As in `in_mask`.
        recursive: Short for `**/` before each pattern.

    Returns:
        The same kind of thing without those fields; None for None.

    Raises:
        SchemaError: A pattern matches nothing in the schema, or there is none.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is not data, or `mask` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        >>> out_mask(sm.JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'b': 2}

    Source: Synalinks' `out_mask`; differs as `in_mask`.
    """
    return _changed("out_mask", x, {"mask": patterns_of(mask, recursive=recursive)})


def prefix(x: Any, prefix: str) -> Any:
    """Return every top-level field `k` as `prefix_k`, extra keys included.

    Args:
        x: A value, symbol, class, or None.
        prefix: An identifier.

    Returns:
        The same kind of thing; None for None.

    Raises:
        DataError: The prefix is not an identifier, or `x` is a coroutine.
        ArgumentError: `x` is not data.

    Example:
        >>> prefix(sm.JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "my").get_json()
        {'my_a': 1}

    Source: Synalinks' `prefix`.
    """
    return _changed("prefix", x, {"prefix": checked_prefix(prefix)})


def suffix(x: Any, suffix: str) -> Any:
    """Return every top-level field `k` as `k_suffix`, extra keys included.

    Args:
        x: A value, symbol, class, or None.
        suffix: Part of an identifier.

    Returns:
        The same kind of thing; None for None.

    Raises:
        DataError: The suffix is not part of an identifier, or `x` is a coroutine.
        ArgumentError: `x` is not data.

    Example:
        >>> suffix(sm.JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "2").get_json()
        {'a_2': 1}

    Source: Synalinks' `suffix`.
    """
    return _changed("suffix", x, {"suffix": checked_suffix(suffix)})


def factorize(x: Any, names: Mapping[str, str] | None = None) -> Any:
    """Return numbered repeats gathered: `k, k_1 .. k_n` become one array.

    Args:
        x: A value, symbol, class, or None.
        names: For a field `k`, the name of its array; `k_list` where not given.

    Returns:
        The same kind of thing; None for None.

    Raises:
        SchemaError: A key of `names` does not head a group.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is not data, or `names` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {}, "a_1": {}}}
        >>> factorize(sm.JsonDataModel({"a": 1, "a_1": 2}, schema)).get_json()
        {'a_list': [1, 2]}

    Source: Synalinks' `factorize`; differs: no plurals, no stemming.
    """
    given = _checked_names(names)
    return _changed("factorize", x, {"names": given} if given else {})


OPERATORS.update(
    {
        "is_operand": _is_operand,
        "holds": holds,
        "concat": concat,
        "logical_and": logical_and,
        "logical_or": logical_or,
        "logical_xor": logical_xor,
        "logical_not": logical_not,
        "in_mask": in_mask,
        "out_mask": out_mask,
        "prefix": prefix,
        "suffix": suffix,
        "factorize": factorize,
    }
)
