"""Guard: inputs pass only where a check allows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from synmod.blocks.arguments import member, one_of
from synmod.blocks.said import must_say, said
from synmod.errors import CallError, GuardError
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from synmod.module import ModuleOptions


@register_own()
class Guard(Module):
    """Gives its inputs where a check allows them; None, or an error, where it does not.

    Args:
        check: A module that gives `allowed` (a bool) and, if it likes, `reason`.
        on_block: `"none"`: blocked inputs become None, and what follows is skipped. `"error"`: a `GuardError`.
        **options: Those of `Module`.

    Schemas:
        inputs: what the check takes
        outputs: the inputs, or None

    Raises:
        ConfigError: `check` is no module, `on_block` another word.
        SchemaError: When composed: the check does not give `allowed`.
        GuardError: When called: blocked, with `on_block="error"`; tells the reason.
        CallError: When called: the check gave nothing, or `allowed` is no bool. Nothing passes unchecked.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> class Verdict(sm.DataModel):
        ...     allowed: bool
        >>> short = sm.Lambda(lambda mail: Verdict(allowed=len(mail.text) < 80), output=Verdict)
        >>> sm.run(sm.Guard(short), Mail(text="x" * 100)) is None
        True

    Source: guardrails of agent frameworks; differs: the check is a module like any other.
    """

    def __init__(
        self, check: Module, *, on_block: Literal["none", "error"] = "none", **options: Unpack[ModuleOptions]
    ) -> None:
        super().__init__(**options)
        self.check = member("Guard", "check", check)
        self.on_block = one_of("Guard", "on_block", on_block, ("none", "error"))

    async def call(self, inputs: Any) -> Any:
        """Check the inputs, and let them pass."""
        verdict = await self.check(inputs)
        if verdict is None:
            raise CallError("Guard: the check gave None; it must say whether the inputs are allowed.")
        allowed = said(verdict, "allowed")
        if not isinstance(allowed, bool):
            raise CallError(f"Guard: the check's `allowed` is {allowed!r:.100}; it must be true or false.")
        if allowed:
            return inputs
        if self.on_block == "error":
            raise GuardError(f"Guard: the inputs are blocked: {said(verdict, 'reason') or 'the check gave no reason'}")
        return None

    async def compute_output_spec(self, inputs: Any) -> Any:
        """The inputs, once the check was shown to say whether they are allowed."""
        must_say("Guard", "check", await self.check(inputs), "allowed")
        return inputs
