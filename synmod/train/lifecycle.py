"""The life cycle of a Trainer: one table of what each method needs, and the decorator that reads it."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from synmod.errors import LifecycleError

F = TypeVar("F", bound=Callable[..., Any])

PARAMETERS: Final = ("bind", "init_params")
OPTIMIZER: Final = (*PARAMETERS, "init_optimizer")

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "shared_module": ("bind",),
    "reshape": ("bind",),
    "data_schemas": ("bind",),
    "label_schemas": ("bind",),
    "output_schemas": ("bind",),
    "install_monitor": ("bind",),
    "get_states": ("bind",),
    "set_states": ("bind",),
    "set_params": ("bind",),
    "load_params": ("bind",),
    "init_params": ("bind",),
    "get_params": ("init_params",),
    "save_params": ("init_params",),
    "save_checkpoint": ("init_params",),
    "init_optimizer": PARAMETERS,
    "borrow_optimizer": PARAMETERS,
    "forward": PARAMETERS,
    "forward_backward": (*PARAMETERS, "bind for training"),
    "get_outputs": ("forward",),
    "update_metric": ("forward",),
    "backward": ("bind for training", "forward"),
    "get_input_grads": ("inputs_need_grad", "backward"),
    "update": ("init_optimizer", "backward"),
    "save_optimizer_states": ("init_optimizer",),
    "load_optimizer_states": ("init_optimizer",),
    "score": PARAMETERS,
    "predict": PARAMETERS,
    "iter_predict": PARAMETERS,
}
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
"""What is true of a bind, and no step of its own."""


class Lifecycle:
    """The steps that a Trainer has done, in order."""

    def __init__(self) -> None:
        self._done: dict[str, None] = {}

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps done."""
        return tuple(step for step in self._done if step not in _MODES)

    def __contains__(self, step: object) -> bool:
        return step in self._done

    def add(self, step: str) -> None:
        """Note that a step has wholly succeeded."""
        self._done.pop(step, None)
        self._done[step] = None

    def drop(self, *steps: str) -> None:
        """Forget steps that no longer hold."""
        for step in steps:
            self._done.pop(step, None)

    def check(self, call: str) -> None:
        """Raise where a method is called before what it needs.

        Raises:
            LifecycleError: Names the call, the next missing step, and the steps done so far.
        """
        missing = next((step for step in NEEDS[call] if step not in self._done), None)
        if missing is not None:
            raise LifecycleError(
                f"{call} needs {missing!r} first: {_HOW[missing]}. Done so far: {', '.join(self.steps) or 'nothing'}."
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
