"""Agent: a model that calls tools in a loop, until it has an answer."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, Final, Literal, Unpack, cast

from pydantic_core import to_jsonable_python

from synmod import data, errors, flow, lm, module, scope
from synmod.leaves import Json, frozen, mend, snake_case
from synmod.module import Module
from synmod.registry import register_own

from . import checks
from .conversation import Conversation, number_of_call, open_calls
from .generator import Generator, GeneratorOptions, M, check_params
from .tools import Tool, is_result

_AT_ONCE: Final = 8  # tools of one reply
_MOST_SHOWN: Final = 2_000  # maximum number of characters of an error for the model


@register_own()
class Agent(Generator[M]):
    """A `Generator` whose model calls tools and reads their results, in a loop, until it answers.

    Only tools in `tools` run, and only with arguments that satisfy their schema: any other reply is repaired, and is a
    `BadReplyError` if that fails. Each run is a call below this module, at `tools/<name>`.

    Args:
        tools: `Tool`s, functions (which become tools), modules that declare one input, a `Retrieve` (which is offered
            its query), blocks around one of them, such as `Cached`, and tools of the provider (see `native_tool`).
        data_model: Model of the answer, as for `Generator`; without it and `schema` the answer is text.
        schema: JSON schema of the answer; must agree with `data_model`.
        max_steps: Maximum number of model calls.
        max_tool_calls: Maximum number of runs of tools. Of a reply that calls more than are left, none runs.
        parallel_tools: How many of the tools called in one reply run at once; True is 8, False one after the other.
        budget: Limits for one run, including what its tools use: `calls`, `tokens`, `cost_usd` of models, `tool_calls`.
        return_messages: Whether the output has, after the fields of the answer, `messages`: the conversation, which may
            be given back as the next inputs. Without a data model the output is then `ChatMessages`.
        resume_calls: Whether inputs may end in tool calls without a result, which then run first. Leave it out where
            others supply the conversation: an appended turn could run any of the tools.
        on_tool_error: Whether the model receives an error of a tool (`"report"`) or the run fails (`"raise"`); None
            reports each `ToolError` and raises all others.
        **options: Keyword arguments of `Generator`. A `tool_choice` that forces a call applies to the first step.

    Schemas:
        inputs: any data model
        outputs: as for `Generator`; with `return_messages` also `messages`

    Raises:
        ConfigError: There are no tools, two have one name, a module does not declare one input, or an argument is
            invalid; the answer has a field `messages` beside `return_messages`; also as for `Generator`.
        CallError: When called: `sm.inject` supplies no value for a parameter of a tool; names tool and type.
        DataError: When called: a conversation among the inputs has tool calls without a result, which `resume_calls`
            does not allow, that are not at its end, or that cannot be run; names the index of the turn.
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

    graph_ignored: ClassVar[frozenset[str]] = frozenset({"_functions", "_offered"})
    _may_lack_tools: ClassVar[bool] = False
    return_messages: bool = False
    """Whether the output has the conversation."""

    resume_calls: bool = False
    """Whether tool calls at the end of the inputs run first."""

    _opening: ClassVar[str] = "Call tools for what you do not know or cannot do yourself. Answer when you are done."
    _sentences: ClassVar[bool] = False  # after one a small model chooses a value at once, and calls no tool

    def __init__(
        self,
        # required; so that another word for it is named
        tools: Sequence[Module | Callable[..., Any] | Mapping[str, Any]] = (),
        data_model: type[M] | data.SymbolicDataModel | data.JsonDataModel[Any] | Mapping[str, Any] | None = None,
        *,
        schema: Json = None,
        max_steps: int = 8,
        max_tool_calls: int = 64,
        parallel_tools: int = _AT_ONCE,
        budget: Mapping[str, float] | None = None,
        on_tool_error: Literal["report", "raise"] | None = None,
        return_messages: bool = False,
        resume_calls: bool = False,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        check_params(type(self), options)
        super().__init__(data_model, schema=schema, **options)
        if not isinstance(tools, (list, tuple)) or not (tools or self._may_lack_tools):
            raise errors.ConfigError(f"Agent: tools is {tools!r:.100}; write a non-empty list of tools.")
        native = [tool for tool in tools if lm.is_native_tool(tool)]
        own: list[Any] = [tool for tool in tools if not lm.is_native_tool(tool)]
        bound = [tool if isinstance(tool, Module) else Tool(tool) for tool in own]
        self._functions = lm.function_schemas([_function_schema(tool) for tool in bound], "Agent")
        self._offered = (*(self._functions or ()), *native)
        self.tools = {_name_of(tool): tool for tool in bound}
        self.max_steps = checks.whole("Agent", "max_steps", max_steps)
        self.max_tool_calls = checks.whole("Agent", "max_tool_calls", max_tool_calls)
        at_once = {True: _AT_ONCE, False: 1}[parallel_tools] if isinstance(parallel_tools, bool) else parallel_tools
        self.parallel_tools = checks.whole("Agent", "parallel_tools", at_once)
        for name in budget or ():
            checks.one_of("Agent", "budget", name, ("calls", "tokens", "cost_usd", "tool_calls"))
        self.budget = None if budget is None else dict(budget)
        self._run_budget()
        self.on_tool_error = checks.one_of("Agent", "on_tool_error", on_tool_error, ("report", "raise", None))
        if resume_calls:
            self.resume_calls = True
        if return_messages:
            self.return_messages = True
            conversation = data.symbol(data.schema_of(data.ChatMessages), data.ChatMessages)
            answer = self._form.reply
            if answer is not None and "messages" in answer:
                raise errors.ConfigError("Agent: the answer has a field 'messages' of its own; rename it.")
            self._declare_output(conversation if answer is None else data.ops.concat(answer, conversation))

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
        for tool in self.tools.values():
            if isinstance(inner := checks.innermost(tool), Tool):
                inner.injected()  # what is missing is found before the first call of the model
        conversation = self._conversation(self._shown(inputs))
        with self._run_budget() as account:
            try:
                outputs: Any = await self._answer(inputs, conversation)
            except errors.BudgetExceeded as error:
                if account is None or error.account is not account:
                    error.messages = tuple(conversation.sent())
                    raise
                raise errors.AgentLimitError(str(error), conversation.sent()) from None
            except errors.Paused as pause:
                pause.messages = tuple(conversation.to_output()["messages"])
                raise
        if self.return_messages:
            messages = conversation.to_output()
            outputs = messages if self._form.reply is None else data.ops.concat(outputs, messages)
        return self._result(inputs, outputs)

    def _shown(self, inputs: Any) -> Any:
        """Return the inputs as the prompt shows them."""
        return inputs

    async def _answer(self, inputs: Any, conversation: Conversation) -> data.JsonDataModel[Any]:  # noqa: ARG002
        """Call the model and the tools in turn, and add their turns to a conversation, until there is an answer.

        Raises:
            AgentLimitError: No answer after `max_steps` model calls, or more than `max_tool_calls` tools are called.
            DataError: The conversation has tool calls without a result, which do not run.
        """
        functions, left, free = self._functions or (), self.max_tool_calls, {}
        calls: Sequence[data.ToolCall] = open_calls(conversation.turns(), functions, resume=self.resume_calls)
        for _ in range(self.max_steps):
            if calls:
                left -= len(calls)
                if left < 0:
                    most = f"{-left} more than are left of max_tool_calls={self.max_tool_calls}"
                    limit = f"one reply calls {len(calls)} tools, {most}, so none of them ran"
                    raise self._limit_error(limit, conversation.sent())
                await self._add_results(conversation, calls)
                free = {} if self.tool_choice in (None, "auto", "none") else {"tool_choice": "auto"}
            reply = await self._reply_to(conversation, self._offered, **free)
            conversation.later += lm.turns(reply.message)
            if not reply.tool_calls:
                return self._outputs(reply)
            calls = reply.tool_calls  # those of the last step do not run: nobody would read their results
        raise self._limit_error(f"no answer after max_steps={self.max_steps} calls of the model", conversation.sent())

    async def compute_output_spec(self, inputs: Any) -> data.SymbolicDataModel:
        """Return the answer as a symbol; modules among the tools are built on their declared inputs."""
        for tool in self.tools.values():
            if not isinstance(tool, Tool):
                await tool(module.tool_inputs(checks.innermost(tool)))
        return await super().compute_output_spec(inputs)

    def _run_budget(self) -> Any:
        """Return the budget block of one run."""
        return nullcontext() if self.budget is None else scope.budget(**self.budget)  # pyright: ignore[reportArgumentType]

    def _limit_error(self, limit: str, messages: Sequence[lm.Message]) -> errors.AgentLimitError:
        """Return the error for a run that reached a limit of its own."""
        return errors.AgentLimitError(f"{self._where}: {limit}; allow more, or read error.messages.", messages)

    async def _add_results(self, conversation: Conversation, calls: Sequence[data.ToolCall]) -> None:
        """Run the tools that one reply calls, `parallel_tools` at once, and add the turns with the results, in order.

        Raises:
            BudgetExceeded: A budget has no room for all of them; none runs.
            Paused: Some wait for the answer of a person; the others have run, and their results are added.
        """
        scope.reserve(0, tool_calls=len(calls), where=self._where).settle(scope.Usage())
        results: list[Any] = [None] * len(calls)
        pending, turns, around = iter(enumerate(calls)), conversation.turns(), scope.NUMBERING.get()
        frame = scope.current_call()

        async def work() -> None:
            for index, call in pending:  # shared: each worker takes the next call
                numbers = partial(number_of_call, call, turns)
                reports = self._text_for_model if isinstance(self.tools[call.name], Tool) else None
                with scope.Numbering(around, numbers, "" if frame is None else frame.path, reports):
                    results[index] = await pauses.run(self._result_turn(call))

        try:
            with scope.Pauses() as pauses:
                await flow.together(*[work] * min(self.parallel_tools, len(calls)))
        finally:
            if finished := [turn for turn in results if turn is not None]:
                conversation.later += lm.turns(finished)

    async def _result_turn(self, call: data.ToolCall) -> dict[str, Json]:
        """Run one tool; return the turn with its result, media as parts after its text, or with the error to report."""
        media = list[Json]()
        try:
            output = plain_output(await self._run(self.tools[call.name], call), media)
        except Exception as error:
            if (output := self._text_for_model(error)) is None:
                raise
        text = mend(output if isinstance(output, str) else data.dump_json(output))
        return {"role": "tool", "tool_call_id": call.id, "content": [text, *media] if media else text}

    def _text_for_model(self, error: BaseException) -> str | None:
        """Return what the model reads of an error of a tool; None if the error is raised."""
        if isinstance(error, (errors.Paused, errors.JournalError)) or scope.is_from_enclosing_limit(error):
            return None
        is_own = isinstance(error, errors.ToolError)
        is_reported = self.on_tool_error == "report" if self.on_tool_error else is_own
        if is_own and error.report is not None:
            is_reported = error.report
        text = error.text if is_own else None
        return (text or f"{type(error).__name__}: {error}"[:_MOST_SHOWN]) if is_reported else None

    async def _run(self, tool: Module, call: data.ToolCall) -> Any:
        """Run one tool; return its output.

        Raises:
            ToolError: A validator refuses the arguments.
            Exception: Any exception of the tool.
        """
        declared = module.tool_inputs(checks.innermost(tool))
        try:
            inputs = data.JsonDataModel(call.arguments, data.schema_of(declared), data.model_of(declared))
        except errors.SchemaError as error:
            raise errors.ToolError(str(error)) from None
        return await tool(inputs)


def plain_output(output: Any, media: list[Json]) -> Json:
    """Return the output of a tool as JSON, with `(image 1)` and the like in place of media; add their parts to `media`.

    Raises:
        DataError: A sound is given by its address, which no message can hold.
    """
    if isinstance(output, (tuple, list)):
        return [plain_output(item, media) for item in cast("Sequence[Any]", output)]
    if not isinstance(output, data.JsonDataModel):
        return to_jsonable_python(output, fallback=frozen)
    schema = data.schema_of(output)
    json: Any = lm.without_media(frozen(output), [schema], schema, media, "the result")
    return json["result"] if is_result(schema) else json


def _name_of(tool: Module) -> str:
    """Return the name of a tool: that of the module in a block around it, unless the block was given one."""
    return checks.innermost(tool).name if tool.name == snake_case(type(tool).__name__) else tool.name


def _function_schema(tool: Module) -> Json:
    """Return the definition of a module for the model: its name, its description, and its one declared input.

    Raises:
        ConfigError: The module does not declare exactly one input.
    """
    inner = checks.innermost(tool)
    if tool is inner and isinstance(tool, Tool):
        return tool.function_schema
    inputs, name = module.tool_inputs(inner), _name_of(tool)
    if not isinstance(inputs, data.SymbolicDataModel):
        remedy = "annotate `async def call(self, inputs: Query)`, or wrap a function in sm.Tool"
        raise errors.ConfigError(f"Agent: the tool {name!r} does not declare one data model as its input; {remedy}.")
    definition = {"name": name, "description": inner.description, "parameters": data.schema_of(inputs)}
    return lm.function_schema(definition, f"Agent: {name}")


@module.execution_of.register(Agent)
def execution_of_agent(agent: Agent[Any]) -> module.Execution:
    """Return the tools, any of which may run, in any order."""
    children = (module.ChildAt(("tools", name), tool) for name, tool in agent.tools.items())
    return module.Execution("together", tuple(children))
