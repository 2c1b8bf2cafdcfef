"""Parallel: several modules on the same inputs, at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, Unpack

from synmod.blocks.arguments import members, one_of
from synmod.data import is_symbolic, ops
from synmod.flow import together
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.module import ModuleOptions

Merge: TypeAlias = Literal["concat", "and", "or"]

_MERGES: Final[Mapping[Merge, Callable[..., Any]]] = {
    "concat": ops.concat,
    "and": ops.logical_and,
    "or": ops.logical_or,
}


@register_own()
class Parallel(Module):
    """Calls all its members on the same inputs at once.

    The first failure cancels the other members, waits until they have ended, and is raised as itself.

    Args:
        *modules: The members.
        merge: None for a tuple of their outputs, in order; "concat", "and" or "or" for one output.
        **options: Those of `Module`.

    Schemas:
        inputs: what every member takes
        outputs: a tuple of the members' outputs, or their merge by `sm.ops.concat`, `logical_and`, `logical_or`

    Raises:
        ConfigError: No members, one that is no module, or an unknown `merge` ('Did you mean').

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> both = sm.Parallel(sm.Identity(), sm.Prefix("other"), merge="concat")
        >>> sm.run(both, Query(question="Who?")).get_json()
        {'question': 'Who?', 'other_question': 'Who?'}

    Source: LangChain's `RunnableParallel`; differs: structured concurrency, merges by schema.
    """

    merge: Merge | None = None
    """How the outputs are merged; None for a tuple."""

    def __init__(self, *modules: Module, merge: Merge | None = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.modules = members("Parallel", modules)
        one_of("Parallel", "merge", merge, (None, *_MERGES))
        if merge is not None:
            self.merge = merge

    async def call(self, inputs: Any) -> Any:
        """Call all members at once.

        Raises:
            DataError: `merge="concat"`, and a member gave None.
            Exception: The first failure of a member, as itself.
        """
        if is_symbolic(inputs):
            return await self.compute_output_spec(inputs)
        return self._merged(await together(*(partial(module, inputs) for module in self.modules)))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """What the members say, merged."""
        return self._merged([await module(inputs) for module in self.modules])

    def _merged(self, outputs: list[Any]) -> Any:
        """A tuple, or the merge; of one output, that output."""
        if self.merge is None:
            return tuple(outputs)
        return outputs[0] if len(outputs) == 1 else _MERGES[self.merge](*outputs)
