"""Code, a function in the sandbox that can be trained; CodeAct, a model that acts by writing code; ask_model."""

import asyncio
import json
import keyword
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Unpack, cast

from synmod import data, errors, lm, module, scope
from synmod.leaves import Json, aio, check_number, check_seconds, frozen
from synmod.module import Module, ModuleOptions
from synmod.registry import register_own

from . import checks
from .agent import Agent, plain_output
from .conversation import Conversation
from .generator import Form, GeneratorOptions, M, object_schema, symbol_of
from .sandbox import Outcome, Sandbox, open_sandbox
from .tools import RESULT

CODE: Final[Json] = {"type": "string", "contentMediaType": "text/x-python"}
"""The schema of a text that is Python code."""

_MOST_CHARACTERS: Final = 1_000_000  # of a result, and of the arguments of a call
_MOST_SHOWN: Final = 10_000  # characters of what one piece of code prints
_HEAD: Final = 200  # characters of a variable in the prompt

# -- a function --------------------------------------------------------------------------------------------------------

_TAIL: Final = f"""
import json as _json
_json.dumps(f(_json.loads(_inputs)))[:{_MOST_CHARACTERS + 1}]"""


@register_own()
class Code(Module):
    """A function in Python that runs in a sandbox, and that training may rewrite like instructions.

    The sandbox has no files, no network, no environment and only its own modules, such as `math`, `re`, `json`,
    `datetime` and `collections`. Its clock stands still and `random` is seeded: equal inputs have equal outputs.
    Loading a saved program runs nothing.

    Args:
        source: Python code that defines `def f(inputs)`, from the JSON of the inputs to that of the output; dedented.
        data_model: The output model, as for `Generator`.
        seconds: How long it may compute.
        memory_mb: How much memory it may hold, in megabytes.
        **options: Those of `Module`.

    Schemas:
        inputs: any data model
        outputs: that of `data_model`

    Raises:
        ConfigError: An argument is invalid. When called: pydantic-monty is not installed, or the loop is trio's.
        CodeError: When called: the code fails, is stopped, or returns something else than the output; has the
            traceback.

    Example:
        >>> class Numbers(sm.DataModel):
        ...     numbers: list[int]
        >>> total = Code("def f(inputs): return {'total': sum(inputs['numbers'])}", {"total": int})
        >>> sm.run(total, Numbers(numbers=[1, 2, 3]))["total"]
        6

    Source: DSPy's `ProgramOfThought`, Synalinks' `PythonSynthesis`; differs: the code is a Variable, in pydantic-monty.
    """

    def __init__(
        self,
        source: str,
        data_model: Any,
        *,
        seconds: float = 5,
        memory_mb: float = 64,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise errors.ConfigError(f"Code: source is {source!r:.100}; write Python code that defines f(inputs).")
        self.output_spec = symbol_of(data_model, None, "Code")
        self.seconds = check_seconds("Code: seconds", seconds, error=errors.ConfigError)
        self.memory_mb = check_number("Code: memory_mb", memory_mb, 1, error=errors.ConfigError)
        code, what = textwrap.dedent(source).strip(), "Python code that defines `f(inputs)`."
        self.source = self.add_variable(code, schema=CODE, name="source", description=what)

    async def call(self, inputs: Any) -> data.JsonDataModel[Any]:
        """Run the code on the inputs."""
        where = self.path or self.name
        sandbox = Sandbox(self.seconds, self.memory_mb, texts={"_inputs": data.dump_json(inputs)})
        async with open_sandbox(sandbox, where, shared=True):
            outcome = await sandbox.run(f"{_plain_code(self.source.value)}\n{_TAIL}")
        if outcome.error is not None:
            raise errors.CodeError(f"{where}: the code failed.\n{outcome.error:.{_MOST_SHOWN}}", outcome.error)
        try:
            text = outcome.value
            if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
                raise ValueError(f"over {_MOST_CHARACTERS:,} characters")
            return data.JsonDataModel(
                json.loads(text), data.schema_of(self.output_spec), data.model_of(self.output_spec)
            )
        except (ValueError, RecursionError) as error:
            reason = f"{where}: the code returned something else than its output: {error}"
            raise errors.CodeError(reason, str(error)) from None


# -- a model that writes code ------------------------------------------------------------------------------------------

_PRELUDE: Final = f"""
import json as _json
async def _use(name, args, kwargs):
    text = _json.dumps([name, args, kwargs])
    if len(text) > {_MOST_CHARACTERS}:
        raise RuntimeError(name + ': the arguments have over {_MOST_CHARACTERS:,} characters; pass less.')
    reply = _json.loads(await _call(text))
    if 'error' in reply:
        raise RuntimeError(reply['error'])
    return reply['result']
"""
_FUNCTION: Final = """
async def {name}(*args, **kwargs):
    return await _use('{name}', args, kwargs)
"""
_VARIABLE: Final = """
{name} = _json.loads(_inputs)['{name}']
"""
_NOTHING: Final = "Nothing was printed. A function runs only where it is awaited."
_STOPPED: Final = "It was stopped. The next piece of code begins without the names of this one."


@register_own()
class CodeAct(Agent[M]):
    r"""A model that solves a task by writing Python, piece by piece, whose functions are tools.

    Each step the model writes a piece of code, which runs in a sandbox as for `Code`; it reads what the code prints,
    and the traceback of a failure. Names live on from piece to piece. `await answer(...)` ends the run, if its
    arguments are the output. Tools are functions in the code, each run a call below this module, as in an `Agent`.

    Args:
        tools: As for `Agent`, but there may be none.
        data_model: Model of the answer, as for `Generator`; without it the answer is text.
        schema: JSON schema of the answer; must agree with `data_model`.
        max_steps: Maximum number of pieces of code.
        max_calls: Maximum number of runs of tools.
        seconds: How long a piece may compute; what it awaits and sleeps is not counted.
        memory_mb: How much memory the code may hold, in megabytes.
        parallel_tools: As for `Agent`.
        budget: As for `Agent`.
        on_tool_error: Whether a `ToolError` of a tool is a `RuntimeError` in the code (`"report"`) or ends the run
            (`"raise"`). All other errors of tools end the run, but wrong arguments never do.
        inputs_as: Whether the inputs are in the prompt (`"text"`), or variables of the code (`"variables"`), of which
            the prompt has name, type, size and beginning: for inputs that are too long to read.
        **options: Keyword arguments of `Generator`.

    Schemas:
        inputs: any data model
        outputs: as for `Generator`

    Raises:
        ConfigError: As for `Agent`, or a tool is called `answer`. When called: pydantic-monty is not installed, or the
            event loop is trio's.
        AgentLimitError: When called: no answer after `max_steps` pieces, more than `max_calls` runs of tools, or the
            budget is spent; has the messages.
        BudgetExceeded: When called: an enclosing `sm.budget` is spent; has the messages, too.
        Exception: When called: any exception of a tool that is not reported.

    Example:
        >>> from synmod.testing import ScriptedLM
        >>> def price(item: str) -> int:
        ...     '''Look up a price.'''
        ...     return len(item)
        >>> class Order(sm.DataModel):
        ...     items: list[str]
        >>> code = "total = 0\nfor item in ['tea', 'cake']:\n    total += await price(item)\nawait answer(total=total)"
        >>> agent = CodeAct([price], {"total": int}, language_model=ScriptedLM([{"code": code}]))
        >>> sm.run(agent, Order(items=["tea", "cake"]))["total"]
        7

    Source: CodeAct (Wang et al. 2024), recursive language models (Zhang et al. 2025), smolagents' `CodeAgent`.
    """

    graph_ignored: ClassVar[frozenset[str]] = frozenset({"answer_spec", "signatures", "tool_names"})

    _may_lack_tools: ClassVar[bool] = True
    _opening: ClassVar[str] = (
        "Solve the task by writing Python code, step by step. Print what you need to see. When you are done, give the "
        "answer by `await answer(...)`."
    )

    def __init__(
        self,
        tools: Sequence[Module | Callable[..., Any]] = (),
        data_model: type[M] | data.SymbolicDataModel | data.JsonDataModel[Any] | Mapping[str, Any] | None = None,
        *,
        schema: Json = None,
        max_steps: int = 8,
        max_calls: int = 1_000,
        seconds: float = 5,
        memory_mb: float = 64,
        parallel_tools: int = 8,
        budget: Mapping[str, float] | None = None,
        on_tool_error: Literal["report", "raise"] = "report",
        inputs_as: Literal["text", "variables"] = "text",
        **options: Unpack[GeneratorOptions],
    ) -> None:
        is_text = data_model is None and schema is None
        output = symbol_of(data.ChatMessage if is_text else data_model, schema, "CodeAct")
        form: Any = Form(data.symbol(data.intern_schema(object_schema(code=CODE))), output)
        super().__init__(
            tools,
            form,
            max_steps=max_steps,
            max_tool_calls=max_calls,
            parallel_tools=parallel_tools,
            budget=budget,
            on_tool_error=checks.one_of("CodeAct", "on_tool_error", on_tool_error, ("report", "raise")),
            **options,
        )
        self._settings["data_model"] = None  # the class of the answer, which no reply is
        self.seconds = check_seconds("CodeAct: seconds", seconds, error=errors.ConfigError)
        self.memory_mb = check_number("CodeAct: memory_mb", memory_mb, 1, error=errors.ConfigError)
        self.inputs_as = checks.one_of("CodeAct", "inputs_as", inputs_as, ("text", "variables"))
        answer = object_schema(text={"type": "string"}) if is_text else data.schema_of(output)
        parameters = {
            _identifier(name): tool["function"] for name, tool in zip(self.tools, self._functions or (), strict=True)
        }
        if "answer" in parameters:
            raise errors.ConfigError("CodeAct: a tool is called 'answer', the function that ends the run; rename it.")
        self.signatures: dict[str, Json] = {
            **parameters,
            "answer": {"description": "Give the answer.", "parameters": answer},
        }
        self.answer_spec = output
        self.tool_names = dict(zip(parameters, self.tools, strict=True))

    def _opening_of(self, conversation: Conversation) -> tuple[lm.Message, ...]:
        """Return the opening of a conversation, whose first turn ends with the functions of the code."""
        lines = ["The code can call these functions, each with await:"]
        for name, function in self.signatures.items():
            parts = function["parameters"].get("properties", {})
            lines.append(f"- {name}({', '.join(parts)}): {function.get('description') or ''}")
            schema = {key: part for key in ("properties", "$defs") if (part := function["parameters"].get(key))}
            lines.append(f"  {data.dump_json(schema)}")
        lines.append("There are no files, no network and no packages. What is not printed is not shown.")
        if self.inputs_as == "variables":
            lines.append("The fields of the inputs are variables of the code; you see only how they begin.")
        first, *rest = conversation.opening
        own, text = first["role"] == "system", "\n".join(lines)
        content = f"{first['content']}\n\n{text}" if own else text
        return lm.turns([{"role": "system", "content": content}, *(rest if own else conversation.opening)])

    async def _answer(self, inputs: Any, conversation: Conversation) -> data.JsonDataModel[Any]:
        """Run the pieces of code that the model writes, until one gives the answer.

        Raises:
            AgentLimitError: There is none after `max_steps` pieces.
        """
        run, conversation.opening = _CodeRun(self, conversation), self._opening_of(conversation)
        names = [_FUNCTION.format(name=name) for name in self.signatures]
        fields, texts = frozen(inputs), dict[str, str]()
        if self.inputs_as == "variables":
            texts["_inputs"] = data.dump_json(fields)
            names += [
                _VARIABLE.format(name=name) for name in fields if name.isidentifier() and not keyword.iskeyword(name)
            ]
        sandbox = Sandbox(self.seconds, self.memory_mb, run.use, _PRELUDE + "".join(names), texts)
        async with open_sandbox(sandbox, self._where, shared=False):
            for _ in range(self.max_steps):
                reply = await self._reply(conversation.sent())
                conversation.later += lm.turns(reply.message)
                outcome = await run.piece(sandbox, reply.json["code"])
                if run.answer is not None:
                    return run.answer
                conversation.later += lm.turns([{"role": "user", "content": _shown_outcome(outcome)}])
        raise self._limit_error(f"no answer after max_steps={self.max_steps} pieces of code", conversation.sent())

    def _shown(self, inputs: Any) -> Any:
        """Return the inputs, or as a data model the type, size and beginning of each field."""
        if self.inputs_as == "text":
            return inputs
        texts = dict[str, Json]()
        for name, value in frozen(inputs).items():
            text = value if isinstance(value, str) else data.dump_json(value)
            cut = "..." if len(text) > _HEAD else ""
            kind = type(value).__name__.removeprefix("Frozen").lower()
            texts[name] = f"{name}, {kind} of {len(text):,} characters: {text[:_HEAD]}{cut}"
        return data.wrap(
            frozen(texts), data.intern_schema(object_schema(**{name: {"type": "string"} for name in texts}))
        )

    async def use_tool(self, name: str, inputs: Any) -> Json:
        """Run a tool for the code; return its output.

        Raises:
            Exception: Any exception of the tool.
        """
        scope.reserve(0, tool_calls=1, where=self._where).settle(scope.Usage())
        return plain_output(await self.tools[name](inputs), [])

    def too_many_calls(self, conversation: Conversation) -> errors.AgentLimitError:
        """Return the error for more runs of tools than are allowed."""
        return self._limit_error(f"the code calls more than max_calls={self.max_tool_calls} tools", conversation.sent())


class _CodeRun:
    """One run of a `CodeAct`: what its code calls, at most so many at once and in all, and the answer."""

    def __init__(self, agent: CodeAct[Any], conversation: Conversation) -> None:
        self.agent, self.conversation = agent, conversation
        self.answer: data.JsonDataModel[Any] | None = None
        self._left = agent.max_tool_calls
        self._room = asyncio.Semaphore(agent.parallel_tools)
        self._group: aio.task_group | None = None
        self._end = asyncio.Event()

    async def piece(self, sandbox: Sandbox, code: str) -> Outcome:
        """Run a piece of code until it ends or gives the answer; when it has ended, so have the tools that it called.

        Raises:
            Exception: Raised by a tool, and not for the code to catch.
        """
        outcome, self._end = Outcome(None, ""), asyncio.Event()

        async def run() -> None:
            nonlocal outcome
            outcome = await sandbox.run(f"{_plain_code(code)}\nNone")
            self._end.set()

        async with aio.task_group() as group:
            self._group = group
            group.start_soon(run)
            try:
                await self._end.wait()
            finally:
                self._group = None  # a call that the worker made before its end, and that arrives now, does nothing
            group.cancel()
        return outcome

    async def use(self, text: str) -> str:
        """Return the reply to a call of the code; a failure that is not for the code ends the piece instead."""
        if self._group is None:
            return "{}"
        reply = asyncio.get_running_loop().create_future()
        self._group.start_soon(self._work, text, reply)
        return await reply

    async def _work(self, text: str, reply: "asyncio.Future[str]") -> None:
        """Set the reply to a call of the code."""
        try:
            async with self._room:
                json_reply = await self._reply_to(text)
            if not reply.done():
                reply.set_result(json.dumps(json_reply))
        finally:
            reply.cancel()

    async def _reply_to(self, text: str) -> Json:
        """Return the result of a call of the code, or the error for the code to catch.

        Raises:
            AgentLimitError: It is one call too many.
            Exception: Any other exception of the tool, or a ToolError that is not to be reported.
        """
        try:
            name, args, kwargs = json.loads(text)
            inputs = self._inputs_of(name, args, kwargs)
        except (ValueError, TypeError, AttributeError, errors.ToolError) as error:
            return {"error": f"{error}"[:_MOST_SHOWN]}
        if name == "answer":
            self.answer = self.answer or inputs
            self._end.set()
            await asyncio.get_running_loop().create_future()  # until the end of the run cancels this
        self._left -= 1
        if self._left < 0:
            raise self.agent.too_many_calls(self.conversation)
        try:
            return {"result": await self.agent.use_tool(self.agent.tool_names[name], inputs)}
        except errors.ToolError as error:
            is_raised = self.agent.on_tool_error == "raise" or error.report is False
            if is_raised or scope.is_from_enclosing_limit(error):
                raise
            return {"error": f"ToolError: {error}"[:_MOST_SHOWN]}

    def _inputs_of(self, name: str, args: Sequence[Json], kwargs: Mapping[str, Json]) -> data.JsonDataModel[Any]:
        """Return the arguments of a call as the inputs of the tool, or as the answer.

        Raises:
            ToolError: There is no such function, there are too many arguments, or one is given twice.
            SchemaError: They do not satisfy the schema of the tool, or of the answer.
        """
        signatures = self.agent.signatures
        if name not in signatures:
            raise errors.ToolError(f"no function {name!r}; there are {', '.join(signatures)}.")
        names = list(signatures[name]["parameters"].get("properties", {}))
        if len(args) > len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
            raise errors.ToolError(f"{name} takes ({', '.join(names)}), each once.")
        arguments: Json = {**dict(zip(names, args, strict=False)), **kwargs}
        declared: Any = self.agent.answer_spec
        if name != "answer":
            declared = module.tool_inputs(checks.innermost(self.agent.tools[self.agent.tool_names[name]]))
        elif data.model_of(declared) is data.ChatMessage:
            arguments = {"role": "assistant", "content": arguments.get("text")}
        return data.JsonDataModel(arguments, data.schema_of(declared), data.model_of(declared))


def _shown_outcome(outcome: Outcome) -> str:
    """Return what the model reads of a piece of code."""
    left_out = len(outcome.output) - _MOST_SHOWN
    cut = f"\n(and {left_out:,} more characters)" if left_out > 0 else ""
    parts = [f"Output:\n{outcome.output[:_MOST_SHOWN]}{cut}" if outcome.output else _NOTHING]
    if outcome.error is not None:
        parts.append(f"Error:\n{outcome.error[-_MOST_SHOWN:]}")
    if outcome.is_stopped:
        parts.append(_STOPPED)
    return "\n".join(parts)


def _plain_code(text: str) -> str:
    """Return code without the fence of Markdown that many models write around it."""
    return lm.bare_text(textwrap.dedent(text))


def _identifier(name: str) -> str:
    """Return the name of a tool as that of a function."""
    name = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
    return f"{name}_" if keyword.iskeyword(name) else name


# -- a tool that asks a model ------------------------------------------------------------------------------------------


@register_own()
class PromptText(data.DataModel, defer_build=True):
    """A prompt for a model.

    Attributes:
        prompt: The whole text.
    """

    prompt: str


@register_own()
class AskModel(Module):
    """The tool of `ask_model`."""

    language_model: lm.LanguageModel | None = None

    def __init__(self, language_model: lm.LanguageModel | str | None = None, **options: Unpack[ModuleOptions]) -> None:
        options["name"] = options.get("name", "ask_model")
        options["description"] = options.get("description", "Ask a language model; return its reply.")
        super().__init__(**options)
        if language_model is not None:
            self.language_model = lm.model_from(language_model, "ask_model: language_model")
        self.output_spec = data.symbol(RESULT)

    async def call(self, inputs: PromptText) -> Any:
        """Return the reply of the model to a prompt."""
        model = self.language_model or lm.resolve_model(None, self.path or self.name)
        reply = await model([{"role": "user", "content": cast("Any", inputs)["prompt"]}])
        return data.wrap(frozen({"result": reply.text}), RESULT)


def ask_model(language_model: lm.LanguageModel | str | None = None) -> AskModel:
    r"""Return a tool that sends a prompt to a model: code can read long inputs in pieces, each by a call of its own.

    Args:
        language_model: The model, or a string such as "openai/gpt-4o-mini"; by default that of the calling context at
            each call.

    Raises:
        ConfigError: `language_model` is not a model.

    Example:
        >>> from synmod.testing import FunctionLM
        >>> tool = ask_model(FunctionLM(lambda request: "short"))
        >>> code = "reply = await ask_model('Summarize: ' + text)\nawait answer(summary=reply)"
        >>> class Document(sm.DataModel):
        ...     text: str
        >>> from synmod.testing import ScriptedLM
        >>> reader = sm.CodeAct(
        ...     [tool], {"summary": str}, inputs_as="variables", language_model=ScriptedLM([{"code": code}])
        ... )
        >>> sm.run(reader, Document(text="long " * 10_000))["summary"]
        'short'

    Source: recursive language models (Zhang et al. 2025).
    """
    return AskModel(language_model)
