"""The layout of one generator's prompts: what stands in which turn, rendered once where no input decides it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from synmod.errors import ArgumentError, ConfigError
from synmod.lm.messages import Message, message
from synmod.lm.prompt.conversation import MESSAGES, holds_conversation, messages_from, turns_of
from synmod.lm.prompt.escape import value_text
from synmod.lm.prompt.fields import input_fields
from synmod.lm.prompt.order import Ordering, ordering
from synmod.lm.prompt.pictures import may_hold_media, refuse_media
from synmod.lm.prompt.slots import (
    Slots,
    examples_slot,
    input_fields_slot,
    inputs_slot,
    instructions_slot,
    output_schema_slot,
)
from synmod.lm.prompt.subschemas import fields_of, is_object, resolved
from synmod.lm.prompt.template import Template

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json

PromptFunction: TypeAlias = Callable[[Slots], object]

_KEPT_AT_MOST: Final = 256  # candidates that an optimizer runs at once, with room to spare


class _Fixed(NamedTuple):
    """What is the same for all inputs of one schema, under one pair of instructions and examples."""

    system: Message | None
    user: tuple[str, ...]  # the pieces between which the inputs stand
    fields: str
    texts: Mapping[str, str]
    order: Ordering
    conversation: bool
    alone: bool  # the inputs are a conversation and nothing besides
    media: bool  # the inputs may hold images, sound or files
    kept_alive: tuple[object, ...]  # the key holds their ids


class Layout:
    """Renders the prompts of one generator.

    Args:
        output_schema: Schema of the reply, None for plain text.
        template: Texts of the turns with slots in braces (`Template`); None for the default layout.
        prompt: A function of the slots that returns the messages, instead of a template.
        system_from_inputs: Whether a conversation among the inputs may hold system turns.

    Raises:
        ArgumentError: Both `template` and `prompt`.
        ConfigError: A template that `Template` refuses, or a `prompt` that cannot be called.

    Example:
        >>> layout = Layout(None)
        >>> layout.render("Be brief.", [], {"query": "Hi"}, {"properties": {"query": {"type": "string"}}})[1]
        {'role': 'user', 'content': '<inputs>{"query":"Hi"}</inputs>'}

    Source: DSPy's ChatAdapter; differs: boundaries that no value can close, and a cache by value.
    """

    __slots__ = ("_given", "_kept", "_prompt", "_schema", "_system_from_inputs", "_template")

    def __init__(
        self,
        output_schema: Mapping[str, Json] | None,
        template: Mapping[str, str] | None = None,
        prompt: PromptFunction | None = None,
        *,
        system_from_inputs: bool = False,
    ) -> None:
        if template is not None and prompt is not None:
            raise ArgumentError("template and prompt both lay out the prompt; give one of them.")
        if prompt is not None and not callable(prompt):
            raise ConfigError(f"prompt is a {type(prompt).__name__}; it must be a function of the slots.")
        self._schema = output_schema
        self._given = template
        self._template = None if template is None else Template(template)
        self._prompt = prompt
        self._system_from_inputs = system_from_inputs
        self._kept: dict[tuple[str, int, int], _Fixed] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what was given: the cache is keyed by identities of this process."""
        return _layout_again, (self._schema, self._given, self._prompt, self._system_from_inputs)

    def render(
        self, instructions: str, examples: Sequence[Json], inputs: Mapping[str, Json], input_schema: Mapping[str, Json]
    ) -> list[Message]:
        """Render one prompt.

        Args:
            instructions: What the model is to do.
            examples: Objects `{"inputs": ..., "outputs": ...}`; frozen, as a Variable holds them.
            inputs: JSON of the inputs.
            input_schema: Schema of the inputs.

        Returns:
            Messages in chat-completions shape, the system turn first; turns without text are left out. A
            conversation among the inputs comes last, as turns of its own.

        Raises:
            DataError: The inputs are a conversation with a system turn, and `system_from_inputs` is False.
            DataError: The prompt function gave something else than messages.
            ConfigError: An input is an image, sound or a file, and there is no prompt function to lay it out.
        """
        key = (instructions, id(examples), id(input_schema))
        fixed = self._kept.get(key) or self._keep(key, self._fix(instructions, examples, input_schema))
        talk = turns_of(inputs[MESSAGES], system=self._system_from_inputs) if fixed.conversation else ()
        if self._prompt is not None:
            json = {"instructions": instructions, "output_schema": self._schema, "examples": examples, "inputs": inputs}
            return self._by_function(fixed, {**json, "input_fields": fixed.fields})
        if fixed.media:
            refuse_media(inputs, "inputs")
        user = fixed.user[0]
        if len(fixed.user) > 1:
            values = _beside_messages(inputs) if fixed.conversation else inputs
            told = "" if fixed.alone else value_text(fixed.order(values))
            user = inputs_slot(told).join(fixed.user)
        messages: list[Message] = []
        if fixed.system is not None:
            messages.append(fixed.system)
        if user and not user.isspace():
            messages.append(message("user", user))
        messages.extend(talk)
        return messages

    def _keep(self, key: tuple[str, int, int], fixed: _Fixed) -> _Fixed:
        """Keep what no input decides; when there is too much of it, begin anew."""
        if len(self._kept) >= _KEPT_AT_MOST:
            self._kept = {}
        self._kept[key] = fixed
        return fixed

    def _fix(self, instructions: str, examples: Sequence[Json], input_schema: Mapping[str, Json]) -> _Fixed:
        """Render what no input decides."""
        conversation = holds_conversation(input_schema)
        order = ordering(input_schema)
        reply = _said if self._schema is None else ordering(self._schema)
        lines = [
            value_text({"inputs": order(example["inputs"]), "outputs": reply(example["outputs"])})
            for example in examples
        ]
        fields = input_fields(input_schema, without=(MESSAGES,) if conversation else ())
        texts = {
            "instructions": instructions_slot(instructions),
            "input_fields": input_fields_slot(fields),
            "output_schema": output_schema_slot(self._schema),
            "examples": examples_slot(lines),
        }
        alone = conversation and len(fields_of(resolved(input_schema, input_schema))) == 1
        system, user = self._turns(texts, alone)
        media = may_hold_media(input_schema)
        if media and self._prompt is None:
            refuse_media([example["inputs"] for example in examples], "examples")
        told = message("system", system) if system else None
        return _Fixed(told, user, fields, texts, order, conversation, alone, media, (examples, input_schema))

    def _turns(self, texts: Mapping[str, str], alone: bool) -> tuple[str, tuple[str, ...]]:
        """The system turn, and the pieces of the user turn between which the inputs stand."""
        if self._template is not None:
            system = "".join(self._template.filled("system", texts))
            return ("" if system.isspace() else system), self._template.filled("user", texts)
        system = "\n".join(filter(None, (texts["instructions"], texts["input_fields"], texts["output_schema"])))
        examples = texts["examples"]
        if alone:
            return system, (examples,)
        return system, (f"{examples}\n" if examples else "", "")

    def _by_function(self, fixed: _Fixed, json: Mapping[str, Json]) -> list[Message]:
        """Let the prompt function lay the slots out."""
        assert self._prompt is not None
        inputs = inputs_slot(value_text(fixed.order(json["inputs"])))
        return messages_from(self._prompt(Slots({**fixed.texts, "inputs": inputs}, json)))


def _layout_again(
    schema: Mapping[str, Json] | None, template: Mapping[str, str] | None, prompt: PromptFunction | None, system: bool
) -> Layout:
    """Rebuild a pickled layout."""
    return Layout(schema, template, prompt, system_from_inputs=system)


def _said(message: Json) -> Json:
    """What an example of a reply in plain text says: the content of the message."""
    return message.get("content", message) if is_object(message) else message


def _beside_messages(inputs: Mapping[str, Json]) -> Mapping[str, Json]:
    """The inputs without the conversation, whose turns stand by themselves."""
    return {name: value for name, value in inputs.items() if name != MESSAGES}
