"""Construct modules and record how: constructor arguments, config, repr, build configs, copies."""

from __future__ import annotations

import functools
import inspect
import reprlib
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod import data, errors, leaves, lm, scope, tree

from .calling import SymbolicFrame, build, ensure_built, mark_built
from .declaring import POSITIONAL, SPECS, ClassDeclaration, DeclaredSkips, ModuleOptions, check_class, is_base
from .record import ABSENT, LABELS, InVariable, ModuleRecord, attribute_of, where
from .structure import running_own_build, waits_for_itself

if TYPE_CHECKING:
    from .module import Module

_NEVER_RECORDED = "hooks"


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
        name, known = declaration.cls.__name__, declaration.keywords
        unknown = [keyword for keyword in kwargs if keyword not in known]
        if unknown:  # first, even if an argument is missing: it may be the misspelt one
            raise unknown_keyword(name, unknown[0], known, signature) from None
        by_position = [p.name for p in signature.parameters.values() if p.kind in POSITIONAL]
        if len(args) > len(by_position):
            first = f"only {', '.join(by_position)}" if by_position else "nothing"
            others = ", ".join(f"{keyword}=..." for keyword in known if keyword not in by_position)
            raise errors.ConfigError(f"{name}: {error}: {first} by position, {others} by keyword.") from None
        raise errors.ConfigError(f"{name}: {error}. It takes {', '.join(known)}.") from None
    recorded: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            recorded[name] = [_kept(item) for item in value]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            if not recorded.keys().isdisjoint(value):
                return None
            recorded.update((key, _kept(item)) for key, item in value.items() if key != _NEVER_RECORDED)
        elif name != _NEVER_RECORDED:
            recorded[name] = _kept(value)
    return recorded


def _kept(value: Any) -> Any:
    """Copy plain containers, so that later changes by the caller do not reach the record; keep anything else."""
    try:
        return leaves.copied(value, lambda leaf: set(cast("set[Any]", leaf)) if type(leaf) is set else leaf)
    except errors.CallError:  # a container that holds itself
        return value


def unknown_keyword(
    name: str, keyword: str, known: list[str], signature: inspect.Signature | None = None
) -> errors.ConfigError:
    """Return the error for a keyword that no constructor accepts; `signature` is that of one without `**kwargs`."""
    remedy = ""
    if signature is not None and keyword in ModuleOptions.__annotations__:
        taken = "".join(f"{parameter}, " for parameter in signature.parameters.values())
        remedy = (
            f" {keyword!r} is an argument of Module, which a class must pass on: write "
            f"`def __init__(self, {taken}**options)` and `super().__init__(**options)` in {name}."
        )
    return errors.ConfigError(
        f"{name}: unknown argument {keyword!r}.{leaves.did_you_mean(keyword, known)} "
        f"It accepts: {', '.join(known) if known else 'nothing'}.{remedy}"
    )


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
        keyword, kind, known = next(iter(unknown)), type(module).__name__, module._record.declaration.keywords
        if keyword in known:
            raise errors.ConfigError(
                f"{kind}: its constructor takes {keyword!r}, but a base class does not: leave it out of "
                f"`super().__init__(...)`, and keep it, `self.{keyword} = {keyword}`."
            )
        raise unknown_keyword(kind, keyword, known)
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


M = TypeVar("M", bound="Module")


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
    named = [name for name, p in signature.parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    given = record.arguments or {}
    known = [name for name in named if name in given or name in record.reassigned]
    return list(dict.fromkeys((*known, *given)))


def _present_value(module: Module, name: str, given: Any) -> Any:
    """Return the present value of an argument: as given, or that of its attribute if it was reassigned."""
    record = module._record
    if name in LABELS:
        return getattr(record, name) if is_passed_on(record, name) else given
    present = attribute_of(module, name)
    given = given.argument if isinstance(given, InVariable) else given
    if name in record.reassigned:
        if present is ABSENT and isinstance(inspect.getattr_static(module, name, None), property):
            present = getattr(module, name)
        if present is not ABSENT and not isinstance(present, tree.Variable):
            return present
    if isinstance(given, str) and isinstance(present, lm.SharedModel):
        return present  # the model that the string named
    return given


def note_arguments_in_variables(module: Module) -> None:
    """Mark each recorded argument that a Variable of the same name holds as it was given.

    Where the module keeps something out of files, that may have been made of the argument, which stays recorded.
    """
    record, attributes = module._record, module.__dict__
    if record.statics or record.declaration.ignored:
        return
    arguments: Mapping[str, Any] = record.arguments or {}
    for name, value in arguments.items():
        variable = attributes.get(name)
        if isinstance(variable, tree.Variable) and _holds(variable, value):
            record.arguments = arguments = {**arguments, name: InVariable(value)}


def note_loaded(module: Module, values: Mapping[str, Any]) -> None:
    """Record the arguments that a file holds in its state: those of another value than the constructor gave."""
    record, attributes = module._record, module.__dict__
    arguments: Mapping[str, Any] | None = record.arguments
    for name, value in values.items() if arguments is not None else ():
        variable = attributes.get(name)
        if isinstance(variable, tree.Variable) and not _holds(variable, value):
            record.arguments = arguments = {**(arguments or {}), name: InVariable(value)}


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
    if record.given is None or record.arguments is None or label not in record.arguments:
        return False
    as_given = dict(zip(("name", "description", "trainable"), record.given, strict=True))
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
    known = {name: config[name] for name in parameters if name in config}
    bound = inspect.BoundArguments(signature, {**known, **({rest: unknown} if rest else {})})  # pyright: ignore[reportArgumentType]
    bound.apply_defaults()
    module = cls(*bound.args, **bound.kwargs)
    given = module._record.arguments
    if given is not None:
        module._record.arguments = {name: value for name, value in given.items() if name in config}
    return module


def constructor_call(module: Module) -> str:
    """Return the constructor call that made `module`: given arguments only, in signature order, defaults left out.

    Arguments nested too deeply are shown as `...`: the `repr` of containers is recursive.
    """
    record, shown = module._record, ["..."]
    if record.arguments is not None:
        try:
            plain = {name: x.argument if isinstance(x, InVariable) else x for name, x in record.arguments.items()}
            shown = _shown_arguments(record.declaration.init or inspect.Signature(), plain)
        except RecursionError:
            pass
    return f"{type(module).__name__}({', '.join(shown)}){_shown_skips(record.declaration.skips)}"


def _shown_arguments(signature: inspect.Signature, arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments as code: by position if required, else by keyword."""
    shown: list[str] = []
    star = any(arguments.get(p.name) for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL)
    for name, p in signature.parameters.items():
        value = arguments.get(name, p.default)
        if p.kind is p.VAR_POSITIONAL:
            shown += map(_shown, arguments.get(name, ()))
        elif (p.kind is p.POSITIONAL_ONLY and name in arguments) or (star and p.kind in POSITIONAL):
            shown.append(_shown(value))
        elif name in arguments and p.kind is not p.VAR_KEYWORD and not _is_default(value, p.default):
            shown.append(f"{name}={_shown(value)}")
    others = (name for name in arguments if name not in signature.parameters)
    return shown + [f"{name}={_shown(arguments[name])}" for name in others]


def _shown_skips(skips: DeclaredSkips | None) -> str:
    """Return the declared skip names as text; "" if there are none."""
    if skips is None:
        return ""
    peeked = f" peek={sorted(skips.peek)!r}" if skips.peek else ""
    return f" stash={sorted(skips.stash)!r} pop={sorted(skips.pop)!r}{peeked}"


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
    """Whether a value is the default; compares plain values by `repr`, so that no `__eq__` of a user runs."""
    same = type(value) is type(default) and type(value) in (str, int, float, bool, tuple, list, dict)
    return value is default or (same and repr(value) == repr(default))


# -- build configs -----------------------------------------------------------------------------------------------------


def build_config_json(module: Module) -> dict[str, Any] | None:
    """Return the schemas a module was built on, by parameter of `build`; None if there are none."""
    built_on = module._record.build_config
    return None if built_on is None else {"schemas": {name: _to_json(nest) for name, nest in built_on.items()}}


def _to_json(nest: Any) -> Any:
    if nest is None:
        return None
    if isinstance(nest, data.SymbolicDataModel):
        return leaves.thaw(data.schema_of(nest))
    if leaves.kind_of(nest) == leaves.MAPPING:
        return {"dict": {key: _to_json(item) for key, item in nest.items()}}
    return [_to_json(item) for item in nest]


def _from_json(json: Any) -> Any:
    if json is None:
        return None
    if isinstance(json, list | tuple):
        return [_from_json(item) for item in cast("list[Any]", json)]
    if isinstance(json, dict) and list(cast("dict[str, Any]", json)) == ["dict"]:
        return {key: _from_json(item) for key, item in cast("dict[str, dict[str, Any]]", json)["dict"].items()}
    if not isinstance(json, dict):
        raise errors.ConfigError(
            f"an input of a build config is a schema, null, a list or {{'dict': ...}}, not {json!r:.100}."
        )
    return data.symbol(data.declare(json))


def read_build_config(module: Module, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the symbols of a build config, by parameter of `build`.

    Raises:
        ConfigError: `config` is not a build config of this class.
        SchemaError: A schema in it is unusable.
    """
    schemas = config.get("schemas")
    if len(config) != 1 or not isinstance(schemas, Mapping):
        raise errors.ConfigError(
            f"{where(module)}: a build config is {{'schemas': {{parameter: schema}}}}, not {config!r:.100}."
        )
    signature = module._record.declaration.build
    for name in cast("Mapping[str, Any]", schemas):
        if name not in signature.parameters:
            raise errors.ConfigError(
                f"{where(module)}: build{signature} has no parameter {name!r}, which its build config has."
                f"{leaves.did_you_mean(name, signature.parameters)}"
            )
    return {name: _from_json(json) for name, json in cast("Mapping[str, Any]", schemas).items()}


def build_from_config(module: Module, config: Mapping[str, Any] | None) -> None:
    """Build an unbuilt module on the schemas of a build config.

    `build` runs on symbols, without waiting. If a load has restored the Variables of an earlier `build`, `add_variable`
    returns those.

    Raises:
        BuildError: `build` awaits something that does not return at once; everything is undone.
        ConfigError: `config` is not a build config of this class.
    """
    record = module._record
    if config is None or record.built:
        return
    built_on = read_build_config(module, config)
    if record.flow is not None:  # its `build` made the graph, which a load restores by itself
        mark_built(module, built_on)
        return
    bound = inspect.BoundArguments(record.declaration.build, built_on)  # pyright: ignore[reportArgumentType]
    try:
        leaves.drive(_build_alone(module, bound.args, bound.kwargs))
    except leaves.Suspended:
        raise errors.BuildError(
            f"{where(module)}: its build must wait, which synchronous code cannot: use "
            "`await sm.build(module, Schema)`."
        ) from None


async def _build_alone(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own build only: the modules below have their own configs."""
    with SymbolicFrame(module, inputs=args):
        await ensure_built(module, args, kwargs)


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
    found = inspect.getattr_static(node, name, ABSENT)
    return found is not ABSENT and not (isinstance(found, property) and found.fset is None)


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

        async def waiting(self: Module, /, *args: Any, **kwargs: Any) -> Any:
            with scope.NameScope(self._record):
                return await method(self, *args, **kwargs)

        return cast("F", functools.wraps(method)(waiting))

    def plain(self: Module, /, *args: Any, **kwargs: Any) -> Any:
        with scope.NameScope(self._record):
            return method(self, *args, **kwargs)

    return cast("F", functools.wraps(method)(plain))


class BuildMethod:
    """A class's own `build` as a method; a call from outside builds the module: once, checked and atomic."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)  # signature, docstring and `__isabstractmethod__`

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self if module is None else functools.partial(self, module)

    def __call__(self, module: Any, *inputs: Any, **named: Any) -> Any:
        """Run the body if the module's own build is running (`super().build(...)`), else build the module."""
        if running_own_build(module._record) is None:
            return build(module, *inputs, **named)
        if self is inspect.getattr_static(tree.class_of(module), "build"):
            raise waits_for_itself(module)
        return self.function.__get__(module)(*inputs, **named)


def empty_build(_module: Any, *_inputs: Any, **_named: Any) -> Nothing:
    """Do nothing: the `build` of `Module`."""
    return Nothing()


class Nothing:
    """The result of the empty build: may be awaited or not, unlike a coroutine."""

    def __await__(self) -> Iterator[Any]:
        return iter(())


class ModuleMeta(ABCMeta):
    """Checks a class of modules when it is defined, and records the arguments of each construction.

    Source: Equinox's `Module` metaclass, PyGlove's captured arguments.
    """

    _declaration: ClassDeclaration
    """Read by `declaration_of`."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> ModuleMeta:
        if not namespace.get("_is_module_base"):
            namespace.pop("__slots__", None)  # every module needs a `__dict__`, from which the graph is read
            for public, kept in SPECS.items():
                if public in namespace:  # also a property, which is then read under the other name
                    namespace[kept] = namespace.pop(public)  # the public name is a property of `Module`
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
                record.given = (record.name, record.description, record.trainable)
                record.constructed = True
            return module

        @property
        def __signature__(cls) -> inspect.Signature:
            """The signature of `__init__`, for `help`, `inspect` and notebooks, from which `__call__` would hide it."""
            return inspect.signature(MethodType(cls.__init__, cls))  # bound to anything: without `self`


def declaration_of(cls: ModuleMeta) -> ClassDeclaration:
    """Return the declaration of a class of modules: its signatures, names and skips."""
    return cls._declaration
