"""Steps: how a symbol remembers what made it.

A symbolic call or operator records one `Step`; each symbol that came out of it points at that step, and the step at
the symbols that went in. Nothing points the other way: no module, table or list knows a step, and a step does not know
its own symbols. So a history is freed with the last symbol that needs it, by reference counting alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from types import MappingProxyType
from typing import Any, cast

from synmod.data import RECORDERS, Schema, SymbolicDataModel, symbol
from synmod.errors import DataError
from synmod.leaves.frozen import frozen
from synmod.leaves.nests import copied, is_leaf, kind_of, leaves, map_leaves

_JSON_SCALARS = (str, int, float, bool, type(None))


class Declared:
    """What is known of a value to come: its schema, the class behind it, its label, whether it may be left out."""

    __slots__ = ("__weakref__", "data_model", "name", "optional", "schema")

    schema: Schema
    data_model: Any
    name: str | None
    optional: bool

    def __init__(self, schema: Schema, data_model: Any = None, name: str | None = None, optional: bool = False) -> None:
        self.schema = schema
        self.data_model = data_model
        self.name = name
        self.optional = optional

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Declared):
            return NotImplemented
        return (self.schema, self.name, self.optional) == (other.schema, other.name, other.optional)

    def __hash__(self) -> int:
        return hash((self.schema, self.name, self.optional))

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Step:
    """One recorded call of a module, or one recorded operator.

    Attributes:
        module: The module, None for an operator.
        op: Name of the operator in `sm.ops`, None for a module.
        plan: The operator's plan, made when it was recorded.
        args: Positional arguments: nests of symbols, values beside them, None.
        kwargs: Keyword arguments: nests in which symbols are edges and all else is constant.
        gives: The output's structure with a `Declared` at the place of each symbol.
        aside: What the call leaves beside its outputs, for rooms above; None for nothing.
    """

    __slots__ = ("args", "aside", "gives", "kwargs", "module", "op", "plan")

    def __init__(
        self,
        module: Any,
        op: str | None,
        plan: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        gives: Any,
        aside: Mapping[Any, Any] | None = None,
    ) -> None:
        self.module = module
        self.op = op
        self.plan = plan
        self.args = args
        self.kwargs = kwargs
        self.gives = gives
        self.aside = aside

    @property
    def name(self) -> str:
        """The module's name, or the operator's."""
        return self.op if self.op is not None else self.module.name

    @property
    def inputs(self) -> tuple[SymbolicDataModel, ...]:
        """The symbols this step waits for, left to right, with repeats."""
        return tuple(x for x in leaves([self.args, dict(self.kwargs)]) if isinstance(x, SymbolicDataModel))

    def __repr__(self) -> str:
        return f"Step({self.name}: {', '.join(str(x._label) for x in self.inputs)} -> {leaves(self.gives)})"


class Origin:
    """Where a symbol comes from: output number `index`, in the order of leaves, of `step`; an Input has no step."""

    __slots__ = ("index", "optional", "step")

    def __init__(self, step: Step | None, index: int = 0, *, optional: bool = False) -> None:
        self.step = step
        self.index = index
        self.optional = optional


def record_call(
    module: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    outputs: Any,
    aside: Mapping[Any, Any] | None = None,
) -> None:
    """Let the symbols that a symbolic call returns remember the call.

    Args:
        module: The module that was called.
        args: Positional arguments as `call` gets them.
        kwargs: Keyword arguments; symbols in them are edges too, plain JSON is frozen, the rest is kept as it is.
        outputs: A nest of fresh symbols, with None where nothing comes out.
        aside: What the call leaves beside its outputs.
    """
    constants = MappingProxyType({key: _constant(value) for key, value in kwargs.items()}) if kwargs else _NONE_GIVEN
    _remember(Step(module, None, None, copied(args), constants, map_leaves(_declared, outputs), aside), outputs)


def record_operation(
    name: str, plan: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: SymbolicDataModel
) -> None:
    """Let the symbol that an operator returns remember the operation, with the plan that fixes its field names."""
    constants = MappingProxyType({key: _constant(value) for key, value in kwargs.items()}) if kwargs else _NONE_GIVEN
    operands = tuple(arg if is_leaf(arg) else _constant(arg) for arg in args)
    _remember(Step(None, name, plan, operands, constants, _declared(output)), output)


def declared_of(symbol: SymbolicDataModel, *, optional: bool = False) -> Declared:
    """What a symbol says, without its history."""
    return Declared(symbol._schema, symbol._model, symbol._label, optional)


def symbol_of(declared: Declared) -> SymbolicDataModel:
    """Make a symbol, without history, of what was declared."""
    return symbol(declared.schema, declared.data_model, declared.name)


_NONE_GIVEN: Mapping[str, Any] = MappingProxyType({})


def _remember(step: Step, outputs: Any) -> None:
    """Point each output symbol at the step; the numbers count all leaves, None included."""
    if outputs is None:
        return
    if is_leaf(outputs):
        outputs._origin = Origin(step, 0)
        return
    for index, leaf in zip(count(), leaves(outputs), strict=False):
        if leaf is not None:
            leaf._origin = Origin(step, index)


def _declared(leaf: Any) -> Any:
    """Turn an output symbol into what it declares; None stays."""
    return None if leaf is None else declared_of(leaf)


def _constant(value: Any) -> Any:
    """Keep a keyword argument safe from later changes: JSON is frozen, containers with symbols or objects copied."""
    if is_leaf(value):
        return value
    if _is_plain_json(value):
        with suppress(DataError):  # NaN, or nested too deeply: kept as any other object is
            return frozen(value)
    return copied(value)


def _is_plain_json(nest: Any) -> bool:
    """Tell whether dicts and lists of JSON scalars are all that is there (a tuple would come back as a list)."""
    stack = [nest]
    seen: set[int] = set()
    while stack:
        x: Any = stack.pop()
        if kind_of(x):
            if id(x) in seen:
                continue
            seen.add(id(x))
        if type(x) is dict:
            plain = cast("dict[object, Any]", x)
            if not all(type(key) is str for key in plain):
                return False
            stack.extend(plain.values())
        elif type(x) is list:
            stack.extend(cast("list[Any]", x))
        elif kind_of(x) or type(x) not in _JSON_SCALARS:
            return False
    return True


RECORDERS["operation"] = record_operation
