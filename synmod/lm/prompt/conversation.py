"""Conversations in a prompt: inputs that are messages become turns of their own, and instructions stay ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from synmod.data import SymbolicDataModel
from synmod.errors import DataError
from synmod.lm.messages import Message, turns
from synmod.lm.prompt.subschemas import resolved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from synmod.leaves.frozen import Json

MESSAGES: Final = "messages"
"""The field of `ChatMessages`."""

_INSTRUCTING: Final = frozenset({"system", "developer"})


def holds_conversation(schema: Mapping[str, Json]) -> bool:
    """Tell whether values of a schema hold a conversation: whether `ChatMessages` is contained in it."""
    if MESSAGES not in resolved(schema, schema).get("required", ()):
        return False
    from synmod.data import ChatMessages, contains

    return contains(SymbolicDataModel(schema), ChatMessages)


def turns_of(messages: Sequence[Mapping[str, Json]], *, system: bool) -> tuple[Message, ...]:
    """Make turns of the messages of a conversation.

    Args:
        messages: JSON of `ChatMessages.messages`.
        system: Whether turns that instruct (`system`, `developer`) may be among them.

    Returns:
        The messages without their None fields.

    Raises:
        DataError: A turn that instructs, where data must not become instructions; or no turn at all.

    Example:
        >>> turns_of([{"role": "user", "content": "Hi", "name": None}], system=False)
        ({'role': 'user', 'content': 'Hi'},)

    Source: OpenAI's instruction hierarchy: who speaks as `system` commands.
    """
    for index, message in enumerate(messages):
        if not system and message.get("role") in _INSTRUCTING:
            raise DataError(
                f"inputs, messages[{index}]: a {message['role']} turn among the inputs would become instructions; "
                "remove it, or allow it with Generator(..., system_from_inputs=True)."
            )
    return turns(messages) if messages else ()


def messages_from(made: object) -> list[Message]:
    """Read what a prompt function gave: a str (one user turn), `ChatMessages`, or a list of messages.

    Raises:
        DataError: It is something else; names the index.
    """
    try:
        return list(turns(made))
    except DataError as error:
        raise DataError(f"The prompt function, a plain function of the slots, must return messages: {error}") from None
