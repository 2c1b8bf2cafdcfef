"""Construct modules, record the arguments, and read them again for configs and reprs; copies and modes."""

from __future__ import annotations

import inspect
import reprlib
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod import data, errors, leaves, lm, scope, tree

from .building import BuildMethod
from .declaring import ClassDeclaration, DeclaredSkips, check_class, unknown_keyword
from .signatures import POSITIONAL, SPECS, is_base
from .structure import ABSENT, LABELS, InVariable, ModuleRecord, attribute_of

if TYPE_CHECKING:
    from .module import Module

M = TypeVar("M", bound="Module")


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
    leaves.check_type(f"{module.name!r}: hooks", hooks, Iterable | None, "a list of hooks, `hooks=[...]`")
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


# -- the arguments, read again -----------------------------------------------------------------------------------------


def get_config(module: Module) -> dict[str, Any]:
    """Return the constructor arguments of `module` as live values; for attributes assigned since, the present value.

    Raises:
        ConfigError: The module was not made by calling its class, or its arguments have no names.
    """
    record = module._record
    if record.arguments is None:
        raise errors.ConfigError(
            f"{type(module).__name__}: the constructor arguments are not known (no readable signature, or not made by "
            "calling the class): override get_config."
        )
    ignored = record.declaration.ignored
    config: dict[str, Any] = {}
    for name in in_signature_order(record):
        if name in ignored or name in record.statics:
            continue
        value = _present_value(module, name, record.arguments.get(name, ABSENT))
        if value is not ABSENT and not isinstance(value, tree.Static):
            config[name] = value
    return config


def in_signature_order(record: ModuleRecord) -> list[str]:
    """Return the names of the given arguments, and of the parameters whose attribute was reassigned, in order."""
    signature = record.declaration.init or inspect.Signature()
    names = [name for name, p in signature.parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    arguments = record.arguments or {}
    ordered = [name for name in names if name in arguments or name in record.reassigned]
    return list(dict.fromkeys((*ordered, *arguments)))


def _present_value(module: Module, name: str, argument: Any) -> Any:
    """Return the present value of an argument: as given, or that of its attribute if it was reassigned."""
    record = module._record
    if name in LABELS:
        return getattr(record, name) if is_passed_on(record, name) else argument
    present = attribute_of(module, name)
    argument = argument.argument if isinstance(argument, InVariable) else argument
    if name in record.reassigned:
        if present is ABSENT and isinstance(inspect.getattr_static(module, name, None), property):
            present = getattr(module, name)
        if present is not ABSENT and not isinstance(present, tree.Variable):
            return present
    if isinstance(argument, str) and isinstance(present, lm.SharedModel):
        return present  # the model that the string named
    return argument


def note_arguments_in_variables(module: Module) -> None:
    """Mark each recorded argument that a Variable of the same name holds as it was given.

    Where the module keeps something out of files, that may have been made of the argument, which stays recorded.
    """
    record = module._record
    if not (record.statics or record.declaration.ignored):
        _note_in_variables(module, record.arguments or {}, held=True)


def note_loaded(module: Module, values: Mapping[str, Any]) -> None:
    """Record the arguments that a file holds in its state: those of another value than the constructor gave."""
    if module._record.arguments is not None:
        _note_in_variables(module, values, held=False)


def _note_in_variables(module: Module, values: Mapping[str, Any], *, held: bool) -> None:
    """Record arguments as held by the Variables of their names, if these hold or do not hold them at present."""
    variables = {name: variable for name, variable in vars(module).items() if isinstance(variable, tree.Variable)}
    noted = {
        name: InVariable(value)
        for name, value in values.items()
        if name in variables and _holds(variables[name], value) is held
    }
    if noted:
        module._record.arguments = {**(module._record.arguments or {}), **noted}


def _holds(variable: tree.Variable, value: Any) -> bool:
    """Whether a value is the JSON value of a Variable."""
    try:
        return type(value) in (str, int, float, bool, list, dict, type(None)) and data.json_equal(
            leaves.frozen(value), variable.snapshot()[0]
        )
    except errors.DataError:
        return False


def is_passed_on(record: ModuleRecord, label: str) -> bool:
    """Whether the constructor kept a label as given, so that it would also keep the present one."""
    if record.constructed_labels is None or record.arguments is None or label not in record.arguments:
        return False
    as_given = dict(zip(("name", "description", "trainable"), record.constructed_labels, strict=True))
    return label in as_given and record.arguments[label] == as_given[label]


def from_config(cls: type[M], config: Mapping[str, Any]) -> M:
    """Call the constructor of `cls` with a config.

    Raises:
        ConfigError: The constructor does not accept a key.
    """
    signature = declaration_of(cls).init
    if signature is None:
        return cls(**config)
    parameters = signature.parameters
    unknown = {key: value for key, value in config.items() if key not in parameters}
    rest = next((p.name for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD), None)
    if unknown and rest is None:
        raise unknown_keyword(cls.__name__, next(iter(unknown)), list(parameters))
    accepted = {name: config[name] for name in parameters if name in config}
    bound = inspect.BoundArguments(signature, {**accepted, **({rest: unknown} if rest else {})})  # pyright: ignore[reportArgumentType]
    bound.apply_defaults()
    module = cls(*bound.args, **bound.kwargs)
    arguments = module._record.arguments
    if arguments is not None:
        module._record.arguments = {name: value for name, value in arguments.items() if name in config}
    return module


# -- repr --------------------------------------------------------------------------------------------------------------


def constructor_call(module: Module) -> str:
    """Return the constructor call that made `module`: given arguments only, in signature order, defaults left out.

    Arguments nested too deeply are shown as `...`: the `repr` of containers is recursive.
    """
    record, texts = module._record, ["..."]
    if record.arguments is not None:
        try:
            plain = {name: x.argument if isinstance(x, InVariable) else x for name, x in record.arguments.items()}
            texts = _format_arguments(record.declaration.init or inspect.Signature(), plain)
        except RecursionError:
            pass
    return f"{type(module).__name__}({', '.join(texts)}){_format_skips(record.declaration.skips)}"


def _format_arguments(signature: inspect.Signature, arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments as code: by position if required, else by keyword."""
    texts: list[str] = []
    star = any(arguments.get(p.name) for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL)
    for name, p in signature.parameters.items():
        value = arguments.get(name, p.default)
        if p.kind is p.VAR_POSITIONAL:
            texts += map(_format_value, arguments.get(name, ()))
        elif (p.kind is p.POSITIONAL_ONLY and name in arguments) or (star and p.kind in POSITIONAL):
            texts.append(_format_value(value))
        elif name in arguments and p.kind is not p.VAR_KEYWORD and not _is_default(value, p.default):
            texts.append(f"{name}={_format_value(value)}")
    extra = (name for name in arguments if name not in signature.parameters)
    return texts + [f"{name}={_format_value(arguments[name])}" for name in extra]


def _format_skips(skips: DeclaredSkips | None) -> str:
    """Return the declared skip names as text; else ""."""
    if skips is None:
        return ""
    peeked = f" peek={sorted(skips.peek)!r}" if skips.peek else ""
    return f" stash={sorted(skips.stash)!r} pop={sorted(skips.pop)!r}{peeked}"


@reprlib.recursive_repr("...")
def _format_value(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if inspect.isfunction(value):
        return value.__qualname__
    if type(value) in (tuple, list) and any(isinstance(part, type) or inspect.isfunction(part) for part in value):
        text = ", ".join(map(_format_value, value))
        return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(value) == 1)})"
    return repr(value)


def _is_default(value: Any, default: Any) -> bool:
    """Whether a value is the default; compares plain values by `repr`, so that no `__eq__` of a user runs."""
    same = type(value) is type(default) and type(value) in (str, int, float, bool, tuple, list, dict)
    return value is default or (same and repr(value) == repr(default))


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
    return leaves.aio.in_block(method, lambda args: scope.NameScope(args[0]._record))


def declaration_of(cls: ModuleMeta) -> ClassDeclaration:
    """Return the declaration of a class of modules: its signatures, names and skips."""
    return cls._declaration


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
