"""Concat, And, Or, Xor, Not: the operators of the algebra as modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from synmod.blocks.algebra_block import AlgebraBlock
from synmod.data import ops
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Callable


class _Merge(Module):
    """What the merging blocks share: several inputs, None among them taken."""

    accepts_none: ClassVar[bool] = True
    _operation: ClassVar[Callable[..., Any]]

    async def call(self, *inputs: Any) -> Any:
        """Merge two or more inputs, or one list or tuple of them."""
        return type(self)._operation(*_operands(inputs))

    async def compute_output_spec(self, *inputs: Any) -> Any:
        """The same on symbols."""
        return type(self)._operation(*_operands(inputs))


def _operands(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands: the inputs themselves, or those in the one list or tuple that was given."""
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        return tuple(inputs[0])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  (of data)
    return inputs


@register_own()
class Concat(_Merge):
    """All fields of all inputs in one output: `sm.ops.concat` as a module.

    Schemas:
        inputs: two or more data models, or one list or tuple of them
        outputs: `C(A, B)`: the fields of A, then those of B, renamed where a name is taken

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Concat(), Query(question="Who?"), Query(question="Why?")).get_json()
        {'question': 'Who?', 'question_1': 'Why?'}

    Source: Keras' `Concatenate`, Synalinks' `Concat`.
    """

    _operation = staticmethod(ops.concat)


@register_own()
class And(_Merge):
    """All inputs in one output, None if one of them is None: `sm.ops.logical_and` as a module.

    Schemas:
        inputs: two or more data models or None, or one list or tuple of them
        outputs: `C(A, B)`, or None

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.And(), Query(question="Who?"), None) is None
        True

    Source: Synalinks' `And`.
    """

    _operation = staticmethod(ops.logical_and)


@register_own()
class Or(_Merge):
    """Those inputs that are there in one output: `sm.ops.logical_or` as a module.

    Schemas:
        inputs: two or more data models or None, or one list or tuple of them
        outputs: `C(A, B)`, the one that is there, or None if none is

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Or(), None, Query(question="Who?")).get_json()
        {'question': 'Who?'}

    Source: Synalinks' `Or`.
    """

    _operation = staticmethod(ops.logical_or)


@register_own()
class Xor(_Merge):
    """The one input that is there: `sm.ops.logical_xor` as a module.

    Schemas:
        inputs: two or more data models or None, or one list or tuple of them
        outputs: `U` of the inputs: the one that is there, None if none or more than one is

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Xor(), Query(question="Who?"), Query(question="Why?")) is None
        True

    Source: Synalinks' `Xor`.
    """

    _operation = staticmethod(ops.logical_xor)


@register_own()
class Not(AlgebraBlock):
    """None for what is there: `sm.ops.logical_not` as a module.

    Schemas:
        inputs: a data model or None
        outputs: None; as a symbol, the schema of the inputs

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.blocks.Not(), Query(question="Who?")) is None
        True

    Source: Synalinks' `Not`.
    """

    accepts_none: ClassVar[bool] = True

    def _apply(self, inputs: Any) -> Any:
        return ops.logical_not(inputs)
