"""Tools and agents: functions that a model may call, the tools of an MCP server, a model that calls tools in a loop.

The `mcp` package is imported when a server is first opened.
"""

import inspect
import re
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar, Final, Literal, Unpack

from pydantic import Field, PydanticUserError, create_model
from pydantic_core import PydanticSerializationError, to_jsonable_python

from synmod import data, errors, flow, lm, module, scope
from synmod.leaves import Json, aio, frozen, is_object, unused
from synmod.module import Module
from synmod.registry import register_own

from . import checks
from .generator import Generator, GeneratorOptions, M, check_params, object_schema

RESULT: Final = data.trusted_schema({"title": "ToolResult", **object_schema(result={})})
"""Schema of the output of a tool whose function does not return a data model."""

_BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ARGS: Final = re.compile(r"^Args:\n((?:[ \t]+.*\n|\n)+)", re.MULTILINE)
_ARG: Final = re.compile(
    r"^(?P<space>[ \t]+)(?P<name>\w+)(?: \(.*?\))?:[ \t]*(?P<text>.*(?:\n(?P=space)[ \t]+.*)*)", re.MULTILINE
)

Approve = Callable[[str, dict[str, Any]], bool | Awaitable[bool]]


@register_own()
class Tool(Module):
    """A function that a model may call: its arguments are validated, and its result becomes JSON.

    The schema of the arguments is read from the signature: types, `Literal`, `X | None`, defaults, pydantic classes and
    data models, with descriptions from the docstring (`Args:`). The function runs once per call; a plain function runs
    in a worker thread, which continues if its caller is cancelled.

    Args:
        fn: A function, plain or async. A registered function can be saved.
        name: The name for the model; by default the name of the function.
        description: The description for the model; by default the first paragraph of the docstring.
        parameters: JSON schema of the arguments, which are then passed as JSON; None to read the signature.
        timeout_s: Seconds for one run; None for no limit.
        approve: `approve(name, arguments)`, plain (in a thread) or async, called before each run, which needs the
            result True.
        trainable: Whether the Variables below, if there are any, may be trained.
        hooks: Listeners to this module.

    Schemas:
        inputs: the arguments, as one data model or as keywords
        outputs: the data model in the return annotation of the function, else `{"result": ...}`

    Raises:
        ConfigError: `fn` is not a function, has no usable name, takes `*args` or `**kwargs`, or has a parameter type
            without a schema. `timeout_s` is not positive.
        SchemaError: The schema is unusable. When called: the arguments do not satisfy it, or a validator.
        CallError: When called: there are a data model and keyword arguments, or several data models.
        ToolError: When called: `approve` does not allow the run, or the timeout is over.
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
        hooks: Sequence[scope.Hook] | None = None,
    ) -> None:
        called = getattr(fn, "__name__", None) if name is None else name
        if not isinstance(called, str) or not _NAME.fullmatch(called):
            wanted = "pass name='...', an identifier of at most 64 ASCII letters, digits and _"
            raise errors.ConfigError(f"Tool: {fn!r:.100} has no name that a model could call; {wanted}.")
        if description is None:
            description = module.first_paragraph(inspect.getdoc(_function(fn)))
        super().__init__(name=called, description=description, trainable=trainable, hooks=hooks)
        self.fn = checks.function("Tool", "fn", fn)
        self.approve = None if approve is None else checks.function("Tool", "approve", approve)
        self.timeout_s = checks.number("Tool", "timeout_s", timeout_s)
        if timeout_s is not None and not timeout_s > 0:
            raise errors.ConfigError(f"Tool: timeout_s is {timeout_s!r}; write a positive number of seconds.")
        self._taken = _Parameters(fn, called) if parameters is None else None
        model = None if self._taken is None else self._taken.model
        self.input_spec = data.symbol(data.declare(model or dict(parameters or {})), model)
        returned = module.resolved_annotations(_function(fn)).get("return")
        self.output_spec: Any = module.model_of_annotation(returned) or data.symbol(RESULT)

    @property
    def function_schema(self) -> Json:
        """For the model: `{"type": "function", "function": {"name", "description", "parameters"}}`."""
        parameters = data.schema_of(self.input_spec)
        return lm.function_schema(
            {"name": self.name, "description": self.description, "parameters": parameters}, self.name
        )

    async def call(self, *inputs: Any, **arguments: Any) -> Any:
        """Check the arguments, and run the function once."""
        if len(inputs) + bool(arguments) > 1:
            raise errors.CallError(
                f"{self.path or self.name}: got a data model and other arguments; pass one, or all by keyword."
            )
        value = inputs[0] if inputs else data.JsonDataModel(arguments, data.schema_of(self.input_spec))
        args, kwargs = ([], value.get_json()) if self._taken is None else self._taken.of(value)
        if self.approve is not None and await _called(self.approve, self.name, value.get_json()) is not True:
            raise errors.ToolError(f"{self.name}: this run was not approved.")
        if self.timeout_s is None:
            return await self._run(args, kwargs)
        with aio.deadline_scope(self.timeout_s):
            return await self._run(args, kwargs)
        # Reached only if the deadline has expired: the scope caught its own cancellation.
        raise errors.ToolError(f"{self.name}: no result within timeout_s={self.timeout_s:g}.")

    async def _run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Run the function, and return its result as data."""
        result = await _called(self.fn, *args, **kwargs)
        if data.model_of(self.output_spec) is not None:
            return result
        try:
            json = frozen(to_jsonable_python(result, fallback=frozen))
        except (PydanticSerializationError, ValueError) as error:
            raise errors.DataError(f"{self.name}: the result {result!r:.100} is not JSON: {error}") from None
        return data.wrap(frozen({"result": json}), RESULT)


async def _called(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function: await an async one, run a plain one in a thread."""
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__):
        return await fn(*args, **kwargs)
    (result,) = await aio.to_thread(lambda: [fn(*args, **kwargs)], abandon=True)  # trio refuses a bare coroutine
    return await result if inspect.isawaitable(result) else result


class _Parameters:
    """The parameters of a function, and a data model of them; pickled as the function and its name."""

    def __init__(self, fn: Any, name: str) -> None:
        self.fn, self.name = fn, name
        self.parameters = tuple(inspect.signature(fn).parameters.values())
        self.model = _arguments_model(fn, self.parameters, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Parameters, (self.fn, self.name)

    def of(self, value: data.JsonDataModel[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments for the function: typed, with its defaults.

        Raises:
            SchemaError: A validator refuses the arguments.
        """
        typed = value.to(self.model)
        pairs = [*zip(self.parameters, [getattr(typed, field) for field in self.model.model_fields], strict=True)]
        named = {parameter.name: each for parameter, each in pairs if parameter.kind not in _BY_POSITION}
        return [each for parameter, each in pairs if parameter.kind in _BY_POSITION], named


def _function(fn: Any) -> Any:
    """Return the function behind a callable, which has the annotations and the docstring."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn if inspect.isroutine(fn) else type(fn).__call__


def _arguments_model(fn: Any, parameters: Sequence[inspect.Parameter], name: str) -> type[data.DataModel]:
    """Return a data model of the parameters of a function; the parameter names are aliases of its fields.

    Raises:
        ConfigError: A parameter is `*args` or `**kwargs`, or its type has no schema.
    """
    function, fields = _function(fn), dict[str, Any]()
    described, hints = _described(function), module.resolved_annotations(function)
    for index, parameter in enumerate(parameters):
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise errors.ConfigError(f"Tool: {name} takes {parameter}; a model needs parameters with names.")
        options: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in described:
            options["description"] = described[parameter.name]
        if parameter.default is not parameter.empty:
            options["default"] = parameter.default
        # Another name, since pydantic reserves some names of fields.
        fields[f"argument_{index}_{parameter.name}"] = (hints.get(parameter.name, Any), Field(**options))
    try:
        return create_model(name, __base__=data.DataModel, **fields)
    except PydanticUserError as error:
        raise errors.ConfigError(f"Tool: the types of {name} have no schema: {error.message}") from None


def _described(fn: Any) -> dict[str, str]:
    """Return the description of each parameter in the `Args:` section of a docstring."""
    found = _ARGS.search(f"{inspect.getdoc(fn) or ''}\n")
    return {arg["name"]: " ".join(arg["text"].split()) for arg in _ARG.finditer(found[1])} if found else {}


# -- the tools of a server ---------------------------------------------------------------------------------------------


_URL: Final = ("http://", "https://")
_SERVER_FORMS: Final = "write a command such as ['python', 'server.py'], or an address"
_LONGEST_NAME: Final = 60


@asynccontextmanager
async def mcp_tools(
    server: str | Sequence[str] | Any,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = 60,
    approve: Approve | None = None,
) -> AsyncGenerator[list[Tool]]:
    """Open an MCP server for a block and yield its tools.

    Args:
        server: The command that starts a server, as a list or as one line; the address of a running server; or any
            other argument of `mcp.Client`, such as a transport with custom headers.
        env: More environment variables for the command, which inherits only a few common ones, without API keys.
        timeout_s: Seconds for one run of a tool; None for no limit.
        approve: As for `Tool`, for each of the tools.

    Yields:
        The tools in the order of the server, with its names, descriptions and schemas; characters not allowed in names
        become `_`. Tools run only inside the block, and cannot be saved.

    Raises:
        ConfigError: The `mcp` package is missing (names the install command), or `server` is none of these.
        SchemaError: The schema of a tool is unusable; names the tool.
        ToolError: The server does not start, cannot be reached, or does not speak MCP. When a tool is called: the
            server reports an error.
        RunError: When a tool is called: the block has ended.

    Example:
        >>> async def main():
        ...     async with sm.mcp_tools(["python", "shop_server.py"]) as tools:
        ...         return await sm.Agent(tools)(question)
        >>> sm.run(main)  # doctest: +SKIP

    Source: the Model Context Protocol; pydantic-ai's toolsets.
    """
    try:
        from mcp import Client
    except ImportError as error:
        raise errors.ConfigError(f"mcp_tools needs the mcp package ({error}): pip install 'synmod-lm[mcp]'.") from None
    failure: Exception | None = None
    try:
        async with Client(_target(server, env)) as client:
            try:
                yield await _tools_of(client, timeout_s, approve)
            except Exception as error:  # noqa: BLE001  # raised below, since closing the client would wrap it in a group
                failure = error
    except (OSError, ExceptionGroup) as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        what = f"the MCP server cannot be used: {type(first).__name__}: {first}"
        failure = failure or errors.ToolError(f"mcp_tools: {what}. Does it start, and speak MCP?")
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # avoids a reference cycle of the exception and this frame


def _target(server: Any, env: Mapping[str, str] | None) -> Any:
    """Return a server in a form that `mcp.Client` accepts."""
    from mcp import StdioServerParameters
    from mcp.server import MCPServer, Server

    if isinstance(server, str) and server.casefold().startswith(_URL):
        return server
    if isinstance(server, (MCPServer, Server)) or hasattr(server, "__aenter__"):
        return server  # pyright: ignore[reportUnknownVariableType]  (of any type parameter)
    if not isinstance(server, (str, list, tuple)):
        raise errors.ConfigError(f"mcp_tools: server is {server!r:.100}; {_SERVER_FORMS}.")
    try:
        parts: Sequence[Any] = shlex.split(server) if isinstance(server, str) else [*server]  # pyright: ignore[reportUnknownVariableType]  (users)
    except ValueError as error:  # a quotation without an end
        raise errors.ConfigError(f"mcp_tools: the command {server!r:.100}: {error}; {_SERVER_FORMS}.") from None
    command = [str(part) for part in parts]
    if not command:
        raise errors.ConfigError(f"mcp_tools: the command is empty; {_SERVER_FORMS}.")
    return StdioServerParameters(command=command[0], args=command[1:], env=None if env is None else dict(env))


def _mcp_name(name: str) -> str:
    """Return a name that a model may call for a tool of a server."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_LONGEST_NAME]
    return name if name.isidentifier() else f"_{name}"


async def _tools_of(client: Any, timeout_s: float | None, approve: Approve | None) -> list[Tool]:
    """Return all tools of a server.

    Raises:
        SchemaError: The schema of a tool is unusable.
    """
    tools: dict[str, Tool] = {}
    cursor, is_last = None, False
    while not is_last:
        page = await client.list_tools(cursor=cursor)
        for described in page.tools:
            name = unused(_mcp_name(described.name), tools)
            tools[name] = _mcp_tool(client, described, name, timeout_s, approve)
        cursor = page.next_cursor
        is_last = cursor is None
    return [*tools.values()]


def _mcp_tool(client: Any, described: Any, name: str, timeout_s: float | None, approve: Approve | None) -> Tool:
    """Return one tool of a server.

    Raises:
        SchemaError: The schema is unusable.
    """

    async def run(**arguments: Any) -> Any:
        from mcp import MCPError

        try:
            result = await client.call_tool(described.name, arguments)
        except MCPError as error:
            raise errors.ToolError(f"{name}: {error}") from None
        except RuntimeError as error:
            if "context manager" not in str(error):  # not of a closed client
                raise
            raise errors.RunError(f"{name}: {error}. Tools of mcp_tools run inside its `async with` block.") from None
        text = "\n".join(map(_text, result.content))
        if result.is_error:
            raise errors.ToolError(f"{name}: {text}")
        json: Json = result.structured_content
        if is_object(json) and json.keys() == {"result"}:
            return json["result"]  # servers wrap plain values in this object
        return text if json is None else json

    description, parameters = described.description or described.title or "", described.input_schema
    try:
        return Tool(
            run, name=name, description=description, parameters=parameters, timeout_s=timeout_s, approve=approve
        )
    except errors.SchemaError as error:
        errors.add_note(error, f"in the tool {described.name!r} of an MCP server")
        raise


def _text(block: Any) -> str:
    """Return a part of a result as text: its text, else its type."""
    found = getattr(block, "text", None) or getattr(getattr(block, "resource", None), "text", None)
    return found if isinstance(found, str) else f"({block.type} {getattr(block, 'mime_type', None) or ''})"


# -- agents ------------------------------------------------------------------------------------------------------------


_AT_ONCE: Final = 8  # tools of one reply
_MOST_SHOWN: Final = 2_000  # maximum number of characters of an error for the model


@register_own()
class Agent(Generator[M]):
    """A `Generator` whose model calls tools and reads their results, in a loop, until it answers.

    Only tools in `tools` run, and only with arguments that satisfy their schema: any other reply is repaired, and is a
    `BadReplyError` if that fails. Each run is a call below this module, at `tools/<name>`.

    Args:
        tools: `Tool`s, functions (which become tools), and modules that declare one input.
        data_model: Model of the answer, as for `Generator`; without it and `schema` the answer is text.
        schema: JSON schema of the answer; must agree with `data_model`.
        max_steps: Maximum number of model calls.
        max_tool_calls: Maximum number of runs of tools. Of a reply that calls more than are left, none runs.
        parallel_tools: How many of the tools called in one reply run at once; True is 8, False one after the other.
        budget: Limits for one run, including what its tools use: `calls`, `tokens`, `cost_usd` of models, `tool_calls`.
        on_tool_error: Whether the model receives an error of a tool (`"report"`) or the run fails (`"raise"`); None
            reports each `ToolError` and raises all others.
        **options: Keyword arguments of `Generator`. A `tool_choice` that forces a call applies to the first step.

    Schemas:
        inputs: any data model
        outputs: as for `Generator`

    Raises:
        ConfigError: There are no tools, two have one name, a module does not declare one input, or an argument is
            invalid; also as for `Generator`.
        AgentLimitError: When called: no answer after `max_steps` model calls, more than `max_tool_calls` tools are
            called, or the budget is spent; has the messages.
        BudgetExceeded: When called: an enclosing `sm.budget` is spent; has the messages, too.
        BadReplyError: When called: the model calls an unknown tool, or one with invalid arguments, even after repair.
        Exception: When called: any exception of a tool that is not reported.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> def add(a: int, b: int) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> lm = ScriptedLM([sm.ToolCall("1", "add", {"a": 1, "b": 2}), {"answer": 3}])
        >>> sm.run(sm.Agent([add], {"answer": int}, language_model=lm), Query(question="1 + 2?"))["answer"]
        3

    Source: ReAct (Yao et al. 2022), pydantic-ai's agents, Synalinks' `FunctionCallingAgent`.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_functions"})
    _opening: ClassVar[str] = "Call tools for what you do not know, then answer."

    def __init__(
        self,
        tools: Sequence[Module | Callable[..., Any]],
        data_model: type[M] | data.SymbolicDataModel | data.JsonDataModel[Any] | Mapping[str, Any] | None = None,
        *,
        schema: Json = None,
        max_steps: int = 8,
        max_tool_calls: int = 64,
        parallel_tools: int = _AT_ONCE,
        budget: Mapping[str, float] | None = None,
        on_tool_error: Literal["report", "raise"] | None = None,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        check_params(type(self), options)
        super().__init__(data_model, schema=schema, **options)
        if not isinstance(tools, (list, tuple)) or not tools:
            raise errors.ConfigError(f"Agent: tools is {tools!r:.100}; write a non-empty list of tools.")
        bound = [tool if isinstance(tool, Module) else Tool(tool) for tool in tools]
        self._functions = lm.offered([_function_schema(tool) for tool in bound], "Agent")
        self.tools = {tool.name: tool for tool in bound}
        self.max_steps = checks.whole("Agent", "max_steps", max_steps)
        self.max_tool_calls = checks.whole("Agent", "max_tool_calls", max_tool_calls)
        at_once = {True: _AT_ONCE, False: 1}[parallel_tools] if isinstance(parallel_tools, bool) else parallel_tools
        self.parallel_tools = checks.whole("Agent", "parallel_tools", at_once)
        for name in budget or ():
            checks.one_of("Agent", "budget", name, ("calls", "tokens", "cost_usd", "tool_calls"))
        self.budget = None if budget is None else dict(budget)
        self._limited()
        self.on_tool_error = checks.one_of("Agent", "on_tool_error", on_tool_error, ("report", "raise", None))

    async def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: ARG002  # the same in training
        """Call the model and the tools in turn until there is an answer.

        Args:
            inputs: One data model.
            training: Has no effect.

        Returns:
            The answer; with `return_inputs` after the fields of the inputs.

        Raises:
            AgentLimitError: No answer after `max_steps` model calls, more than `max_tool_calls` tools are called, or
                the budget is spent; has the messages.
            BudgetExceeded: An enclosing budget is spent; has the messages.
            BadReplyError: The model calls an unknown tool, or a tool with invalid arguments, even after repair.
            Exception: As for `Generator`; or any exception of a tool that is not reported.
        """
        if data.is_symbolic(inputs):  # a trace, to build the modules among the tools
            return await self.compute_output_spec(inputs)
        messages: list[lm.Message] = self._prompt(inputs)
        left = self.max_tool_calls
        with self._limited() as account:
            try:
                for step in range(self.max_steps):
                    free = {"tool_choice": "auto"} if step and self.tool_choice not in (None, "auto", "none") else {}
                    reply = await self._reply(messages, self._functions, **free)
                    if not reply.tool_calls:
                        return self._result(inputs, reply)
                    messages = [*messages, *lm.turns(reply.message)]
                    if step + 1 < self.max_steps:  # else the results would not be read
                        left -= len(reply.tool_calls)
                        if left < 0:
                            raise errors.AgentLimitError(self._too_many(reply.tool_calls, left), messages)
                        messages += await self._results(reply.tool_calls)
            except errors.BudgetExceeded as error:
                if account is None or error.account is not account:
                    error.messages = tuple(messages)
                    raise
                raise errors.AgentLimitError(str(error), messages) from None
        limit = f"no answer after max_steps={self.max_steps} calls of the model"
        raise errors.AgentLimitError(f"{self._where}: {limit}; allow more, or read error.messages.", messages)

    async def compute_output_spec(self, inputs: Any) -> data.SymbolicDataModel:
        """Return the answer as a symbol; modules among the tools are built on their declared inputs."""
        for tool in self.tools.values():
            if not isinstance(tool, Tool):
                await tool(module.declared_inputs(tool))
        return await super().compute_output_spec(inputs)

    def _limited(self) -> Any:
        """Return the budget block of one run."""
        return nullcontext() if self.budget is None else scope.budget(**self.budget)  # pyright: ignore[reportArgumentType]

    def _too_many(self, calls: Sequence[data.ToolCall], left: int) -> str:
        """Return the message for a reply that calls more tools than are left."""
        limit = (
            f"one reply calls {len(calls)} tools, {-left} more than are left of max_tool_calls={self.max_tool_calls}"
        )
        return f"{self._where}: {limit}, so none of them ran; allow more, or read error.messages."

    async def _results(self, calls: Sequence[data.ToolCall]) -> list[lm.Message]:
        """Run the tools that one reply calls, `parallel_tools` at once; return the turns with the results, in order.

        Raises:
            BudgetExceeded: A budget has no room for all of them; none runs.
        """
        scope.reserve(0, tool_calls=len(calls), where=self._where).settle(scope.Usage())
        results: list[Any] = [None] * len(calls)
        pending = iter(enumerate(calls))

        async def work() -> None:
            for index, call in pending:  # shared: each worker takes the next call
                results[index] = await self._answered(call)

        await flow.together(*[work] * min(self.parallel_tools, len(calls)))
        return results

    async def _answered(self, call: data.ToolCall) -> lm.Message:
        """Run one tool; return the turn with its result, or with the error to report."""
        try:
            text = await self._run(self.tools[call.name], call)
        except Exception as error:
            way = self.on_tool_error or ("report" if isinstance(error, errors.ToolError) else "raise")
            if way == "raise" or scope.is_of_block_around(error):
                raise
            text = f"{type(error).__name__}: {error}"[:_MOST_SHOWN]
        return lm.turns({"role": "tool", "tool_call_id": call.id, "content": text})[0]

    async def _run(self, tool: Module, call: data.ToolCall) -> str:
        """Run one tool; return its result as text.

        Raises:
            ToolError: A validator refuses the arguments.
            Exception: Any exception of the tool.
        """
        declared = module.declared_inputs(tool)
        try:
            inputs = data.JsonDataModel(call.arguments, data.schema_of(declared), data.model_of(declared))
        except errors.SchemaError as error:
            raise errors.ToolError(str(error)) from None
        output: Any = await tool(inputs)
        json: Any = output
        if isinstance(output, data.JsonDataModel) and data.schema_of(output) is RESULT:
            json = output["result"]
        return json if isinstance(json, str) else data.dump_json(to_jsonable_python(json, fallback=frozen))


def _function_schema(tool: Module) -> Json:
    """Return the definition of a module for the model: its name, its description, and its one declared input.

    Raises:
        ConfigError: The module does not declare exactly one input.
    """
    if isinstance(tool, Tool):
        return tool.function_schema
    inputs = module.declared_inputs(tool)
    if not isinstance(inputs, data.SymbolicDataModel):
        remedy = "annotate `async def call(self, inputs: Query)`, or wrap a function in sm.Tool"
        what = f"Agent: the tool {tool.name!r} does not declare one data model as its input"
        raise errors.ConfigError(f"{what}; {remedy}.")
    definition = {"name": tool.name, "description": tool.description, "parameters": data.schema_of(inputs)}
    return lm.function_schema(definition, f"Agent: {tool.name}")


@module.execution_of.register(Agent)
def execution_of_agent(agent: Agent[Any]) -> module.Execution:
    """Return the tools, any of which may run, in any order."""
    children = (module.Child(("tools", name), tool) for name, tool in agent.tools.items())
    return module.Execution("together", tuple(children))
