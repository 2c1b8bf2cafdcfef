"""The one rule of merging: `C(A, B)`, the fields of B after those of A, and `U(S1, .., Sn)`, one of these.

Both are made from schemas alone. What `C` decides about names is kept as a `Concatenation` and applied to values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from synmod.data.parts import ANYTHING, Parts
from synmod.data.subschemas import without_annotations
from synmod.leaves.frozen import FrozenDict, fill, frozen_dict, frozen_list, is_object, json_equal
from synmod.leaves.names import unused

from .definitions import beside

_NOTHING: Final[dict[str, Any]] = {}
_NOT_THERE: Final = object()
_LONGEST_TITLE: Final = 64
_LONGEST_DESCRIPTION: Final = 2_000


class Concatenation:
    """`C` of two or more operands, a left fold, with every name decided.

    Attributes:
        operands: Parts of the operands, their definitions named as in the result.
        renames: For each operand its fields that got another name.
        ends: For each operand how many fields the fold has up to it.
        orders: For each operand but the first its fields, in the order in which its values usually have them.
        names: For each operand the same fields, as they are called in the result.
        parts: The result.
    """

    __slots__ = ("ends", "names", "operands", "orders", "parts", "renames")

    def __init__(self, operands: Sequence[Parts]) -> None:
        fold = _Fold(operands[0])
        self.operands = [operands[0]]
        self.renames: list[dict[str, str]] = [{}]
        self.ends = [len(fold.fields)]
        for operand in operands[1:]:
            operand = beside(fold.definitions, operand)
            self.operands.append(operand)
            self.renames.append(fold.add(operand))
            self.ends.append(len(fold.fields))
        self.parts = fold.parts()
        self.orders = [(), *(tuple(operand.fields) for operand in self.operands[1:])]
        self.names = [
            tuple([renames.get(name, name) for name in order])
            for order, renames in zip(self.orders, self.renames, strict=True)
        ]

    def __call__(self, values: Sequence[FrozenDict]) -> FrozenDict:
        """Merge values, one for each operand. Hot: contents are shared, keys are copied."""
        merged = frozen_dict(_NOTHING)
        for number, value in enumerate(values):
            if number and tuple(value) == self.orders[number]:
                fill(merged, dict(zip(self.names[number], value.values(), strict=True)))
                continue
            if not value.keys() <= self.operands[number].fields.keys():
                return self._with_extra_keys(values)
            renames = self.renames[number]
            fill(merged, {renames.get(key, key): content for key, content in value.items()} if renames else value)
        return merged

    def _with_extra_keys(self, values: Sequence[FrozenDict]) -> FrozenDict:
        """Merge values with keys that no schema declares: those give way, by the suffix rule."""
        names = list(self.parts.fields)
        merged: dict[str, Any] = dict(values[0])
        before = set(names[: self.ends[0]])
        for number in range(1, len(values)):
            declared = set(names[: self.ends[number]])
            taken = set(declared)
            placed: dict[str, Any] = {}
            for key, content in merged.items():
                name = key if key in before else unused(key, taken)
                taken.add(name)
                placed[name] = content
            renames, fields = self.renames[number], self.operands[number].fields
            for key, content in values[number].items():
                name = renames.get(key, key) if key in fields else unused(key, taken)
                taken.add(name)
                placed[name] = content
            merged, before = placed, declared
        return frozen_dict(merged)


class _Fold:
    """`C` in the making."""

    def __init__(self, first: Parts) -> None:
        self.fields: dict[str, Any] = dict(first.fields)
        self.required = list(first.required)
        self.extra = first.extra
        self.definitions = dict(first.definitions)
        self.title = first.title
        self.description = first.description

    def add(self, operand: Parts) -> dict[str, str]:
        """Put the fields of an operand after those that are there; give the new names of those that collide."""
        fields = self.fields
        renames: dict[str, str] = {}
        taken = {name for name in operand.fields if name not in fields}  # in the time of the operand, not of the fold
        for name in operand.fields:
            if name in fields:
                renames[name] = self._number(name, taken)
                taken.add(renames[name])
        added = {renames.get(name, name): schema for name, schema in operand.fields.items()}
        fields.update(added)
        self.required.extend(renames.get(name, name) for name in operand.required)
        self.extra = looser((self.extra, operand.extra))
        self.definitions.update(operand.definitions)
        self.title = joined((self.title, operand.title), "_", _LONGEST_TITLE)
        self.description = joined((self.description, operand.description), "\n\n", _LONGEST_DESCRIPTION)
        return renames

    def _number(self, name: str, taken: set[str]) -> str:
        """Apply the suffix rule."""
        number = 1
        while (new := f"{name}_{number}") in self.fields or new in taken:
            number += 1
        return new

    def parts(self) -> Parts:
        """Close the fold."""
        return Parts(self.fields, self.required, self.extra, self.definitions, self.title, self.description)


def either(alternatives: Sequence[Parts]) -> Parts:
    """Make `U`: one object that admits what each of the alternatives admits."""
    united = [alternatives[0]]
    definitions = dict(alternatives[0].definitions)
    for alternative in alternatives[1:]:
        united.append(beside(definitions, alternative))
        definitions.update(united[-1].definitions)
    names = dict.fromkeys(name for parts in united for name in parts.fields)
    fields = {name: _field_of_any(united, name) for name in names}
    needed = set(united[0].required).intersection(*(parts.required for parts in united[1:]))
    return Parts(
        frozen_dict(fields),
        [name for name in names if name in needed],
        looser(parts.extra for parts in united),
        definitions,
        joined((parts.title for parts in united), "_", _LONGEST_TITLE),
        joined((parts.description for parts in united), "\n\n", _LONGEST_DESCRIPTION),
    )


def _field_of_any(united: Sequence[Parts], name: str) -> Any:
    """Give what the alternatives admit at a name: their field, or what their extra keys may be."""
    admitted: list[Any] = []
    for parts in united:
        schema = parts.fields.get(name, _NOT_THERE)
        if schema is _NOT_THERE:
            if parts.extra is False:
                continue
            schema = ANYTHING if parts.extra is True else parts.extra
        if not admitted or schema is not admitted[-1]:
            admitted.append(schema)
    return admitted[0] if len(admitted) == 1 else any_of(admitted)


def any_of(schemas: Iterable[Any]) -> Any:
    """Give the common schema, or `anyOf` of the distinct ones; annotations make no difference, the first is kept."""
    distinct = {id(schema): schema for schema in schemas}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    arms: list[Any] = []
    known: dict[int, list[Any]] = {}
    for schema in distinct.values():
        for arm in schema["anyOf"] if is_object(schema) and schema.keys() == {"anyOf"} else (schema,):
            demands = without_annotations(arm)
            alike = known.setdefault(hash(demands), [])
            if not any(json_equal(demands, other) for other in alike):
                arms.append(arm)
                alike.append(demands)
    return arms[0] if len(arms) == 1 else frozen_dict({"anyOf": frozen_list(arms)})


def looser(extras: Iterable[Any]) -> Any:
    """Give the looser of what extra keys may be: False, then a schema, then True; two schemas: `anyOf`."""
    admitted = [extra for extra in extras if extra is not False]
    if any(extra is True for extra in admitted):
        return True
    return any_of(admitted) if admitted else False


def joined(texts: Iterable[str | None], between: str, longest: int) -> str | None:
    """Join the distinct texts, cut."""
    distinct = dict.fromkeys(text for text in texts if text)
    return between.join(distinct)[:longest] or None
