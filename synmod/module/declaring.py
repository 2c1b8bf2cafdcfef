"""The declarations of a class of modules, checked when it is defined; how kinds of modules differ."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, singledispatch
from os import PathLike
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypedDict, TypeVar, cast

from synmod import data, leaves, scope, tree
from synmod.errors import ConfigError

from . import signatures
from .signatures import SPECS, CallSignature, definer, is_base, is_own

if TYPE_CHECKING:
    from synmod.skip.commands import Skippable

    from .module import Module

# -- skip connections --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeclaredSkips:
    """The names that a class stashes, pops, peeks at, and may find absent; schemas and classes of typed names."""

    stash: frozenset[str]
    pop: frozenset[str]
    peek: frozenset[str]
    optional: frozenset[str]
    schemas: Mapping[str, data.Schema]
    models: Mapping[str, Any]
    runner: Skippable

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

    def union(self, more: DeclaredSkips) -> DeclaredSkips:
        """Return the union of both; for a name with two schemas, that of `more`."""
        names = (self.stash | more.stash, self.pop | more.pop, self.peek | more.peek, self.optional | more.optional)
        return DeclaredSkips(*names, {**self.schemas, **more.schemas}, {**self.models, **more.models}, self.runner)


# -- classes -----------------------------------------------------------------------------------------------------------


class ClassDeclaration:
    """The declarations in the code of one class of modules."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.default_name = leaves.snake_case(cls.__name__)
        self.defines_build = is_own(cls, "build")
        self.declares_spec = is_own(cls, "compute_output_spec")
        self.skips: DeclaredSkips | None = None
        """The skip connections that the class declares, with those of its bases."""
        self.runner: Skippable | None = None

    def declare_skips(self, skips: DeclaredSkips) -> None:
        """Add skip connections to those declared already."""
        self.skips = skips if self.skips is None else self.skips.union(skips)
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
        spellings = ("graph_ignored", "_graph_ignored")
        bodies = [vars(base) for base in self.cls.__mro__]
        return frozenset[str]().union(*(body.get(name, ()) for body in bodies for name in spellings))

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Attributes that the walk skips: ignored ones, and the cached values of `cached_property`."""
        attributes = (pair for base in self.cls.__mro__ for pair in vars(base).items())
        return self.ignored | {name for name, value in attributes if isinstance(value, cached_property)}

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
            return signatures.own_signature(typing.cast("Callable[..., Any]", self.cls.__init__))
        except (TypeError, ValueError):
            return None

    @cached_property
    def keywords(self) -> list[str]:
        """The keywords of the constructor, with those of the bases that its `**kwargs` may go to; for messages."""
        names: dict[str, None] = {}
        for base in self.cls.__mro__:
            function = vars(base).get("__init__")
            if not inspect.isfunction(function):
                continue
            parameters = signatures.own_signature(function).parameters.values()
            names.update((p.name, None) for p in parameters if p.kind in signatures.BY_NAME)
            if signatures.only_parameter(parameters, inspect.Parameter.VAR_KEYWORD) is None:
                break
        return list(names)

    @cached_property
    def call(self) -> CallSignature:
        """The signature of `call`; for a class without one, an empty signature."""
        function = getattr(self.cls, "call", None)
        return CallSignature() if function is None else signatures.read_call(self.cls, function)

    @cached_property
    def build(self) -> inspect.Signature:
        """The signature of the class's own `build`, without `self`."""
        method = typing.cast("Callable[..., Any]", inspect.getattr_static(self.cls, "build"))
        return signatures.own_signature(inspect.unwrap(method))


_OF_CLASSES: Final = frozenset({"call", "graph_ignored", "stashable_names", "poppable_names", "skip_schemas"})
"""Names that only a class may define, not an instance."""


def first_paragraph(text: str | None) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()) if text else ""


R_co = TypeVar("R_co", covariant=True)


class AsyncCallee(Protocol[R_co]):
    """A module whose `call` is `async def`."""

    @property
    def call(self) -> Callable[..., Coroutine[Any, Any, R_co]]:
        """The method of the user's class."""
        ...


class Callee(Protocol[R_co]):
    """A module whose `call`, `async def` or plain, returns an `R_co`."""

    @property
    def call(self) -> Callable[..., Coroutine[Any, Any, R_co] | R_co]:
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


def check_class(cls: type) -> None:
    """Check a class of modules when it is defined.

    Raises:
        ConfigError: `call`, `build` or another method has an unusable form, or a class attribute hides a name of
            `Module` or is a Variable.
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
    attributes = [pair for base in unchecked for pair in vars(base).items()]
    for name, value in attributes:
        if any(isinstance(part, tree.Variable) for _, part in tree.graph_parts(value)):
            raise ConfigError(
                f"class {cls.__name__}: {name!r} is a Variable on the class, shared by all instances; "
                f"make it in __init__: self.{name} = self.add_variable(...)."
            )


def unknown_keyword(
    name: str, keyword: str, accepted: list[str], signature: inspect.Signature | None = None
) -> ConfigError:
    """Return the error for a keyword that no constructor accepts; `signature` is that of one without `**kwargs`."""
    remedy = ""
    if signature is not None and keyword in ModuleOptions.__annotations__:
        parameters = "".join(f"{parameter}, " for parameter in signature.parameters.values())
        remedy = (
            f" {keyword!r} is an argument of Module, which a class must pass on: write "
            f"`def __init__(self, {parameters}**options)` and `super().__init__(**options)` in {name}."
        )
    return ConfigError(
        f"{name}: unknown argument {keyword!r}.{leaves.did_you_mean(keyword, accepted)} "
        f"It accepts: {', '.join(accepted) if accepted else 'nothing'}.{remedy}"
    )


# -- kinds of modules --------------------------------------------------------------------------------------------------
# Behaviour of a kind is a function with a default, for which rooms above register their own: it is not a method,
# because the names on an instance belong to the user.

Order = Literal["in order", "one of", "together", "graph"]


class ChildAt(NamedTuple):
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
    parts: tuple[ChildAt | Execution | None, ...]
    needs: tuple[Sequence[int], ...] = ()


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


# -- rooms above -------------------------------------------------------------------------------------------------------


class CallAttempt(Protocol):
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
    attempt: Callable[[], AbstractContextManager[CallAttempt]]
    summary: Callable[[Module, int | None, Iterable[str] | None], str]
    plot: Callable[[Module, str | PathLike[str] | None, str], str]
    instance: ClassVar[RoomsAbove]


def attempt() -> AbstractContextManager[CallAttempt]:
    """Return a block whose calls affect the skip connections only if `keep` is called, inside or after the block."""
    return RoomsAbove.instance.attempt()


def has_open_skips(module: Module) -> bool:
    """Whether a skip connection has one end inside a module and the other outside."""
    parts: tuple[Any, ...] = (module, *module.submodules)
    stashed = {pair for part in parts for pair in part.stashable()}
    popped = {pair for part in parts for pair in part.poppable()}
    declared = [(part, part._record.declaration.skips) for part in parts]
    peeked = {part.namespaced(name) for part, skips in declared if skips is not None for name in skips.peek}
    return stashed != popped | peeked
