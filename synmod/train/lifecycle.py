"""The life cycle of a Trainer: one table of what each method needs, and the decorator that reads it."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from synmod.errors import LifecycleError

F = TypeVar("F", bound=Callable[..., Any])

PARAMETERS: Final = ("bind", "init_params")

_METHODS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("bind",), "reshape data_schemas label_schemas output_schemas install_monitor get_states set_states set_params"),
    (("bind",), "load_params init_params shared_module"),
    ((), "bind"),
    (("init_params",), "get_params save_params save_checkpoint"),
    (PARAMETERS, "init_optimizer borrow_optimizer forward score predict iter_predict"),
    ((*PARAMETERS, "bind for training"), "forward_backward"),
    ((*PARAMETERS, "forward"), "get_outputs update_metric"),
    ((*PARAMETERS, "bind for training", "forward"), "backward"),
    ((*PARAMETERS, "inputs_need_grad", "forward", "backward"), "get_input_grads"),
    ((*PARAMETERS, "init_optimizer", "forward", "backward"), "update"),
    ((*PARAMETERS, "init_optimizer"), "save_optimizer_states load_optimizer_states"),
)
NEEDS: Final = {method: steps for steps, methods in _METHODS for method in methods.split()}
"""What must be done before each method may be called, in order."""

_HOW: Final = {
    "bind": "await trainer.bind(schemas)",
    "bind for training": "await trainer.bind(..., for_training=True, force_rebind=True)",
    "inputs_need_grad": "await trainer.bind(..., inputs_need_grad=True, force_rebind=True)",
    "init_params": "await trainer.init_params()",
    "init_optimizer": "trainer.init_optimizer(...)",
    "forward": "await trainer.forward(batch)",
    "backward": "await trainer.backward()",
}


_MODES: Final = ("bind for training", "inputs_need_grad")
"""What is true of a bind, rather than a step of its own."""


class Lifecycle(dict[str, None]):
    """The steps that a Trainer has done, in order."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps done."""
        return tuple(step for step in self if step not in _MODES)

    def add(self, *steps: str) -> None:
        """Note that steps have wholly succeeded."""
        self.drop(*steps)
        self.update(dict.fromkeys(steps))

    def drop(self, *steps: str) -> None:
        """Forget steps that no longer hold."""
        for step in steps:
            self.pop(step, None)

    def check(self, call: str) -> None:
        """Raise where a method is called before what it needs.

        Raises:
            LifecycleError: Names the call, the next missing step, those after it, and the steps done so far.
        """
        wanted = (each for step in NEEDS[call] if step not in self for each in (*NEEDS.get(step, ()), step))
        missing = [*dict.fromkeys(each for each in wanted if each not in self)]
        if missing:
            later = ", ".join(step for step in missing[1:] if step not in _MODES)
            raise LifecycleError(
                f"{call} needs {missing[0]!r} first: {_HOW[missing[0]]}{later and f'; then {later}'}. "
                f"Done so far: {', '.join(self.steps) or 'nothing'}."
            )


def needs_its_steps(method: F) -> F:
    """Let a method of a Trainer run only after the steps that the table names for it."""
    name = method.__name__

    @wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._lifecycle.check(name)
        return method(self, *args, **kwargs)

    @wraps(method)
    async def checked_later(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._lifecycle.check(name)
        return await method(self, *args, **kwargs)

    wrapper: Any = checked_later if inspect.iscoroutinefunction(method) else checked
    return wrapper


def done(step: str, doc: str) -> Any:
    """Return a property of a Trainer: whether a step was done."""

    def is_done(self: Any) -> bool:
        return step in self._lifecycle

    return property(is_done, doc=doc)
