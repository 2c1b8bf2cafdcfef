"""Tool: a function that a model may call; its arguments are validated, and its result becomes JSON."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from synmod import data, errors, lm, module, scope
from synmod.cache import key_of
from synmod.journal import CallRecording, Part
from synmod.leaves import Json, aio, check_seconds, frozen, is_array, is_object, mend
from synmod.module import Module
from synmod.registry import register_own

from . import checks
from .generator import object_schema, split_definitions

_RESULT_TITLE: Final = "ToolResult"


def _result_schema(result: Json, **more: Json) -> data.Schema:
    """Return the schema of the output of a tool whose function does not return a data model."""
    schema = object_schema(result=result)
    return data.intern_schema({"title": _RESULT_TITLE, **schema, "properties": {"result": result, **more}})


class WithMedia(NamedTuple):
    """A result, and the images, sounds and files that its text mentions; the output has both."""

    result: Any
    media: Sequence[data.Image | data.Audio | data.File] = ()


RESULT: Final = _result_schema({})
_RESULT_WITH_MEDIA: Final = _result_schema({}, media={"type": "array"})

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

_MISSING: Final = object()
"""Stands for a value that nothing supplies."""

Approve = Callable[[str, dict[str, Any]], bool | Awaitable[bool]]


@register_own()
class Tool(Module):
    """A function that a model may call: its arguments are validated, and its result becomes JSON.

    The schema of the arguments is read from the signature: types, `Literal`, `X | None`, defaults, pydantic classes and
    data models, with descriptions from `Field`, `Annotated[str, "What it is."]` or the docstring (in the style of
    Google, NumPy or Sphinx). A parameter without annotation that has a default, or is bound by `functools.partial`, is
    not offered to the model; nor is one with the annotation `sm.Injected[T]`, which gets its value from `sm.inject`.
    The function runs once per call; a plain function runs in a worker thread, which continues if its caller is
    cancelled.

    Args:
        fn: A function, plain or async. A registered function can be saved.
        name: The name for the model; by default the name of the function, also of a partial one.
        description: The description for the model; by default the first paragraph of the docstring.
        parameters: JSON schema of the arguments, which are then passed as JSON; None to read the signature.
        timeout_s: Seconds for one run; None for no limit.
        approve: `approve(name, arguments)`, plain (in a thread) or async, called before each run, which needs the
            result True; or "ask", to ask a person by `sm.ask`: the answer is a bool, a text (why not), or
            `{"arguments": {...}}` to run it with those.
        once: Whether a run in a durable block that began and did not end is never repeated: then it is a ToolError
            (contains 'may have run'), which no model sees.
        trainable: Whether the Variables below, if there are any, may be trained.
        hooks: Listeners to this module.

    Schemas:
        inputs: the arguments, as one data model or as keywords
        outputs: the data model in the return annotation of the function, else `{"result": ...}`

    Raises:
        ConfigError: `fn` is not a function, is a class or a generator, has no usable name, takes `*args` or `**kwargs`,
            or has a parameter type without a schema. `timeout_s` is not positive.
        SchemaError: The schema is unusable. When called: the arguments do not satisfy it, or a validator.
        CallError: When called: there are a data model and keyword arguments, or several data models; or `sm.inject`
            supplies no value for a parameter `sm.Injected[T]` without a default.
        ToolError: When called: `approve` does not allow the run, the timeout is over, or a run with `once=True` may
            have run (contains 'may have run').
        Paused: When called: the question of `approve="ask"` has no answer yet.
        DataError: When called: the result is not JSON.
        Exception: When called: any exception of the function.

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

    Source: pydantic-ai's and Synalinks' tools; differs: a module, traced, saved and tested like any other.
    """

    once: bool = False
    """Whether a run that began in a durable block and did not end is never repeated."""

    graph_ignored: ClassVar[frozenset[str]] = frozenset({"_injected", "_taken", "input_spec", "output_spec"})

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Json] | None = None,
        timeout_s: float | None = None,
        approve: Approve | Literal["ask"] | None = None,
        once: bool = False,
        trainable: bool = True,
        hooks: Sequence[scope.Hook] | None = None,
    ) -> None:
        function = _function(fn)
        if isinstance(function, type) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            kind = "class" if isinstance(function, type) else "generator"
            raise errors.ConfigError(f"Tool: {fn!r:.100} is a {kind}; write a function that returns its result.")
        called = getattr(function if isinstance(fn, partial) else fn, "__name__", None) if name is None else name
        if not isinstance(called, str) or not _NAME.fullmatch(called):
            raise errors.ConfigError(f"Tool: {fn!r:.100} has no name of ASCII letters, digits and _; pass name='...'.")
        if description is None:
            description = getattr(cast("Any", fn), "description", None) or module.first_paragraph(
                inspect.getdoc(function)
            )
        super().__init__(name=called, description=description, trainable=trainable, hooks=hooks)
        self.fn: Any = checks.function("Tool", "fn", cast("Any", fn))
        if isinstance(approve, str) and approve != "ask":
            raise errors.ConfigError(f"Tool: approve is {approve!r:.100}; write a function, or 'ask' to ask a person.")
        self.approve = approve if approve in (None, "ask") else checks.function("Tool", "approve", approve)
        if once:
            self.once = True
        self.timeout_s = (
            None if timeout_s is None else check_seconds("Tool: timeout_s", timeout_s, error=errors.ConfigError)
        )
        self._injected = _injected_parameters(fn)
        self._taken = _Parameters(fn, called) if parameters is None else None
        model = None if self._taken is None else self._taken.model
        is_schema = type(parameters) is data.Schema  # of another server, maybe unchecked
        declared: Any = parameters if is_schema else data.declare(model or dict(parameters or {}))
        self.input_spec = data.symbol(declared, model)
        returned = module.resolve_annotations(function).get("return")
        schema = _RESULT_WITH_MEDIA if returned is WithMedia else RESULT
        self.output_spec: Any = module.model_of_annotation(returned) or data.symbol(schema)

    @property
    def function_schema(self) -> Json:
        """For the model: `{"type": "function", "function": {"name", "description", "parameters"}}`."""
        parameters = data.schema_of(self.input_spec)
        return lm.function_schema(
            {"name": self.name, "description": self.description, "parameters": parameters}, self.name
        )

    def injected(self) -> dict[str, Any]:
        """Return the values that `sm.inject` supplies here, by parameter; without those that have defaults instead.

        Raises:
            CallError: One is missing; names the type.
        """
        values = dict[str, Any]()
        for name, (kind, has_default) in self._injected.items():
            if (value := scope.injected_value(kind, _MISSING)) is not _MISSING:
                values[name] = value
            elif not has_default:
                wanted = getattr(kind, "__name__", str(kind))
                remedy = f"call it in a block `with sm.inject(value):`, where the value is a {wanted}"
                raise errors.CallError(f"{self.name}: no {wanted} is injected for {name!r}; {remedy}.")
        return values

    async def call(self, *inputs: Any, **arguments: Any) -> Any:
        """Check the arguments, and run the function once."""
        if len(inputs) + bool(arguments) > 1:
            raise errors.CallError(f"{self.path or self.name}: got data and arguments; pass one, or all by keyword.")
        value = inputs[0] if inputs else data.JsonDataModel(arguments, data.schema_of(self.input_spec))
        part = scope.ambient().journal
        if part is None or not part.records_calls:
            return await self._run_if_allowed(value)
        return await self._run_unless_recorded(value, part)

    async def _run_unless_recorded(self, value: Any, part: Part) -> Any:
        """Return what a durable block has recorded of this run; else run the function, and record what comes of it."""
        injected = {name: _content_of(x) for name, x in self.injected().items()}
        content = key_of([self.name, frozen(value), injected])
        async with part.record("tool", self.path or self.name, self.name, content, frozen(value)) as recording:
            if recording.value is not None:
                recording.accept()
                return self._recorded(recording.value)
            try:
                output = await self._run_if_allowed(value, recording)
            except Exception as error:
                if (text := _text_reported(scope.unwrap_group(error))) is not None:
                    await recording.keep({"failure": text})
                raise
            if (record := self._record_of(output)) is not None:
                await recording.keep(record)
            return output

    def _record_of(self, output: Any) -> dict[str, Any] | None:
        """Return the record of an output; None if the output is not what the function declares."""
        if output is None:
            return {"output": None}
        if not isinstance(output, (data.DataModel, data.JsonDataModel)):
            return None
        schema = data.schema_of(cast("Any", output))
        return {"output": frozen(output)} | ({} if schema is data.schema_of(self.output_spec) else {"schema": schema})

    def _recorded(self, record: Mapping[str, Any]) -> Any:
        """Return the output in a record.

        Raises:
            ToolError: It is a failure that was reported to the model.
            SchemaError: It does not satisfy the output that the function declares now.
        """
        if (text := record.get("failure")) is not None:
            error = errors.ToolError(text)
            error.text, error.report = text, True
            raise error
        where = f"The recorded result of {self.path or self.name}"
        schema, model = data.schema_of(self.output_spec), data.model_of(self.output_spec)
        if "settled" in record:
            result = record["settled"]
            return self._output(result) if model is None else data.value_from(result, schema, model, where)
        if record["output"] is None:
            return None
        if "schema" in record:
            schema, model = data.intern_schema(record["schema"]), None
        return data.value_from(record["output"], schema, model, where)

    async def _run_if_allowed(self, value: Any, recording: CallRecording | None = None) -> Any:
        """Ask for approval where it is needed, and run the function once."""
        args, kwargs = self._arguments(value)
        if self.approve == "ask":
            value = await self._approved(value)
            args, kwargs = self._arguments(value)
        elif self.approve is not None and await _call(self.approve, self.name, value.get_json()) is not True:
            raise errors.ToolError(f"{self.name}: this run was not approved.")
        if recording is not None and self.once:
            await recording.begin()
        if self.timeout_s is None:
            return self._output(await _call(self.fn, *args, **kwargs))
        with aio.deadline_scope(self.timeout_s):
            return self._output(await _call(self.fn, *args, **kwargs))
        # Reached only if the deadline has expired: the scope caught its own cancellation.
        if recording is not None and self.once:
            raise recording.abandon()
        raise errors.ToolError(f"{self.name}: no result within timeout_s={self.timeout_s:g}.")

    def _arguments(self, value: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments for the function."""
        injected = self.injected()
        return ([], {**value.get_json(), **injected}) if self._taken is None else self._taken.of(value, injected)

    async def _approved(self, value: data.JsonDataModel[Any]) -> data.JsonDataModel[Any]:
        """Return the arguments with which a person lets the function run.

        Raises:
            Paused: The question of `approve="ask"` has no answer yet.
            ToolError: The person refuses the run.
        """
        parameters, definitions = split_definitions(data.schema_of(self.input_spec))
        schema = {
            "anyOf": [{"type": "boolean"}, {"type": "string"}, object_schema(arguments=parameters)],
            **definitions,
        }
        place = scope.NUMBERING.get()
        while place is not None and place.agent is None:
            place = place.around
        about, call = {"name": self.name, "arguments": frozen(value)}, 0 if place is None else place.numbers()[1]
        reply = await scope.answer_to(f"Run {self.name}?", about, schema, call)
        if is_object(reply):
            return data.value_from(reply["arguments"], data.schema_of(self.input_spec), data.model_of(self.input_spec))
        if reply is True:
            return value
        error = errors.ToolError(f"{self.name}: this run was not approved{f': {reply}' if reply else ''}.")
        error.report = True
        raise error

    def _output(self, result: Any) -> Any:
        """Return a result of the function as data.

        Raises:
            DataError: It is not JSON.
        """
        if data.model_of(self.output_spec) is not None:
            return result
        parts = result if isinstance(result, WithMedia) else WithMedia(result)
        fields = {"result": parts.result, **({"media": parts.media} if parts.media else {})}
        try:
            json = {name: _json_of(part) for name, part in fields.items()}
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            kind = type(result).__name__  # a repr may fail as well
            raise errors.DataError(f"{self.name}: a result of type {kind} is not JSON: {error}") from None
        schemas = {name: _media_schema(part) for name, part in fields.items()}
        return data.wrap(frozen(json), _result_schema(**schemas) if any(schemas.values()) else RESULT)


def _content_of(injected: Any) -> Json:
    """Return what the key of a record holds of an injected value: a data model counts by its content, else its type."""
    if isinstance(injected, (data.DataModel, data.JsonDataModel)):
        return frozen(injected)
    return f"{type(injected).__module__}.{type(injected).__qualname__}"


def _text_reported(error: BaseException) -> str | None:
    """Return what the Agent that runs the tool reports to its model; None if the error is raised."""
    place = scope.NUMBERING.get()  # that of the run, inside the one of the Agent
    agent = None if place is None else place.around
    return None if agent is None or agent.reports is None else agent.reports(error)


async def _call(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function: await an async one, run a plain one in a thread."""
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__):
        return await fn(*args, **kwargs)
    (result,) = await aio.to_thread(lambda: [fn(*args, **kwargs)], abandon=True)  # trio refuses a bare coroutine
    return await result if inspect.isawaitable(result) else result


# -- results -----------------------------------------------------------------------------------------------------------


def is_result(schema: data.Schema) -> bool:
    """Whether a schema is that of a tool whose function does not return a data model."""
    return schema.get("title") == _RESULT_TITLE


def _json_of(result: Any) -> Json:
    """Return the JSON of a result; halves of characters, such as file names have, are replaced.

    Raises:
        PydanticSerializationError, ValueError, RecursionError: It is not JSON.
    """
    try:
        return frozen(to_jsonable_python(result, fallback=frozen))
    except (UnicodeEncodeError, errors.DataError):
        return frozen(mend(to_jsonable_python(mend(result), fallback=frozen)))


_MEDIA: Final[Json] = {"properties": {"media_type": {}, "data": {}, "url": {}}}


def _media_schema(result: Any) -> dict[str, Json]:
    """Return a schema that declares the images, sounds and files in a result; an empty one without media."""
    if isinstance(result, (data.Image, data.Audio, data.File)):
        return _MEDIA
    if is_array(result) or isinstance(result, tuple):
        items = [_media_schema(item) for item in cast("Sequence[Any]", result)]
        return {"prefixItems": items} if any(items) else {}
    parts: Any = result if is_object(result) else {}
    if isinstance(result, BaseModel):
        fields_by_name = type(result).model_fields.items()
        parts = {
            field.serialization_alias or field.alias or name: getattr(result, name) for name, field in fields_by_name
        }
    elif is_dataclass(result) and not isinstance(result, type):
        parts = {field.name: getattr(result, field.name) for field in fields(result)}
    properties = {name: schema for name, part in parts.items() if (schema := _media_schema(part))}
    return {"properties": properties} if properties else {}


# -- parameters --------------------------------------------------------------------------------------------------------


class _Arguments(data.DataModel):
    """The base of the data models of parameters, whose fields are called `argument_0_city`, for the model `city`."""

    model_config = ConfigDict(  # pydantic reserves some names of fields
        alias_generator=lambda field: field.split("_", 2)[-1], defer_build=True
    )


class _Parameters:
    """The parameters of a function, and a data model of those on offer; pickled as the function and its name."""

    def __init__(self, fn: Any, name: str) -> None:
        self.fn, self.name = fn, name
        self.parameters = _parameters(fn, name)
        self.model, self.fields = _arguments_model(fn, self.parameters, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Parameters, (self.fn, self.name)

    def of(self, value: data.JsonDataModel[Any], injected: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments for the function: typed, with its defaults and what is injected.

        Raises:
            SchemaError: A validator refuses the arguments.
        """
        typed = value.to(self.model)
        args, kwargs = list[Any](), dict[str, Any]()
        for name, parameter in self.parameters.items():
            field, own = self.fields.get(name), parameter.default
            has_own = own is not parameter.empty and not isinstance(own, FieldInfo)
            is_field = field is not None and (field in typed.model_fields_set or not has_own)
            argument = injected.get(name, getattr(typed, str(field)) if is_field else own)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                args.append(argument)
            elif field is not None or name in injected:
                kwargs[name] = argument
        return args, kwargs


def _function(fn: Any) -> Any:
    """Return the function behind a callable, which has the annotations and the docstring."""
    while isinstance(fn, partial):
        fn = fn.func
    fn = inspect.unwrap(fn)
    return fn if inspect.isroutine(fn) or isinstance(fn, type) else type(fn).__call__


def _parameters(fn: Any, name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name.

    Raises:
        ConfigError: One is `*args` or `**kwargs`, or the function has no signature.
    """
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError) as error:
        raise errors.ConfigError(f"Tool: {name}: {error}; write a function around it.") from None
    for parameter in parameters.values():
        if parameter.kind in _VARIADIC:
            raise errors.ConfigError(f"Tool: {name} takes {parameter}; a model needs parameters with names.")
    return dict(parameters)


def _arguments_model(
    fn: Any, parameters: Mapping[str, inspect.Parameter], name: str
) -> tuple[type[data.DataModel], dict[str, str]]:
    """Return a data model of the parameters that a model may choose, and the field of each.

    Raises:
        ConfigError: The type of a parameter has no schema.
    """
    function, bound = _function(fn), frozenset(fn.keywords if isinstance(fn, partial) else ())
    descriptions, hints = _descriptions(function), module.resolve_annotations(function)
    field_names, declared = dict[str, str](), dict[str, Any]()
    for index, (parameter, own) in enumerate(parameters.items()):
        if parameter in bound or (parameter not in hints and own.default is not own.empty):
            continue
        hint, default = hints.get(parameter, Any), own.default
        if scope.injected_type(hint) is not None:
            continue
        field_names[parameter] = f"argument_{index}_{parameter}"
        remarks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        text = next((part for part in remarks if isinstance(part, str)), descriptions.get(parameter))
        if text and not any(getattr(part, "description", None) for part in remarks):
            hint = Annotated[hint, Field(description=text)]
        declared[field_names[parameter]] = (hint, ... if default is own.empty else _default(default))
    try:
        model = create_model(name, __base__=_Arguments, **declared)
        data.schema_of(model)
    except (PydanticUserError, errors.SchemaError) as error:
        fault = re.sub(r"\bargument_\d+_", "", str(getattr(error, "message", error)))
        raise errors.ConfigError(f"Tool: the types of {name} have no schema: {fault}") from None
    return model, field_names


def _injected_parameters(fn: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each parameter `sm.Injected[T]`, and whether it has a default.

    Raises:
        ConfigError: It is not a type by which a value could be found.
    """
    hints = module.resolve_annotations(_function(fn))
    kinds = {name: kind for name, hint in hints.items() if (kind := scope.injected_type(hint)) is not None}
    parameters = dict(inspect.signature(fn).parameters) if kinds else dict[str, inspect.Parameter]()
    bound = frozenset(fn.keywords if isinstance(fn, partial) else ())
    return {
        name: (kind, parameters[name].default is not inspect.Parameter.empty)
        for name, kind in kinds.items()
        if name in parameters and name not in bound
    }


def _default(default: Any) -> Any:
    """Return the default of a field; one that is not JSON is in no schema."""
    if isinstance(default, FieldInfo):
        return default
    try:
        frozen(to_jsonable_python(default, fallback=frozen))
    except (PydanticSerializationError, ValueError):
        return Field(default_factory=lambda: default)  # which is not written
    return Field(default=default)


# -- docstrings --------------------------------------------------------------------------------------------------------

_TEXT: Final = r"[ \t]*(?P<text>.*(?:\n(?P=space)[ \t]+.*)*)"
_SECTIONS: Final = (  # compiled when first needed, to be imported fast
    r"^(?:Args|Arguments|Parameters|Params):\n((?:[ \t]+.*\n|\n)+)",  # Google
    r"^Parameters[ \t]*\n-+[ \t]*\n((?:.*\n)*?)(?=\S.*\n-+[ \t]*\n|\Z)",  # NumPy
)
_ENTRIES: Final = (
    rf"^(?P<space>[ \t]+)\*{{0,2}}(?P<name>\w+)(?: \(.*?\))?:{_TEXT}",
    rf"^(?P<space>)(?P<name>\w+(?:, ?\w+)*)(?: ?:.*)?\n(?=[ \t]){_TEXT}",
)
_SPHINX: Final = rf"^(?P<space>):param (?:[^:\n]* )?(?P<name>\w+):{_TEXT}"


def _descriptions(fn: Any) -> dict[str, str]:
    """Return the description of each parameter in a docstring, in the style of Google, NumPy or Sphinx."""
    text = f"{inspect.getdoc(fn) or ''}\n"
    entries = [*re.finditer(_SPHINX, text, re.MULTILINE)]
    for section, entry in zip(_SECTIONS, _ENTRIES, strict=True):
        if match := re.search(section, text, re.MULTILINE):
            entries += re.finditer(entry, match[1], re.MULTILINE)
    return {name.strip(): " ".join(entry["text"].split()) for entry in entries for name in entry["name"].split(",")}
