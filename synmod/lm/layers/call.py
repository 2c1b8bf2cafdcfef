"""One model call under way: what its layers share and fill in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias

from synmod.errors import BuildError
from synmod.leaves.clock import current_clock
from synmod.lm.records import Attempt, LMReply, LMRequest
from synmod.scope import CallFrame, Usage, ambient, current_call, phase_in

if TYPE_CHECKING:
    from synmod.lm.model import LanguageModel

__all__ = ["Below", "Layer", "ModelCall", "refuse_while_building"]

_NOTHING: Final = Usage()


class ModelCall:
    """One call of one model: made when it begins, dropped when it ends. Hot: slots, and no work nobody asks for."""

    __slots__ = (
        "ambient", "attempts", "began", "clock", "frame", "model", "phase", "requests", "started", "timeout_s", "used",
        "waited_s",
    )  # fmt: skip

    def __init__(self, model: LanguageModel, timeout_s: float | None) -> None:
        self.model = model
        self.timeout_s = timeout_s
        self.ambient = ambient()
        self.frame: CallFrame | None = current_call()
        self.phase = phase_in(self.ambient, self.frame)
        self.clock = current_clock()
        self.began = perf_counter()  # before the clock is read, so that no call seems to end later than it did
        self.started = self.clock.now()
        self.attempts: list[Attempt] = []
        self.requests = 0
        self.used = _NOTHING
        self.waited_s = 0.0

    @property
    def path(self) -> str:
        """Path of the calling module, "" outside a module call."""
        return "" if self.frame is None else self.frame.path

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call began."""
        return self.clock.now() - self.started

    def use(self, used: Usage) -> None:
        """Add what one request used."""
        self.used = used if self.used is _NOTHING else self.used + used

    def usage(self, calls: int = 1) -> Usage:
        """Sum up the call: one call, the requests sent, the tokens and cost of those that were answered."""
        used = self.used
        if used.calls == calls and used.requests == self.requests:
            return used
        return Usage(
            calls,
            self.requests,
            used.prompt_tokens,
            used.completion_tokens,
            used.cached_tokens,
            used.reasoning_tokens,
            used.cost_usd,
            used.estimated,
        )


def refuse_while_building(model: str) -> None:
    """Raise BuildError where a module is being built, or its `call` traced on symbols: that costs nobody a token."""
    frame = current_call()
    if frame is not None and frame.symbolic:
        raise BuildError(
            f"{frame.path or frame.name!r}: {model} was asked while the module is built on symbols. Ask it in `call`, "
            "and declare the output of `call` (`-> Answer`), so that nobody has to run it to learn its schema."
        )


Below: TypeAlias = Callable[[ModelCall, LMRequest], Awaitable[LMReply]]
"""What a layer stands on: the layers below it and the adapter, as one function."""

Layer: TypeAlias = Callable[[Below, ModelCall, LMRequest], Awaitable[LMReply]]
"""One layer: handles the request itself, or asks what is below."""
