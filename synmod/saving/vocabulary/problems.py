"""What cannot be saved: every offender with its place, what it is, and what to do instead."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from synmod.errors import GraphError, SaveError, SaveProblem
from synmod.tree import class_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synmod.errors import SynmodError

__all__ = ["Problems", "what_and_remedy"]

_SHOWN = 20
_TO_DEF = "move it to a `def` of a module and decorate that with @sm.register(package='my_app')"
_KEEP_OUT = (
    "keep it out of the file with static(x) or an ignored attribute (`_graph_ignored`), set by the constructor; "
    "or override get_config"
)


class Problems(list[SaveProblem]):
    """The offenders found so far; saving goes on, so that one error lists them all."""

    def note(self, place: str, what: str, remedy: str) -> None:
        """Add an offender."""
        self.append(SaveProblem(place, what, remedy))

    def as_save_error(self) -> SaveError:
        """All of them as the error of `save`."""
        return SaveError(self._text("This cannot be saved"), self)

    def as_graph_error(self) -> GraphError:
        """All of them as the error of `GraphDef.to_json`."""
        return GraphError(self._text("This graph cannot be written as JSON"))

    def _text(self, heading: str) -> str:
        lines = [f"{place}: {what}: {remedy}." if place else f"{what}: {remedy}." for place, what, remedy in self]
        if len(lines) == 1:
            return f"{heading}: {lines[0]}"
        rest = [f"... and {len(lines) - _SHOWN} more, in .problems"] if len(lines) > _SHOWN else []
        return "\n- ".join([f"{heading}:", *lines[:_SHOWN], *rest])


def raise_if_any(problems: Problems, error: type[SynmodError] = SaveError) -> None:
    """Raise one error for all offenders, if there are any."""
    if problems:
        raise problems.as_save_error() if error is SaveError else problems.as_graph_error()


def at(node: str, what: str, inside: Sequence[str | int] = ()) -> str:
    """Name a place: the path of the node, the argument or attribute, and the steps inside it."""
    place = f"{node}, {what}" if node else what
    return place + "".join(f" [{step!r}]" for step in inside)


def what_and_remedy(value: Any) -> tuple[str, str]:
    """Say what an object is that no term can hold, and what to do."""
    kind = class_of(value)
    found = _function_like(value)
    if found is not None:
        return found, _TO_DEF
    if isinstance(value, type):
        return f"the class {value.__qualname__}, which is not registered", (
            f"decorate it: @sm.register(package='my_app') above `class {value.__name__}`"
        )
    if hasattr(kind, "get_secret_value"):
        return f"a {kind.__name__}", "secrets are never saved: pass it to the live model, which a load gets anew"
    if hasattr(kind, "item") and hasattr(kind, "dtype"):
        return f"a value of type {kind.__name__}", "write x.item() (or x.tolist())"
    if hasattr(kind, "__fspath__"):
        return f"a {kind.__name__}", "write str(path)"
    for plain in (str, bool, int, float, list, dict, tuple, set, frozenset, bytes):
        if isinstance(value, plain):
            return f"a value of type {kind.__name__}, a subclass of {plain.__name__}", (
                f"write the plain type: {plain.__name__}(x)"
            )
    return f"an object of type {kind.__module__}.{kind.__qualname__}", _KEEP_OUT


def unregistered(cls: type, holder: str) -> tuple[str, str]:
    """Say that the class of an instance has no public id."""
    return f"{holder} of class {cls.__qualname__}, which is not registered", (
        f"decorate it: @sm.register(package='my_app') above `class {cls.__name__}`"
    )


def _function_like(value: Any) -> str | None:
    """Name a callable that is no registered function."""
    if isinstance(value, types.FunctionType):
        if value.__name__ == "<lambda>":
            return "a lambda"
        kind = "a closure" if value.__closure__ else "a function that is not registered"
        return f"{kind} ({value.__qualname__})"
    if isinstance(value, functools.partial):
        return "a functools.partial"
    if isinstance(value, types.MethodType):
        return f"a bound method ({value.__qualname__})"
    if isinstance(value, types.BuiltinFunctionType | types.BuiltinMethodType):
        return f"a builtin function ({value.__name__})"
    return None
