"""FunctionLM: a model that is a function of the request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from synmod.lm import LMRequest
from synmod.testing.doubles import Double

__all__ = ["FunctionLM"]


class FunctionLM(Double):
    """A model that answers with what a function gives.

    Args:
        fn: Gets the `LMRequest`, plain or async; returns a str (the text), JSON or a data model (as JSON text), an
            `LMReply`, or an exception, which is raised.
        latency_s: Seconds that each request takes.
        backoff: Whether to wait between attempts, as a real model does.
        model: The model string.
        **lm: Keywords of `LanguageModel`.

    Raises:
        ConfigError: A keyword is unknown ('Did you mean').

    Example:
        >>> lm = FunctionLM(lambda request: {"echo": request.messages[-1]["content"]})
        >>> sm.run(lm("Hi", {"type": "object"}))["echo"]
        'Hi'

    Source: pydantic-ai's FunctionModel.
    """

    __slots__ = ()

    def __init__(
        self,
        fn: Callable[[LMRequest], Any | Awaitable[Any]],
        *,
        latency_s: float = 0.0,
        backoff: bool = False,
        model: str = "testing/function",
        **lm: Any,
    ) -> None:
        super().__init__(fn, model, latency_s, backoff, lm)
