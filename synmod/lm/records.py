"""The frozen records of a model call: what goes to an adapter, what comes back, and what each request cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synmod.data import Schema
from synmod.errors import DataError, FieldError
from synmod.leaves.frozen import Json, frozen_dict, is_array, is_object
from synmod.leaves.names import did_you_mean
from synmod.lm.messages import Message
from synmod.scope import Usage

__all__ = ["Attempt", "LMReply", "LMRequest"]

_NO_PARAMS: Mapping[str, Json] = frozen_dict({})
_NO_USAGE = Usage()


@dataclass(frozen=True, init=False)
class LMRequest:
    """One request, as an adapter gets it: neutral, checked, without secrets.

    Attributes:
        model: The model string, `provider/name`.
        messages: The turns, frozen JSON in the shape of chat completions.
        schema: The schema that the reply must satisfy, or None for text.
        tools: Tools that the model may call; None.
        tool_choice: Which of them it must call; None.
        params: Sampling parameters, those of the call before those of the model.
        sample: The number of this draw among independent draws of one request; never sent.
        structured: How to ask for the schema: `schema`, `json`, `prompt`, or None for what the provider does best.
        reasoning_field: The field of the schema that native reasoning fills where a reply lacks it; or None.

    Source: OpenAI's chat completions, pydantic-ai's model requests.
    """

    model: str
    messages: tuple[Message, ...]
    schema: Schema | None
    tools: tuple[Json, ...] | None
    tool_choice: Json
    params: Mapping[str, Json]
    sample: int
    structured: str | None
    reasoning_field: str | None

    def __init__(
        self,
        model: str,
        messages: tuple[Message, ...],
        schema: Schema | None = None,
        tools: tuple[Json, ...] | None = None,
        tool_choice: Json = None,
        params: Mapping[str, Json] = _NO_PARAMS,
        sample: int = 0,
        structured: str | None = None,
        reasoning_field: str | None = None,
    ) -> None:
        vars(self).update(  # in one step, see LMReply
            model=model,
            messages=messages,
            schema=schema,
            tools=tools,
            tool_choice=tool_choice,
            params=params,
            sample=sample,
            structured=structured,
            reasoning_field=reasoning_field,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent.

    Attributes:
        status: HTTP status, or None where there was none.
        error: Class and message of what failed, without secrets, or None.
        elapsed_s: Seconds from sending to the reply or the failure.
        waited_s: Seconds waited before sending.
    """

    status: int | None = None
    error: str | None = None
    elapsed_s: float = 0.0
    waited_s: float = 0.0


@dataclass(frozen=True, init=False)
class LMReply:
    """What a model answered.

    An adapter gives `text`, and what it knows of `reasoning`, `finish_reason`, `usage`, `model` and `request_id`;
    the layers above fill in the rest.

    Attributes:
        text: The raw text.
        json: The value read from the text: present and valid exactly if a schema was given.
        message: The reply as an assistant turn.
        tool_calls: Calls of tools; empty.
        reasoning: What the model thought, where the provider tells.
        finish_reason: `stop`, `length`, `content_filter`, ... as the provider says.
        usage: Tokens and cost of the whole call, repair included.
        model: The model that answered.
        request_id: The provider's id of the last request.
        cached: Whether no request was needed.
        attempts: One `Attempt` for each request sent.
        elapsed_s: Seconds of the whole call.
        first_chunk_s: Seconds to the first piece; None without streaming.

    Source: OpenAI's chat completions; differs: frozen, and valid or not there.
    """

    text: str
    json: Json
    message: Message | None
    tool_calls: tuple[Json, ...]
    reasoning: str | None
    finish_reason: str | None
    usage: Usage
    model: str
    request_id: str | None
    cached: bool
    attempts: tuple[Attempt, ...]
    elapsed_s: float
    first_chunk_s: float | None

    def __init__(
        self,
        text: str = "",
        json: Json = None,
        message: Message | None = None,
        tool_calls: tuple[Json, ...] = (),
        reasoning: str | None = None,
        finish_reason: str | None = "stop",
        usage: Usage = _NO_USAGE,
        model: str = "",
        request_id: str | None = None,
        cached: bool = False,
        attempts: tuple[Attempt, ...] = (),
        elapsed_s: float = 0.0,
        first_chunk_s: float | None = None,
    ) -> None:
        # In one step: the constructor that a frozen dataclass has by itself takes one a field, at thrice the cost.
        vars(self).update(
            text=text,
            json=json,
            message=message,
            tool_calls=tool_calls,
            reasoning=reasoning,
            finish_reason=finish_reason,
            usage=usage,
            model=model,
            request_id=request_id,
            cached=cached,
            attempts=attempts,
            elapsed_s=elapsed_s,
            first_chunk_s=first_chunk_s,
        )

    def __getitem__(self, key: str | int) -> Any:
        """Read a key of `json`.

        Raises:
            DataError: The call had no schema, so the reply is text; or the value is no container.
            FieldError: There is no such key ('Did you mean').
        """
        json = self._container(key)
        try:
            return json[key]
        except (KeyError, IndexError, TypeError):
            hint = did_you_mean(key, json) if is_object(json) else f" It is an array of {len(json)}."
            raise FieldError(f"The reply has no {key!r}.{hint}") from None

    def get(self, key: str, default: Any = None) -> Any:
        """Read a key of `json`, or give `default` where it is missing.

        Raises:
            DataError: The call had no schema, so the reply is text; or the value is no object.
        """
        json = self._container(key)
        if not is_object(json):
            raise DataError(f"reply.get({key!r}): the reply is an array; write reply[0].")
        return json.get(key, default)

    def _container(self, key: object) -> Any:
        """The JSON object or array of the reply."""
        if is_object(self.json) or is_array(self.json):
            return self.json
        if self.json is None:
            raise DataError(
                f"reply[{key!r}]: the reply is text, since the call had no schema:"
                " read reply.text, or write await lm(messages, schema=...)."
            )
        raise DataError(
            f"reply[{key!r}]: the reply is the {type(self.json).__name__} {self.json!r:.80}: read reply.json."
        )
