"""Branch: a decision, and the modules that it chooses among."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack, cast

from synmod.blocks.arguments import member
from synmod.blocks.decision import Decision
from synmod.blocks.options import KEYWORDS
from synmod.blocks.routes import alternatives, checked_routes, merged, symbols_of, take
from synmod.blocks.said import must_say, said
from synmod.data import ops
from synmod.errors import CallError, ConfigError
from synmod.leaves.frozen import is_array
from synmod.lm import sampling_params
from synmod.module import Child, Execution, Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from synmod.blocks.options import GeneratorOptions

_OF_MODULES: Final = ("name", "description", "trainable", "hooks")


@register_own()
class Branch(Module):
    """A model decides which of several modules gets the inputs.

    Args:
        branches: Mapping from label to module, or to `(description, module)`.
        question: What is to be decided.
        inject: Whether the branches get the decision too, merged behind the inputs.
        return_decision: Whether the decision comes first in the result.
        multiple: Whether several branches may be taken; they run at once.
        merge: Whether the result is one output instead of one a branch.
        decision: A module that decides, in place of a `Decision` made of the labels; gives `choice`, or `choices` with
            `multiple`.
        with_thinking: Whether the model reasons before it decides.
        **options: Those of `Generator` for the decision; `name`, `description`, `trainable` and `hooks` are of the
            branch itself.

    Schemas:
        inputs: what every branch takes
        outputs: a tuple with one entry a branch, None where it was not taken; with `merge` the entry that was taken,
            of schema `U` of the branches' outputs (with `multiple` their `sm.ops.logical_or`). With
            `return_decision` the decision comes first.

    Raises:
        ConfigError: No branches, a label that is no str, a branch that is no module; options of a decision beside
            `decision`.
        CallError: When called: the decision names no branch.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> branch = sm.Branch(
        ...     {"spam": ("prize, lottery", sm.Constant({"folder": "junk"})), "ham": ("lunch", sm.Identity())},
        ...     language_model="embedded/nearest",
        ... )
        >>> sm.run(branch, Mail(text="You won the lottery prize!"))[0].get_json()
        {'folder': 'junk'}

    Source: Synalinks' `Branch`; differs: several branches may be taken, and the outputs merged.
    """

    _keywords: ClassVar[tuple[str, ...]] = (
        "branches", "question", "inject", "return_decision", "multiple", "merge", "decision", "with_thinking",
        *KEYWORDS[2:],
    )  # fmt: skip

    def __init__(
        self,
        branches: Mapping[str, Module | tuple[str, Module]],
        *,
        question: str | None = None,
        inject: bool = False,
        return_decision: bool = False,
        multiple: bool = False,
        merge: bool = False,
        decision: Module | None = None,
        with_thinking: bool = True,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        own: Any = {key: options.pop(key) for key in _OF_MODULES if key in options}
        super().__init__(**own)
        sampling_params({key: options[key] for key in options if key not in self._keywords}, "Branch", self._keywords)
        modules, meanings = _apart(branches)
        self.inject, self.return_decision, self.multiple, self.merge = inject, return_decision, multiple, merge
        if decision is None:
            self.decision: Module = Decision(
                meanings, question=question, multiple=multiple, with_thinking=with_thinking, **options
            )
        else:
            _refuse_second({"question": question, "with_thinking": None if with_thinking else False, **options})
            self.decision = member("Branch", "decision", decision)
        self.branches = modules

    async def call(self, inputs: Any) -> Any:
        """Decide, then run what was chosen."""
        decision = await self.decision(inputs)
        taken = () if decision is None else self._chosen(decision)
        given = ops.concat(inputs, decision) if self.inject and taken else inputs
        return self._result(decision, await take(self.branches, taken, given))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """One symbol a branch, or their merge."""
        decision = await self.decision(inputs)
        must_say("Branch", "decision", decision, self._field)
        given = ops.concat(inputs, decision) if self.inject else inputs
        return self._result(decision, await symbols_of(self.branches, given))

    def _execution(self) -> Execution:
        """The decision, then one branch or another."""
        first = Child(("decision",), self.decision)
        return Execution("in order", (first, alternatives("branches", self.branches)))

    def _chosen(self, decision: Any) -> tuple[str, ...]:
        """The labels that a decision names."""
        chosen = said(decision, self._field)
        labels: tuple[Any, ...] = tuple(chosen) if self.multiple and is_array(chosen) else (chosen,)
        for label in labels:
            if not isinstance(label, str) or label not in self.branches:
                raise CallError(
                    f"Branch: the decision's {self._field} is {chosen!r:.100}; the branches are "
                    f"{', '.join(self.branches)}."
                )
        return labels

    @property
    def _field(self) -> str:
        """The field in which the decision names labels."""
        return "choices" if self.multiple else "choice"

    def _result(self, decision: Any, outputs: tuple[Any, ...]) -> Any:
        """The outputs as they are returned."""
        if self.merge:
            one = merged(outputs, several=self.multiple)
            return (decision, one) if self.return_decision else one
        return (decision, *outputs) if self.return_decision else outputs


def _refuse_second(options: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option of a decision beside a decision."""
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"Branch: {name!r} says how to decide, and so does `decision`; leave one of them out.")


def _apart(branches: Any) -> tuple[dict[str, Module], dict[str, str]]:
    """The modules, and the descriptions, by label."""
    if not isinstance(branches, Mapping):
        return checked_routes("Branch", "branches", branches), {}
    modules: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    for label, branch in cast("Mapping[Any, Any]", branches).items():
        pair = cast("tuple[Any, ...]", tuple(branch) if isinstance(branch, (tuple, list)) else ("", branch))  # pyright: ignore[reportUnknownArgumentType]  (users)
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise ConfigError(f"Branch: branches[{label!r:.100}] must be a module, or (description, module).")
        meanings[label], modules[label] = pair
    return checked_routes("Branch", "branches", modules), meanings
