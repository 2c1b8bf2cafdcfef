"""The algebra of data models as functions: `sm.ops`.

Every function takes values, classes, symbols and, where its docstring lists it, None. Each operation is a plan that is
made once, from schemas, and fixes every name. It is applied to values at once; where a symbol takes part, it is
recorded, so that a program replays it and an operand that is None in one call cannot change a name.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic import BaseModel

from synmod.errors import ArgumentError, DataError, SchemaError
from synmod.leaves import FrozenDict, did_you_mean, frozen, frozen_dict, frozen_list, is_mapping, must_be, unique_name

from . import masks, models, subschema
from .declaring import HasSchema, Operand, OperandClass, declare, schema_of
from .merge import Concatenation, any_of, either
from .models import JsonDataModel, symbol, wrap
from .schema import Schema, parts_of, properties_of

__all__ = ["OPERATIONS", "concat", "contains", "factorize", "in_mask", "is_subschema", "logical_and", "logical_not"]
__all__ += ["logical_or", "logical_xor", "out_mask", "prefix", "suffix"]

Values: TypeAlias = Sequence[JsonDataModel[Any] | None]
Kwargs: TypeAlias = Mapping[str, Any]

# -- plans -------------------------------------------------------------------------------------------------------------


class OperationPlan(NamedTuple):
    """An operation that can be replayed.

    Attributes:
        schema: Schema of the result; None if it is always None.
        combine: Runs it on values, one for each operand, None for an absent one.
        needs_all: Whether an absent operand is an error.
    """

    schema: Schema | None
    combine: Callable[[Values], JsonDataModel[Any] | None]
    needs_all: bool = False

    def apply(self, values: Values, where: str = "") -> JsonDataModel[Any] | None:
        """Run it on values.

        Raises:
            DataError: An operand is None, and the operation needs every one. Begins with `where`.
        """
        if self.needs_all and any(value is None for value in values):
            raise _none_operand(values, where)
        return self.combine(values)


def _plan_merge(operands: Sequence[Schema | None], *, none_passes: bool) -> OperationPlan:
    """Plan `concat` or `logical_and`: `C` of all operands; a None is an error in `concat`, else the result."""
    if any(schema is None for schema in operands):
        if none_passes:
            return _NOTHING
        raise _none_operand(operands, "")
    merge = Concatenation([parts_of(schema) for schema in operands if schema is not None])
    schema = merge.parts.schema

    def combine(args: Values) -> JsonDataModel[Any] | None:
        values = [value._json for value in args if value is not None]
        return wrap(merge(values), schema) if len(values) == len(args) else None

    return OperationPlan(schema, combine, needs_all=not none_passes)


def _plan_or(operands: Sequence[Schema | None]) -> OperationPlan:
    """Plan `logical_or`: a left fold that merges two operands, or returns the one that is present."""
    positions = [position for position, schema in enumerate(operands) if schema is not None]
    present = [parts_of(schema) for schema in operands if schema is not None]
    if not present:
        return _NOTHING
    merges: list[Concatenation] = []
    parts = present[0]
    for operand in present[1:]:
        merges.append(Concatenation([parts, operand]))
        parts = either([merges[-1].parts, *merges[-1].operands])
    schema = parts.schema

    def combine(args: Values) -> JsonDataModel[Any] | None:
        folded = model = None
        for number, position in enumerate(positions):
            value = args[position]
            if value is not None:
                model = value._model if folded is None else None
                folded = value._json if folded is None else merges[number - 1]((folded, value._json))
        return None if folded is None else wrap(folded, schema, model)  # the symbol's schema, whatever is present

    return OperationPlan(schema, combine)


def _plan_xor(operands: Sequence[Schema | None]) -> OperationPlan:
    """Plan `logical_xor`: the operand that is present, if it is the only one."""
    present = [parts_of(schema) for schema in operands if schema is not None]
    if not present:
        return _NOTHING
    schema = either(present).schema if len(present) > 1 else present[0].schema

    def combine(args: Values) -> JsonDataModel[Any] | None:
        values = [value for value in args if value is not None]
        return wrap(values[0]._json, schema, values[0]._model) if len(values) == 1 else None

    return OperationPlan(schema, combine)


def _plan_map(schema: Schema, json_of: Callable[[FrozenDict], Any]) -> OperationPlan:
    """Plan an operation of one operand that maps its JSON; None stays None."""

    def combine(args: Values) -> JsonDataModel[Any] | None:
        (value,) = args
        return None if value is None else wrap(json_of(value._json), schema)

    return OperationPlan(schema, combine)


def _plan_mask(schema: Schema, patterns: Any, *, keep: bool) -> OperationPlan:
    """Plan to keep or remove the fields that patterns name."""
    mask = masks.Mask(schema, masks.patterns_of(patterns), keep=keep)
    return _plan_map(mask.schema, mask)


def _plan_rename(schema: Schema, part: object, *, is_prefix: bool) -> OperationPlan:
    """Plan to rename every top-level field, extra keys included."""
    if not (isinstance(part, str) and part and (part if is_prefix else f"_{part}").isidentifier()):
        what = f"The prefix {part!r:.100} is not" if is_prefix else f"The suffix {part!r:.100} cannot be part of"
        raise DataError(f"{what} an identifier: write one such as 'my'.")

    def rename(name: str) -> str:
        return f"{part}_{name}" if is_prefix else f"{name}_{part}"

    parts = parts_of(schema)
    fields = frozen_dict({rename(name): field for name, field in parts.fields.items()})
    new = replace(parts, fields=fields, required=[*map(rename, parts.required)])
    return _plan_map(new.schema, lambda json: frozen_dict({rename(key): json[key] for key in json}))


def _plan_factorize(schema: Schema, names: Any) -> OperationPlan:
    """Plan to gather fields `k, k_1 .. k_n` in one array at the place of `k`."""
    parts = parts_of(schema)
    groups = _groups(parts.fields)
    array_names = _require_names(names)
    for head in array_names:
        if head not in groups:
            hint = did_you_mean(head, groups)
            raise SchemaError(f"factorize: {head!r} heads no group of numbered fields; groups: {list(groups)}.{hint}")
    if not groups:
        return _plan_map(parts.schema, lambda json: json)
    members = {member for group in groups.values() for member in group}
    reserved = {name for name in parts.fields if name not in members}
    arrays: dict[str, str] = {}
    for head in groups:
        arrays[head] = unique_name(array_names.get(head, f"{head}_list"), reserved)
        reserved.add(arrays[head])
    fields: dict[str, Any] = {}
    for name, field in parts.fields.items():
        if name in groups:
            items = any_of(parts.fields[member] for member in groups[name])
            least = sum(member in parts.required for member in groups[name])
            array = {"items": items, "maxItems": len(groups[name]), "minItems": least, "type": "array"}
            fields[arrays[name]] = frozen_dict(array)
        elif name not in members:
            fields[name] = field
    required = [name for name in fields if name in parts.required or name in arrays.values()]

    def gather(json: FrozenDict) -> FrozenDict:
        new: dict[str, Any] = {}
        for name in parts.fields:
            if name in groups:
                new[arrays[name]] = frozen_list([json[member] for member in groups[name] if member in json])
            elif name in json and name not in members:
                new[name] = json[name]
        reserved = set(fields)
        for key, content in json.items():
            if key not in parts.fields:  # an extra key gives way to the names of the schema
                name = unique_name(key, reserved)
                reserved.add(name)
                new[name] = content
        return frozen_dict(new)

    return _plan_map(replace(parts, fields=frozen_dict(fields), required=required).schema, gather)


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


def _nothing(_: Values) -> None:
    """Return None for any operands."""


_NOTHING: Final = OperationPlan(None, _nothing)


def _none_operand(operands: Sequence[Any], where: str) -> DataError:
    """Return the error for a None operand of `concat`."""
    what = f"{where + ': ' if where else ''}concat: operand {list(operands).index(None)} is None"
    return DataError(f"{what}, and `+` needs every operand; write `&` (sm.ops.logical_and) to let None pass.")


def _plan_not(schema: Schema, _: object) -> OperationPlan:
    """Plan `logical_not`: the schema of the operand, but None at run time."""
    return _NOTHING._replace(schema=schema)


def _require_names(names: Any) -> dict[str, str]:
    """Return the names of arrays by field as a plain dict (ArgumentError)."""
    pairs: object = {} if names is None else names
    if not is_mapping(pairs) or not all(isinstance(x, str) for pair in pairs.items() for x in pair):
        raise ArgumentError(must_be("factorize: names", "a dict of array names by field", names))
    return dict(pairs)


class Operation(NamedTuple):
    """An operation of the algebra.

    Attributes:
        name: Its name in `sm.ops`, which a saved program uses.
        make: Makes the plan from a sequence of schemas, or from one schema and the value of the keyword argument.
        keyword: The name of its keyword argument, whose value is JSON, so that a file can hold it.
        is_unary: Whether it takes one operand; otherwise two or more.
    """

    name: str
    make: Callable[..., OperationPlan]
    keyword: str | None = None
    is_unary: bool = False

    def plan(self, args: Sequence[Any], kwargs: Kwargs | None = None) -> OperationPlan:
        """Return the plan for operands given by their schemas, None, or constants with a schema; kept.

        Raises:
            DataError: A required operand is None, or a prefix or suffix is invalid.
            SchemaError: A pattern of a mask, or a name, matches nothing.
            ArgumentError: Too many or too few operands, or keyword arguments that the operation does not have.
        """
        if (len(args) == 1) != self.is_unary or not args:
            count = "one operand" if self.is_unary else "two or more"
            raise ArgumentError(f"{self.name} takes {count}, got {len(args)}.")
        if kwargs and list(kwargs) != [self.keyword]:
            raise ArgumentError(f"{self.name} takes {self.keyword or 'no keyword'}, got {sorted(kwargs)}.")
        return _plan(self.name, [x if x is None or isinstance(x, Schema) else schema_of(x) for x in args], kwargs or {})


_ALL: Final = (
    Operation("concat", partial(_plan_merge, none_passes=False)),
    Operation("logical_and", partial(_plan_merge, none_passes=True)),
    Operation("logical_or", _plan_or),
    Operation("logical_xor", _plan_xor),
    Operation("logical_not", _plan_not, is_unary=True),
    Operation("in_mask", partial(_plan_mask, keep=True), "mask", is_unary=True),
    Operation("out_mask", partial(_plan_mask, keep=False), "mask", is_unary=True),
    Operation("prefix", partial(_plan_rename, is_prefix=True), "prefix", is_unary=True),
    Operation("suffix", partial(_plan_rename, is_prefix=False), "suffix", is_unary=True),
    Operation("factorize", _plan_factorize, "names", is_unary=True),
)
OPERATIONS: Final[Mapping[str, Operation]] = {operation.name: operation for operation in _ALL}
"""The operations that a program may record, by name."""

_MOST_PLANS: Final = 4_096
_MOST_FIELDS: Final = 1_000  # of a plan that is kept: a growing sum would keep every intermediate plan
_plans: dict[tuple[Any, ...], tuple[OperationPlan, Any]] = {}  # with the schemas, so that their ids are not reused


def _plan(name: str, schemas: Sequence[Schema | None], kwargs: Kwargs) -> OperationPlan:
    """Return the plan of an operation on these schemas; kept by their identity. Hot."""
    key = (name, repr(kwargs) if kwargs else "", *map(id, schemas))
    entry = _plans.get(key)
    if entry is not None:
        return entry[0]
    operation = OPERATIONS[name]
    if not operation.is_unary:
        plan = operation.make(schemas)
    else:
        plan = _NOTHING if schemas[0] is None else operation.make(schemas[0], kwargs.get(operation.keyword or ""))
    if plan.schema is None or len(plan.schema.get("properties", ())) <= _MOST_FIELDS:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = plan, schemas
    return plan


# -- operands ----------------------------------------------------------------------------------------------------------


def _as_operand(x: Any, name: str) -> Any:
    """Return `x` as an operation takes it: instances become values; classes, symbols and None stay.

    Raises:
        DataError: `x` is a coroutine or another awaitable.
        ArgumentError: It is not data.
    """
    if isinstance(x, Operand):
        return models.to_value(x) if isinstance(x, BaseModel) else cast("Any", x)
    if x is None or isinstance(x, OperandClass):
        return x
    _refuse_awaitable(x, name)
    cls = x if isinstance(x, type) else type(x)
    if issubclass(cls, BaseModel):
        raise ArgumentError(f"{name}: {cls.__name__} has no operators: derive it from sm.DataModel.")
    raise ArgumentError(f"{name} takes data models, symbols and None, got {x!r:.100} of type {type(x).__name__}.")


def _refuse_awaitable(x: Any, name: str) -> None:
    if inspect.isawaitable(x):
        if inspect.iscoroutine(x):
            x.close()  # so that Python does not warn that it was never awaited
        raise DataError(f"{name} got a coroutine in place of data: write `await` before the call.")


def _combine(name: str, operands: Sequence[Any]) -> Any:
    """Apply an operation to two or more operands; values are combined at once. Hot."""
    if len(operands) < 2:
        raise ArgumentError(f"{name} takes two or more operands, got {len(operands)}.")
    present = [x for x in operands if type(x) is JsonDataModel]
    if len(present) < len(operands):
        operands = [_as_operand(x, name) for x in operands]
        present = [x for x in operands if x is not None]
        if len(present) < len(operands):
            if name == "concat":
                raise _none_operand(operands, models.SymbolTracing.instance.current_path())
            if name == "logical_and" or not present:
                return None
            if len(present) == 1:
                (x,) = present
                return symbol(schema_of(x), x) if isinstance(x, type) else x
        if any(type(x) is not JsonDataModel for x in present):
            return _record(name, operands, {})
    return None if name == "logical_xor" else _plan("concat", [x._schema for x in present], {}).combine(present)


def _transform(name: str, x: Any, kwargs: Kwargs) -> Any:
    """Apply an operation to one operand."""
    x = x if type(x) is JsonDataModel else _as_operand(x, name)
    if type(x) is JsonDataModel:
        return _plan(name, (x._schema,), kwargs).combine((x,))
    return None if x is None else _record(name, (x,), kwargs)


def _record(name: str, operands: Sequence[Any], kwargs: Kwargs) -> models.SymbolicDataModel | None:
    """Plan an operation on symbols or classes, and record it where a symbol takes part.

    Raises:
        DataError: A class is combined with a value or a symbol.
    """
    cls = next((x for x in operands if isinstance(x, type)), None)
    if cls is not None and any(isinstance(x, HasSchema) for x in operands):
        remedy = "write an instance, or `sm.Input(data_model=...)` in a program"
        raise DataError(f"{name}: the class {cls.__name__} has no value at run time, unlike other operands: {remedy}.")
    plan = OPERATIONS[name].plan(operands, kwargs)
    if plan.schema is None:
        return None
    output = symbol(plan.schema)
    if cls is None:
        models.SymbolTracing.instance.record_operation(name, plan, tuple(operands), dict(kwargs), output)
    return output


# -- the functions -----------------------------------------------------------------------------------------------------


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
        DataError: An operand is None, a coroutine, or a class combined with a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> a = sm.JsonDataModel({"x": 1}, schema={"type": "object", "properties": {"x": {"type": "integer"}}})
        >>> concat(a, a).get_json()
        {'x': 1, 'x_1': 1}

    Source: Synalinks' `concat`; differs: one suffix rule, made from schemas.
    """
    return _combine("concat", operands)


def logical_and(*operands: Any) -> Any:
    """Return all operands merged, or None if one is None: `&`.

    Args:
        *operands: Two or more values, symbols, classes or None; a left fold.

    Returns:
        As `concat`; None if an operand is None.

    Raises:
        DataError: An operand is a coroutine, or a class combined with a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> logical_and(None, None) is None
        True

    Source: Synalinks' `logical_and`.
    """
    return _combine("logical_and", operands)


def logical_or(*operands: Any) -> Any:
    """Return the operands that are not None, merged: `|`.

    Args:
        *operands: Two or more values, symbols, classes or None; a left fold.

    Returns:
        `C` of the operands that are not None, the operand itself if it is the only one, None for none. For
        symbols, a symbol that covers all of these cases.

    Schemas:
        result: of symbols `U(C(A, B), A, B)`

    Raises:
        DataError: An operand is a coroutine, or a class combined with a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> logical_or(None, None) is None
        True

    Source: Synalinks' `logical_or`.
    """
    return _combine("logical_or", operands)


def logical_xor(*operands: Any) -> Any:
    """Return the only operand that is not None: `^`.

    Args:
        *operands: Two or more values, symbols, classes or None.

    Returns:
        That operand; None for none or several. For symbols, a symbol that covers any of them.

    Schemas:
        result: of symbols `U` of all

    Raises:
        DataError: An operand is a coroutine, or a class combined with a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is not data.

    Example:
        >>> logical_xor(None, None) is None
        True

    Source: Synalinks' `logical_xor`.
    """
    return _combine("logical_xor", operands)


def logical_not(x: Any) -> Any:
    """Return None, whatever the operand is: `~`.

    Args:
        x: A value, symbol, class or None.

    Returns:
        None; for a symbol or class, a symbol of the same schema, which is None when the program runs.

    Raises:
        DataError: The operand is a coroutine.
        ArgumentError: It is not data.

    Example:
        >>> logical_not(None) is None
        True

    Source: Synalinks' `logical_not`.
    """
    return _transform("logical_not", x, {})


def in_mask(x: Any, mask: Any, *, recursive: bool = False) -> Any:
    """Return the operand with only the named fields.

    Args:
        x: A value, symbol, class, or None.
        mask: A pattern, a list of patterns, or a data model (its top-level names). Steps of a pattern are joined by
            `/`, or written as a tuple; `*` and `?` are wildcards, `**` matches any number of steps; lists are
            transparent.
        recursive: Short for `**/` before each pattern.

    Returns:
        The same kind of operand with those fields, in their order; None for None.

    Raises:
        SchemaError: A pattern matches nothing in the schema, or the mask is empty.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is not data, or `mask` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        >>> in_mask(sm.JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'a': 1}

    Source: Synalinks' `in_mask`; differs: paths are exact, and a pattern without a match is an error.
    """
    return _transform("in_mask", x, {"mask": masks.patterns_of(mask, recursive=recursive)})


def out_mask(x: Any, mask: Any, *, recursive: bool = False) -> Any:
    """Return the operand without the named fields.

    Args:
        x: A value, symbol, class, or None.
        mask: As in `in_mask`.
        recursive: Short for `**/` before each pattern.

    Returns:
        The same kind of operand without those fields; None for None.

    Raises:
        SchemaError: A pattern matches nothing in the schema, or the mask is empty.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is not data, or `mask` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        >>> out_mask(sm.JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'b': 2}

    Source: Synalinks' `out_mask`; differs as `in_mask`.
    """
    return _transform("out_mask", x, {"mask": masks.patterns_of(mask, recursive=recursive)})


def prefix(x: Any, prefix: str) -> Any:
    """Rename every top-level field `k` to `prefix_k`, extra keys included.

    Args:
        x: A value, symbol, class, or None.
        prefix: An identifier.

    Returns:
        The same kind of operand; None for None.

    Raises:
        DataError: The prefix is not an identifier, or `x` is a coroutine.
        ArgumentError: `x` is not data.

    Example:
        >>> prefix(sm.JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "my").get_json()
        {'my_a': 1}

    Source: Synalinks' `prefix`.
    """
    return _transform("prefix", x, {"prefix": prefix})


def suffix(x: Any, suffix: str) -> Any:
    """Rename every top-level field `k` to `k_suffix`, extra keys included.

    Args:
        x: A value, symbol, class, or None.
        suffix: Part of an identifier.

    Returns:
        The same kind of operand; None for None.

    Raises:
        DataError: The suffix is not part of an identifier, or `x` is a coroutine.
        ArgumentError: `x` is not data.

    Example:
        >>> suffix(sm.JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "2").get_json()
        {'a_2': 1}

    Source: Synalinks' `suffix`.
    """
    return _transform("suffix", x, {"suffix": suffix})


def factorize(x: Any, names: Mapping[str, str] | None = None) -> Any:
    """Gather numbered repeats: `k, k_1 .. k_n` become one array.

    Args:
        x: A value, symbol, class, or None.
        names: For a field `k`, the name of its array; `k_list` where not given.

    Returns:
        The same kind of operand; None for None.

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
    array_names = _require_names(names)
    return _transform("factorize", x, {"names": array_names} if array_names else {})


def is_subschema(sub: Any, sup: Any) -> bool:
    """Whether every value that is valid for `sub` is known to be valid for `sup`; kept per pair.

    Args:
        sub: A schema: a dict, True, or a data model, whose schema is used.
        sup: Another.

    Returns:
        True if it is proven; False if it is wrong, or cannot be proven. Annotations are ignored.

    Raises:
        SchemaError: One of them is not a valid schema.
        ArgumentError: One of them has no schema.

    Example:
        >>> is_subschema({"type": "integer"}, {"type": ["number", "null"]})
        True

    Source: TypeScript's assignability; differs: decided from JSON Schema, recursive types by induction.
    """
    if sub is sup:
        return True
    if type(sub) is not Schema or type(sup) is not Schema:
        return is_subschema(declare(sub, root="any"), declare(sup, root="any"))
    return subschema.proven(sub, sup)


def contains(whole: Any, part: Any) -> bool:
    """Whether everything that `part` requires is declared and required in `whole`: `part in whole`.

    Optional fields of `part` may be missing in `whole`, but must fit if declared. Annotations and further fields do not
    matter.

    Args:
        whole: Anything with a schema: a value, symbol, class, instance or schema dict.
        part: The same, or a str, which is a key.

    Returns:
        Whether each value of `whole` can be read as a `part`.

    Raises:
        ArgumentError: `whole` or `part` has no schema.

    Example:
        >>> one = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
        >>> two = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
        >>> contains(two, one)
        True

    Source: Synalinks' `contains`; differs: structural, and required fields must be required.
    """
    if isinstance(part, str):
        return holds(whole, part)
    try:
        return subschema.includes(declare(whole), declare(part))
    except SchemaError:
        return False


def holds(whole: Any, part: Any) -> bool:
    """Answer `part in whole`: a key that is present (declared, on classes and symbols), or containment."""
    if isinstance(part, str):
        has_json = not isinstance(whole, type) and hasattr(whole, "__synmod_json__")
        return part in (frozen(whole) if has_json else properties_of(declare(whole)))
    try:
        return contains(whole, part)
    except ArgumentError:
        return False


# -- operators ---------------------------------------------------------------------------------------------------------


def bind_operators(cls: type, binary: Mapping[str, Callable[..., Any]]) -> None:
    """Give a class the operators `~` and `in`, and binary ones on either side, by the name of their method."""
    for name, operation in binary.items():
        left, right = _operator_methods(operation)
        setattr(cls, f"__{name}__", left)
        setattr(cls, f"__r{name}__", right)
    cls.__invert__ = logical_not
    cls.__contains__ = holds


def _operator_methods(operation: Callable[..., Any]) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Return the methods of a binary operator for the left and the right operand. Hot."""

    def is_refused(other: Any, operand: Any) -> bool:
        """Whether Python is to raise its own TypeError; DataError for an awaitable, or for the text of a symbol."""
        if isinstance(other, Operand) or other is None or isinstance(other, OperandClass):
            return False
        _refuse_awaitable(other, "an operator")
        if isinstance(other, str) and isinstance(operand, models.SymbolicDataModel):
            operand.get_json()  # which raises it
        return True

    return (
        lambda x, y: NotImplemented if is_refused(y, x) else operation(x, y),
        lambda x, y: NotImplemented if is_refused(y, x) else operation(y, x),
    )
