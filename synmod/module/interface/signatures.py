"""The signatures of `call` and `build`, in the terms that a call and a build ask about."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from synmod.data import DataModel
from synmod.errors import ConfigError
from synmod.module.interface.annotations import (
    UNDECLARED,
    model_of_annotation,
    read_outputs,
    resolved_annotations,
    without_none,
)

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_OURS = "synmod."


class Parameter(NamedTuple):
    """One parameter of `call`."""

    name: str
    takes_none: bool
    model: type[DataModel] | None
    required: bool
    takes_data: bool
    """Whether what is given by keyword must be data, as everything given by position is."""


class CallSignature(NamedTuple):
    """The signature of `call`."""

    signature: inspect.Signature = inspect.Signature()
    positional: tuple[Parameter, ...] = ()
    """Those that an argument without a keyword can go to: what stands before `training`."""
    rest: Parameter | None = None
    """`*args`."""
    named: Mapping[str, Parameter] = MappingProxyType({})
    """Those that an argument with a keyword can go to, by name."""
    others: Parameter | None = None
    """`**kwargs`."""
    counts: frozenset[int] = frozenset()
    """Numbers of positional arguments that fit when no keyword is given (none listed for `*args`)."""
    has_training: bool = False
    training_default: bool = False
    training_on_class: bool | None = None
    """`training` as a class attribute, which counts as the module's own."""
    outputs: Any = UNDECLARED
    """Nest of data models and None from the return annotation, or UNDECLARED."""
    is_async: bool = False
    """Whether `call` is `async def`."""

    def parameter(self, index: int) -> Parameter | None:
        """The parameter that the positional argument of this index goes to."""
        return self.positional[index] if index < len(self.positional) else self.rest

    def keyword(self, name: str) -> Parameter | None:
        """The parameter that the keyword argument of this name goes to."""
        return self.named.get(name, self.others)


def own_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method without `self`; one that begins with `*args` takes `self` there and keeps it.

    Raises:
        TypeError, ValueError: Python cannot tell it.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind in POSITIONAL:
        del parameters[0]
    return signature.replace(parameters=parameters)


def read_call(cls: type, function: Callable[..., Any], owner: type) -> CallSignature:
    """Read `call` of a class.

    Args:
        cls: The class of modules.
        function: Its `call`.
        owner: The class that defines it.

    Raises:
        ConfigError: `training` can only be given by position.
    """
    signature = own_signature(function)
    parameters = list(signature.parameters.values())
    training = signature.parameters.get("training")
    if training is not None and training.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise ConfigError(f"class {cls.__name__}: call takes `training` by position only; modules give it by keyword.")
    hints = resolved_annotations(function, owner)
    accepts_none = bool(getattr(cls, "accepts_none", False))
    ours = (getattr(function, "__module__", None) or "").startswith(_OURS)  # None for what `exec` made
    read = {p.name: _read(p, hints, accepts_none, ours and p is parameters[0]) for p in parameters}
    before = parameters[: parameters.index(training)] if training is not None else parameters
    positional = tuple(read[p.name] for p in before if p.kind in POSITIONAL)
    rest = _only(before, inspect.Parameter.VAR_POSITIONAL)  # behind `training` nothing can be given by position
    others = _only(parameters, inspect.Parameter.VAR_KEYWORD)
    named = {p.name: read[p.name] for p in parameters if p.kind in _BY_NAME and p is not training}
    open_otherwise = [name for name in named if named[name].required and named[name] not in positional]
    required = sum(p.required for p in positional)
    on_class = getattr(cls, "training", None)
    return CallSignature(
        signature=signature,
        positional=positional,
        rest=None if rest is None else read[rest.name],
        named=named,
        others=None if others is None else read[others.name],
        counts=frozenset[int]() if open_otherwise or rest else frozenset(range(required, len(positional) + 1)),
        has_training=training is not None,
        training_default=training is not None and training.default is True,
        training_on_class=on_class if isinstance(on_class, bool) else None,
        outputs=read_outputs(hints.get("return", UNDECLARED)),
        is_async=inspect.iscoroutinefunction(function),
    )


def _only(parameters: Iterable[inspect.Parameter], kind: Any) -> inspect.Parameter | None:
    """The one parameter of a kind that a signature has once at most."""
    return next((p for p in parameters if p.kind is kind), None)


def _read(
    parameter: inspect.Parameter, hints: Mapping[str, Any], accepts_none: bool, is_first_of_ours: bool
) -> Parameter:
    inner, optional = without_none(hints.get(parameter.name, UNDECLARED))
    model = model_of_annotation(inner)
    many = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return Parameter(
        name=parameter.name,
        takes_none=accepts_none or optional or parameter.default is None,
        model=model,
        required=parameter.default is parameter.empty and not many,
        takes_data=model is not None or is_first_of_ours,
    )
