"""Agent: a model that calls tools until it has an answer."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, Final, Literal, Unpack

from pydantic_core import to_jsonable_python

from synmod import data, lm, scope
from synmod.data import JsonDataModel, SymbolicDataModel, ToolCall
from synmod.errors import AgentLimitError, BudgetExceeded, ConfigError, SchemaError, ToolError
from synmod.flow import together
from synmod.leaves import Json, frozen
from synmod.lm import Message
from synmod.module import Child, Execution, Module, declared_inputs, execution_of
from synmod.registry import register_own

from . import checks
from .generator import Generator, GeneratorOptions, M, check_params
from .tools import RESULT, Tool

_MOST_SHOWN: Final = 2_000  # characters of an error that the model is told


@register_own()
class Agent(Generator[M]):
    """A `Generator` whose model calls tools, reads their results, and calls again until it answers.

    No tool is run that is not in `tools`, nor with arguments that do not satisfy its schema: such a reply is repaired,
    then a `BadReplyError`. Each run is a call below this module, at `tools/<name>`.

    Args:
        tools: `Tool`s, functions (which become tools), and modules that declare one input.
        data_model: Model of the answer, as for `Generator`; without it and `schema` the answer is text.
        schema: JSON schema of the answer; must agree with `data_model`.
        max_steps: How often the model is called at most.
        parallel_tools: Whether the tools that one reply calls run at once; else one after the other.
        budget: What the model calls of one run may use, those of tools included: `calls`, `tokens`, `cost_usd`.
        on_tool_error: Whether the model is told of an error of a tool (`"report"`) or the run fails (`"raise"`); None
            reports each `ToolError` and raises everything else.
        **options: Those of `Generator`. A `tool_choice` that forces a call holds for the first step.

    Schemas:
        inputs: any data model
        outputs: as of `Generator`

    Raises:
        ConfigError: No tools, two of one name, a module that declares no input, a wrong argument; also as `Generator`.
        AgentLimitError: When called: no answer after `max_steps` model calls, or the budget is spent; has the messages.
        BudgetExceeded: When called: an `sm.budget` around it is spent; has the messages, too.
        BadReplyError: When called: the model calls what is no tool, or with invalid arguments, also after repair.
        Exception: When called: what a tool raised, unless it is reported.

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
        data_model: type[M] | SymbolicDataModel | JsonDataModel[Any] | Mapping[str, Any] | None = None,
        *,
        schema: Json = None,
        max_steps: int = 8,
        parallel_tools: bool = True,
        budget: Mapping[str, float] | None = None,
        on_tool_error: Literal["report", "raise"] | None = None,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        check_params(type(self), options)
        super().__init__(data_model, schema=schema, **options)
        if not isinstance(tools, (list, tuple)) or not tools:
            raise ConfigError(f"Agent: tools is {tools!r:.100}; write a list of tools, not empty.")
        bound = [tool if isinstance(tool, Module) else Tool(tool) for tool in tools]
        self._functions = lm.offered([_function_schema(tool) for tool in bound], "Agent")
        self.tools = {tool.name: tool for tool in bound}
        self.max_steps = checks.whole("Agent", "max_steps", max_steps)
        self.parallel_tools = parallel_tools
        for name in budget or ():
            checks.one_of("Agent", "budget", name, ("calls", "tokens", "cost_usd"))
        self.budget = None if budget is None else dict(budget)
        self._limited()
        self.on_tool_error = checks.one_of("Agent", "on_tool_error", on_tool_error, ("report", "raise", None))

    async def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: ARG002  # the same in training
        """Call the model and the tools in turn until there is an answer.

        Args:
            inputs: One data model.
            training: Changes nothing here.

        Returns:
            The answer; with `return_inputs` after the fields of the inputs.

        Raises:
            AgentLimitError: No answer after `max_steps` model calls, or the budget is spent; with the messages.
            BudgetExceeded: A budget around the run is spent; with the messages.
            BadReplyError: The model calls what is no tool, or with invalid arguments, also after repair.
            Exception: As `Generator`; and what a tool raised, unless it is reported.
        """
        if data.is_symbolic(inputs):  # followed, to build the modules among the tools
            return await self.compute_output_spec(inputs)
        messages: list[Message] = self._prompt(inputs)
        with self._limited() as account:
            try:
                for step in range(self.max_steps):
                    free = {"tool_choice": "auto"} if step and self.tool_choice not in (None, "auto", "none") else {}
                    reply = await self._reply(messages, self._functions, **free)
                    if not reply.tool_calls:
                        return self._result(inputs, reply)
                    messages = [*messages, *lm.turns(reply.message)]
                    if step + 1 < self.max_steps:  # else nobody would read the results
                        messages += await self._results(reply.tool_calls)
            except BudgetExceeded as error:
                if account is None or error.account is not account:
                    error.messages = tuple(messages)
                    raise
                raise AgentLimitError(str(error), messages) from None
        limit = f"no answer after max_steps={self.max_steps} calls of the model"
        raise AgentLimitError(f"{self._where}: {limit}; allow more, or read error.messages.", messages)

    async def compute_output_spec(self, inputs: Any) -> SymbolicDataModel:
        """Return the answer as a symbol; modules among the tools are built on what they declare."""
        for tool in self.tools.values():
            if not isinstance(tool, Tool):
                await tool(declared_inputs(tool))
        return await super().compute_output_spec(inputs)

    def _limited(self) -> Any:
        """Return the block that the budget of one run opens."""
        return nullcontext() if self.budget is None else scope.budget(**self.budget)  # pyright: ignore[reportArgumentType]

    async def _results(self, calls: Sequence[ToolCall]) -> list[Message]:
        """Run what one reply calls; return the turns with the results, in order."""
        if self.parallel_tools:
            return await together(*[partial(self._answered, call) for call in calls])
        return [await self._answered(call) for call in calls]

    async def _answered(self, call: ToolCall) -> Message:
        """Run one tool; return the turn with its result, or with the error that is reported."""
        try:
            text = await self._run(self.tools[call.name], call)
        except Exception as error:
            reported = self.on_tool_error == "report" or (self.on_tool_error is None and isinstance(error, ToolError))
            if not reported or scope.is_of_block_around(error):
                raise
            text = f"{type(error).__name__}: {error}"[:_MOST_SHOWN]
        return lm.turns({"role": "tool", "tool_call_id": call.id, "content": text})[0]

    async def _run(self, tool: Module, call: ToolCall) -> str:
        """Run one tool; return its result as text.

        Raises:
            ToolError: A validator refuses the arguments.
            Exception: What the tool raised.
        """
        declared = declared_inputs(tool)
        try:
            inputs = JsonDataModel(call.arguments, data.schema_of(declared), data.model_of(declared))
        except SchemaError as error:
            raise ToolError(str(error)) from None
        output: Any = await tool(inputs)
        json: Any = output
        if isinstance(output, JsonDataModel) and data.schema_of(output) is RESULT:
            json = output["result"]
        return json if isinstance(json, str) else data.dump_json(to_jsonable_python(json, fallback=frozen))


def _function_schema(tool: Module) -> Json:
    """Return what the model is offered for a module: its name, its description, the one input that it declares.

    Raises:
        ConfigError: It declares no input, or several.
    """
    if isinstance(tool, Tool):
        return tool.function_schema
    inputs = declared_inputs(tool)
    if not isinstance(inputs, SymbolicDataModel):
        remedy = "annotate `async def call(self, inputs: Query)`, or wrap a function in sm.Tool"
        raise ConfigError(f"Agent: the tool {tool.name!r} does not declare one data model as its input; {remedy}.")
    about = {"name": tool.name, "description": tool.description, "parameters": data.schema_of(inputs)}
    return lm.function_schema(about, f"Agent: {tool.name}")


@execution_of.register(Agent)
def execution_of_agent(agent: Agent[Any]) -> Execution:
    """Return the tools, of which any may run, in any order."""
    return Execution("together", tuple(Child(("tools", name), tool) for name, tool in agent.tools.items()))
