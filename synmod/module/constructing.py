"""Construct modules and record the arguments: the constructor, the metaclass; copies and modes."""

from __future__ import annotations

import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod import errors, leaves, scope, tree

from .building import BuildMethod
from .config import note_arguments_in_variables
from .declaring import ClassDeclaration, check_class, unknown_keyword
from .record import ABSENT
from .signatures import POSITIONAL, SPECS, is_base

if TYPE_CHECKING:
    from .module import Module


def capture(declaration: ClassDeclaration, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Bind the arguments of a construction to the constructor's parameters.

    Args:
        declaration: The class.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Returns:
        The given arguments by parameter name: `*args` as one list, `**kwargs` by name, plain containers copied. None
        if the signature is unknown, or a name is not unique.

    Raises:
        ConfigError: The arguments do not fit the signature.

    Source: PyGlove, Keras' auto config.
    """
    signature = declaration.init
    if signature is None:
        return None
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        name, keywords = declaration.cls.__name__, declaration.keywords
        unknown = [keyword for keyword in kwargs if keyword not in keywords]
        if unknown:  # first, even if an argument is missing: it may be the misspelt one
            raise unknown_keyword(name, unknown[0], keywords, signature) from None
        by_position = [p.name for p in signature.parameters.values() if p.kind in POSITIONAL]
        if len(args) > len(by_position):
            first = f"only {', '.join(by_position)}" if by_position else "nothing"
            by_keyword = ", ".join(f"{keyword}=..." for keyword in keywords if keyword not in by_position)
            raise errors.ConfigError(f"{name}: {error}: {first} by position, {by_keyword} by keyword.") from None
        raise errors.ConfigError(f"{name}: {error}. It takes {', '.join(keywords)}.") from None
    recorded: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            recorded[name] = [_copy_containers(item) for item in value]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            if not recorded.keys().isdisjoint(value):
                return None
            recorded.update((key, _copy_containers(item)) for key, item in value.items() if key != "hooks")
        elif name != "hooks":
            recorded[name] = _copy_containers(value)
    return recorded


def _copy_containers(value: Any) -> Any:
    """Copy plain containers, so that later changes by the caller do not reach the record; keep anything else."""
    try:
        return leaves.copy_nest(value, lambda leaf: set(cast("set[Any]", leaf)) if type(leaf) is set else leaf)
    except errors.CallError:  # a container that holds itself
        return value


def construct(
    module: Module,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    trainable: bool = True,
    hooks: Sequence[scope.Hook] | None = None,
    **unknown: Any,
) -> None:
    """Set the labels, `trainable` and the hooks of a module: `Module.__init__`.

    Raises:
        ConfigError: A keyword, passed on through `**kwargs`, is unknown.
        BadNameError: The name is not an identifier.
        ArgumentError: A hook is invalid.
    """
    if unknown:
        keyword, kind, keywords = next(iter(unknown)), type(module).__name__, module._record.declaration.keywords
        if keyword in keywords:
            raise errors.ConfigError(
                f"{kind}: its constructor takes {keyword!r}, but a base class does not: leave it out of "
                f"`super().__init__(...)`, and keep it, `self.{keyword} = {keyword}`."
            )
        raise unknown_keyword(kind, keyword, keywords)
    if name is not None:
        module.name = name
    if description is not None:
        module.description = description
    module.trainable = trainable
    if hooks is not None and not isinstance(hooks, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.ArgumentError(f"{module.name!r}: hooks is {hooks!r}; pass a list of hooks, `hooks=[...]`.")
    for hook in hooks or ():
        module.add_hook(hook)


def no_attribute(module: Module, name: str) -> AttributeError:
    """Return the error for a missing attribute; for a method of programs alone, with how to make one."""
    kind = type(module).__name__
    hint = _OF_PROGRAMS.get(name, "")
    return AttributeError(f"{kind!r} object has no attribute {name!r}{hint}", name=name, obj=module)


_ROW = ": it is a method of programs. Make one: `program = sm.Sequential([sm.Input(Query), module])`"
_OF_PROGRAMS = {
    **dict.fromkeys(("compile", "fit"), f"{_ROW}."),
    "evaluate": f"{_ROW}, or write `sm.evaluate(module, data)`.",
    "predict": f"{_ROW}, or write `sm.map_concurrently(module, values)`.",
    "save": f"{_ROW}, or write `sm.save(module, path)`.",
    "load": ": write `sm.load(path)`.",
}
"""What to write for a method of `Program` that other modules lack."""


# -- copies and modes --------------------------------------------------------------------------------------------------


def reduce(module: Module) -> tuple[Any, ...]:
    """Return what pickle stores: structure and state, without hooks.

    Raises:
        TypeError: The module holds a live model; names its path.
    """
    for visit in tree.walk(module):
        if visit.kind == "node" and tree.get_node_impl(visit.value).by_reference:
            path = leaves.path_str(visit.path)
            raise TypeError(
                f"cannot pickle {type(visit.value).__name__} at {path!r}: a live model holds connections and keys. "
                "Save the program with sm.save, or leave language_model out and use the default model."
            )
    return tree.merge, tree.split(module)


M = TypeVar("M", bound="Module")


def set_mode(module: M, *, training: bool) -> M:
    """Set `training` on the module, and `training` and `deterministic` on each node below with such an attribute."""
    for visit in tree.walk(module):
        if visit.kind == "node" and visit.first:
            if visit.value is module or _can_set(visit.value, "training"):
                visit.value.training = training
            if _can_set(visit.value, "deterministic"):
                visit.value.deterministic = not training
    return module


def _can_set(node: object, name: str) -> bool:
    """Whether a node or its class has an attribute that can be set; runs no property."""
    attribute = inspect.getattr_static(node, name, ABSENT)
    return attribute is not ABSENT and not (isinstance(attribute, property) and attribute.fset is None)


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

    Source: tf.Module `with_name_scope`; differs: also for async methods.
    """
    if inspect.iscoroutinefunction(method):

        async def run_async(self: Module, /, *args: Any, **kwargs: Any) -> Any:
            with scope.NameScope(self._record):
                return await method(self, *args, **kwargs)

        return cast("F", functools.wraps(method)(run_async))

    def run(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        with scope.NameScope(self._record):
            return method(self, *args, **kwargs)

    return cast("F", functools.wraps(method)(run))


class ModuleMeta(ABCMeta):
    """Checks a class of modules when it is defined, and records the arguments of each construction.

    Source: Equinox's `Module` metaclass, PyGlove's captured arguments.
    """

    _declaration: ClassDeclaration
    """Read by `declaration_of`."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> ModuleMeta:
        if not namespace.get("_is_module_base"):
            namespace.pop("__slots__", None)  # every module needs a `__dict__`, from which the graph is read
            for public, private in SPECS.items():
                if public in namespace:  # also a property, which is then read under the other name
                    namespace[private] = namespace.pop(public)  # the public name is a property of `Module`
        return ABCMeta.__new__(mcls, name, bases, namespace, **kwargs)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> None:
        super().__init__(name, bases, namespace, **kwargs)
        if not is_base(cls):
            check_class(cls)
        build = inspect.getattr_static(cls, "build")
        if not isinstance(build, BuildMethod):  # defined in this class, or in a mixin that is not a Module
            cls.build = BuildMethod(build)
        cls._declaration = ClassDeclaration(cls)
        for base in reversed(bases):
            skips = getattr(base, "_declaration", None) and cast("ModuleMeta", base)._declaration.skips
            if skips is not None:
                cls._declaration.declare_skips(skips)

    if not TYPE_CHECKING:  # type checkers read the `__init__` of the class instead

        def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
            """Record the arguments, make the instance, and mark its construction as ended."""
            arguments = capture(cls._declaration, args, kwargs)
            module = cls.__new__(cls, *args, **kwargs)
            if isinstance(module, cls):
                record = module._record
                record.arguments = arguments
                cls.__init__(module, *args, **kwargs)
                note_arguments_in_variables(module)
                record.constructed_labels = (record.name, record.description, record.trainable)
                record.constructed = True
            return module

        @property
        def __signature__(cls) -> inspect.Signature:
            """The signature of `__init__`, for `help`, `inspect` and notebooks, from which `__call__` would hide it."""
            return inspect.signature(MethodType(cls.__init__, cls))  # bound to anything: without `self`
