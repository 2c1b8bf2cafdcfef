"""Repeat, Fallback and Retry: a module called again, or another one in its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, Unpack

from synmod.data import is_subschema, ops, schema_of
from synmod.errors import CallError, ConfigError, ModelError, SchemaError, add_note
from synmod.flow import aligned
from synmod.lm import current_sample, drawing
from synmod.module import Child, Execution, Module, ModuleOptions, execution_of
from synmod.registry import register_own

from .arguments import exceptions, function, member, members, one_of, whole
from .routing import side_by_side


@register_own()
class Repeat(Module):
    """Calls a module on its own output, a number of times or until a condition holds.

    A None ends it: what is not there cannot be fed back.

    Args:
        module: What is called.
        times: How often.
        until: Function of the output, plain or async, that is true when it is enough. A registered one can be saved.
        max_times: The most rounds that `until` may take.
        on_limit: `"raise"`: reaching `max_times` is a CallError. `"return"`: the last output is the result.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module returns, which it must take again

    Raises:
        ConfigError: Neither or both of `times` and `until`; one of the wrong kind; another word for `on_limit`.
        SchemaError: When composed: the module does not take its own output, or returns another schema for it.
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
            raise ConfigError("Repeat: write either `times` or `until`: a number of rounds, or when it is enough.")
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
        """Return what the module returns, once it has taken it again."""
        outputs = await self.module(inputs)
        if self.times == 1:
            return outputs
        again = await self.module(outputs)
        if not _fits(again, outputs):
            raise SchemaError(
                f"Repeat: the output of the second round, {again!r:.200}, is not of the schema of the first, "
                f"{outputs!r:.200}; a module that is repeated must return what it takes."
            )
        return outputs

    async def _is_enough(self, value: Any) -> bool:
        """Whether `until` holds."""
        if self.until is None:
            return False
        enough = self.until(value)
        return bool(await enough if inspect.isawaitable(enough) else enough)


def _fits(again: Any, outputs: Any) -> bool:
    """Whether symbols, or nests of them, have the schemas of others."""
    pairs = aligned(outputs, again)
    return pairs is not None and all(
        new is None or (old is not None and is_subschema(schema_of(new), schema_of(old))) for _, old, new in pairs
    )


@register_own()
class Fallback(Module):
    """Calls its members in turn until one does not fail.

    Args:
        *modules: The members, the one to prefer first.
        on: Classes of exceptions after which the next member is called; every other one is raised at once.
        **options: Those of `Module`.

    Schemas:
        inputs: what every member takes
        outputs: one data model or None; schema `U` of the members' outputs where they differ

    Raises:
        ConfigError: No members, one that is not a module, `on` that has no exception classes.
        SchemaError: When composed: a member returns several data models.
        Exception: When called: all members failed: the first failure, the others as notes on it.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> def fail(query):
        ...     raise ConnectionError("down")
        >>> spare = sm.Fallback(sm.Lambda(fail, output=Query), sm.Identity(), on=(ConnectionError,))
        >>> sm.run(spare, Query(question="Who?"))["question"]
        'Who?'

    Source: LangChain's `with_fallbacks`; differs: only on what is named.
    """

    def __init__(
        self,
        *modules: Module,
        on: type[Exception] | tuple[type[Exception], ...] = (ModelError,),
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.modules = members("Fallback", modules)
        self.on = exceptions("Fallback", on)

    async def call(self, inputs: Any) -> Any:
        """Call the members until one does not fail."""
        preferred, *others = self.modules
        try:
            return await preferred(inputs)
        except self.on as error:
            failure = error
        try:
            for module in others:
                try:
                    return await module(inputs)
                except self.on as error:
                    add_note(failure, f"then {module.name!r} failed too: {type(error).__name__}: {error}")
            raise failure
        finally:
            del failure  # no circle of an exception and the frame that holds it

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what stands for the output of any member."""
        outputs = await side_by_side(self.modules, inputs)
        for module, output in zip(self.modules, outputs, strict=True):
            if isinstance(output, (list, tuple, dict)):
                raise SchemaError(f"Fallback: {module.name!r} returns {output!r:.200}; it must return one data model.")
        return outputs[0] if len(outputs) == 1 else ops.logical_xor(*outputs)


@execution_of.register(Fallback)
def execution_of_fallback(fallback: Fallback) -> Execution:
    """Return alternatives: what a failed member did is taken back."""
    return Execution("one of", tuple(Child(("modules", index), each) for index, each in enumerate(fallback.modules)))


@register_own()
class Retry(Module):
    """Calls a module again where it failed, each time as another sample of its model calls.

    Models retry their requests by themselves; this is for what a second sample may mend.

    Args:
        module: What is called.
        attempts: How often at most, the first time included.
        on: Classes of exceptions after which it is called again; every other one is raised at once.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module returns

    Raises:
        ConfigError: `module` is not a module, `attempts` not a count, `on` has no exception classes.
        Exception: When called: the last failure, the ones before it as notes.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> write = sm.Generator(Answer, language_model=ScriptedLM(["no JSON", "again none", {"answer": "Paris"}]))
        >>> sm.run(sm.Retry(write, 2, on=sm.BadReplyError), Answer(answer="?"))["answer"]
        'Paris'

    Source: tenacity; differs: attempts are independent samples, and nothing is retried that is not named.
    """

    def __init__(
        self,
        module: Module,
        attempts: int = 2,
        *,
        on: type[Exception] | tuple[type[Exception], ...],
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("Retry", "module", module)
        self.attempts = whole("Retry", "attempts", attempts)
        self.on = exceptions("Retry", on)

    async def call(self, inputs: Any) -> Any:
        """Call the module until it does not fail."""
        failures: list[str] = []
        for number in range(self.attempts - 1):
            try:
                return await self._attempt(number, inputs)
            except self.on as error:
                failures.append(f"attempt {number + 1} failed: {type(error).__name__}: {error}")
        try:
            return await self._attempt(self.attempts - 1, inputs)
        except self.on as error:
            for failure in failures:
                add_note(error, failure)
            raise

    async def _attempt(self, number: int, inputs: Any) -> Any:
        """One call, as a sample of its own."""
        with drawing(current_sample() * self.attempts + number):
            return await self.module(inputs)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what the module returns."""
        return await self.module(inputs)
