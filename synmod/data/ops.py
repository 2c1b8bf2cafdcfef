"""The algebra of data models as functions: `sm.ops`.

Every function takes values, classes, symbols and, where its table says so, None. With a symbol the same operation is
recorded, as a plan that is replayed when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from synmod.data.contain import contains, holds
from synmod.data.declare import schema_of
from synmod.data.factorize import Factorize, checked_names
from synmod.data.kept import Kept
from synmod.data.mask_patterns import patterns_of
from synmod.data.mask_tree import Fate
from synmod.data.masks import Mask
from synmod.data.merge import Concatenation
from synmod.data.operand import OPERATORS
from synmod.data.operands import as_operand, is_operand, refuse_class_beside, traced_path
from synmod.data.parts import parts_of
from synmod.data.plans import Absent, Everything, OnlyOne, Plan, Whatever, refuse_none
from synmod.data.rename import Rename, checked_prefix, checked_suffix
from synmod.data.schema import Schema
from synmod.data.symbol import RECORDERS, SymbolicDataModel, symbol
from synmod.data.value import JsonDataModel, wrap_parts
from synmod.errors import ArgumentError

__all__ = [
    "OPERATIONS",
    "Operation",
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


class Operation(NamedTuple):
    """An operation of the algebra, by the name that a saved program uses.

    Attributes:
        name: Its name in `sm.ops`.
        make: Makes a plan of the operands' schemas (None for None) and the keyword arguments, which are JSON.
    """

    name: str
    make: Callable[[Sequence[Schema | None], Mapping[str, Any]], Plan]

    def plan(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> Plan:
        """Plan the operation on operands given by their schemas, None, or constants with a schema.

        Raises:
            DataError: An operand that must be there is None, or a name cannot be.
            SchemaError: A pattern of a mask, or a name, matches nothing.
        """
        schemas = tuple(x if x is None or isinstance(x, Schema) else schema_of(x) for x in args)
        return self.make(schemas, kwargs or {})


_OPERATIONS = (
    Operation("concat", lambda operands, _: Everything(operands, none_passes=False)),
    Operation("logical_and", lambda operands, _: Everything(operands, none_passes=True)),
    Operation("logical_or", lambda operands, _: Whatever(operands)),
    Operation("logical_xor", lambda operands, _: OnlyOne(operands)),
    Operation("logical_not", lambda operands, _: Absent(operands)),
    Operation("in_mask", lambda operands, kwargs: Mask(operands, kwargs["mask"], Fate.KEEP)),
    Operation("out_mask", lambda operands, kwargs: Mask(operands, kwargs["mask"], Fate.DROP)),
    Operation("prefix", lambda operands, kwargs: Rename(operands, before=checked_prefix(kwargs["prefix"]) + "_")),
    Operation("suffix", lambda operands, kwargs: Rename(operands, after="_" + checked_suffix(kwargs["suffix"]))),
    Operation("factorize", lambda operands, kwargs: Factorize(operands, kwargs.get("names"))),
)

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType({operation.name: operation for operation in _OPERATIONS})
"""The operations that a program may record, by name."""

_merges: Kept[Concatenation] = Kept()
_plans: Kept[Plan] = Kept(room=4_096)


def concat(*operands: Any) -> Any:
    """Put the fields of all operands into one object: `+`.

    A field whose name is taken gets the suffix `_1`, `_2`, ... .

    Args:
        *operands: Two or more values, symbols or classes; a left fold.

    Returns:
        A value; a symbol where an operand is a symbol or all are classes.

    Schemas:
        result: `C(A, B)`: the fields of B after those of A

    Raises:
        DataError: An operand is None, a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is no data.

    Example:
        >>> a = JsonDataModel({"x": 1}, schema={"type": "object", "properties": {"x": {"type": "integer"}}})
        >>> concat(a, a).get_json()
        {'x': 1, 'x_1': 1}

    Source: Synalinks' `concat`; differs: one suffix rule, made from schemas.
    """
    if _are_values(operands):
        return _merged(operands)
    present = _operands(operands, "concat")
    for position, x in enumerate(present):
        if x is None:
            raise refuse_none(position, traced_path())
    return _together("concat", present)


def logical_and(*operands: Any) -> Any:
    """Put all operands together, or give None if one is None: `&`.

    Args:
        *operands: Two or more values, symbols, classes or None; a left fold.

    Returns:
        As `concat`; None if an operand is None.

    Raises:
        DataError: An operand is a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is no data.

    Example:
        >>> logical_and(None, None) is None
        True

    Source: Synalinks' `logical_and`.
    """
    if _are_values(operands):
        return _merged(operands)
    present = _operands(operands, "logical_and")
    return None if any(x is None for x in present) else _together("logical_and", present)


def logical_or(*operands: Any) -> Any:
    """Put together the operands that are there: `|`.

    Args:
        *operands: Two or more values, symbols, classes or None; a left fold.

    Returns:
        `C` of the two if both are there, the one that is there otherwise, None if none is. For symbols a symbol that
        stands for all of that.

    Schemas:
        result: of symbols `U(C(A, B), A, B)`

    Raises:
        DataError: An operand is a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is no data.

    Example:
        >>> logical_or(None, None) is None
        True

    Source: Synalinks' `logical_or`.
    """
    if _are_values(operands):
        return _merged(operands)
    given = _operands(operands, "logical_or")
    present = [x for x in given if x is not None]
    if len(present) < 2:
        return _single(present)
    if (planned := _planned("logical_or", given)) is not None:
        return planned
    return _merged(present)


def logical_xor(*operands: Any) -> Any:
    """Give the one operand that is there: `^`.

    Args:
        *operands: Two or more values, symbols, classes or None.

    Returns:
        The one that is there, None if none or more than one is. For symbols a symbol that stands for any of them.

    Schemas:
        result: of symbols `U` of all

    Raises:
        DataError: An operand is a coroutine, or a class beside a value or a symbol.
        ArgumentError: Fewer than two operands, or one that is no data.

    Example:
        >>> logical_xor(None, None) is None
        True

    Source: Synalinks' `logical_xor`.
    """
    given = _operands(operands, "logical_xor")
    present = [x for x in given if x is not None]
    return _single(present) if len(present) < 2 else _planned("logical_xor", given)


def logical_not(x: Any) -> Any:
    """Give None for what is there: `~`.

    Args:
        x: A value, symbol, class or None.

    Returns:
        None; for a symbol or class a symbol of the same schema, which is None when the program runs.

    Raises:
        DataError: The operand is a coroutine.
        ArgumentError: It is no data.

    Example:
        >>> logical_not(None) is None
        True

    Source: Synalinks' `logical_not`.
    """
    operand = as_operand(x, "logical_not")
    return None if operand is None else _planned("logical_not", (operand,))


def in_mask(x: Any, mask: Any, *, recursive: bool = False) -> Any:
    """Keep only the fields named.

    Args:
        x: A value, symbol, class, or None.
        mask: A pattern, a list of patterns, or a data model (its top-level names). Steps of a pattern are joined by
            `/`; `*` and `?` are wild, `**` is any number of steps; lists are transparent.
        recursive: Short for `**/` before each pattern.

    Returns:
        The same kind of thing with those fields, in their order; None for None.

    Raises:
        SchemaError: A pattern matches nothing in the schema, or there is none.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is no data, or `mask` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        >>> in_mask(JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'a': 1}

    Source: Synalinks' `in_mask`; differs: paths are exact, and a pattern without a match is an error.
    """
    patterns = patterns_of(mask, recursive=recursive)
    return _on_one("in_mask", x, {"mask": patterns}, tuple(patterns))


def out_mask(x: Any, mask: Any, *, recursive: bool = False) -> Any:
    """Remove the fields named.

    Args:
        x: A value, symbol, class, or None.
        mask: As in `in_mask`.
        recursive: Short for `**/` before each pattern.

    Returns:
        The same kind of thing without those fields; None for None.

    Raises:
        SchemaError: A pattern matches nothing in the schema, or there is none.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is no data, or `mask` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        >>> out_mask(JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'b': 2}

    Source: Synalinks' `out_mask`; differs as `in_mask`.
    """
    patterns = patterns_of(mask, recursive=recursive)
    return _on_one("out_mask", x, {"mask": patterns}, tuple(patterns))


def prefix(x: Any, prefix: str) -> Any:
    """Rename every top-level field `k` to `prefix_k`, extra keys included.

    Args:
        x: A value, symbol, class, or None.
        prefix: An identifier.

    Returns:
        The same kind of thing; None for None.

    Raises:
        DataError: The prefix is no identifier, or `x` is a coroutine.
        ArgumentError: `x` is no data.

    Example:
        >>> prefix(JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "my").get_json()
        {'my_a': 1}

    Source: Synalinks' `prefix`.
    """
    return _on_one("prefix", x, {"prefix": checked_prefix(prefix)}, prefix)


def suffix(x: Any, suffix: str) -> Any:
    """Rename every top-level field `k` to `k_suffix`, extra keys included.

    Args:
        x: A value, symbol, class, or None.
        suffix: Part of an identifier.

    Returns:
        The same kind of thing; None for None.

    Raises:
        DataError: The suffix is no part of an identifier, or `x` is a coroutine.
        ArgumentError: `x` is no data.

    Example:
        >>> suffix(JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "2").get_json()
        {'a_2': 1}

    Source: Synalinks' `suffix`.
    """
    return _on_one("suffix", x, {"suffix": checked_suffix(suffix)}, suffix)


def factorize(x: Any, names: Mapping[str, str] | None = None) -> Any:
    """Gather numbered repeats: `k, k_1 .. k_n` become one array.

    Args:
        x: A value, symbol, class, or None.
        names: For a field `k`, the name of its array; `k_list` where not given.

    Returns:
        The same kind of thing; None for None.

    Raises:
        SchemaError: A key of `names` heads no group.
        DataError: `x` is a coroutine.
        ArgumentError: `x` is no data, or `names` is of another kind.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {}, "a_1": {}}}
        >>> factorize(JsonDataModel({"a": 1, "a_1": 2}, schema)).get_json()
        {'a_list': [1, 2]}

    Source: Synalinks' `factorize`; differs: no plurals, no stemming.
    """
    given = checked_names(names)
    return _on_one("factorize", x, {"names": given} if given else {}, tuple(given.items()))


def _are_values(operands: Sequence[Any]) -> bool:
    """Tell whether all operands, two at least, are values. Hot: the short way for most operations."""
    for x in operands:
        if type(x) is not JsonDataModel:
            return False
    return len(operands) > 1


def _operands(operands: tuple[Any, ...], name: str) -> list[Any]:
    """Check what was given: two or more operands that may stand there."""
    if len(operands) < 2:
        raise ArgumentError(f"{name} takes two or more operands, got {len(operands)}.")
    return [as_operand(x, name) for x in operands]


def _single(present: list[Any]) -> Any:
    """Give the only operand that is there; of a class a symbol."""
    if not present:
        return None
    (x,) = present
    return symbol(schema_of(x), x) if isinstance(x, type) else x


def _together(name: str, present: Sequence[Any]) -> Any:
    """Put operands together that are all there."""
    return _merged(present) if _are_values(present) else _planned(name, present)


def _merged(values: Sequence[JsonDataModel[Any]]) -> JsonDataModel[Any]:
    """Concatenate values by the plan kept for their schemas. Hot."""
    parts = tuple([value._parts or parts_of(value._schema) for value in values])
    key = tuple(map(id, parts))
    merge = _merges.find(key)
    if merge is None:
        merge = Concatenation(parts)
        _merges.keep(key, merge, parts, 10 + len(merge.parts.fields))
    return wrap_parts(merge([value._json for value in values]), merge.parts)


def _planned(name: str, operands: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> SymbolicDataModel | None:
    """Plan an operation on symbols or classes, and record it where a symbol takes part; None for values alone."""
    symbolic = classes = False
    for x in operands:
        symbolic = symbolic or isinstance(x, SymbolicDataModel)
        classes = classes or isinstance(x, type)
    if not symbolic and not classes:
        return None
    if classes:
        refuse_class_beside(operands, name)
    plan = OPERATIONS[name].plan(operands, kwargs)
    schema = plan.schema
    if schema is None:
        return None
    output = symbol(schema)
    if symbolic and "operation" in RECORDERS:
        RECORDERS["operation"](name, plan, tuple(operands), dict(kwargs or {}), output)
    return output


def _on_one(name: str, x: Any, kwargs: dict[str, Any], more: Hashable) -> Any:
    """Apply an operation of one operand; `more` stands for the keyword arguments in the key of its plan."""
    operand = x if type(x) is JsonDataModel else as_operand(x, name)
    if operand is None:
        return None
    if not isinstance(operand, JsonDataModel):
        return _planned(name, (operand,), kwargs)
    schema = operand._schema
    key = (name, more, id(schema))
    plan = _plans.find(key)
    if plan is None:
        plan = _plans.keep(key, OPERATIONS[name].plan((schema,), kwargs), (schema,))
    return plan.apply((operand,))


OPERATORS.update(
    {
        "is_operand": is_operand,
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
