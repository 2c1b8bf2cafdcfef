"""Generator, one typed model call; ChainOfThought, which reasons before it answers; SelfCritique, which scores."""

import inspect
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, NamedTuple, Unpack, cast, get_origin, overload

from pydantic import BaseModel, Field, PydanticSchemaGenerationError, PydanticUserError, create_model
from typing_extensions import TypeVar

from synmod import data, lm, registry, scope, tree
from synmod.errors import ArgumentError, CallError, ConfigError, SchemaError, SynmodWarning
from synmod.leaves import Json, check_type, frozen, is_mapping
from synmod.module import InVariable, Module, ModuleOptions

from .conversation import Compact, Conversation

M = TypeVar("M", bound=BaseModel, default=Any)

_SAMPLING: Final = frozenset(lm.SAMPLING)
_SYNONYMS: Final = {
    "language_model": ("lm", "llm", "model"),
    "instructions": ("system_prompt", "system_message", "system", "role", "goal", "backstory", "state_modifier"),
    "max_steps": ("max_iterations", "max_iter", "max_turns", "max_rounds", "max_loops", "recursion_limit"),
    "tools": ("functions", "toolkit"),
    "examples": ("demos", "few_shot"),
    "data_model": ("signature", "response_model", "output_type", "result_type", "output_schema", "output_model"),
}
"""Our keywords, each with those of other libraries."""
_ELSEWHERE: Final = {
    "tools": "an argument of sm.Agent, which calls tools: sm.Agent(tools, ...)",
    "stream": "no keyword: stream any module by `async with sm.stream(module, inputs) as s`",
    "verbose": "no keyword: `with sm.trace() as trace` keeps every call of a model and of a tool",
    "n": "an argument of sm.BestOf and sm.Majority, which choose among samples: sm.Majority(module, n)",
}
"""Keywords of other libraries for what another part does."""
_JSON: Final = (str, int, float, list, dict, type(None))
"""The types of the values in a JSON schema, which are never types of fields."""


class GeneratorOptions(ModuleOptions, lm.Sampling, total=False):
    """Keywords of a block with a model call, beside those of every module and the sampling parameters."""

    language_model: lm.LanguageModel | str | tree.Choice | Mapping[str, lm.LanguageModel | str] | None
    instructions: str | None
    examples: Sequence[Mapping[str, Any]] | None
    return_inputs: bool
    layout: Literal["turns", "tags"]
    template: Mapping[str, str] | None
    prompt: Callable[..., Any] | None
    structured: Literal["schema", "json", "tool", "calls", "prompt"] | None
    system_from_inputs: bool
    sample: int | None
    compact: Compact | None


def check_params(block: type[Module], keywords: Mapping[str, Json]) -> Json:
    """Return the sampling parameters among the keywords of a block with a model call.

    Raises:
        ConfigError: A keyword is neither one of the block nor a sampling parameter ('Did you mean').
        DataError: A sampling parameter is not JSON.
    """
    if not keywords:
        return {}
    spec = inspect.getfullargspec(block.__init__)
    own = [*spec.args[1:], *spec.kwonlyargs]
    for name, owner in _ELSEWHERE.items():
        if name in keywords and name not in own:
            raise ConfigError(f"{block.__name__}: {name!r} is {owner}.")
    names = [*own, *(name for name in GeneratorOptions.__annotations__ if name not in {*own, *_SAMPLING})]
    for ours, name in ((ours, name) for ours, theirs in _SYNONYMS.items() for name in theirs):
        if name in keywords and name not in own:
            owner = " of sm.Agent" if ours in ("max_steps", "tools") and ours not in names else ""
            raise ConfigError(f"{block.__name__}: unknown keyword {name!r}. Did you mean {ours!r}{owner}?")
    params = {name: value for name, value in keywords.items() if name not in names}
    choices = {name: value for name, value in params.items() if isinstance(value, tree.Choice)}
    for name, choice in choices.items():
        for option in choice.options:
            lm.check_sampling({name: option}, block.__name__, names)
    checked = lm.check_sampling({name: params[name] for name in params.keys() - choices}, block.__name__, names)
    return {**checked, **choices} if choices else checked


class Form(NamedTuple):
    """The schemas of a generator: of the reply of its model, and of its output.

    Attributes:
        reply: Symbol of the reply; None for plain text.
        output: Symbol of the output.
        hidden: A field of the reply that is not in the output.
        reasoning: A field that the provider's native reasoning may fill.
        example: Symbol of the outputs of an example, where it is not that of the output.
    """

    reply: data.SymbolicDataModel | None
    output: data.SymbolicDataModel
    hidden: str | None = None
    reasoning: str | None = None
    example: data.SymbolicDataModel | None = None


@registry.register_own()
class Generator(Module, Generic[M]):
    """One typed model call: inputs are rendered into a prompt, the reply becomes a value of the output model.

    It has two Params from the start: `instructions`, a text, and `examples`, a list of
    `{"inputs": ..., "outputs": ...}`. Training changes them; calls do not write to them.

    Args:
        data_model: Output model: a class, symbol, value or schema, or a mapping from field to type. Another type, such
            as `str`, `list[Answer]` or `Answer | None`, becomes the single field `value`, and `.to()` of the output
            returns its value. Without it and `schema` the reply is text, and the output a `ChatMessage`.
        schema: JSON schema of the output; must agree with `data_model`.
        language_model: The model, or a string such as "openai/gpt-4o-mini"; by default that of the calling context at
            each call.
            Also a `Choice` of models by name, or of strings, which training may change.
        instructions: The task for the model; dedented. By default written from the output model.
        examples: Initial examples; inputs and outputs may be data models.
        return_inputs: Whether the output begins with the fields of the inputs.
        layout: "turns", where examples are turns and their answers, or "tags", one turn with tags around each part.
        template: Texts of the turns, `{"system": ..., "user": ...}`, with the slots `{instructions}`,
            `{input_fields}`, `{output_fields}`, `{output_schema}`, `{examples}`, `{inputs}`.
        prompt: A plain function of the slots that returns the messages, instead of a template.
        structured: How to request the schema: "schema", "json", "tool", "calls" or "prompt"; None for the best way.
        system_from_inputs: Whether a conversation among the inputs may have system turns.
        sample: Number of the sample among independent ones; None takes that of the calling context.
        compact: How to shorten a conversation that nears the context window; None to leave it as it is.
        name: Label.
        description: Label.
        trainable: Whether the Params may be trained.
        hooks: Listeners to this module.
        **params: Sampling parameters, such as `temperature`, which override the model's. They are also attributes,
            which may be set later.

    Schemas:
        inputs: any data model; a conversation (`ChatMessages`) is sent as separate turns
        outputs: that of `data_model`; with `return_inputs` the fields of the inputs first

    Raises:
        ArgumentError: `data_model` and `schema` differ, or two of `template`, `prompt` and `layout="tags"` are given.
        ConfigError: A keyword or sampling parameter is unknown ('Did you mean'), the template is invalid, or lacks
            `{examples}` although there are some, `language_model` is not a model, or `layout` or `structured` is
            unknown.
        SchemaError: The schema is unusable, or an example does not satisfy it; names index and field.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> generator = sm.Generator(Answer, language_model=ScriptedLM([{"answer": "Paris"}]))
        >>> sm.run(generator, Query(question="Capital of France?"))["answer"]
        'Paris'

    Source: Synalinks' `Generator`, DSPy's `Predict`; differs: nothing is recorded by calls, prompts are data.
    """

    graph_ignored: ClassVar[frozenset[str]] = frozenset(
        {"_form", "_layout", "_output", "_settings", "_return_inputs", "output_spec"}
    )

    _opening: ClassVar[str] = ""
    """The beginning of default instructions."""

    _sentences: ClassVar[bool] = True
    """Whether a reply of listed values is described by sentences."""

    language_model: lm.LanguageModel | tree.Choice | None = None
    models: Mapping[str, lm.LanguageModel]  # by name, where `language_model` is a choice
    """The model to call; None for the default of the calling context."""

    compact: Compact | None = None
    """How to shorten a conversation that nears the context window."""

    # Sampling parameters, given or set later; None is not sent.
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: str | Sequence[str] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: Mapping[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: Json = None
    modalities: Sequence[str] | None = None
    service_tier: str | None = None

    if TYPE_CHECKING:

        @overload
        def __init__(
            self: "Generator[data.ChatMessage]",
            data_model: None = None,
            *,
            schema: None = None,
            **options: Unpack[GeneratorOptions],
        ) -> None: ...
        @overload
        def __init__(
            self,
            data_model: type[M] | data.SymbolicDataModel | data.JsonDataModel[Any] | Mapping[str, Any] | None = None,
            *,
            schema: Json = None,
            **options: Unpack[GeneratorOptions],
        ) -> None: ...
        @overload  # a type such as `list[Answer]`
        def __init__(self: "Generator[Any]", data_model: object, **options: Unpack[GeneratorOptions]) -> None: ...

        @overload
        def __call__(
            self, inputs: data.SymbolicDataModel, /, *, training: bool | None = None
        ) -> Coroutine[Any, Any, data.SymbolicDataModel]: ...
        @overload
        def __call__(
            self, inputs: data.DataModel | data.JsonDataModel[Any], /, *, training: bool | None = None
        ) -> Coroutine[Any, Any, data.JsonDataModel[M]]: ...
        @overload
        def __call__(self, inputs: None, /, *, training: bool | None = None) -> Coroutine[Any, Any, None]: ...
        def __call__(  # pyright: ignore[reportIncompatibleMethodOverride]  # narrower than what `call` shows
            self, inputs: Any, /, *, training: bool | None = None
        ) -> Coroutine[Any, Any, Any]: ...

    def __init__(
        self,
        data_model: Any = None,
        *,
        schema: Json = None,
        language_model: lm.LanguageModel | str | tree.Choice | Mapping[str, lm.LanguageModel | str] | None = None,
        instructions: str | None = None,
        examples: Sequence[Mapping[str, Any]] | None = None,
        return_inputs: bool = False,
        layout: str = "turns",
        template: Mapping[str, str] | None = None,
        prompt: Callable[..., Any] | None = None,
        structured: str | None = None,
        system_from_inputs: bool = False,
        sample: int | None = None,
        compact: Compact | None = None,
        name: str | None = None,
        description: str | None = None,
        trainable: bool = True,
        hooks: Sequence[scope.Hook] | None = None,
        **params: Json,
    ) -> None:
        super().__init__(name=name, description=description, trainable=trainable, hooks=hooks)
        kind = type(self).__name__
        vars(self).update(check_params(type(self), params))
        form = data_model if isinstance(data_model, Form) else _form(data_model, schema, kind)
        reply = None if form.reply is None else data.schema_of(form.reply)
        self._form, self._return_inputs = form, return_inputs
        self._layout = lm.Layout(
            reply, template, prompt, system_from_inputs=system_from_inputs, layout=layout, sentences=self._sentences
        )
        if examples:
            self.check_examples(kind)
        self._settings: dict[str, Any] = {
            "sample": None if sample is None else lm.check_sample(sample),
            "structured": lm.check_structured(structured, kind),
            "reasoning_field": form.reasoning,
            "data_model": data.model_of(form.output),
        }
        if language_model is not None:
            self._hold_model(language_model, f"{kind}: language_model")
        if compact is not None:
            check_type(f"{kind}: compact", compact, Compact, "sm.Compact(...)", error=ConfigError)
            self.compact = compact
        self._note_arguments({"instructions": instructions, "examples": examples})
        if instructions is None:
            instructions = "\n\n".join(filter(None, [self._opening, lm.default_instructions(reply)]))
        elif isinstance(instructions, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (anything else fails the schema)
            instructions = inspect.cleandoc(instructions)
        text, what = {"type": "string"}, "What the model is told to do."
        self.instructions = self.add_variable(instructions, schema=text, name="instructions", description=what)
        schema = _examples_schema(data.schema_of(form.output if form.example is None else form.example))
        shown, what = _check_examples(kind, examples), "Inputs, each with the outputs that it should have."
        self.examples = self.add_variable(shown, schema=schema, name="examples", description=what)
        self._declare_output(form.output)

    def _hold_model(self, models: Any, where: str) -> None:
        """Hold a model, or a choice of models, which the record of this module holds by name, as a file does."""
        choice: tree.Choice
        if is_mapping(models):
            choice = tree.Choice(models)
        elif isinstance(models, tree.Choice):
            choice = models
        else:
            self.language_model = lm.model_from(models, where)
            return
        if not choice.behind:  # its options are strings
            choice.behind = {str(option): option for option in choice.options}
        self.models = {name: lm.model_from(model, f"{where}[{name!r}]") for name, model in choice.behind.items()}
        self.language_model = choice
        self._record.arguments = {**(self._record.arguments or {}), "language_model": dict(self.models)}

    def _declare_output(self, output: data.SymbolicDataModel) -> None:
        """Declare the output without the inputs."""
        self._output = output
        if not self._return_inputs:
            self.output_spec = output

    def _note_arguments(self, originals: Mapping[str, Any]) -> None:
        """Mark the recorded arguments that Variables hold, which files keep in the state alone."""
        arguments = self._record.arguments or {}
        if (declared := arguments.get("data_model")) is not None:  # a file holds the model, not the types it is made of
            arguments = self._record.arguments = {**arguments, "data_model": _model_from(declared)}
        for name, value in originals.items():
            if value is not None and arguments.get(name) == value:  # examples may be data models
                arguments = self._record.arguments = {**arguments, name: InVariable(value)}

    async def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: ARG002  # the same in training
        """Return the reply of the model to the prompt, as a value of the output model.

        Args:
            inputs: One data model.
            training: Has no effect.

        Returns:
            The output; with `return_inputs` after the fields of the inputs.

        Raises:
            ConfigError: No model is passed, and no default is set.
            CallError: The inputs are a list, tuple or dict of data models.
            DataError: A conversation among the inputs has a system turn.
            DataError: The inputs have audio at a URL, which messages do not support.
            ModelError: The model call failed; as BadReplyError also where the class of the output refuses the reply.
        """
        if self.compact is None:
            reply = await self._reply(self._prompt(inputs))
        else:
            reply = await self._reply_to(self._conversation(inputs))
        return self._result(inputs, self._outputs(reply))

    async def compute_output_spec(self, inputs: Any) -> data.SymbolicDataModel:
        """Return the declared output as a symbol; with `return_inputs` after the fields of the inputs."""
        self._refuse_nest(inputs)
        return data.ops.concat(inputs, self._output) if self._return_inputs else self._output

    def check_examples(self, where: str = "") -> None:
        """Check that the model would see examples, before an optimizer pays for any.

        Raises:
            ConfigError: The template lacks `{examples}`; begins with `where`.
        """
        self._layout.check_examples(where)

    def render(self, inputs: data.DataModel | data.JsonDataModel[Any]) -> list[data.ChatMessage]:
        """Return the exact messages that a call with these inputs sends; `print` shows them as a person reads them.

        Args:
            inputs: One data model.

        Returns:
            The messages, the system turn first.

        Raises:
            ArgumentError: The inputs are not a data model.
            DataError: A conversation among the inputs has a system turn.
            DataError: The inputs have audio at a URL, which messages do not support.

        Example:
            >>> import synmod as sm
            >>> class Query(sm.DataModel):
            ...     question: str
            >>> sm.Generator(instructions="Be brief.").render(Query(question="Who?"))[1].content
            'Who?'
        """
        if not isinstance(inputs, (data.DataModel, data.JsonDataModel)):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            got = f"{inputs!r:.80}; write sm.JsonDataModel(x, data_model=Query)"
            raise ArgumentError(f"{self._where}: render takes a data model with its values, got {got}.")
        return data.Prompt(data.ChatMessage(**turn) for turn in self._prompt(inputs))

    async def _reply(
        self, messages: Sequence[lm.Message], tools: Sequence[Json] | None = None, **params: Json
    ) -> lm.LMReply:
        """Call the model with the schema of the reply; `params` override the sampling parameters of this module."""
        own = {name: tree.chosen(value) for name, value in vars(self).items() if name in _SAMPLING}
        model, reply = self._model(), self._form.reply
        schema = None if reply is None else data.schema_of(reply)
        return await model(messages, schema, tools, stream=False, **{**self._settings, **own, **params})

    def _model(self) -> lm.LanguageModel:
        """Return the model to call."""
        model = self.language_model
        if isinstance(model, tree.Choice):
            return self.models[str(model.value)]
        return model if isinstance(model, lm.LanguageModel) else lm.resolve_model(model, self._where)

    async def _reply_to(
        self, conversation: Conversation, tools: Sequence[Json] | None = None, **params: Json
    ) -> lm.LMReply:
        """Call the model with a conversation, which is compacted if it is too long."""
        ask = partial(self._reply, tools=tools, **params)
        if self.compact is None:
            return await ask(conversation.sent())
        return await self.compact.reply(conversation, ask, self._model(), tools or ())

    def _result(self, inputs: Any, outputs: Any) -> Any:
        """Return the result of a call: its outputs, after the inputs if requested."""
        return data.ops.concat(inputs, outputs) if self._return_inputs else outputs

    def _prompt(self, inputs: Any) -> list[lm.Message]:
        """Return the prompt, with the present values of the Params."""
        self._refuse_nest(inputs)
        return self._layout.render(self.instructions.value, self.examples.value, frozen(inputs), data.schema_of(inputs))

    def _conversation(self, inputs: Any) -> Conversation:
        """Return the conversation that begins with the inputs."""
        prompt, values, schema = self._prompt(inputs), frozen(inputs), data.schema_of(inputs)
        return Conversation(
            prompt, *self._layout.turns_of(self.instructions.value, self.examples.value, values, schema)
        )

    def _outputs(self, reply: lm.LMReply) -> data.JsonDataModel[Any]:
        """Return the output for a valid reply."""
        form, json = self._form, reply.json
        if form.reply is None:
            if reply.finish_reason == "length":
                cut = "the reply was cut off, and its beginning is the output; allow a longer one with max_tokens=..."
                warnings.warn(f"{self._where}: {cut}", SynmodWarning, stacklevel=2)
            message = data.ChatMessage(role="assistant", content=reply.text, reasoning_content=reply.reasoning)
            return message.to_json_data_model()
        if form.hidden is not None:
            json = frozen({name: value for name, value in json.items() if name != form.hidden})
        return data.wrap(json, data.schema_of(form.output), data.model_of(form.output))

    def _refuse_nest(self, inputs: Any) -> None:
        """Raise a CallError for a list, tuple or dict of data models: a prompt has one data model as its inputs."""
        if isinstance(inputs, (list, tuple, dict)):
            got = type(cast("object", inputs)).__name__
            raise CallError(f"{self._where}: takes one data model, got a {got} of them; merge them by sm.ops.concat.")

    @property
    def _where(self) -> str:
        """The name of this module in messages."""
        return self.path or self.name


def _form(data_model: Any, schema: Json, kind: str) -> Form:
    """Return the form for a declared output model; without one, the form for a reply in plain text."""
    if data_model is None and schema is None:
        return Form(None, data.symbol(data.schema_of(data.ChatMessage), data.ChatMessage))
    output = symbol_of(data_model, schema, kind)
    return Form(output, output)


def symbol_of(data_model: Any, schema: Json, kind: str) -> data.SymbolicDataModel:
    """Return the symbol of an output model: a class, symbol, value, schema, or a mapping from field to type.

    Raises:
        ArgumentError: Neither a data model nor a schema is given, or the two differ.
        SchemaError: The schema is unusable.
    """
    if isinstance(data_model, str):
        what = f"the first argument declares the output, got the text {data_model!r:.60}"
        raise ArgumentError(f"{kind}: {what}; write sm.{kind}(Answer, instructions='...').")
    declared, model = data.declaration(schema, _model_from(data_model), kind)
    return data.symbol(declared, model)


def _model_from(data_model: Any) -> Any:
    """Return a data model made from a mapping from field to type, or from one type; other declarations unchanged.

    Raises:
        ArgumentError: A field name is invalid or begins with an underscore, or a type is invalid or a text.
    """
    if get_origin(data_model) is not None or (isinstance(data_model, type) and not issubclass(data_model, BaseModel)):
        return _model_of_types("Value", data.Wrapped, {"value": data_model})
    if not isinstance(data_model, Mapping):
        return data_model
    types = cast("Mapping[str, Any]", data_model)
    if types and all(isinstance(kind, str) for kind in types.values()) and types.keys().isdisjoint(("type", "$ref")):
        form = f"{{{next(iter(types))!r}: str}}"
        raise ArgumentError(f"{dict(types)!r:.200} has texts for types: write {form}, or a class.")
    if not types or any(isinstance(kind, _JSON) for kind in types.values()):
        return types
    for name in types:
        if not isinstance(name, str) or not name or name.startswith("_"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"The field {name!r:.100} is not a name: write a str that does not begin with '_'.")
    return _model_of_types("Outputs", data.DataModel, types)


def _model_of_types(name: str, base: type[data.DataModel], types: Mapping[str, Any]) -> type[data.DataModel]:
    """Return a data model with these fields, all of them required."""
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in types.items()}
    try:
        return create_model(name, __base__=base, **fields)
    except PydanticUserError as error:
        is_foreign = isinstance(error, PydanticSchemaGenerationError)
        why = "derive a class of your own from sm.DataModel" if is_foreign else error.message
        raise ArgumentError(f"These types cannot be the fields of a data model: {dict(types)!r:.200}: {why}.") from None


def object_schema(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object with these fields, all of them required, and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def split_definitions(schema: data.Schema) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a schema to embed in another one, and the `$defs` that the other must have for it."""
    part = dict(data.portable(schema))
    return part, {"$defs": part.pop("$defs")} if "$defs" in part else {}


def _check_examples(kind: str, examples: Any) -> Any:
    """Return the initial examples, checked.

    Raises:
        SchemaError: An example lacks `inputs` or `outputs`.
    """
    is_list: bool = isinstance(examples, (list, tuple))
    for index, example in enumerate(cast("Sequence[object]", examples) if is_list else ()):
        if not is_mapping(example) or not {"inputs", "outputs"} <= example.keys():
            form = '{"inputs": {...}, "outputs": {...}}, where both may be data models'
            raise SchemaError(f"{kind}: examples/{index} is {example!r:.100}; write {form}.")
    return [] if examples is None else examples


def _examples_schema(output: data.Schema) -> data.Schema:
    """Return the schema of `[{"inputs": object, "outputs": ...}, ...]` for an output schema."""
    outputs, definitions = split_definitions(output)
    return data.intern_schema(
        {"type": "array", "items": object_schema(inputs={"type": "object"}, outputs=outputs), **definitions}
    )


# -- generators that reason and score ----------------------------------------------------------------------------------


@registry.register_own()
class Thinking(data.DataModel):
    """Think step by step, then answer.

    Example:
        >>> Thinking(thinking="It is the capital, so Paris.").thinking
        'It is the capital, so Paris.'

    Source: chain-of-thought prompting (Wei et al. 2022), Synalinks' `Thinking`.
    """

    model_config = data.SHORT_DESCRIPTION

    thinking: str = Field(description="the reasoning, step by step")


@registry.register_own()
class Critique(data.DataModel):
    """Judge the work in the inputs: write what is wrong with it and what would make it better, then score it.

    Example:
        >>> Critique(critique="No source is given.", score=0.4).score
        <Score.P40: 0.4>

    Source: Synalinks' `CritiqueWithReward`.
    """

    model_config = data.SHORT_DESCRIPTION

    critique: str = Field(description="what is wrong, and what would make it better")
    score: data.Score = Field(description="how good it is, from 0.0 (the worst) to 1.0 (the best)")


@registry.register_own()
class ChainOfThought(Generator[M]):
    """A `Generator` whose model writes `thinking` before the fields of the output model.

    If the provider returns its native reasoning, that becomes the thinking, which is then not requested.

    Args:
        data_model: Output model: a class, symbol, value or schema.
        schema: JSON schema of the output; must agree with `data_model`.
        return_thinking: Whether the output has the field `thinking`.
        **options: Keyword arguments of `Generator`.

    Schemas:
        inputs: any data model
        outputs: `Thinking + data_model`; without thinking, `data_model`

    Raises:
        ArgumentError: Neither `data_model` nor `schema` is given, or they differ.
        ConfigError: As for `Generator`.
        SchemaError: As for `Generator`.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> lm = ScriptedLM([{"thinking": "A capital.", "answer": "Paris"}])
        >>> sm.run(sm.ChainOfThought(Answer, language_model=lm), Query(question="Capital of France?")).get_json()
        {'thinking': 'A capital.', 'answer': 'Paris'}

    Source: chain-of-thought prompting (Wei et al. 2022), DSPy's and Synalinks' `ChainOfThought`.
    """

    def __init__(
        self,
        data_model: type[M] | data.SymbolicDataModel | data.JsonDataModel[Any] | Mapping[str, Any] | None = None,
        *,
        schema: Json = None,
        return_thinking: bool = True,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        check_params(type(self), options)  # first: a misspelt keyword may be why `data_model` is missing
        answer = symbol_of(data_model, schema, type(self).__name__)
        thought = data.ops.concat(Thinking.to_symbolic_data_model(), answer)
        form: Any = Form(thought, thought, reasoning="thinking")
        if not return_thinking:
            # The merge has renamed an own field `thinking` of the answer, which keeps the new name.
            output = data.ops.out_mask(thought, "thinking") if "thinking" in answer else answer
            form = Form(thought, output, hidden="thinking", reasoning="thinking")
        super().__init__(form, **options)


@registry.register_own()
class SelfCritique(Generator[Any]):
    """A `Generator` that critiques its inputs and scores them.

    Args:
        data_model: More fields for the critic to write first: a class, symbol, value or schema; None for none.
        schema: JSON schema of those fields; must agree with `data_model`.
        **options: Keyword arguments of `Generator`; the default of `return_inputs` is True.

    Schemas:
        inputs: any data model
        outputs: the inputs, the fields of `data_model`, `critique` (a string) and `score` (on the scale `sm.Score`)

    Raises:
        ArgumentError: `data_model` and `schema` differ.
        ConfigError: As for `Generator`.
        SchemaError: As for `Generator`.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> lm = ScriptedLM([{"critique": "No source is given.", "score": 0.4}])
        >>> sm.run(sm.SelfCritique(language_model=lm), Answer(answer="Paris")).get_json()
        {'answer': 'Paris', 'critique': 'No source is given.', 'score': 0.4}

    Source: Synalinks' `SelfCritique`; differs: there is always a score, on a scale.
    """

    def __init__(
        self,
        data_model: type[data.DataModel]
        | data.SymbolicDataModel
        | data.JsonDataModel[Any]
        | Mapping[str, Any]
        | None = None,
        *,
        schema: Json = None,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        judged = Critique.to_symbolic_data_model()
        if data_model is not None or schema is not None:
            judged = data.ops.concat(symbol_of(data_model, schema, type(self).__name__), judged)
        options.setdefault("return_inputs", True)
        super().__init__(judged, **options)
