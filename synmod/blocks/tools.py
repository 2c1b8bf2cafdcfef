"""Tool: a function that a model may call, its arguments checked against its signature."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from pydantic import Field, PydanticUserError, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from synmod import data, lm
from synmod.data import DataModel, JsonDataModel
from synmod.errors import CallError, ConfigError, DataError, ToolError
from synmod.leaves import Json, aio, frozen
from synmod.module import Module, first_paragraph, model_of_annotation, resolved_annotations
from synmod.registry import register_own
from synmod.scope import Hook

from . import checks
from .generator import object_schema

RESULT: Final = data.trusted_schema({"title": "ToolResult", **object_schema(result={})})
"""Schema of what a tool returns whose function does not return a data model."""

_BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ARGS: Final = re.compile(r"^Args:\n((?:[ \t]+.*\n|\n)+)", re.MULTILINE)
_ARG: Final = re.compile(
    r"^(?P<space>[ \t]+)(?P<name>\w+)(?: \(.*?\))?:[ \t]*(?P<text>.*(?:\n(?P=space)[ \t]+.*)*)", re.MULTILINE
)

Approve = Callable[[str, dict[str, Any]], bool | Awaitable[bool]]


@register_own()
class Tool(Module):
    """A function that a model may call: its arguments are checked before, its result is JSON after.

    The schema of the arguments is read from the signature: types, `Literal`, `X | None`, defaults, pydantic classes and
    data models, with descriptions from the docstring (`Args:`). The function is run once per call; a plain one in a
    worker thread, which a cancelled caller leaves to itself.

    Args:
        fn: A function, plain or async. A registered one can be saved.
        name: What the model calls it; default is the name of the function.
        description: What the model reads; default is the first paragraph of the docstring.
        parameters: JSON schema of the arguments, which are then passed as JSON; None to read the signature.
        timeout_s: Seconds for one run; None for no limit.
        approve: `approve(name, arguments)`, plain (in a thread) or async, decides before each run whether it may be.
        trainable: Whether it may be trained, should it hold anything to train.
        hooks: Listeners to this module.

    Schemas:
        inputs: the arguments, as one data model or as keywords
        outputs: the data model that the function is annotated to return, else `{"result": ...}`

    Raises:
        ConfigError: `fn` is not a function, has no usable name, takes `*args` or `**kwargs`, or a type without a
            schema. `timeout_s` is not positive.
        SchemaError: The schema cannot be used. When called: the arguments do not satisfy it, or a validator.
        CallError: When called: both with a data model and with keywords.
        ToolError: When called: `approve` does not allow the run, or the time is over.
        DataError: When called: the result is not JSON.
        Exception: When called: what the function raised.

    Example:
        >>> import synmod as sm
        >>> def add(a: int, b: int = 1) -> int:
        ...     '''Add two numbers.
        ...
        ...     Args:
        ...         a: The first.
        ...     '''
        ...     return a + b
        >>> sm.run(sm.Tool(add), a=2)["result"]
        3

    Source: pydantic-ai's and Synalinks' tools; differs: a module: traced, saved and tested like any.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_taken", "input_spec", "output_spec"})

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Json] | None = None,
        timeout_s: float | None = None,
        approve: Approve | None = None,
        trainable: bool = True,
        hooks: Sequence[Hook] | None = None,
    ) -> None:
        called = getattr(fn, "__name__", None) if name is None else name
        if not isinstance(called, str) or not _NAME.fullmatch(called):
            wanted = "pass name='...', an identifier of at most 64 ASCII letters, digits and _"
            raise ConfigError(f"Tool: {fn!r:.100} has no name that a model could call; {wanted}.")
        about = first_paragraph(inspect.getdoc(_function(fn))) if description is None else description
        super().__init__(name=called, description=about, trainable=trainable, hooks=hooks)
        self.fn = checks.function("Tool", "fn", fn)
        self.approve = None if approve is None else checks.function("Tool", "approve", approve)
        self.timeout_s = checks.number("Tool", "timeout_s", timeout_s)
        if timeout_s is not None and not timeout_s > 0:
            raise ConfigError(f"Tool: timeout_s is {timeout_s!r}; write a positive number of seconds.")
        self._taken = _Parameters(fn, called) if parameters is None else None
        model = None if self._taken is None else self._taken.model
        self.input_spec = data.symbol(data.declare(model or dict(parameters or {})), model)
        returned = resolved_annotations(_function(fn)).get("return")
        self.output_spec: Any = model_of_annotation(returned) or data.symbol(RESULT)

    @property
    def function_schema(self) -> Json:
        """What a model is offered: `{"type": "function", "function": {"name", "description", "parameters"}}`."""
        parameters = data.schema_of(self.input_spec)
        return lm.function_schema(
            {"name": self.name, "description": self.description, "parameters": parameters}, self.name
        )

    async def call(self, *inputs: Any, **arguments: Any) -> Any:
        """Check the arguments, and run the function once."""
        if len(inputs) + bool(arguments) > 1:
            raise CallError(f"{self.path or self.name}: got a data model and more; pass one, or all by keyword.")
        value = inputs[0] if inputs else JsonDataModel(arguments, data.schema_of(self.input_spec))
        args, kwargs = ([], value.get_json()) if self._taken is None else self._taken.of(value)
        if self.approve is not None and not await _called(self.approve, self.name, value.get_json()):
            raise ToolError(f"{self.name}: this run was not approved.")
        if self.timeout_s is None:
            return await self._run(args, kwargs)
        with aio.deadline_scope(self.timeout_s):
            return await self._run(args, kwargs)
        # Only a scope that expired leads here: it swallowed its own cancellation.
        raise ToolError(f"{self.name}: no result within timeout_s={self.timeout_s:g}.")

    async def _run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Run the function, and return its result as data."""
        result = await _called(self.fn, *args, **kwargs)
        if data.model_of(self.output_spec) is not None:
            return result
        try:
            json = frozen(to_jsonable_python(result, fallback=frozen))
        except (PydanticSerializationError, ValueError) as error:
            raise DataError(f"{self.name}: the result {result!r:.100} is not JSON: {error}") from None
        return data.wrap(frozen({"result": json}), RESULT)


async def _called(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function: an async one here, a plain one in a thread."""
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__):
        return await fn(*args, **kwargs)
    (result,) = await aio.to_thread(lambda: [fn(*args, **kwargs)], abandon=True)  # trio refuses a coroutine as such
    return await result if inspect.isawaitable(result) else result


class _Parameters:
    """The parameters of a function, and a data model of them; made again from the function where it is unpickled."""

    def __init__(self, fn: Any, name: str) -> None:
        self.fn, self.name = fn, name
        self.parameters = tuple(inspect.signature(fn).parameters.values())
        self.model = _arguments_model(fn, self.parameters, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Parameters, (self.fn, self.name)

    def of(self, value: JsonDataModel[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments as the function takes them: typed, with its defaults.

        Raises:
            SchemaError: A validator refuses them.
        """
        typed = value.to(self.model)
        pairs = [*zip(self.parameters, [getattr(typed, field) for field in self.model.model_fields], strict=True)]
        named = {parameter.name: each for parameter, each in pairs if parameter.kind not in _BY_POSITION}
        return [each for parameter, each in pairs if parameter.kind in _BY_POSITION], named


def _function(fn: Any) -> Any:
    """Return the function behind what can be called, which has the annotations and the docstring."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn if inspect.isroutine(fn) else type(fn).__call__


def _arguments_model(fn: Any, parameters: Sequence[inspect.Parameter], name: str) -> type[DataModel]:
    """Return a data model of the parameters of a function; its fields have their names as aliases.

    Raises:
        ConfigError: A parameter takes any number of arguments, or its type has no schema.
    """
    function, fields = _function(fn), dict[str, Any]()
    described, hints = _described(function), resolved_annotations(function)
    for index, parameter in enumerate(parameters):
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise ConfigError(f"Tool: {name} takes {parameter}; a model needs parameters with names.")
        about: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in described:
            about["description"] = described[parameter.name]
        if parameter.default is not parameter.empty:
            about["default"] = parameter.default
        # A name of its own, since that of the parameter may mean something to pydantic.
        fields[f"argument_{index}_{parameter.name}"] = (hints.get(parameter.name, Any), Field(**about))
    try:
        return create_model(name, __base__=DataModel, **fields)
    except PydanticUserError as error:
        raise ConfigError(f"Tool: the types of {name} have no schema: {error.message}") from None


def _described(fn: Any) -> dict[str, str]:
    """Return what a docstring says of each parameter under `Args:`."""
    found = _ARGS.search(f"{inspect.getdoc(fn) or ''}\n")
    return {arg["name"]: " ".join(arg["text"].split()) for arg in _ARG.finditer(found[1])} if found else {}
