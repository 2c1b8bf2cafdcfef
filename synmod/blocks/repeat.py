"""Repeat: a module whose output feeds its input, again and again."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, Unpack

from synmod.blocks.arguments import function, member, one_of, whole
from synmod.data import is_subschema, schema_of
from synmod.errors import CallError, ConfigError, SchemaError
from synmod.flow import aligned
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.module import ModuleOptions


@register_own()
class Repeat(Module):
    """Calls a module on its own output, a number of times or until a condition holds.

    A None ends it: what is not there cannot be fed back.

    Args:
        module: What is called.
        times: How often.
        until: Function of the output, plain or async, that says when it is enough. A registered one can be saved.
        max_times: The most rounds that `until` may take.
        on_limit: `"raise"`: reaching `max_times` is a CallError. `"return"`: the last output is the result.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module gives, which it must take again

    Raises:
        ConfigError: Neither or both of `times` and `until`; one of the wrong kind; another word for `on_limit`.
        SchemaError: When composed: the module does not take its own output, or gives another schema for it.
        CallError: When called: `until` did not hold after `max_times` rounds.

    Example:
        >>> import synmod as sm
        >>> class Count(sm.DataModel):
        ...     n: int
        >>> double = sm.Lambda(lambda count: Count(n=2 * count.n), output=Count)
        >>> sm.run(sm.Repeat(double, until=lambda count: count.n > 100), Count(n=7))["n"]
        112

    Source: `jax.lax.fori_loop` and `while_loop`; differs: a limit that cannot be left out.
    """

    def __init__(
        self,
        module: Module,
        times: int | None = None,
        *,
        until: Callable[[Any], Any] | None = None,
        max_times: int = 10,
        on_limit: Literal["raise", "return"] = "raise",
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        if (times is None) == (until is None):
            raise ConfigError("Repeat: give either `times` or `until`: a number of rounds, or when it is enough.")
        self.module = member("Repeat", "module", module)
        self.times = None if times is None else whole("Repeat", "times", times)
        self.until = None if until is None else function("Repeat", "until", until)
        self.max_times = whole("Repeat", "max_times", max_times)
        self.on_limit = one_of("Repeat", "on_limit", on_limit, ("raise", "return"))

    async def call(self, inputs: Any) -> Any:
        """Call the module on its output until it is enough."""
        value = inputs
        for _ in range(self.times or self.max_times):
            value = await self.module(value)
            if value is None or await self._is_enough(value):
                return value
        if self.until is not None and self.on_limit == "raise":
            raise CallError(
                f"Repeat: `until` did not hold after max_times={self.max_times} rounds; raise the limit, or take the "
                "last output with on_limit='return'."
            )
        return value

    async def compute_output_spec(self, inputs: Any) -> Any:
        """What the module gives, once it was shown to take it again."""
        outputs = await self.module(inputs)
        if self.times == 1:
            return outputs
        again = await self.module(outputs)
        if not _fits(again, outputs):
            raise SchemaError(
                f"Repeat: the output of the second round, {again!r:.200}, is not of the schema of the first, "
                f"{outputs!r:.200}; a module that is repeated gives what it takes."
            )
        return outputs

    async def _is_enough(self, value: Any) -> bool:
        """Whether `until` holds."""
        if self.until is None:
            return False
        enough = self.until(value)
        return bool(await enough if inspect.isawaitable(enough) else enough)


def _fits(again: Any, outputs: Any) -> bool:
    """Whether symbols, or nests of them, are what others promise."""
    pairs = aligned(outputs, again)
    return pairs is not None and all(
        new is None or (old is not None and is_subschema(schema_of(new), schema_of(old))) for _, old, new in pairs
    )
