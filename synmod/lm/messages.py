"""Messages: what a caller may pass to a model, as checked turns in the shape of chat completions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from synmod.errors import ConfigError, DataError
from synmod.leaves.frozen import FrozenDict, fill, frozen, is_array, is_object
from synmod.leaves.names import did_you_mean

__all__ = ["Message", "estimate_text", "estimate_tokens", "message", "turns"]

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})

_MEDIA: Final = frozenset({"image_url", "input_audio", "file"})

_CHARACTERS_PER_TOKEN: Final = 3
_FORM: Final = '{"role": "user", "content": "..."}'


class Message(FrozenDict):
    """One checked turn: frozen JSON that also reads by attribute, like `sm.ChatMessage`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Return what stands under a key.

        Raises:
            AttributeError: The turn has no such key.
        """
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"This turn has no {name!r}; it has {', '.join(self)}.") from None


def message(role: str, content: str) -> Message:
    """Return a turn of text. Trusted: nothing is checked."""
    turn = Message.__new__(Message)
    fill(turn, {"role": role, "content": content})
    return turn


def turns(messages: Any) -> tuple[Message, ...]:
    """Return what a caller passed as checked turns.

    Args:
        messages: A str (one user turn), a ChatMessage, ChatMessages, or an iterable of ChatMessages and dicts in
            the shape of chat completions.

    Returns:
        At least one turn, frozen.

    Raises:
        DataError: Something in it is not a turn. Names its index, what was got and what was wanted.
        ConfigError: A turn holds an image, sound or a file, which no model is sent yet.

    Example:
        >>> turns("Hi")
        ({'role': 'user', 'content': 'Hi'},)

    Source: OpenAI's chat completions.
    """
    if isinstance(messages, str):
        plain = messages.isascii()  # what is not may hold half a character, which the check of a turn finds
        return (message("user", messages) if plain else _turn({"role": "user", "content": messages}, 0),)
    items: Iterable[Any] = messages
    if type(messages) is list or type(messages) is tuple:
        pass  # the usual case
    elif is_object(messages) or hasattr(messages, "__synmod_json__"):
        items = _unwrapped(messages)
    elif isinstance(messages, bytes) or not isinstance(messages, Iterable):
        raise DataError(
            f"messages: got {type(messages).__name__}, wanted a str, ChatMessages, or a list of turns such as {_FORM}."
        )
    checked = tuple([item if type(item) is Message else _turn(item, index) for index, item in enumerate(items)])
    if not checked:
        raise DataError(f"messages: the list is empty, wanted at least one turn such as {_FORM}.")
    return checked


def _unwrapped(messages: Any) -> list[Any]:
    """Return the turns of a data model or its JSON: `ChatMessages` holds them, a `ChatMessage` is one."""
    if is_object(messages) and "role" in messages:
        return [messages]
    json = frozen(messages)
    inner = json.get("messages") if is_object(json) and "role" not in json else None
    return inner if is_array(inner) else [json]


def _turn(item: Any, index: int) -> Message:
    """Check one turn; keys that are null are left out, except `content`."""
    try:
        json = frozen(item)
    except DataError as error:
        raise DataError(f"messages[{index}]: {error}") from None
    if not is_object(json):
        _refuse(index, f"got {type(item).__name__}", f"a turn such as {_FORM}")
    role = json.get("role")
    if not isinstance(role, str) or role not in ROLES:
        _refuse(index, f"got role {role!r:.100}", f"one of {', '.join(sorted(ROLES))}", did_you_mean(role, ROLES))
    turn = Message.__new__(Message)
    fill(turn, {"role": role, "content": None} | {key: value for key, value in json.items() if value is not None})
    _check_content(turn, index)
    return turn


def _check_content(turn: Message, index: int) -> None:
    """Raise unless a turn holds text, parts of text, or the tool calls of an assistant."""
    content = turn["content"]
    if isinstance(content, str):
        return
    if content is None:
        if turn["role"] == "assistant" and turn.get("tool_calls"):
            return
        _refuse(index, "got no content", "a text")
    if not is_array(content):
        _refuse(index, f"got content of type {type(content).__name__}", "a text")
    for place, part in enumerate(content):
        if not is_object(part) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type") if is_object(part) else type(part).__name__
            if kind in _MEDIA:
                raise ConfigError(
                    f"messages[{index}]: content[{place}] is of kind {kind!r}: images, sound and files cannot be sent"
                    " to a model yet; describe them in text."
                )
            _refuse(index, f"got content[{place}] of kind {kind!r:.100}", 'parts {"type": "text", "text": ...} only')


def _refuse(index: int, got: str, wanted: str, hint: str = "") -> NoReturn:
    raise DataError(f"messages[{index}]: {got}, wanted {wanted}.{hint}")


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return an estimate of the tokens of turns: a third of their characters, rounded up, so rather too many."""
    characters = 0
    for turn in messages:
        content = turn["content"]
        if isinstance(content, str):
            characters += len(content)
        elif content is not None:
            characters += sum(len(part["text"]) for part in content)
    return estimate_text(characters)


def estimate_text(characters: int) -> int:
    """Return an estimate of the tokens of a text of so many characters."""
    return -(-characters // _CHARACTERS_PER_TOKEN)
