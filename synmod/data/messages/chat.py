"""Messages of a conversation, in the shape of chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from synmod.data.messages.own_models import TOLD_BRIEFLY, FieldFault, positional, refuse
from synmod.data.model import DataModel
from synmod.registry import register_own

from .content_parts import ContentPart
from .media import as_part
from .tool_call import ToolCall

Role = Literal["system", "developer", "user", "assistant", "tool"]


@register_own()
class ChatMessage(DataModel):
    """One message of a conversation.

    Args:
        role: Who speaks: `system`, `developer`, `user`, `assistant` or `tool`.
        content: A text, or a list of parts; a str in the list becomes a text part, media become their parts.
        name: Name of the speaker.
        tool_calls: What an assistant wants to be called.
        tool_call_id: Which call a `tool` message answers.
        refusal: The assistant's words where it refused.
        reasoning_content: The provider's own reasoning, as text.
        thinking_blocks: The provider's own reasoning, opaque; sent back as it came.

    Raises:
        pydantic.ValidationError: A field is wrong, or does not go with the role; names the field.

    Example:
        >>> ChatMessage("user", "Hi").role
        'user'

    Source: OpenAI's chat completions.
    """

    model_config = TOLD_BRIEFLY

    role: Role
    content: str | list[Annotated[ContentPart, BeforeValidator(as_part)]] | None = None
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

    else:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**positional("ChatMessage", ("role", "content"), args, fields))

    @model_validator(mode="after")
    def _fields_go_with_the_role(self) -> Self:
        """Refuse what no provider would understand."""
        faults: list[FieldFault] = []
        if self.role == "tool" and self.tool_call_id is None:
            faults.append(("tool_call_id", "a tool message needs the id of the call it answers", None))
        if self.role != "tool" and self.tool_call_id is not None:
            faults.append(("tool_call_id", "only a tool message answers a call", self.tool_call_id))
        if self.role != "assistant" and self.tool_calls is not None:
            faults.append(("tool_calls", "only an assistant calls tools", self.tool_calls))
        if self.content is None and not (self.role == "assistant" and self._says_something_else()):
            faults.append(("content", "may be None only on an assistant with tool calls, a refusal or reasoning", None))
        refuse("ChatMessage", faults)
        return self

    def _says_something_else(self) -> bool:
        return bool(self.tool_calls or self.refusal or self.reasoning_content or self.thinking_blocks)


@register_own()
class ChatMessages(DataModel):
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

    model_config = TOLD_BRIEFLY

    messages: list[ChatMessage]

    if TYPE_CHECKING:

        def __init__(self, messages: Sequence[ChatMessage | dict[str, Any]]) -> None: ...

    else:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**positional("ChatMessages", ("messages",), args, fields))
