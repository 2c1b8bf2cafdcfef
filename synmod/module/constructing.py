"""Making modules, and how they were made: the recorded arguments, config, repr, copies."""

from __future__ import annotations

import functools
import inspect
import reprlib
from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from inspect import getattr_static
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod.errors import ArgumentError, CallError, ConfigError
from synmod.leaves.names import check_name, did_you_mean, path_str
from synmod.leaves.nests import copied
from synmod.lm import LanguageModel
from synmod.scope import Hook, NameScope
from synmod.tree import (
    GraphDef,
    State,
    Static,
    Variable,
    clone as clone_node,
    deepcopy_node,
    get_node_impl,
    merge,
    split,
    walk,
)

from .build import BuildMethod
from .builds import remember
from .declaring import SPECS, ClassDeclaration, check_class, is_base
from .record import ABSENT, LABELS, Module, ModuleRecord, attribute_of
from .wiring import shown_skips

_NEVER_RECORDED = "hooks"


def capture(declaration: ClassDeclaration, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Bind the arguments of a construction to the constructor's parameters.

    Args:
        declaration: The class.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Returns:
        The arguments given, by parameter name: `*args` as one list, `**kwargs` by name, plain containers copied. None
        where they cannot be told apart by name.

    Raises:
        ConfigError: They do not fit the signature.

    Source: PyGlove, Keras' auto config.
    """
    signature = declaration.init
    if signature is None:
        return None
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        name, known = declaration.cls.__name__, declaration.keywords
        unknown = [keyword for keyword in kwargs if keyword not in known]
        if unknown:  # also where an argument is missing: it may be the one that was misspelt
            raise unknown_keyword(name, unknown[0], known) from None
        raise ConfigError(f"{name}: {error}. It takes {name}{signature}.") from None
    recorded: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            if not recorded.keys().isdisjoint(value):
                return None
            recorded.update((key, kept(item)) for key, item in value.items() if key != _NEVER_RECORDED)
        elif name != _NEVER_RECORDED:
            recorded[name] = [kept(item) for item in value] if kind is inspect.Parameter.VAR_POSITIONAL else kept(value)
    return recorded


def _takes_any(signature: inspect.Signature) -> bool:
    """Whether a constructor takes any keyword."""
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values())


def kept(value: Any) -> Any:
    """Copy plain containers, so that later changes by the caller do not reach the record; keep all else."""
    try:
        return copied(value, _kept_leaf)
    except CallError:  # a container that holds itself
        return value


def _kept_leaf(leaf: Any) -> Any:
    return set(cast("set[Any]", leaf)) if type(leaf) is set else leaf


def unknown_keyword(name: str, keyword: str, known: list[str]) -> ConfigError:
    """The error for a keyword that no constructor on the way takes."""
    return ConfigError(
        f"{name}: unknown argument {keyword!r}.{did_you_mean(keyword, known)} "
        f"It accepts: {', '.join(known) if known else 'nothing'}."
    )


def construct(
    module: Module,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    trainable: bool = True,
    hooks: Sequence[Hook] | None = None,
    **unknown: Any,
) -> None:
    """Set the labels, the mask and the hooks of a module.

    Raises:
        ConfigError: An unknown keyword; it came here through a `**kwargs` and must not vanish.
        BadNameError: The name is not an identifier.
        ArgumentError: A hook that cannot be one.
    """
    if unknown:
        raise unknown_keyword(type(module).__name__, next(iter(unknown)), module._record.declaration.keywords)
    if name is not None:
        module.name = name
    if description is not None:
        module.description = description
    module.trainable = trainable
    for hook in hooks or ():
        module.add_hook(hook)


M = TypeVar("M", bound="Module")

_DEEPEST = 40
_DEPTH: ContextVar[int] = ContextVar("synmod_repr_depth", default=0)
"""How many modules this one is an argument in, while their constructor calls are written."""


def get_config(module: Module) -> dict[str, Any]:
    """The constructor arguments of `module` as live values, those assigned anew later with their present value.

    Raises:
        ConfigError: The module was not made by calling its class, or its arguments have no names.
    """
    record = module._record
    if record.arguments is None:
        raise ConfigError(
            f"{type(module).__name__}: the constructor arguments are not known (no readable signature, or not made by "
            "calling the class): override get_config."
        )
    ignored = record.declaration.ignored
    config: dict[str, Any] = {}
    for name in in_signature_order(record):
        if name in ignored or name in record.statics:
            continue
        value = _present_value(module, name, record.arguments.get(name, ABSENT))
        if value is not ABSENT and not isinstance(value, Static):
            config[name] = value
    return config


def in_signature_order(record: ModuleRecord) -> list[str]:
    """The names of the arguments given, and of the parameters whose attribute was assigned anew, in their order."""
    signature = record.declaration.init or inspect.Signature()
    named = [name for name, p in signature.parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    given = record.arguments or {}
    known = [name for name in named if name in given or name in record.reassigned]
    return list(dict.fromkeys((*known, *given)))


def _present_value(module: Module, name: str, given: Any) -> Any:
    """The value of an argument as of now: given, or that of its attribute where that was assigned anew."""
    record = module._record
    if name in LABELS:
        return getattr(record, name) if is_passed_on(record, name) else given
    present = attribute_of(module, name)
    if name in record.reassigned:
        if present is ABSENT and isinstance(getattr_static(module, name, None), property):
            present = getattr(module, name)
        if present is not ABSENT and not isinstance(present, Variable):
            return present
    if isinstance(given, str) and isinstance(present, LanguageModel):
        return present  # the model that the string named
    return given


def is_passed_on(record: ModuleRecord, label: str) -> bool:
    """Whether the constructor took a label as it was given, so that it would take the present one likewise."""
    if record.given is None or record.arguments is None or label not in record.arguments:
        return False
    as_given = dict(zip(("name", "description", "trainable"), record.given, strict=True))
    return label in as_given and record.arguments[label] == as_given[label]


def from_config(cls: type[M], config: Mapping[str, Any]) -> M:
    """Call the constructor of `cls` with a config.

    Raises:
        ConfigError: A key that the constructor does not take.
    """
    signature = declaration_of(cls).init
    if signature is None:
        return cls(**config)
    parameters = signature.parameters.values()
    unknown = [key for key in config if key not in signature.parameters]
    if unknown and not _takes_any(signature):
        raise unknown_keyword(cls.__name__, unknown[0], [p.name for p in parameters])
    named = dict(config)
    args: list[Any] = []
    not_given: list[str] = []
    for parameter in _by_position(signature, config):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(named.pop(parameter.name))
        elif parameter.name in named:
            args.append(named.pop(parameter.name))
        elif parameter.default is not parameter.empty:
            args.append(parameter.default)
            not_given.append(parameter.name)
    module = cls(*args, **named)
    given = module._record.arguments
    if not_given and given is not None:
        module._record.arguments = {name: value for name, value in given.items() if name not in not_given}
    return module


def _by_position(signature: inspect.Signature, config: Mapping[str, Any]) -> list[inspect.Parameter]:
    """The parameters that a config gives by position: positional-only ones, and all in front of filled `*args`."""
    parameters = list(signature.parameters.values())
    star = next((p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    if star is not None and config.get(star.name):
        return parameters[: parameters.index(star) + 1]
    only = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
    while only and only[-1].name not in config:
        only.pop()
    return only if star is None or star.name not in config else [*only, star]


def constructor_call(module: Module) -> str:
    """The constructor call that made `module`: given arguments only, in signature order, defaults left out.

    What stands too deep in others is cut short: Python writes containers by recursion.
    """
    record = module._record
    name = type(module).__name__
    depth = _DEPTH.get()
    if record.arguments is None or depth >= _DEEPEST:
        return f"{name}(...){shown_skips(module)}"
    token = _DEPTH.set(depth + 1)
    try:
        shown = _shown_arguments(record, record.arguments)
    finally:
        _DEPTH.reset(token)
    return f"{name}({', '.join(shown)}){shown_skips(module)}"


def _shown_arguments(record: ModuleRecord, arguments: Mapping[str, Any]) -> list[str]:
    """The arguments as code writes them."""
    signature = record.declaration.init or inspect.Signature()
    given = {
        name: value for name, value in arguments.items()
        if name not in signature.parameters or not _is_default(value, signature.parameters[name].default)
    }  # fmt: skip
    shown: list[str] = []
    by_position = _by_position(signature, given)
    for parameter in by_position:
        value = arguments.get(parameter.name, parameter.default)
        shown += map(_shown, value) if parameter.kind is inspect.Parameter.VAR_POSITIONAL else [_shown(value)]
    taken = {parameter.name for parameter in by_position}
    order = dict.fromkeys((*signature.parameters, *arguments))
    return shown + [f"{name}={_shown(given[name])}" for name in order if name in given and name not in taken]


@reprlib.recursive_repr("...")
def _shown(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if inspect.isfunction(value):
        return value.__qualname__
    if type(value) in (tuple, list) and any(isinstance(each, type) or inspect.isfunction(each) for each in value):
        shown = ", ".join(map(_shown, value))
        return f"[{shown}]" if isinstance(value, list) else f"({shown}{',' * (len(value) == 1)})"
    return repr(value)


def _is_default(value: Any, default: Any) -> bool:
    """Compare with a default; whatever a hostile `__eq__` returns or raises counts as different."""
    if value is default:
        return True
    if type(value) not in (str, int, float, bool, tuple, list, dict) or type(value) is not type(default):
        return False
    return repr(value) == repr(default)


_ABSENT = object()


def clone(module: M, name: str | None) -> M:
    """Copy a module and rename the copy.

    Raises:
        BadNameError: The name is not an identifier; nothing is copied.
    """
    if name is not None:
        check_name(name)
    copy = clone_node(module)
    if name is not None:
        copy._record.name = name
    return copy


def deepcopy(module: M, memo: dict[int, Any]) -> M:
    """What `copy.deepcopy` does: a clone that refers to what was copied beside it."""
    return deepcopy_node(module, memo)


def reduce(module: Module) -> tuple[Any, ...]:
    """What pickle stores: graph and state, without hooks.

    Raises:
        TypeError: A live model is held; names its path.
    """
    for visit in walk(module):
        if visit.kind == "node" and get_node_impl(visit.value).by_reference:
            path = path_str(visit.path)
            raise TypeError(
                f"cannot pickle {type(visit.value).__name__} at {path!r}: a live model holds connections and keys. "
                "Save the program with sm.save, or leave language_model out and use the default model."
            )
    return _merged, split(module)


def _merged(graphdef: GraphDef[Any], state: State) -> Any:
    return merge(graphdef, state)


def set_mode(module: M, *, training: bool) -> M:
    """Set `training` and `deterministic` wherever a node below has such an attribute, and `training` on the module."""
    for visit in walk(module):
        if visit.kind == "node" and visit.first:
            if visit.value is module or _can_set(visit.value, "training"):
                visit.value.training = training
            if _can_set(visit.value, "deterministic"):
                visit.value.deterministic = not training
    return module


def _can_set(node: object, name: str) -> bool:
    """Whether a node has an attribute that can be set, of its own or by its class, without running a property."""
    found = inspect.getattr_static(node, name, _ABSENT)
    return found is not _ABSENT and not (isinstance(found, property) and found.fset is None)


def set_hooks(module: Module, hooks: tuple[Hook, ...]) -> None:
    """Set the hooks of a module; a build that fails puts back what was there."""
    remember(module)
    module._record.hooks = hooks


def without_hook(module: Module, hook: Hook) -> tuple[Hook, ...]:
    """The hooks of a module but one.

    Raises:
        ArgumentError: It is not among them.
    """
    hooks = module._record.hooks
    if not any(one is hook for one in hooks):
        raise ArgumentError(f"{module.name!r} has no such hook {hook!r}; it has {len(hooks)}.")
    return tuple(one for one in hooks if one is not hook)


F = TypeVar("F", bound=Callable[..., Any])


def with_name_scope(method: F) -> F:
    """Return a method that runs in the name scope of its module: `sm.current_scope()` shows the name while it runs.

    Args:
        method: A plain or `async def` method of a module.

    Example:
        >>> import synmod as sm
        >>> class Encoder(sm.Module):
        ...     @sm.Module.with_name_scope
        ...     def encode(self, text):
        ...         return sm.current_scope()
        >>> Encoder().encode("x")
        'encoder'

    Source: tf.Module `with_name_scope`; differs: async.
    """
    if inspect.iscoroutinefunction(method):

        async def waiting(self: Module, /, *args: Any, **kwargs: Any) -> Any:
            with NameScope(self._record):
                return await method(self, *args, **kwargs)

        return cast("F", functools.wraps(method)(waiting))

    def plain(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        with NameScope(self._record):
            return method(self, *args, **kwargs)

    return cast("F", functools.wraps(method)(plain))


class ModuleMeta(ABCMeta):
    """Checks a class of modules when it is made, and records the arguments of each construction.

    Source: Equinox's `Module` metaclass, PyGlove's captured arguments.
    """

    _declaration: ClassDeclaration
    """Read by `declaration_of`."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> ModuleMeta:
        if not namespace.get("_is_module_base"):
            for public, kept in SPECS.items():
                if public in namespace:  # also as a property, which is asked under the other name
                    namespace[kept] = namespace.pop(public)  # the name itself is a property of every instance
        return ABCMeta.__new__(mcls, name, bases, namespace, **kwargs)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> None:
        super().__init__(name, bases, namespace, **kwargs)
        if not is_base(cls):
            check_class(cls)
        build = inspect.getattr_static(cls, "build")
        if not isinstance(build, BuildMethod):  # written in this class, or in a class beside `Module`
            cls.build = BuildMethod(build)
        cls._declaration = ClassDeclaration(cls)
        for base in reversed(bases):
            skips = getattr(base, "_declaration", None) and cast("ModuleMeta", base)._declaration.skips
            if skips is not None:
                cls._declaration.declare_skips(skips)

    if not TYPE_CHECKING:  # a checker shall read the constructor of the class itself

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            """Record the arguments, make the instance, and note that its construction is over."""
            arguments = capture(cls._declaration, args, kwargs)
            module = cls.__new__(cls, *args, **kwargs)
            if isinstance(module, cls):
                record = module._record
                record.arguments = arguments
                cls.__init__(module, *args, **kwargs)
                record.given = (record.name, record.description, record.trainable)
                record.constructed = True
            return module

        @property
        def __signature__(cls) -> inspect.Signature:
            """What the constructor takes, for `help`, `inspect` and notebooks: `__call__` would hide it from them."""
            return inspect.signature(MethodType(cls.__init__, cls))  # bound to anything: without `self`


def declaration_of(cls: ModuleMeta) -> ClassDeclaration:
    """Return what is known of a class of modules: its signatures, names and skips, read when the class was made."""
    return cls._declaration
