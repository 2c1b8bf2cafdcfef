"""Fallback and Retry: another try where the first one failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from synmod.blocks.arguments import exceptions, member, members, whole
from synmod.blocks.uniting import any_of
from synmod.errors import ModelError, add_note
from synmod.lm import current_sample, drawing
from synmod.module import Child, Execution, Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from synmod.module import ModuleOptions


@register_own()
class Fallback(Module):
    """Calls its members in turn until one does not fail.

    Args:
        *modules: The members, the one to prefer first.
        on: Classes of exceptions after which the next member is called; every other one is raised at once.
        **options: Those of `Module`.

    Schemas:
        inputs: what every member takes
        outputs: what the members give; schema `U` of their outputs where they differ

    Raises:
        ConfigError: No members, one that is no module, `on` that has no classes of exceptions.
        SchemaError: When composed: the members give nests of different structure.
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

    def _execution(self) -> Execution:
        """What a failed member did is taken back, so that one of them alone has run."""
        return Execution("one of", tuple(Child(("modules", index), each) for index, each in enumerate(self.modules)))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """What the members give."""
        return any_of("Fallback", [await module(inputs) for module in self.modules])


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
        outputs: what the module gives

    Raises:
        ConfigError: `module` is no module, `attempts` no count, `on` has no classes of exceptions.
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
        """What the module gives."""
        return await self.module(inputs)
