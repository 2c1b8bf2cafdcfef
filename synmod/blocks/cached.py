"""Cached: a whole module remembered by its inputs and its state."""

from __future__ import annotations

import json
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Unpack

from synmod.blocks.arguments import function, member, number
from synmod.errors import ConfigError
from synmod.flow.nest import map_leaves
from synmod.flow.single_flight import SingleFlight
from synmod.leaves import aio
from synmod.leaves.clock import current_clock
from synmod.leaves.frozen import frozen
from synmod.lm import current_sample
from synmod.module import Module
from synmod.module.paths import is_bypassed
from synmod.registry import register_own
from synmod.scope import current_call
from synmod.tree import state

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.module import ModuleOptions

_MOST: Final = 1_024


class _Entry(NamedTuple):
    """A remembered output and when it was made."""

    outputs: Any
    made: float


class _Memory:
    """What one block remembers: the last outputs, and those being made."""

    def __init__(self, owner: Module | None = None) -> None:
        self.owner = None if owner is None else weakref.ref(owner)
        self.entries: OrderedDict[str, _Entry] = OrderedDict()
        self.flights = SingleFlight()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Memory, ()  # nothing is remembered in another process

    def keep(self, key: str, outputs: Any) -> None:
        """Remember an output; the one whose use is longest ago goes first."""
        self.entries[key] = _Entry(outputs, current_clock().now())
        self.entries.move_to_end(key)
        while len(self.entries) > _MOST:
            self.entries.popitem(last=False)

    def find(self, key: str, ttl_s: float | None) -> _Entry | None:
        """Give what is remembered and not too old."""
        entry = self.entries.get(key)
        if entry is None or (ttl_s is not None and current_clock().now() - entry.made > ttl_s):
            return None
        self.entries.move_to_end(key)
        return entry


@register_own()
class Cached(Module):
    """Remembers what a module gave, by the JSON of its inputs and the fingerprint of its state.

    Equal calls at the same time run the module once. Another state of the module (a Variable assigned, an overlay),
    another sample and another training mode have entries of their own; failures are never remembered. The memory holds
    the last 1,024 outputs, in this process, and is neither saved nor shared with copies. What takes a skip from outside
    the block, or leaves one, is no matter of inputs and outputs alone: it runs each time.

    Args:
        module: What is remembered.
        ttl_s: How many seconds an output is good for; None for ever.
        key: Function of the inputs that gives the JSON they are told apart by; None for the inputs. A registered one
            can be saved.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module gives

    Raises:
        ConfigError: `module` is no module, `ttl_s` no number above 0, `key` no function.
        DataError: When called: `key` gave what is no JSON.
        CallError: When called: the module asks for the very output that it is about to give.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> asked = []
        >>> cached = sm.Cached(sm.Lambda(lambda query: asked.append(1) or query, output=Query))
        >>> for _ in range(3):
        ...     reply = sm.run(cached, Query(question="Who?"))
        >>> len(asked)
        1

    Source: `functools.cache`, Go's singleflight; differs: keyed by state too, so that training is never stale.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_memory"})

    def __init__(
        self,
        module: Module,
        *,
        ttl_s: float | None = None,
        key: Callable[..., Any] | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("Cached", "module", module)
        self.ttl_s = number("Cached", "ttl_s", ttl_s)
        if ttl_s is not None and ttl_s <= 0:
            raise ConfigError(f"Cached: ttl_s is {ttl_s!r:.100}; give a number of seconds above 0, or None.")
        self.key = None if key is None else function("Cached", "key", key)
        self._memory = _Memory(self)

    async def call(self, *inputs: Any) -> Any:
        """Give what is remembered, else call the module and remember it."""
        if is_bypassed(self.module):
            return await self.module(*inputs)
        memory = self._own_memory()
        key = self._key(inputs)
        entry = memory.find(key, self.ttl_s)
        if entry is not None:
            await aio.checkpoint()  # a cancelled task ends here too
            return entry.outputs

        async def work() -> Any:
            outputs = await self.module(*inputs)
            if not is_bypassed(self.module):  # a first call may have built what has skips
                memory.keep(key, outputs)
            return outputs

        return await memory.flights.run(key, work)

    async def compute_output_spec(self, *inputs: Any) -> Any:
        """What the module gives."""
        return await self.module(*inputs)

    def _own_memory(self) -> _Memory:
        """The memory of this block; a copy came with that of its original and gets one of its own."""
        memory = self._memory
        if memory.owner is None or memory.owner() is not self:
            memory = self._memory = _Memory(self)
        return memory

    def _key(self, inputs: tuple[Any, ...]) -> str:
        """What makes two calls equal."""
        told = map_leaves(_json, list(inputs)) if self.key is None else frozen(self.key(*inputs))
        frame = current_call()
        training = frame is not None and frame.training
        return json.dumps([told, state(self.module).fingerprint, current_sample(), training], sort_keys=True)


def _json(leaf: Any) -> Any:
    """The JSON of one input."""
    return None if leaf is None else leaf.get_json()
