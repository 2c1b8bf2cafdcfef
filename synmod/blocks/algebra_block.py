"""A block that is one function of the algebra: computed alike from values and from symbols."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from synmod.module import Module


class AlgebraBlock(Module):
    """What the masks, the renaming blocks and `Not` share: one function, for `call` and for its schema."""

    @abstractmethod
    def _apply(self, inputs: Any) -> Any:
        """The function of `sm.ops` on a value, or on a symbol."""

    async def call(self, inputs: Any) -> Any:
        """Apply the function to a value."""
        return self._apply(inputs)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Apply the same function to a symbol."""
        return self._apply(inputs)
