"""Annotations and signatures: what the code of a class says of the arguments and the output of `call`."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType, SimpleNamespace, UnionType
from typing import Any, Final, NamedTuple

from synmod import data
from synmod.errors import ConfigError

UNDECLARED: Final = object()
"""A placeholder for an annotation that does not declare data."""


def resolve_annotations(function: Callable[..., Any], needed: Container[str] | None = None) -> dict[str, Any]:
    """Return the annotations of a function, or of the function it wraps, without those that are not expressions.

    Args:
        function: The function.
        needed: The parameters (and "return") whose annotations must not name anything unknown; None for all.

    Raises:
        ConfigError: A needed annotation has a name that is not defined.
    """
    function = inspect.unwrap(function)
    resolved: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        alone = SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = typing.get_type_hints(alone, getattr(function, "__globals__", {}), include_extras=True)
        except (NameError, AttributeError) as error:
            if needed is None or name in needed:
                raise ConfigError(
                    f"{function.__qualname__}: the name {error.name!r} in the annotation `{name}: {annotation}` is not "
                    "defined: define or import it at the top level of its module, or drop `from __future__ import "
                    "annotations`."
                ) from None
            continue
        except Exception:  # noqa: BLE001, S112  # an annotation may be any text
            continue
        resolved[name] = hints[name]
    return resolved


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Return an annotation without None, and whether None was in it; of several other types, UNDECLARED."""
    annotation = _bare(annotation)
    if annotation is None or annotation is type(None):
        return UNDECLARED, True
    if typing.get_origin(annotation) not in (typing.Union, UnionType):
        return annotation, False
    arms = [arm for arm in typing.get_args(annotation) if arm is not type(None)]
    optional = len(arms) < len(typing.get_args(annotation))
    return (_bare(arms[0]) if len(arms) == 1 else UNDECLARED), optional


def _bare(annotation: Any) -> Any:
    """Return an annotation without `Annotated`."""
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is typing.Annotated else annotation


def model_of_annotation(annotation: Any) -> type[data.DataModel] | None:
    """Return the data model of an annotation `Answer` or `JsonDataModel[Answer]`; None for any other."""
    if typing.get_origin(annotation) is data.JsonDataModel:
        annotation = _bare(typing.get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, data.DataModel) and annotation is not data.DataModel:
        return annotation
    return None


def read_outputs(annotation: Any) -> Any:
    """Return the nest of data models that a return annotation declares, or UNDECLARED."""
    inner, _ = without_none(annotation)
    if inner is UNDECLARED and typing.get_origin(annotation) in (typing.Union, UnionType):
        models = {model_of_annotation(_bare(arm)) for arm in typing.get_args(annotation) if arm is not type(None)}
        return (models.pop() if len(models) == 1 else None) or UNDECLARED  # such as Answer | JsonDataModel[Answer]
    if typing.get_origin(inner) is tuple:
        arms = typing.get_args(inner)
        nest = tuple(read_outputs(arm) for arm in arms)
        return UNDECLARED if not arms or any(part is UNDECLARED for part in nest) else nest
    return model_of_annotation(inner) or UNDECLARED


# -- signatures --------------------------------------------------------------------------------------------------------


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Parameter(NamedTuple):
    """One parameter of `call`."""

    name: str
    takes_none: bool
    model: type[data.DataModel] | None
    required: bool
    takes_data: bool
    """Whether a keyword argument must be data, as positional arguments must."""


class CallSignature(NamedTuple):
    """The signature of `call`."""

    signature: inspect.Signature = inspect.Signature()
    positional: tuple[Parameter, ...] = ()
    """The parameters that accept positional arguments: those before `training`."""
    rest: Parameter | None = None
    """`*args`."""
    by_name: Mapping[str, Parameter] = MappingProxyType({})
    """The parameters that accept keyword arguments, by name."""
    var_keyword: Parameter | None = None
    """`**kwargs`."""
    counts: frozenset[int] = frozenset()
    """The numbers of positional arguments that are valid without keyword arguments (none listed for `*args`)."""
    has_training: bool = False
    training_default: bool = False
    training_on_class: bool | None = None
    """The class attribute `training`, which is used like the module's own."""
    outputs: Any = UNDECLARED
    """The nest of data models and None in the return annotation, or UNDECLARED."""
    may_return_none: bool = False
    """Whether the return annotation includes None."""
    is_async: bool = False
    """Whether `call` is `async def`."""

    def parameter(self, index: int) -> Parameter | None:
        """Return the parameter for the positional argument with this index."""
        return self.positional[index] if index < len(self.positional) else self.rest

    def keyword(self, name: str) -> Parameter | None:
        """Return the parameter for the keyword argument with this name."""
        return self.by_name.get(name, self.var_keyword)


def own_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a method without `self`; a leading `*args`, which receives `self`, is kept.

    Raises:
        TypeError, ValueError: `inspect` cannot find the signature.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind in POSITIONAL:
        del parameters[0]
    return signature.replace(parameters=parameters)


def read_call(cls: type, function: Callable[..., Any]) -> CallSignature:
    """Read the signature of `call`.

    Args:
        cls: The class of modules.
        function: The `call` of the class.

    Raises:
        ConfigError: `training` can only be given by position, there is no `self`, or an annotation of data or of the
            output has a name that is not defined.
    """
    signature = own_signature(function)
    parameters = list(signature.parameters.values())
    training = signature.parameters.get("training")
    if training is not None and training.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise ConfigError(f"class {cls.__name__}: call takes `training` by position only; modules pass it by keyword.")
    before = parameters[: parameters.index(training)] if training is not None else parameters
    of_data = {p.name for p in before if p.kind in (*POSITIONAL, p.VAR_POSITIONAL)}
    is_declared = hasattr(cls, SPECS["output_spec"]) or is_own(cls, "compute_output_spec")  # they outrank the return
    hints = resolve_annotations(function, of_data if is_declared else {*of_data, "return"})
    accepts_none = bool(getattr(cls, "accepts_none", False))
    in_synmod = (getattr(function, "__module__", None) or "").startswith("synmod.")  # None for a function of `exec`
    read: dict[str, Parameter] = {}
    for p in parameters:
        inner, optional = without_none(hints.get(p.name, UNDECLARED))
        model = model_of_annotation(inner)
        takes_none = accepts_none or optional or p.default is None
        required = p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        read[p.name] = Parameter(
            p.name, takes_none, model, required, model is not None or (in_synmod and p is parameters[0])
        )
    positional = tuple(read[p.name] for p in before if p.kind in POSITIONAL)
    rest = only_parameter(before, inspect.Parameter.VAR_POSITIONAL)  # after `training`, no argument is positional
    extra = only_parameter(parameters, inspect.Parameter.VAR_KEYWORD)
    by_name = {p.name: read[p.name] for p in parameters if p.kind in BY_NAME and p is not training}
    open_otherwise = [name for name in by_name if by_name[name].required and by_name[name] not in positional]
    required = sum(p.required for p in positional)
    on_class = getattr(cls, "training", None)
    return CallSignature(
        signature=signature,
        positional=positional,
        rest=None if rest is None else read[rest.name],
        by_name=by_name,
        var_keyword=None if extra is None else read[extra.name],
        counts=frozenset[int]() if open_otherwise or rest else frozenset(range(required, len(positional) + 1)),
        has_training=training is not None,
        training_default=training is not None and training.default is True,
        training_on_class=on_class if isinstance(on_class, bool) else None,
        outputs=read_outputs(hints.get("return", UNDECLARED)),
        may_return_none=without_none(hints.get("return", UNDECLARED))[1],
        is_async=inspect.iscoroutinefunction(function),
    )


def only_parameter(parameters: Iterable[inspect.Parameter], kind: Any) -> inspect.Parameter | None:
    """Return the parameter of a kind that occurs at most once, or None."""
    return next((p for p in parameters if p.kind is kind), None)


def definer(cls: type, name: str) -> type | None:
    """Return the class whose body defines an attribute of `cls`; None if the attribute is missing."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def is_base(cls: type) -> bool:
    """Whether a class is `Module` itself, or a base class of synmod that extends it, such as `Program`."""
    return bool(vars(cls).get("_is_module_base", False))


def is_own(cls: type, method: str) -> bool:
    """Whether a class below `Module` defines the method."""
    owner = definer(cls, method)
    return owner is not None and not is_base(owner)


SPECS = {"input_spec": "_class_input_spec", "output_spec": "_class_output_spec"}
