"""Annotations as declarations of data: resolved one by one, read as nests of data models."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Final

from synmod.data import DataModel, JsonDataModel

UNDECLARED: Final = object()
"""Stands for an annotation that says nothing of data."""

_UNRESOLVABLE = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What evaluating an annotation may raise: a text may hold any expression."""


def resolved_annotations(function: Callable[..., Any], owner: type | None = None) -> dict[str, Any]:
    """Resolve the annotations of a function, each by itself; one that cannot be resolved is left out.

    Args:
        function: A function, or what `functools.wraps` made of one.
        owner: The class in whose body it was written: names of that body count, as they do without quotes.
    """
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    cells: tuple[Any, ...] = getattr(function, "__closure__", None) or ()
    enclosed = dict(zip(code.co_freevars, cells, strict=False)) if code is not None else {}
    names = {name: cell.cell_contents for name, cell in enclosed.items() if _is_filled(cell)}
    names |= vars(owner) if owner is not None else {}
    resolved: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        alone = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = typing.get_type_hints(alone, getattr(function, "__globals__", {}), names, include_extras=True)
        except _UNRESOLVABLE:
            continue
        resolved[name] = hints[name]
    return resolved


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # reading is the only way to ask
    except ValueError:
        return False
    return True


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Take `None` out of a union: the rest, and whether None was in it."""
    annotation = _bare(annotation)
    if annotation is None or annotation is type(None):
        return UNDECLARED, True
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    arms = [arm for arm in typing.get_args(annotation) if arm is not type(None)]
    optional = len(arms) < len(typing.get_args(annotation))
    return (_bare(arms[0]) if len(arms) == 1 else UNDECLARED), optional


def _bare(annotation: Any) -> Any:
    """Take off what `Annotated` adds."""
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is typing.Annotated else annotation


def model_of_annotation(annotation: Any) -> type[DataModel] | None:
    """The data model that `Answer` or `JsonDataModel[Answer]` names, None for any other annotation."""
    if typing.get_origin(annotation) is JsonDataModel:
        annotation = _bare(typing.get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, DataModel) and annotation is not DataModel:
        return annotation
    return None


def read_outputs(annotation: Any) -> Any:
    """The nest of data models that a return annotation declares, or UNDECLARED."""
    inner, _ = without_none(annotation)
    if typing.get_origin(inner) is tuple:
        arms = typing.get_args(inner)
        nest = tuple(read_outputs(arm) for arm in arms)
        return UNDECLARED if not arms or any(part is UNDECLARED for part in nest) else nest
    return model_of_annotation(inner) or UNDECLARED
