"""The messages of a conversation, in the shape of chat completions."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, model_validator

from synmod import leaves, registry
from synmod.errors import DataError

from .media import ContentPart, content_part
from .models import PROVIDER_CONFIG, DataModel, FieldFault, ReadyMade


def _as_text(arguments: Any) -> Any:
    """Return the text of arguments given as an object; a text is kept to the letter."""
    if leaves.is_mapping(arguments):
        plain = leaves.frozen(dict(arguments))
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return arguments


class ToolFunction(DataModel):
    """Name and arguments of a tool call, as on the wire."""

    model_config = PROVIDER_CONFIG

    name: str
    arguments: Annotated[str, BeforeValidator(_as_text)]


@registry.register_own()
class ToolCall(ReadyMade):
    """One call of a tool; its JSON is `{"id", "type": "function", "function": {"name", "arguments"}}`.

    Args:
        id: Identifies the call; the `tool` message that answers has it as `tool_call_id`.
        name: Name of the tool.
        arguments: JSON text, kept to the letter, or a dict, written compactly.

    Raises:
        pydantic.ValidationError: A field is missing or wrong.

    Example:
        >>> ToolCall("1", "add", {"a": 1}).function.arguments
        '{"a":1}'

    Source: OpenAI's chat completions; differs: keys of a provider's own, such as thought signatures, stay.
    """

    model_config = PROVIDER_CONFIG

    _positions: ClassVar[tuple[str, ...] | None] = ("id", "name", "arguments")

    id: str
    type: Literal["function"]
    function: ToolFunction

    if TYPE_CHECKING:

        def __init__(self, id: str, name: str, arguments: str | Mapping[str, Any]) -> None: ...  # noqa: A002

    @classmethod
    def _keywords(cls) -> Iterable[str]:
        """Return the names of the keywords."""
        return (*cls.model_fields, "name", "arguments")

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Put name and arguments in their place on the wire."""
        if not leaves.is_mapping(value):
            return value
        fields: dict[str, Any] = {"type": "function", **value}
        if "function" not in fields and not fields.keys().isdisjoint({"name", "arguments"}):
            fields["function"] = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
        return fields

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.function.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, parsed.

        Raises:
            DataError: The text is not a JSON object; it is in the message.
        """
        text = self.function.arguments
        try:
            parsed, why = leaves.parse_json(text), "are not a JSON object."
        except DataError as error:
            parsed, why = None, f"are not JSON: {error}"
        if not leaves.is_object(parsed):
            raise DataError(f"The arguments of tool call {self.name!r} {why} The text: {text}")
        return parsed


Role = Literal["system", "developer", "user", "assistant", "tool"]


@registry.register_own()
class ChatMessage(ReadyMade):
    """One message of a conversation.

    Args:
        role: The speaker: `system`, `developer`, `user`, `assistant` or `tool`.
        content: A text, or a list of parts; a str in the list becomes a text part, media become their parts.
        name: Name of the speaker.
        tool_calls: The tools that an assistant calls.
        tool_call_id: Which call a `tool` message answers.
        refusal: The assistant's words where it refused.
        reasoning_content: The provider's own reasoning, as text.
        thinking_blocks: The provider's own reasoning, opaque; sent back as it came.

    Raises:
        pydantic.ValidationError: A field is wrong, or does not go with the role; names the field.

    Example:
        >>> ChatMessage("user", "Hi").role
        'user'

    Source: OpenAI's chat completions; differs: keys that a provider adds to an assistant message stay, if they come in
    by a dict: `ChatMessages([{"role": "assistant", ..., "reasoning_details": [...]}])`.
    """

    model_config = PROVIDER_CONFIG

    _positions: ClassVar[tuple[str, ...] | None] = ("role", "content")

    role: Role
    content: str | list[Annotated[ContentPart, BeforeValidator(content_part)]] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    thinking_blocks: list[Any] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            role: Role,
            content: str | Sequence[Any] | None = None,
            *,
            name: str | None = None,
            tool_calls: Sequence[ToolCall] | None = None,
            tool_call_id: str | None = None,
            refusal: str | None = None,
            reasoning_content: str | None = None,
            thinking_blocks: Sequence[Any] | None = None,
        ) -> None: ...

    def _faults(self) -> Iterator[FieldFault]:
        """Yield the combinations of fields that no provider accepts."""
        is_more = self.tool_calls or self.refusal or self.reasoning_content or self.thinking_blocks or self.model_extra
        for name, value in (self.model_extra or {}).items() if self.role != "assistant" else ():
            yield name, "only the message of an assistant may hold keys of its provider", value
        if self.role == "tool" and self.tool_call_id is None:
            yield "tool_call_id", "a tool message needs the id of the call it answers", None
        if self.role != "tool" and self.tool_call_id is not None:
            yield "tool_call_id", "only a tool message answers a call", self.tool_call_id
        if self.role != "assistant" and self.tool_calls is not None:
            yield "tool_calls", "only an assistant calls tools", self.tool_calls
        if self.content is None and not (self.role == "assistant" and is_more):
            yield "content", "may be None only on an assistant with tool calls, a refusal or reasoning", None

    def __str__(self) -> str:
        """Show the role, and below it the text, with a line for each tool call; of media only the kind."""
        parts = [self.content] if isinstance(self.content, str) else self.content or []
        texts = [part if isinstance(part, str) else getattr(part, "text", f"[{part.type}]") for part in parts]
        calls = [f"{call.function.name}({call.function.arguments})" for call in self.tool_calls or ()]
        return "\n".join([f"── {self.role} ──", *texts, *calls])


class Prompt(list[ChatMessage]):
    """The messages of a prompt: a list that prints as a person reads it."""

    def __repr__(self) -> str:
        """Show the messages below one another."""
        return "\n\n".join(map(str, self))


@registry.register_own()
class ChatMessages(ReadyMade):
    """A conversation.

    Args:
        messages: The messages in order; required, may be empty.

    Raises:
        pydantic.ValidationError: A message is wrong.

    Example:
        >>> ChatMessages([ChatMessage("user", "Hi")]).messages[0].content
        'Hi'

    Source: Synalinks' `ChatMessages`.
    """

    messages: list[ChatMessage]

    if TYPE_CHECKING:

        def __init__(self, messages: Sequence[ChatMessage | dict[str, Any]]) -> None: ...
