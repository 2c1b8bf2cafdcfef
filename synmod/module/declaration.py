"""What a class of modules declares, read once per class: signatures, annotations, defaults, outputs."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from synmod.data.model import DataModel
from synmod.data.value import JsonDataModel
from synmod.leaves.naming import snake_case

UNDECLARED: Final = object()
"""Stands for an annotation that says nothing of data."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameter(NamedTuple):
    """One parameter of `call` that takes data."""

    name: str
    takes_none: bool
    model: type[DataModel] | None
    required: bool


@dataclass(frozen=True, slots=True)
class CallSignature:
    """The signature of `call`, in the terms that a call asks about."""

    signature: inspect.Signature
    positional: tuple[Parameter, ...]
    rest: Parameter | None
    counts: Container[int]
    """Numbers of positional arguments that fit when no keyword is given."""
    has_training: bool
    training_default: bool
    outputs: Any
    """Nest of data models and None from the return annotation, or UNDECLARED."""
    is_async: bool

    def parameter(self, index: int) -> Parameter | None:
        """The parameter that the positional argument of this index goes to."""
        return self.positional[index] if index < len(self.positional) else self.rest


class ClassDeclaration:
    """One class of modules, as its code declares it."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.default_name = snake_case(cls.__name__)
        self.default_description = first_paragraph(cls.__dict__.get("__doc__"))
        self.defines_build = _defined_by_user(cls, "build")
        self.declares_spec = _defined_by_user(cls, "compute_output_spec")
        self.accepts_none = bool(getattr(cls, "accepts_none", False))
        self.ignored: frozenset[str] = frozenset().union(
            *(vars(base).get("_graph_ignored", ()) for base in cls.__mro__)
        )
        self.hidden = self.ignored | _cached_names(cls)
        """Attributes that the walk passes over: ignored ones, and what `cached_property` made."""
        self.slots = _declared_slots(cls)

    @cached_property
    def init(self) -> inspect.Signature | None:
        """The signature of the constructor without `self`; None where Python cannot tell it."""
        try:
            bound = inspect.signature(typing.cast("Callable[..., Any]", self.cls.__init__))
        except (TypeError, ValueError):
            return None
        return bound.replace(parameters=list(bound.parameters.values())[1:])

    @cached_property
    def call(self) -> CallSignature:
        """The signature of `call`; of a class without one, that of a call that takes nothing."""
        function = getattr(self.cls, "call", None)
        if function is None:
            return CallSignature(inspect.Signature(), (), None, frozenset(), False, False, UNDECLARED, False)
        return _read_call(function, self.accepts_none)

    @cached_property
    def build(self) -> inspect.Signature:
        """The signature of the class's own `build`, without `self`."""
        function = inspect.unwrap(typing.cast("Callable[..., Any]", inspect.getattr_static(self.cls, "build")))
        signature = inspect.signature(function)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def first_paragraph(text: str | None) -> str:
    """Join the first paragraph of a docstring to one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()) if text else ""


def _cached_names(cls: type) -> frozenset[str]:
    return frozenset(
        name for base in cls.__mro__ for name, value in vars(base).items() if isinstance(value, cached_property)
    )


def _declared_slots(cls: type) -> tuple[tuple[str, Any], ...]:
    """The slots that classes below `Module` declare, base classes first."""
    return tuple(
        (name, member)
        for base in reversed(cls.__mro__)
        if not vars(base).get("_is_module_base", False)
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType)
    )


def _defined_by_user(cls: type, method: str) -> bool:
    """Tell whether a class below `Module` defines the method."""
    for base in cls.__mro__:
        if method in vars(base):
            return not vars(base).get("_is_module_base", False)
    return False


def _read_call(function: Callable[..., Any], accepts_none: bool) -> CallSignature:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1:]
    hints = resolved_annotations(function)
    taking = [p for p in parameters if p.kind in POSITIONAL and p.name != "training"]
    positional = tuple(_read_parameter(p, hints, accepts_none) for p in taking)
    star = next((p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    rest = None if star is None else _read_parameter(star, hints, accepts_none)
    training = next((p for p in parameters if p.name == "training"), None)
    needs_keyword = any(
        p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is p.empty and p.name != "training" for p in parameters
    )
    required = sum(p.required for p in positional)
    most = sys.maxsize if star else len(positional) + 1
    counts: Container[int] = () if needs_keyword else range(required, most)
    return CallSignature(
        signature=signature.replace(parameters=parameters),
        positional=positional,
        rest=rest,
        counts=counts,
        has_training=training is not None,
        training_default=training is not None and training.default is True,
        outputs=read_outputs(hints.get("return", UNDECLARED)),
        is_async=inspect.iscoroutinefunction(inspect.unwrap(function)),
    )


def _read_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any], accepts_none: bool) -> Parameter:
    annotation = hints.get(parameter.name, UNDECLARED)
    inner, optional = without_none(annotation)
    star = parameter.kind is inspect.Parameter.VAR_POSITIONAL
    return Parameter(
        name=parameter.name,
        takes_none=accepts_none or optional or parameter.default is None,
        model=model_of_annotation(inner),
        required=parameter.default is parameter.empty and not star,
    )


def resolved_annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolve the annotations of a function, each by itself; one that cannot be resolved is left out."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    cells: tuple[Any, ...] = getattr(function, "__closure__", None) or ()
    enclosed = dict(zip(code.co_freevars, cells, strict=False)) if code is not None else {}
    nonlocals = {name: cell.cell_contents for name, cell in enclosed.items() if _is_filled(cell)}
    resolved: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        alone = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = typing.get_type_hints(alone, getattr(function, "__globals__", {}), nonlocals, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError):
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
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if annotation is None or annotation is type(None):
        return UNDECLARED, True
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    arms = [arm for arm in typing.get_args(annotation) if arm is not type(None)]
    optional = len(arms) < len(typing.get_args(annotation))
    return (arms[0] if len(arms) == 1 else UNDECLARED), optional


def model_of_annotation(annotation: Any) -> type[DataModel] | None:
    """The data model that `Answer` or `JsonDataModel[Answer]` names, None for any other annotation."""
    if typing.get_origin(annotation) is JsonDataModel:
        annotation = typing.get_args(annotation)[0]
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
