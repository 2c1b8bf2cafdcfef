"""Shared by the blocks: checks of constructor arguments and of the outputs of members, and a typed base class."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from synmod import data, scope, tree
from synmod.errors import ArgumentError, CallError, ConfigError, SchemaError
from synmod.leaves import check_choice, check_int, check_number, did_you_mean
from synmod.module import Module, ModuleOf, ModuleOptions

C = TypeVar("C")
R = TypeVar("R")


class Returning(Module, Generic[R]):
    """A block whose calls return an `R`, which a type checker infers from its members; at run time a Module."""

    if TYPE_CHECKING:

        def __call__(  # pyright: ignore[reportIncompatibleMethodOverride]  # narrower than what `call` shows
            self, /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, R]: ...


class Around(Returning[R]):
    """A block that calls one module, and whose outputs are those of the module unless it declares others."""

    def __init__(self, module: ModuleOf[R], **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.module = member(type(self).__name__, "module", module)

    async def _outputs_of_module(self, *inputs: Any) -> Any:
        """Return the outputs of the module."""
        return await self.module(*inputs)

    compute_output_spec: Callable[..., Any] = _outputs_of_module


def innermost(module: Module) -> Module:
    """Return the module in blocks around one module, such as `Cached`; another module itself."""
    while isinstance(module, Around):
        module = module.module
    return module


def member(kind: str, name: str, module: Any) -> Module:
    """Return a member, checked.

    Raises:
        ConfigError: `module` is not a module.
    """
    if not isinstance(module, Module):
        raise ConfigError(f"{kind}: {name} is a {type(module).__name__}, not a module; wrap a function: sm.Lambda(fn).")
    return module


def members(kind: str, modules: tuple[Any, ...]) -> list[Module]:
    """Return the members as a list.

    Raises:
        ConfigError: There are no members, or one is not a module.
    """
    if len(modules) == 1 and isinstance(modules[0], (list, tuple)):
        raise ConfigError(f"{kind}: the members are a {type(modules[0]).__name__}; pass them one by one, {kind}(a, b).")  # pyright: ignore[reportUnknownArgumentType]  (users)
    if not modules:
        raise ConfigError(f"{kind}: no members; pass the modules to run, {kind}(a, b).")
    return [member(kind, f"member {place}", module) for place, module in enumerate(modules)]


def whole_or_choice(kind: str, name: str, value: Any) -> int | tree.Choice:
    """Return a count, or a choice of counts, checked.

    Raises:
        ConfigError: It, or an option of the choice, is not an int of at least 1.
    """
    for option in value.options if isinstance(value, tree.Choice) else (value,):
        whole(kind, name, option)
    return value


def whole(kind: str, name: str, value: Any) -> int:
    """Return a count, checked.

    Raises:
        ConfigError: `value` is not an int of at least 1.
    """
    return check_int(f"{kind}: {name}", value, error=ConfigError)


def number(kind: str, name: str, value: Any) -> float | None:
    """Return a number or None, checked.

    Raises:
        ConfigError: `value` is neither.
    """
    return None if value is None else check_number(f"{kind}: {name}", value, error=ConfigError)


def field_name(kind: str, name: str, value: Any) -> str:
    """Return the name of a field, checked.

    Raises:
        ConfigError: `value` is not a string.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{kind}: {name} is {value!r:.100}; write the name of a field.")
    return value


def one_of(kind: str, name: str, value: C, words: tuple[C, ...]) -> C:
    """Return one of several allowed values, checked.

    Raises:
        ConfigError: `value` is not allowed ('Did you mean').
    """
    return check_choice(f"{kind}: {name}", value, words, error=ConfigError)


def function(kind: str, name: str, value: C) -> C:
    """Return a function, checked.

    Raises:
        ConfigError: `value` is not callable, or is a module.
    """
    if not callable(value) or isinstance(value, Module):
        raise ConfigError(f"{kind}: {name} is a {type(value).__name__}; write a function, plain or async.")
    return value


def exceptions(kind: str, on: Any) -> tuple[type[Exception], ...]:
    """Return the exception classes to retry on, as a tuple.

    Raises:
        ConfigError: One is not a subclass of Exception (cancellation and exits are never retried), or none is passed.
    """
    classes: tuple[Any, ...] = tuple(on) if isinstance(on, (tuple, list)) else (on,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, Exception)):
            raise ConfigError(f"{kind}: on has {cls!r:.100}; write exception classes, such as on=(sm.ModelError,).")
    if not classes:
        raise ConfigError(f"{kind}: on is empty; write the exception classes to retry on.")
    return classes


def bound_reward(kind: str, name: str, reward: Any) -> scope.BoundReward:
    """Return a reward, bound to `inputs` and `outputs`, without a target.

    Raises:
        ConfigError: `reward` is not callable, or takes other arguments.
    """
    try:
        return scope.BoundReward(reward, ("inputs", "outputs"), what=f"{kind}: {name}")
    except ArgumentError as error:
        raise ConfigError(str(error)) from None


# -- fields in the outputs of members ----------------------------------------------------------------------------------
# A member may return its inputs too (`return_inputs=True`), which can have fields of the same names.


def must_have(kind: str, whose: str, x: Any, name: str) -> None:
    """Check that a value or symbol may have a field that the user named: declared, or allowed by an open schema.

    Raises:
        SchemaError: It cannot have the field ('Did you mean').
    """
    parts = data.parts_of(data.schema_of(x))
    if name not in parts.fields and parts.extra is False:
        hint = did_you_mean(name, parts.fields)
        raise SchemaError(f"{kind}: {whose} has no field {name!r}; it has {', '.join(parts.fields)}.{hint}")


def must_return(kind: str, who: str, symbol: Any, name: str) -> None:
    """Check that the output of a member declares a field.

    Raises:
        SchemaError: The output does not declare the field.
    """
    if data.own_field(symbol, name) is None:
        raise SchemaError(f"{kind}: the {who} does not return {name!r}; it returns {', '.join(symbol.keys())}.")


def field_of(value: Any, name: str) -> Any:
    """Return the value of a member's own field in its output; None if it is absent."""
    return one_value(value, name).get(data.own_field(value, name) or name)


def one_value(value: Any, name: str) -> Any:
    """Return the output of a member, checked to be one data model with a field to read.

    Raises:
        CallError: The output is a list, tuple or dict of data models.
    """
    if isinstance(value, (list, tuple, dict)):
        kind = type(value).__name__  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        raise CallError(f"got a {kind} of data models; one data model with the field {name!r} is needed.")
    return value
