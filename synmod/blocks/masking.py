"""InMask and OutMask: fields kept or removed, as modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from synmod.data import ops
from synmod.data.mask_patterns import patterns_of
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from synmod.scope.hooks import Hook


class _Mask(Module):
    """What both masks share: patterns that are read once."""

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_patterns"})
    _operation: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        mask: Any,
        *,
        recursive: bool = False,
        name: str | None = None,
        description: str | None = None,
        trainable: bool = True,
        hooks: Sequence[Hook] | None = None,
    ) -> None:
        super().__init__(name=name, description=description, trainable=trainable, hooks=hooks)
        self._patterns = patterns_of(mask, recursive=recursive)

    async def call(self, inputs: Any) -> Any:
        """Mask the inputs; a pattern that matches nothing in their schema is a SchemaError."""
        return type(self)._operation(inputs, self._patterns)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """The same on symbols."""
        return type(self)._operation(inputs, self._patterns)


@register_own()
class InMask(_Mask):
    """Keeps only the fields named: `sm.ops.in_mask` as a module.

    Args:
        mask: A pattern such as "answer" or "sources/*/title", a list of patterns, or a data model (its field names).
        recursive: Short for `**/` before each pattern.
        name: Label.
        description: Label.
        trainable: Has no effect; there is nothing to train.
        hooks: Listeners to this module.

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
        name: Label.
        description: Label.
        trainable: Has no effect; there is nothing to train.
        hooks: Listeners to this module.

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
