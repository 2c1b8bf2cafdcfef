"""Plans: one operation of the algebra with every name decided, made from schemas, applied to values.

A plan is what a program keeps of an operation: made once, when symbols are combined, and replayed at each run, so that
an absent field or an operand that is None this time cannot shift a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from synmod.data.parts import Parts, parts_of
from synmod.data.schema import Schema
from synmod.data.value import JsonDataModel, wrap
from synmod.errors import DataError

from .merge import Concatenation, either

Operands = Sequence[Schema | None]
Values = Sequence[JsonDataModel[Any] | None]


class Plan(Protocol):
    """An operation that can be replayed."""

    @property
    def schema(self) -> Schema | None:
        """Schema of the result; None if it is always None."""
        ...

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:
        """Run on values, one for each operand, None where it is absent; `where` begins the message of an error."""
        ...


def refuse_none(position: int, where: str) -> DataError:
    """Say which operand of `concat` is None."""
    return DataError(
        f"{where + ': ' if where else ''}concat: operand {position} is None, and `+` needs every operand; write `&` "
        "(sm.ops.logical_and) to let None pass."
    )


class Everything:
    """`concat` and `logical_and`: `C` of all operands; a None is an error for the one, the result of the other."""

    def __init__(self, operands: Operands, *, none_passes: bool) -> None:
        self._none_passes = none_passes
        self._merge: Concatenation | None = None
        present = [parts_of(schema) for schema in operands if schema is not None]
        if len(present) == len(operands):
            self._merge = Concatenation(present)
        elif not none_passes:
            raise refuse_none(list(operands).index(None), "")

    @property
    def schema(self) -> Schema | None:
        """`C` of all, None where one is never there."""
        return self._merge.parts.schema if self._merge else None

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:
        """Merge, by the names decided."""
        values: list[Any] = []
        for position, value in enumerate(args):
            if value is None:
                if self._none_passes:
                    return None
                raise refuse_none(position, where)
            values.append(value._json)
        return wrap(self._merge(values), self._merge.parts.schema) if self._merge else None


class Whatever:
    """`logical_or`: a left fold; of each two operands both merged, or the one that is there."""

    def __init__(self, operands: Operands) -> None:
        self._positions = [position for position, schema in enumerate(operands) if schema is not None]
        self._merges: list[Concatenation] = []
        self._parts: Parts | None = None
        for schema in operands:
            if schema is not None:
                self._parts = self._folded(parts_of(schema))

    def _folded(self, operand: Parts) -> Parts:
        """Make `U(C(A, B), A, B)` of what was folded so far and the next operand."""
        if self._parts is None:
            return operand
        merge = Concatenation([self._parts, operand])
        self._merges.append(merge)
        return either([merge.parts, *merge.operands])

    @property
    def schema(self) -> Schema | None:
        """`U` of all that may come out."""
        return self._parts.schema if self._parts else None

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (only concat tells where)
        """Fold; the result has the schema of the symbol, whoever is there."""
        folded = model = None
        for number, position in enumerate(self._positions):
            value = args[position]
            if value is None:
                continue
            model = value._model if folded is None else None
            folded = value._json if folded is None else self._merges[number - 1]((folded, value._json))
        return None if folded is None or self._parts is None else wrap(folded, self._parts.schema, model)


class OnlyOne:
    """`logical_xor`: the one operand that is there, None if none or more than one is."""

    def __init__(self, operands: Operands) -> None:
        present = [parts_of(schema) for schema in operands if schema is not None]
        self._parts = either(present) if len(present) > 1 else present[0] if present else None

    @property
    def schema(self) -> Schema | None:
        """`U` of all operands."""
        return self._parts.schema if self._parts else None

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (only concat tells where)
        """Pick it; it gets the schema of the symbol."""
        there = [value for value in args if value is not None]
        if len(there) != 1 or self._parts is None:
            return None
        return wrap(there[0]._json, self._parts.schema, there[0]._model)


class Absent:
    """`logical_not`: the schema of the operand, but None at run time."""

    def __init__(self, operands: Operands) -> None:
        (self.schema,) = operands

    def apply(self, args: Values, where: str = "") -> None:
        """Give None: present becomes absent, and absent has no schema to become."""
