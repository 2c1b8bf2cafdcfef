"""InMask and OutMask: fields kept or removed, as modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from synmod.blocks.algebra_block import AlgebraBlock
from synmod.data import ops, patterns_of
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.module import ModuleOptions


class _Mask(AlgebraBlock):
    """What both masks share: patterns that are read once."""

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_patterns"})
    _operation: ClassVar[Callable[..., Any]]

    def __init__(self, mask: Any, *, recursive: bool = False, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self._patterns = patterns_of(mask, recursive=recursive)

    def _apply(self, inputs: Any) -> Any:
        return type(self)._operation(inputs, self._patterns)


@register_own()
class InMask(_Mask):
    """Keeps only the fields named: `sm.ops.in_mask` as a module.

    Args:
        mask: A pattern such as "answer" or "sources/*/title", a list of patterns, or a data model (its field names).
        recursive: Short for `**/` before each pattern.
        **options: Those of `Module`.

    Schemas:
        inputs: a data model in which every pattern matches
        outputs: its fields that match, in their order

    Raises:
        ArgumentError: The mask is of another kind.
        SchemaError: A mask without a pattern.

    Example:
        >>> import synmod as sm
        >>> class Cited(sm.DataModel):
        ...     answer: str
        ...     source: str
        >>> sm.run(sm.InMask("answer"), Cited(answer="Paris", source="atlas")).get_json()
        {'answer': 'Paris'}

    Source: Synalinks' `InMask`.
    """

    _operation = staticmethod(ops.in_mask)


@register_own()
class OutMask(_Mask):
    """Removes the fields named: `sm.ops.out_mask` as a module.

    Args:
        mask: A pattern such as "answer" or "sources/*/title", a list of patterns, or a data model (its field names).
        recursive: Short for `**/` before each pattern.
        **options: Those of `Module`.

    Schemas:
        inputs: a data model in which every pattern matches
        outputs: its other fields, in their order

    Raises:
        ArgumentError: The mask is of another kind.
        SchemaError: A mask without a pattern.

    Example:
        >>> import synmod as sm
        >>> class Cited(sm.DataModel):
        ...     answer: str
        ...     source: str
        >>> sm.run(sm.OutMask("source"), Cited(answer="Paris", source="atlas")).get_json()
        {'answer': 'Paris'}

    Source: Synalinks' `OutMask`.
    """

    _operation = staticmethod(ops.out_mask)
