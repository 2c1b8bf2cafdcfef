"""The declarations of a class of modules, checked when it is defined; and how kinds of modules differ from `Module`."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, singledispatch
from os import PathLike
from types import MappingProxyType, MemberDescriptorType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypedDict, TypeVar, cast

from synmod import data, leaves, scope, tree
from synmod.errors import ConfigError

if TYPE_CHECKING:
    from .module import Module

# -- annotations and signatures ----------------------------------------------------------------------------------------

UNDECLARED: Final = object()
"""A placeholder for an annotation that does not declare data."""


def resolved_annotations(function: Callable[..., Any], needed: Container[str] | None = None) -> dict[str, Any]:
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


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


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
    named: Mapping[str, Parameter] = MappingProxyType({})
    """The parameters that accept keyword arguments, by name."""
    others: Parameter | None = None
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
        return self.named.get(name, self.others)


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
    is_declared = hasattr(cls, SPECS["output_spec"]) or _is_own(cls, "compute_output_spec")  # they outrank the return
    hints = resolved_annotations(function, of_data if is_declared else {*of_data, "return"})
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
    rest = _only(before, inspect.Parameter.VAR_POSITIONAL)  # after `training`, no argument is positional
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
        may_return_none=without_none(hints.get("return", UNDECLARED))[1],
        is_async=inspect.iscoroutinefunction(function),
    )


def _only(parameters: Iterable[inspect.Parameter], kind: Any) -> inspect.Parameter | None:
    """Return the parameter of a kind that occurs at most once, or None."""
    return next((p for p in parameters if p.kind is kind), None)


# -- skip connections --------------------------------------------------------------------------------------------------


class Runner(Protocol):
    """Runs `call` of a module that declares skips."""

    def run(self, module: Module, frame: scope.CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `call` in its frame, with the checks before and after it; the caller awaits the result."""

    def assume(self, module: Module, frame: scope.CallFrame) -> None:
        """Apply the declared stashes and pops to the lane, unless a trace of `call` has run to its end."""


@dataclass(frozen=True)
class DeclaredSkips:
    """The names that a class stashes, pops, peeks at, and may find absent; schemas and classes of typed names."""

    stash: frozenset[str]
    pop: frozenset[str]
    peek: frozenset[str]
    optional: frozenset[str]
    schemas: Mapping[str, data.Schema]
    models: Mapping[str, Any]
    runner: Runner

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The names that must be stashed before `call` runs, sorted: the pops that are not optional."""
        return tuple(sorted(self.pop - self.optional))

    @cached_property
    def peeks(self) -> tuple[str, ...]:
        """`peek`, sorted."""
        return tuple(sorted(self.peek))

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self.stash | self.pop | self.peek)

    def joined(self, more: DeclaredSkips) -> DeclaredSkips:
        """Return the union of both; for a name with two schemas, that of `more`."""
        return DeclaredSkips(
            self.stash | more.stash,
            self.pop | more.pop,
            self.peek | more.peek,
            self.optional | more.optional,
            {**self.schemas, **more.schemas},
            {**self.models, **more.models},
            self.runner,
        )


# -- classes -----------------------------------------------------------------------------------------------------------


class ClassDeclaration:
    """The declarations in the code of one class of modules."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.default_name = leaves.snake_case(cls.__name__)
        self.defines_build = _is_own(cls, "build")
        self.declares_spec = _is_own(cls, "compute_output_spec")
        self.skips: DeclaredSkips | None = None
        """The skip connections that the class declares, with those of its bases."""
        self.runner: Runner | None = None

    def declare_skips(self, skips: DeclaredSkips) -> None:
        """Add skip connections to those declared already."""
        self.skips = skips if self.skips is None else self.skips.joined(skips)
        self.runner = self.skips.runner
        cls = cast("Any", self.cls)
        cls.stashable_names, cls.poppable_names, cls.skip_schemas = self.skips.stash, self.skips.pop, self.skips.schemas

    @cached_property
    def default_description(self) -> str:
        """The first paragraph of the docstring."""
        return first_paragraph(self.cls.__dict__.get("__doc__"))

    @cached_property
    def ignored(self) -> frozenset[str]:
        """Attributes that the class keeps out of the graph."""
        return frozenset[str]().union(*(vars(base).get("_graph_ignored", ()) for base in self.cls.__mro__))

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Attributes that the walk skips: ignored ones, and the cached values of `cached_property`."""
        found = (pair for base in self.cls.__mro__ for pair in vars(base).items())
        return self.ignored | {name for name, value in found if isinstance(value, cached_property)}

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Names of `Module` that an instance attribute would hide."""
        return _OF_CLASSES.union(
            name
            for base in filter(is_base, self.cls.__mro__)
            for name, value in vars(base).items()
            if isinstance(value, MemberDescriptorType)  # slots such as `_record`
            or (not name.startswith("_") and (callable(getattr(base, name)) or getattr(value, "fset", "") is None))
        )

    @cached_property
    def init(self) -> inspect.Signature | None:
        """The signature of the constructor without `self`; None if `inspect` cannot find it."""
        try:
            return own_signature(typing.cast("Callable[..., Any]", self.cls.__init__))
        except (TypeError, ValueError):
            return None

    @cached_property
    def keywords(self) -> list[str]:
        """The keywords of the constructor, with those of the bases that its `**kwargs` may go to; for messages."""
        known: dict[str, None] = {}
        for base in self.cls.__mro__:
            function = vars(base).get("__init__")
            if not inspect.isfunction(function):
                continue
            parameters = own_signature(function).parameters.values()
            known.update((p.name, None) for p in parameters if p.kind in _BY_NAME)
            if _only(parameters, inspect.Parameter.VAR_KEYWORD) is None:
                break
        return list(known)

    @cached_property
    def call(self) -> CallSignature:
        """The signature of `call`; for a class without one, an empty signature."""
        function = getattr(self.cls, "call", None)
        return CallSignature() if function is None else read_call(self.cls, function)

    @cached_property
    def build(self) -> inspect.Signature:
        """The signature of the class's own `build`, without `self`."""
        method = typing.cast("Callable[..., Any]", inspect.getattr_static(self.cls, "build"))
        return own_signature(inspect.unwrap(method))


def definer(cls: type, name: str) -> type | None:
    """Return the class whose body defines an attribute of `cls`; None if there is no such attribute."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)


_OF_CLASSES: Final = frozenset({"call", "stashable_names", "poppable_names", "skip_schemas"})
"""Names that only a class may define, not an instance."""


def is_base(cls: type) -> bool:
    """Whether a class is `Module` itself, or a base class of synmod that extends it, such as `Program`."""
    return bool(vars(cls).get("_is_module_base", False))


def first_paragraph(text: str | None) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()) if text else ""


def _is_own(cls: type, method: str) -> bool:
    """Whether a class below `Module` defines the method."""
    owner = definer(cls, method)
    return owner is not None and not is_base(owner)


R_co = TypeVar("R_co", covariant=True)


class AsyncCallee(Protocol[R_co]):
    """A module whose `call` is `async def`."""

    @property
    def call(self) -> Callable[..., Coroutine[Any, Any, R_co]]:
        """The method of the user's class."""
        ...


class PlainCallee(Protocol[R_co]):
    """A module whose `call` is a plain `def`."""

    @property
    def call(self) -> Callable[..., R_co]:
        """The method of the user's class."""
        ...


class ModuleOf(Protocol[R_co]):
    """A module whose calls with one value return an `R_co`: `def __init__(self, member: ModuleOf[R])`."""

    @property
    def built(self) -> bool:
        """As for every module; distinguishes modules from other callables."""
        ...

    def __call__(self, inputs: data.JsonDataModel[Any], /) -> Coroutine[Any, Any, R_co]:
        """Call the module."""
        ...


class Unspecified:
    """A type that no `call` returns, so that only `Any` matches it."""


class ModuleOptions(TypedDict, total=False):
    """The keywords that every module accepts: `def __init__(self, ..., **options: Unpack[ModuleOptions])`."""

    name: str | None
    description: str | None
    trainable: bool
    hooks: Sequence[scope.Hook] | None


SPECS = {"input_spec": "_class_input_spec", "output_spec": "_class_output_spec"}


def check_class(cls: type) -> None:
    """Check a class of modules when it is defined.

    Raises:
        ConfigError: `call`, `build` or another method has an unusable form, a class attribute hides a name of `Module`
            or is a Variable, or a default of the constructor is mutable.
    """
    for method in ("call", "build", "compute_output_spec"):
        owner = definer(cls, method)
        function, kind = owner and vars(owner)[method], ""
        if isinstance(function, staticmethod | classmethod):
            kind = type(cast("object", function)).__name__
        elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            kind = "generator"
        if kind:
            raise ConfigError(f"class {cls.__name__}: {method} is a {kind}; write `async def {method}(self, ...)`.")
    if not is_base(cast("type", definer(cls, "__call__"))):
        raise ConfigError(f"class {cls.__name__} defines __call__, which belongs to Module: define call instead.")
    _check_hidden(cls)
    _check_variables(cls)
    _check_defaults(cls)


def _check_defaults(cls: type) -> None:
    """Raise ConfigError for a list, dict or set as a default of the constructor: all instances would share it."""
    function: Any = vars(cls).get("__init__")
    positional: tuple[Any, ...] = getattr(function, "__defaults__", None) or ()
    by_keyword: dict[str, Any] = getattr(function, "__kwdefaults__", None) or {}
    if not any(type(default) in _MUTABLE for default in (*positional, *by_keyword.values())):
        return
    for name, parameter in inspect.signature(function).parameters.items():
        if type(parameter.default) in _MUTABLE:
            raise ConfigError(
                f"class {cls.__name__}: the default `{name}={parameter.default!r:.100}` of __init__ is one object that "
                f"all instances share; write `{name}=None` or a tuple, and make a new one in the body."
            )


_MUTABLE: Final = (list, dict, set)


def _check_hidden(cls: type) -> None:
    """Raise ConfigError for a class attribute, slot or mixin that hides a name of `Module`."""
    owners = {name: base for base in reversed(cls.__mro__[:-1]) for name in vars(base)}
    for base in filter(is_base, cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, property | MemberDescriptorType) and name not in SPECS and not is_base(owners[name]):
                settable = isinstance(value, property) and value.fset is not None
                way = f"set it in the constructor: `self.{name} = ...`" if settable else "rename it"
                raise ConfigError(f"class {cls.__name__}: the class attribute {name!r} hides `Module.{name}`; {way}.")


def _check_variables(cls: type) -> None:
    """Raise ConfigError for a Variable on the class, also in containers: all instances would silently share it."""
    unchecked = [base for base in cls.__mro__[:-1] if "_declaration" not in vars(base)]
    found = [pair for base in unchecked for pair in vars(base).items()]
    if tree.holds_node([value for _, value in found], (tree.VARIABLE,)):
        name = next(name for name, value in found if tree.holds_node([value], (tree.VARIABLE,)))
        raise ConfigError(
            f"class {cls.__name__}: {name!r} is a Variable on the class, shared by all instances; "
            f"make it in __init__: self.{name} = self.add_variable(...)."
        )


# -- kinds of modules --------------------------------------------------------------------------------------------------

Order = Literal["in order", "one of", "together", "graph"]


class Child(NamedTuple):
    """A child to run, and the steps to it from its container."""

    steps: leaves.KeyPath
    module: Module


class Execution(NamedTuple):
    """The parts that a container runs, and their order.

    Attributes:
        order: `in order`: one after the other, each on the output of the one before. `one of`: alternatives, of which
            some may not run. `together`: in any order. `graph`: each when its inputs are ready.
        parts: Children and nested executions; None for a part that is not a module.
        needs: In a graph, for each part, the indices of the earlier parts whose outputs it needs.
    """

    order: Order
    parts: tuple[Child | Execution | None, ...]
    needs: tuple[Sequence[int], ...] = ()


# Behaviour that differs between kinds of modules: functions with a default, for which rooms above register their own.
# They are not methods, because the names on an instance belong to the user.


@singledispatch
def execution_of(module: Any) -> Execution | None:  # noqa: ARG001  # of the classes registered
    """Return how a module runs its children; None for a user-defined `call`, which cannot be known."""
    return None


@singledispatch
def own_inputs_of(module: Any) -> tuple[Any, ...]:  # noqa: ARG001
    """Return the inputs that a module has itself: the Inputs of a functional program."""
    return ()


@singledispatch
def passes_none(module: Any) -> bool:  # noqa: ARG001
    """Whether a call is skipped if an argument is None but may not be; an entry call of a program raises instead."""
    return True


@singledispatch
def verify_first_call(module: Any) -> None:
    """Check the skip connections of a Sequential, as the root of a program, before its first call; default: nothing."""


class Attempt(Protocol):
    """The calls made in one block."""

    def keep(self) -> None:
        """Keep the values that the calls stashed."""


@dataclass(frozen=True)
class RoomsAbove:
    """The functions of `skip` and `view` that this room and those beside them call; `synmod/__init__.py` sets them.

    Attributes:
        verify_wiring: Checks the skip connections of a root; the flag is whether no later build adds to it.
        attempt: Does what `attempt` below promises.
        summary: Prints and returns the summary of a module, of a depth and columns.
        plot: Returns the picture of a module, in a format, and writes it to a path unless that is None.
    """

    verify_wiring: Callable[[Module, bool], None]
    attempt: Callable[[], AbstractContextManager[Attempt]]
    summary: Callable[[Module, int | None, Iterable[str] | None], str]
    plot: Callable[[Module, str | PathLike[str] | None, str], str]
    instance: ClassVar[RoomsAbove]


def attempt() -> AbstractContextManager[Attempt]:
    """Return a block whose calls affect the skip connections only if `keep` is called, inside or after the block."""
    return RoomsAbove.instance.attempt()


def has_open_skips(module: Module) -> bool:
    """Whether a skip connection has one end inside a module and the other outside."""
    stashed: set[Any] = set()
    taken: set[Any] = set()
    modules: tuple[Any, ...] = (module, *module.submodules)
    for each in modules:
        skips = each._record.declaration.skips
        if skips is not None:
            stashed.update(map(each.namespaced, skips.stash))
            taken.update(map(each.namespaced, skips.pop | skips.peek))
    return stashed != taken
