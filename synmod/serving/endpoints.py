"""One served program: what it takes and returns as JSON, and which model calls inside it answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from synmod import data, tree
from synmod.blocks import Agent, Cached, Generator
from synmod.data import schema as schemas
from synmod.errors import ArgumentError, Problem, SchemaError
from synmod.leaves import SEQUENCE, Json, KeyPath, did_you_mean, is_object, kind_of, leaves, path_str, thaw
from synmod.module import ChildAt, Execution, Module, declaration_of, execution_of
from synmod.scope.tracing import plain
from synmod.train import rows

from .refusals import Refusal, refuse_inputs

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ANY_OBJECT: Final = {"type": "object"}


class ServedProgram:
    """A program under a name.

    Args:
        name: Letters, digits, `_` and `-`, at most 64.
        program: The program.

    Attributes:
        input_schema: The inputs that it takes, as a JSON Schema.
        chat_field: The text field that takes the last turn of a conversation; "" where the program takes the whole
            conversation; None where it takes neither.

    Raises:
        ArgumentError: Another name, or something that is not a module.
    """

    def __init__(self, name: str, program: Module) -> None:
        if not _NAME.fullmatch(name):
            raise ArgumentError(f"serve: the name {name!r:.100} is not 1 to 64 letters, digits, `_` and `-`.")
        if not isinstance(program, Module):  # pyright: ignore[reportUnnecessaryIsInstance]  # users pass anything
            got = f"serve: {name!r} is a {type(program).__name__}"
            raise ArgumentError(f"{got}, wanted a program, such as sm.load('desk.json'), or {{'desk': program, ...}}.")
        self.name, self.program = name, program
        declared = rows.input_symbols(program)
        self._is_list = kind_of(declared) == SEQUENCE
        self._parts = dict(zip(rows.input_names(program), leaves(declared), strict=False))
        self._single: Any = None if self._is_list or is_object(declared) else declared
        self._is_unknown = all(part is None for part in self._parts.values())
        self._defaults = rows.defaults_of(program)
        self.input_schema: Any = self._describe_inputs()
        self.chat_field = self._find_chat_field()
        self._outputs: list[Any] = []  # their schema, once it is known

    def _describe_inputs(self) -> Any:
        """Return the schema of the inputs."""
        if self._single is not None or self._is_unknown:
            return _ANY_OBJECT if self._single is None else thaw(schemas.portable(self._single._schema))
        return _object_of({name: _schema_of(part) for name, part in self._parts.items()}, {*self._defaults})

    def _find_chat_field(self) -> str | None:
        """Return the field of a conversation's last turn."""
        if self._single is None:
            return None
        if issubclass(self._single._model or object, data.ChatMessages):
            return ""
        fields = schemas.properties_of(self._single._schema)
        required = self._single._schema.get("required", ())
        names = [name for name in fields if len(fields) == 1 or [*required] == [name]]
        texts = [name for name in names if is_object(fields[name]) and fields[name].get("type") == "string"]
        return texts[0] if texts else None

    def read_inputs(self, json: Json) -> Any:
        """Return the inputs of a call, made from JSON.

        Raises:
            SchemaError: The JSON does not satisfy the schema; `errors` are the faults.
        """
        if self._single is not None:
            inputs = data.value_from(json, self._single._schema, self._single._model, "the inputs")
            if self.chat_field == "":
                self._check_turns(inputs)
            return inputs
        data.validate(data.schema_from(self.input_schema), json, "the inputs")
        if self._is_unknown:
            return data.JsonDataModel(json, schema=_ANY_OBJECT)
        parts: dict[str, Any] = {**self._defaults, **json}
        values = {name: self._read_part(name, parts[name]) for name in self._parts}
        return rows.PositionalInputs(values.values()) if self._is_list else values

    def _check_turns(self, inputs: Any) -> None:
        """Raise SchemaError for turns that would choose what an Agent runs, or become instructions; or for no turns."""
        messages, first = inputs["messages"], _first_part(self.program)
        if not messages and _sends_nothing(first, inputs):
            raise SchemaError("the inputs: nothing to answer", [Problem("/messages", "at least one turn", "[]")])
        results = {message.get("tool_call_id") for message in messages}
        for index, message in enumerate(messages):
            role, got = message["role"], [call["id"] for call in message.get("tool_calls") or ()]
            if not results.issuperset(got):
                problem = Problem(f"/messages/{index}/tool_calls", "a result for each tool call", f"{got!r:.100}")
                raise SchemaError("the inputs: the conversation has tool calls without results", [problem])
            if role in ("system", "developer") and not _takes_system_turns(first):
                problem = Problem(f"/messages/{index}/role", "a turn of the user, the assistant or a tool", role)
                raise SchemaError("the inputs: the program has its own instructions", [problem])

    def take_inputs(self, json: Json) -> Any:
        """Return the inputs of a request; raise Refusal where `read_inputs` raises."""
        try:
            return self.read_inputs(json)
        except SchemaError as error:
            raise refuse_inputs(error) from None

    def _read_part(self, name: str, json: Any) -> Any:
        """Return one of several inputs."""
        part = self._parts[name]
        if part is None or json is None:
            return json
        return data.value_from(json, part._schema, part._model, f"the input {name!r}")

    async def call(self, inputs: Any) -> Any:
        """Return what the program returns for inputs of `read_inputs`."""
        return await (self.program(*inputs) if isinstance(inputs, rows.PositionalInputs) else self.program(inputs))

    async def output_schema(self) -> Any:
        """Return the schema of the outputs; an object of any kind where only a call shows it."""
        if not self._outputs:
            outputs = await rows.outputs_of(self.program)
            self._outputs.append(_schema_of(outputs) if outputs is not None else {})
        return self._outputs[0]

    @property
    def description(self) -> str:
        """The program's own description; its name where it has none."""
        own, default = self.program.description, declaration_of(type(self.program)).default_description
        return self.name if own == default and type(self.program).__module__.startswith("synmod.") else own

    @property
    def answering(self) -> dict[str, bool]:
        """The paths of the modules that may give the answer; none where that cannot be known.

        True where the first call to end is the answer, so that its pieces may be passed on before.
        """
        return dict(_iter_answering(self.program, ()))


def endpoints_from(program: Any) -> dict[str, ServedProgram]:
    """Return the endpoints of a program, or of a mapping from names to programs, of which the first is the default.

    Raises:
        ArgumentError: It is neither, the mapping is empty, or a name is not allowed.
    """
    if isinstance(program, Mapping):
        endpoints = {str(name): ServedProgram(str(name), served) for name, served in program.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not endpoints:
            raise ArgumentError("serve: got no program; write {'desk': program}.")
        return endpoints
    name = name_from(str(getattr(program, "name", "program")))
    return {name: ServedProgram(name, program)}


def name_from(text: str) -> str:
    """Return a text as the name of a program."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)[:64] or "program"


def outputs_json(outputs: Any) -> Any:
    """Return what a program returned as JSON."""
    return thaw(outputs._json) if type(outputs) is data.JsonDataModel else plain(outputs)


def find_endpoint(endpoints: Mapping[str, ServedProgram], name: Any) -> ServedProgram:
    """Return the endpoint of a name; the first one without a name.

    Raises:
        Refusal: There is none, with 'Did you mean'.
    """
    if name is None:
        return next(iter(endpoints.values()))
    if not isinstance(name, str) or name not in endpoints:
        raise Refusal(404, f"There is no program {name!r:.100}.{did_you_mean(name, endpoints)}")
    return endpoints[name]


# -- schemas of nests --------------------------------------------------------------------------------------------------


def _schema_of(nest: Any) -> Any:
    """Return the schema of a nest of symbols; that of null for None."""
    if isinstance(nest, data.SymbolicDataModel):
        return thaw(schemas.portable(nest._schema))
    if is_object(nest):
        return _object_of({str(name): _schema_of(part) for name, part in nest.items()}, set())
    if isinstance(nest, (list, tuple)):
        items: Any = [_schema_of(part) for part in nest]  # pyright: ignore[reportUnknownVariableType]
        lifted, definitions = _lift({str(index): item for index, item in enumerate(items)})
        array = {"type": "array", "prefixItems": [*lifted.values()], "minItems": len(items), "maxItems": len(items)}
        return {**definitions, **array}
    return {"type": "null"} if nest is None else {}


def _object_of(parts: Mapping[str, Any], optional: set[str]) -> Any:
    """Return the schema of an object with these fields, of which some may be left out or null."""
    lifted, definitions = _lift(parts)
    fields = {name: {"anyOf": [part, {"type": "null"}]} if name in optional else part for name, part in lifted.items()}
    required = [name for name in fields if name not in optional]
    return {**definitions, "type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _lift(parts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return schemas without their definitions, and a keyword with the definitions of all, each under its own name."""
    lifted, definitions = dict[str, Any](), dict[str, Any]()
    for name, part in parts.items():
        own = part.get("$defs", {})
        names = {key: f"{name}.{key}" for key in own}
        rest = {keyword: value for keyword, value in part.items() if keyword != "$defs"}
        lifted[name] = thaw(schemas.rename_definitions(rest, names))
        definitions |= {names[key]: thaw(schemas.rename_definitions(value, names)) for key, value in own.items()}
    return lifted, {"$defs": definitions} if definitions else {}


def _first_part(module: Module) -> Module:
    """Return the module inside containers that gets the inputs of a program."""
    execution = execution_of(module)
    first = execution.parts[0] if execution is not None and execution.parts else None
    is_generator = issubclass(type(module), Generator)  # such as an Agent, whose parts are its tools
    return _first_part(first.module) if isinstance(first, ChildAt) and not is_generator else module


def _sends_nothing(module: Module, inputs: Any) -> bool:
    """Whether inputs give a Generator nothing to send to its model."""
    return isinstance(module, Generator) and not module.render(inputs)


def _takes_system_turns(module: Module) -> bool:
    """Whether a module over a conversation takes its system turns: a Generator may not."""
    return not isinstance(module, Generator) or bool((module._record.arguments or {}).get("system_from_inputs"))


# -- which calls answer ------------------------------------------------------------------------------------------------


def _iter_answering(module: Module, steps: KeyPath) -> Iterator[tuple[str, bool]]:
    """Yield the modules that may give the answer of a module."""
    execution = execution_of(module)
    if isinstance(module, Generator):
        yield path_str(steps), not isinstance(module, Agent)
    elif isinstance(module, Cached):
        yield from _iter_answering(module.module, (*steps, "module"))
    elif execution is not None:
        yield from _iter_last(execution, steps)
    else:
        below = [path for path, _ in tree.iter_graph(module, tree.OfType(Generator))]
        if len(below) == 1:  # it may run again, such as in a Retry
            yield path_str((*steps, *below[0])), False


def _iter_last(execution: Execution, steps: KeyPath) -> Iterator[tuple[str, bool]]:
    """Yield the modules that may give the answer of what a container runs."""
    is_one = execution.order in ("in order", "graph")
    for part in execution.parts[-1:] if is_one else execution.parts if execution.order == "one of" else ():
        if isinstance(part, Execution):
            yield from _iter_last(part, steps)
        elif part is not None:
            yield from _iter_answering(part.module, (*steps, *part.steps))
