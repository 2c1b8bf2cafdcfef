"""The operations of the algebra by name: what a saved program may name, and how each is planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from synmod.data.schema import Schema
from synmod.data.symbols import schema_of
from synmod.errors import ArgumentError

from .factorize import Factorize
from .mask_patterns import patterns_of
from .mask_tree import Fate
from .masks import Mask
from .plans import Absent, Everything, OnlyOne, Operands, Plan, Whatever
from .rename import Rename, checked_prefix, checked_suffix

Kwargs: TypeAlias = Mapping[str, Any]
"""Keyword arguments of an operation; JSON, so that a file can hold them."""


class Operation(NamedTuple):
    """An operation of the algebra, by the name that a saved program uses.

    Attributes:
        name: Its name in `sm.ops`.
        make: Makes a plan of the operands' schemas (None for None) and the keyword arguments.
        keywords: Keyword arguments it may have.
        one: Whether it takes one operand; otherwise two or more.
    """

    name: str
    make: Callable[[Operands, Kwargs], Plan]
    keywords: frozenset[str] = frozenset()
    one: bool = False

    def plan(self, args: Sequence[Any], kwargs: Kwargs | None = None) -> Plan:
        """Plan the operation on operands given by their schemas, None, or constants with a schema.

        Raises:
            DataError: An operand that must be there is None, or a name cannot be.
            SchemaError: A pattern of a mask, or a name, matches nothing.
            ArgumentError: Too many or too few operands, or keyword arguments that the operation does not have.
        """
        given = kwargs or {}
        if (len(args) == 1) != self.one or not args:
            raise ArgumentError(f"{self.name} takes {'one operand' if self.one else 'two or more'}, got {len(args)}.")
        if not given.keys() <= self.keywords:
            raise ArgumentError(f"{self.name} takes {sorted(self.keywords)}, got {sorted(given)}.")
        return self.make(tuple(x if x is None or isinstance(x, Schema) else schema_of(x) for x in args), given)


def _concat(operands: Operands, _: Kwargs) -> Plan:
    return Everything(operands, none_passes=False)


def _logical_and(operands: Operands, _: Kwargs) -> Plan:
    return Everything(operands, none_passes=True)


def _logical_or(operands: Operands, _: Kwargs) -> Plan:
    return Whatever(operands)


def _logical_xor(operands: Operands, _: Kwargs) -> Plan:
    return OnlyOne(operands)


def _logical_not(operands: Operands, _: Kwargs) -> Plan:
    return Absent(operands)


def _in_mask(operands: Operands, kwargs: Kwargs) -> Plan:
    return Mask(operands, patterns_of(kwargs.get("mask")), Fate.KEEP)


def _out_mask(operands: Operands, kwargs: Kwargs) -> Plan:
    return Mask(operands, patterns_of(kwargs.get("mask")), Fate.DROP)


def _prefix(operands: Operands, kwargs: Kwargs) -> Plan:
    return Rename(operands, before=checked_prefix(kwargs.get("prefix")) + "_")


def _suffix(operands: Operands, kwargs: Kwargs) -> Plan:
    return Rename(operands, after="_" + checked_suffix(kwargs.get("suffix")))


def _factorize(operands: Operands, kwargs: Kwargs) -> Plan:
    return Factorize(operands, kwargs.get("names"))


OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        operation.name: operation
        for operation in (
            Operation("concat", _concat),
            Operation("logical_and", _logical_and),
            Operation("logical_or", _logical_or),
            Operation("logical_xor", _logical_xor),
            Operation("logical_not", _logical_not, one=True),
            Operation("in_mask", _in_mask, frozenset({"mask"}), one=True),
            Operation("out_mask", _out_mask, frozenset({"mask"}), one=True),
            Operation("prefix", _prefix, frozenset({"prefix"}), one=True),
            Operation("suffix", _suffix, frozenset({"suffix"}), one=True),
            Operation("factorize", _factorize, frozenset({"names"}), one=True),
        )
    }
)
"""The operations that a program may record, by name."""
