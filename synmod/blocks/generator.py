"""Generator: one typed model call."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Unpack, cast, overload

from pydantic import BaseModel
from typing_extensions import TypeVar

from synmod.blocks.asking import Asking
from synmod.blocks.examples_schema import examples_schema
from synmod.blocks.options import KEYWORDS, sampling_of
from synmod.data import DataModel, JsonDataModel, declaration, schema_of, symbol
from synmod.errors import ArgumentError, CallError, SchemaError
from synmod.leaves.frozen import frozen
from synmod.lm import (
    LanguageModel,
    Layout,
    check_sample,
    check_structured,
    default_instructions,
    model_from,
    resolve_model,
    sampling_params,
)
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from synmod.blocks.options import GeneratorOptions
    from synmod.data import ChatMessage, Schema, SymbolicDataModel
    from synmod.leaves.frozen import Json
    from synmod.lm import Message
    from synmod.scope import Hook

M = TypeVar("M", bound=BaseModel, default=Any)


@register_own()
class Generator(Module, Generic[M]):
    """One typed model call: inputs are rendered into a prompt, the reply is a value of the output model.

    Its two Params are there from the start: `instructions`, a text, and `examples`, a list of
    `{"inputs": ..., "outputs": ...}`. Training changes these; a call records nothing into them.

    Args:
        data_model: Output model: a class, symbol, value or schema. Without it and `schema` the reply is text, and
            the output a `ChatMessage`.
        schema: JSON schema of the output; must agree with `data_model`.
        language_model: The model, or a string such as "openai/gpt-4o-mini"; without it the default of the calling
            context at each call.
        instructions: What to do; dedented. The default is written from the output model.
        examples: First examples; inputs and outputs may be data models.
        return_inputs: Whether the output begins with the fields of the inputs.
        template: Texts of the turns, `{"system": ..., "user": ...}`, with the slots `{instructions}`,
            `{input_fields}`, `{output_schema}`, `{examples}`, `{inputs}`.
        prompt: A plain function of the slots that returns the messages, instead of a template.
        structured: How the model is asked for the schema: "schema", "json", "prompt"; None for what it does best.
        system_from_inputs: Whether a conversation among the inputs may hold system turns.
        sample: Number of the draw among independent draws; None takes that of the calling context.
        name: Label.
        description: Label.
        trainable: Whether the Params may be trained.
        hooks: Listeners to this module.
        **params: Sampling parameters, such as `temperature`; they win over the model's. Attributes, too, that may be
            set later.

    Schemas:
        inputs: any data model; a conversation (`ChatMessages`) becomes turns of its own
        outputs: that of `data_model`; with `return_inputs` the inputs' fields first

    Raises:
        ArgumentError: `data_model` and `schema` differ, or `template` and `prompt` are both given.
        ConfigError: An unknown keyword or sampling parameter ('Did you mean'), a template that cannot be, a model that
            is none, an unknown `structured`.
        SchemaError: The schema cannot be used, or an example misses it; names index and field.

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

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_asking", "output_spec"})
    _keywords: ClassVar[tuple[str, ...]] = KEYWORDS

    language_model: LanguageModel | None = None
    """The model that is called; None for the default of the calling context."""

    # Sampling parameters: what was given, or set later, is sent; None is not.
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
            self: Generator[ChatMessage],
            data_model: None = None,
            *,
            schema: None = None,
            **options: Unpack[GeneratorOptions],
        ) -> None: ...
        @overload
        def __init__(
            self, data_model: type[M], *, schema: Json = None, **options: Unpack[GeneratorOptions]
        ) -> None: ...
        @overload
        def __init__(
            self: Generator[Any],
            data_model: SymbolicDataModel | JsonDataModel[Any] | Mapping[str, Json] | None = None,
            *,
            schema: Json = None,
            **options: Unpack[GeneratorOptions],
        ) -> None: ...

        @overload
        def __call__(
            self, inputs: SymbolicDataModel, /, *, training: bool | None = None
        ) -> Coroutine[Any, Any, SymbolicDataModel]: ...
        @overload
        def __call__(
            self, inputs: DataModel | JsonDataModel[Any], /, *, training: bool | None = None
        ) -> Coroutine[Any, Any, JsonDataModel[M]]: ...
        @overload
        def __call__(self, inputs: None, /, *, training: bool | None = None) -> Coroutine[Any, Any, None]: ...
        @overload
        def __call__(self, inputs: Any, /, *, training: bool | None = None) -> Coroutine[Any, Any, Any]: ...
        def __call__(self, inputs: Any, /, *, training: bool | None = None) -> Coroutine[Any, Any, Any]: ...

    def __init__(
        self,
        data_model: Any = None,
        *,
        schema: Json = None,
        language_model: LanguageModel | str | None = None,
        instructions: str | None = None,
        examples: Sequence[Mapping[str, Any]] | None = None,
        return_inputs: bool = False,
        template: Mapping[str, str] | None = None,
        prompt: Callable[..., Any] | None = None,
        structured: str | None = None,
        system_from_inputs: bool = False,
        sample: int | None = None,
        name: str | None = None,
        description: str | None = None,
        trainable: bool = True,
        hooks: Sequence[Hook] | None = None,
        **params: Json,
    ) -> None:
        super().__init__(name=name, description=description, trainable=trainable, hooks=hooks)
        kind = type(self).__name__
        sampling = sampling_params(params, kind, self._keywords)
        settings: dict[str, Json] = {}
        if sample is not None:
            settings["sample"] = check_sample(sample)
        if structured is not None:
            settings["structured"] = check_structured(structured, kind)
        if language_model is not None:
            self.language_model = model_from(language_model, f"{kind}: language_model")
        output, asked = _output_of(data_model, schema, kind)
        layout = Layout(asked, template, prompt, system_from_inputs=system_from_inputs)
        self._asking = Asking(asked, output, layout, settings, return_inputs)
        vars(self).update(sampling)
        self.instructions = self.add_variable(
            default_instructions(asked) if instructions is None else _dedented(instructions),
            schema={"type": "string"},
            name="instructions",
            description="What the model is told to do.",
        )
        self.examples = self.add_variable(
            [] if examples is None else examples,
            schema=examples_schema(schema_of(output)),
            name="examples",
            description="Inputs, each with the outputs that it should have.",
        )
        if not return_inputs:
            self.output_spec = output

    async def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: ARG002  # the same in training
        """Render the prompt, ask the model, and make the output of its reply.

        Args:
            inputs: One data model.
            training: Changes nothing here.

        Returns:
            The output; with `return_inputs` after the fields of the inputs.

        Raises:
            ConfigError: There is no model, neither here nor by default.
            CallError: The inputs are a list, tuple or dict of data models.
            DataError: A conversation among the inputs holds a system turn.
            ConfigError: The inputs hold an image, sound or a file, and there is no `prompt` function.
            SchemaError: A validator of the output's class refuses the reply.
            ModelError: The model call failed.
        """
        model = self.language_model
        if not isinstance(model, LanguageModel):
            model = resolve_model(model, self._where)
        asking = self._asking
        reply = await model(self._prompt_for(inputs), asking.schema, **asking.settings, **sampling_of(self))
        try:
            outputs = asking.read(reply)
        except SchemaError as error:
            raise SchemaError(f"{self._where}: {error}", error.errors) from None
        return asking.result_of(inputs, outputs)

    async def compute_output_spec(self, inputs: Any) -> SymbolicDataModel:
        """The output as a symbol: declared, and with `return_inputs` after the fields of the inputs."""
        self._refuse_nest(inputs)
        return self._asking.result_of(inputs, self._asking.output)

    def render(self, inputs: DataModel | JsonDataModel[Any]) -> list[ChatMessage]:
        """Show the exact messages that a call with these inputs sends.

        Args:
            inputs: One data model.

        Returns:
            The messages, the system turn first.

        Raises:
            CallError: The inputs are a list, tuple or dict of data models.
            ArgumentError: The inputs are no data model.
            DataError: A conversation among the inputs holds a system turn.
            ConfigError: The inputs hold an image, sound or a file, and there is no `prompt` function.

        Example:
            >>> import synmod as sm
            >>> class Query(sm.DataModel):
            ...     question: str
            >>> sm.Generator(instructions="Be brief.").render(Query(question="Who?"))[1].content
            '<inputs>{"question":"Who?"}</inputs>'
        """
        from synmod.data import ChatMessage

        self._refuse_nest(inputs)
        if not isinstance(inputs, (DataModel, JsonDataModel)):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ArgumentError(f"{self._where}: render takes a data model with its values, got {inputs!r:.100}.")
        return [ChatMessage(**turn) for turn in self._prompt_for(inputs)]

    def _prompt_for(self, inputs: Any) -> list[Message]:
        """Render the prompt with the Params as they are now."""
        self._refuse_nest(inputs)
        layout, instructions, examples = self._asking.layout, self.instructions.value, self.examples.value
        return layout.render(instructions, examples, frozen(inputs), schema_of(inputs))

    def _refuse_nest(self, inputs: Any) -> None:
        """Raise CallError for a list, tuple or dict of data models: a prompt is rendered for one."""
        if isinstance(inputs, (list, tuple, dict)):
            nest = cast("object", inputs)
            raise CallError(
                f"{self._where}: takes one data model, got a {type(nest).__name__} of them; put them together first, "
                "with sm.ops.concat(a, b) or a + b."
            )

    @property
    def _where(self) -> str:
        """How messages name this module."""
        return self.path or self.name


def _output_of(data_model: Any, schema: Json, kind: str) -> tuple[SymbolicDataModel, Schema | None]:
    """The output as a symbol, and the schema that the reply must satisfy; None for a reply in plain text."""
    if data_model is None and schema is None:
        from synmod.data import ChatMessage

        return symbol(schema_of(ChatMessage), ChatMessage), None
    declared, model = declaration(schema, data_model, kind)
    return symbol(declared, model), declared


def _dedented(instructions: Any) -> Any:
    """Take the indentation of the code off a text; what is no text is left to the schema of the Variable."""
    return cleandoc(instructions) if isinstance(instructions, str) else instructions
