"""Tool calls: what an assistant asks to be called, in the shape of chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BeforeValidator

from synmod.data.messages.own_models import TOLD_BRIEFLY, positional
from synmod.data.model import DataModel
from synmod.data.text import parse_json
from synmod.errors import DataError
from synmod.leaves.frozen import frozen, is_object
from synmod.registry import register_own


def _as_text(arguments: Any) -> Any:
    """Write arguments given as an object; a text is kept to the letter."""
    if isinstance(arguments, Mapping):
        plain = frozen(dict(cast("Mapping[str, Any]", arguments)))
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return arguments


class ToolFunction(DataModel):
    """Name and arguments of a tool call, as they stand on the wire."""

    name: str
    arguments: Annotated[str, BeforeValidator(_as_text)]


@register_own()
class ToolCall(DataModel):
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

    Source: OpenAI's chat completions.
    """

    model_config = TOLD_BRIEFLY

    id: str
    type: Literal["function"]
    function: ToolFunction

    if TYPE_CHECKING:

        def __init__(self, id: str, name: str, arguments: str | Mapping[str, Any]) -> None: ...  # noqa: A002

    else:

        def __init__(self, *args: Any, **fields: Any) -> None:
            given = positional("ToolCall", ("id", "name", "arguments"), args, fields)
            if "function" not in given and not given.keys().isdisjoint({"name", "arguments"}):
                given["function"] = {key: given.pop(key) for key in ("name", "arguments") if key in given}
            super().__init__(**{"type": "function", **given})

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.function.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, parsed.

        Raises:
            DataError: The text is no JSON object; it is in the message.
        """
        text = self.function.arguments
        try:
            parsed = parse_json(text)
        except DataError as error:
            raise DataError(f"The arguments of tool call {self.name!r} are no JSON: {error} The text: {text}") from None
        if not is_object(parsed):
            raise DataError(f"The arguments of tool call {self.name!r} are no JSON object. The text: {text}")
        return parsed
