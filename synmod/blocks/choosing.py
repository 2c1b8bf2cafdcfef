"""Choose: one of several modules, by a Variable."""

from collections.abc import Mapping
from typing import Any, Unpack

from synmod import tree
from synmod.errors import ConfigError
from synmod.leaves import did_you_mean
from synmod.module import ChildAt, Execution, ModuleOf, ModuleOptions, execution_of
from synmod.registry import register_own

from . import checks
from .checks import R, Returning
from .routing import merge_outputs, side_by_side


@register_own()
class Choose(Returning[R]):
    """Runs the one of several modules that a `Choice` names.

    Args:
        choice: A `Choice` among the names of the modules.
        modules: The modules by name.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of every module
        outputs: one data model or None; with schema `U` of the modules' outputs if they differ

    Raises:
        ConfigError: `choice` is not a Choice, its options are not the keys of `modules`, or one is not a module.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> way = sm.Choice(["plain", "thinking"])
        >>> answer = {"answer": str}
        >>> ask = sm.Choose(way, {"plain": sm.Identity(), "thinking": sm.ChainOfThought(answer)})
        >>> sm.run(ask, Query(question="Why?"))["question"]
        'Why?'

    Source: KerasTuner's conditional choices.
    """

    def __init__(
        self, choice: tree.Choice, modules: Mapping[str, ModuleOf[R]], **options: Unpack[ModuleOptions]
    ) -> None:
        super().__init__(**options)
        if not isinstance(choice, tree.Choice):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"Choose: choice is a {type(choice).__name__}; write sm.Choice([...]).")
        if not isinstance(modules, Mapping) or {*modules} != {*choice.options}:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            names = ", ".join(map(repr, modules))
            near = "".join(did_you_mean(name, choice.options) for name in modules if name not in choice.options)
            expected = ", ".join(map(repr, choice.options))
            raise ConfigError(f"Choose: the modules are {names}, and the options of the choice {expected}.{near}")
        self.choice = choice
        self.modules = {name: checks.member("Choose", f"modules[{name!r}]", modules[name]) for name in modules}

    async def call(self, inputs: Any) -> Any:
        """Run the module that is chosen now."""
        return await self.modules[str(self.choice.value)](inputs)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return a symbol for the output of any of the modules."""
        return merge_outputs(await side_by_side(self.modules.values(), inputs))


@execution_of.register(Choose)
def execution_of_choose(choose: Choose[Any]) -> Execution:
    """Return the modules, one of which runs."""
    return Execution("one of", tuple(ChildAt(("modules", name), module) for name, module in choose.modules.items()))
