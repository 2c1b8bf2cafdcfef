"""The algebra of data models as functions: `sm.ops`.

Every function takes values, classes, symbols and, where its table says so, None. With a symbol the same operation is
recorded, as a plan that is replayed when the program runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synmod.data.operators import OPERATORS
from synmod.data.subschema import contains, holds

from .accepted import as_operand, is_operand, traced_path
from .applying import are_values, checked_operands, merged, on_one, planned, single, together
from .factorize import checked_names
from .mask_patterns import patterns_of
from .operations import OPERATIONS
from .plans import refuse_none
from .rename import checked_prefix, checked_suffix

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
        >>> a = sm.JsonDataModel({"x": 1}, schema={"type": "object", "properties": {"x": {"type": "integer"}}})
        >>> concat(a, a).get_json()
        {'x': 1, 'x_1': 1}

    Source: Synalinks' `concat`; differs: one suffix rule, made from schemas.
    """
    if are_values(operands):
        return merged(operands)
    present = checked_operands(operands, "concat")
    for position, x in enumerate(present):
        if x is None:
            raise refuse_none(position, traced_path())
    return together("concat", present)


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
    if are_values(operands):
        return merged(operands)
    present = checked_operands(operands, "logical_and")
    return None if any(x is None for x in present) else together("logical_and", present)


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
    if are_values(operands):
        return merged(operands)
    given = checked_operands(operands, "logical_or")
    present = [x for x in given if x is not None]
    if len(present) < 2:
        return single(present)
    if (made := planned("logical_or", given)) is not None:
        return made
    return merged(present)


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
    given = checked_operands(operands, "logical_xor")
    present = [x for x in given if x is not None]
    return single(present) if len(present) < 2 else planned("logical_xor", given)


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
    return None if operand is None else planned("logical_not", (operand,))


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
        >>> in_mask(sm.JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'a': 1}

    Source: Synalinks' `in_mask`; differs: paths are exact, and a pattern without a match is an error.
    """
    patterns = patterns_of(mask, recursive=recursive)
    return on_one("in_mask", x, {"mask": patterns}, tuple(patterns))


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
        >>> out_mask(sm.JsonDataModel({"a": 1, "b": 2}, schema), "a").get_json()
        {'b': 2}

    Source: Synalinks' `out_mask`; differs as `in_mask`.
    """
    patterns = patterns_of(mask, recursive=recursive)
    return on_one("out_mask", x, {"mask": patterns}, tuple(patterns))


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
        >>> prefix(sm.JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "my").get_json()
        {'my_a': 1}

    Source: Synalinks' `prefix`.
    """
    return on_one("prefix", x, {"prefix": checked_prefix(prefix)}, prefix)


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
        >>> suffix(sm.JsonDataModel({"a": 1}, {"type": "object", "properties": {"a": {}}}), "2").get_json()
        {'a_2': 1}

    Source: Synalinks' `suffix`.
    """
    return on_one("suffix", x, {"suffix": checked_suffix(suffix)}, suffix)


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
        >>> factorize(sm.JsonDataModel({"a": 1, "a_1": 2}, schema)).get_json()
        {'a_list': [1, 2]}

    Source: Synalinks' `factorize`; differs: no plurals, no stemming.
    """
    given = checked_names(names)
    return on_one("factorize", x, {"names": given} if given else {}, tuple(given.items()))


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
