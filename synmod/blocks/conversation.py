"""The conversation of one run of a block: its turns as sent and as the result holds them, its open calls; Compact.

`Compact` shortens a conversation that nears the context window of its model by a summary of its middle.
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from math import inf
from typing import Any, Final, Unpack

from synmod import data, errors, lm
from synmod.leaves import Json, frozen_dict, frozen_list
from synmod.module import Module, ModuleOptions
from synmod.registry import register_own

from . import checks


class Conversation:
    """The turns of one run.

    Args:
        prompt: The messages of the first request.
        turns: The turns of the inputs.
        is_shown: Whether the prompt ends with them, each as a turn.

    Attributes:
        opening: The beginning of every request: all that the block adds, and the turns up to the first of the user.
        first: Those turns, as they were given.
        later: The turns after them.
    """

    def __init__(self, prompt: Sequence[lm.Message], turns: Sequence[lm.Message], is_shown: bool) -> None:
        roles = [turn["role"] for turn in turns]
        until = len(turns)
        if is_shown:
            until = roles.index("user") + 1 if "user" in roles else 0
        self.first, self.later = tuple(turns[:until]), list(turns[until:])
        self.opening = tuple(prompt[: len(prompt) - len(self.later)])

    def sent(self) -> list[lm.Message]:
        """Return the messages of the next request."""
        return [*self.opening, *map(lm.guard_turn, self.later)]

    def turns(self) -> list[lm.Message]:
        """Return the turns, without what the block adds."""
        return [*self.first, *self.later]

    def to_output(self) -> data.JsonDataModel[data.ChatMessages]:
        """Return the turns as a value."""
        messages = frozen_list(map(lm.turn_to_keep, self.turns()))
        return data.wrap(frozen_dict({"messages": messages}), data.schema_of(data.ChatMessages), data.ChatMessages)


def open_calls(turns: Sequence[lm.Message], tools: Sequence[Json], *, resume: bool) -> list[data.ToolCall]:
    """Return the tool calls at the end of a conversation that have no result yet.

    Args:
        turns: The turns.
        tools: The function schemas of the tools that may be called.
        resume: Whether there may be any.

    Raises:
        DataError: There are some and may not be, one cannot be run, or a call before the end has no result; names the
            index of the turn that calls.
    """
    pending, at, is_last = dict[int, Json](), 0, True
    for index, turn in enumerate(turns):
        if turn["role"] == "tool":
            places = (place for place, call in pending.items() if call["id"] == turn["tool_call_id"])
            pending.pop(next(places, -1), None)
            continue
        if pending:
            is_last = False
            break
        pending, at = dict(enumerate(turn.get("tool_calls") or ())), index
    where = f"inputs, messages[{at}]"
    if pending and not (is_last and resume):
        names = ", ".join(f"{call['function']['name']} ({call['id']})" for call in pending.values())
        remedy = "add a tool turn for each, directly after the turn that calls"
        if is_last:
            remedy += ", or let sm.Agent(..., resume_calls=True) run them"
        raise errors.DataError(f"{where}: tool calls without a result: {names:.200}; {remedy}.")
    calls = [data.ToolCall.model_validate(call) for call in pending.values()]
    for place, call in zip(pending, calls, strict=True):
        for pointer, fault in lm.faults_of_calls([call], tools):
            pointer = pointer.removeprefix("/tool_calls/0")
            raise errors.DataError(f"{where}: tool_calls[{place}]{pointer} cannot be run: {fault}")
    return calls


def number_of_call(call: data.ToolCall, turns: Sequence[lm.Message]) -> tuple[int, int]:
    """Return what tells a tool call from equal ones, the same whenever a conversation goes on.

    Returns:
        How many calls of the tool earlier turns have, and how many equal ones before it in its own turn.
    """
    calling = [turn["tool_calls"] for turn in turns if turn.get("tool_calls")]
    earlier = sum(other["function"]["name"] == call.name for calls in calling[:-1] for other in calls)
    text = call.function.arguments
    equal = [other["id"] for other in calling[-1] if other["function"] == {"name": call.name, "arguments": text}]
    return earlier, equal.index(call.id) if call.id in equal else 0


# -- Compact -----------------------------------------------------------------------------------------------------------

_HEADING: Final = "Summary of the conversation so far:\n"
_INSTRUCTIONS: Final = (
    "Summarize the conversation for the assistant in it, who will go on without the original. Keep what the user "
    "wants, what was done and found out, with names, numbers and results of tools, what was decided, and what is still "
    "open. Write the summary and nothing else."
)
_LEAST_TOKENS: Final = 64
_CHARACTERS_PER_TOKEN: Final = 3


class Transcript(data.DataModel, defer_build=True):
    """Turns of a conversation as text."""

    conversation: str


class TurnSummary(data.DataModel, defer_build=True):
    """What a later turn needs to know of turns that are left out."""

    summary: str


@register_own()
class Compact(Module):
    """Shortens the conversation of an `Agent` or a `Generator` where it nears the context window of the model.

    The turns between the first turn of the user and the last ones become one turn of the user: a summary, written by
    the model in a call of this module. That is repeated as long as the conversation is too long and becomes shorter. A
    tool call and its results are never parted. The result of the Agent holds the compacted conversation; hooks and
    traces have seen all of it.

    Args:
        at: The share of the window that the estimated tokens may take. A reply that the provider refuses because the
            prompt is too long has the same effect.
        keep: How many of the last turns stay as they are, or a few more, so that no call is parted from its results.
        window: Size of the context window in tokens; None for that in the price list of the model, if it is known.
        language_model: The model that writes the summary; None for that of the Agent or Generator.
        instructions: The text that tells the model how to summarize; None for a general one.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: `conversation`, a text
        outputs: `summary`, a text

    Raises:
        ConfigError: An argument is invalid.
        ContextWindowError: When an Agent or Generator is called: the conversation is too long, and a summary does not
            make it shorter.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> lm = ScriptedLM(["Tea.", "Yes."])
        >>> chat = sm.Generator(compact=sm.Compact(window=40, keep=1), language_model=lm)
        >>> turns = [("user", "Hi"), ("assistant", "Tea? " * 20), ("user", "Well?")]
        >>> sm.run(chat, sm.ChatMessages([sm.ChatMessage(*turn) for turn in turns])).content
        'Yes.'

    Source: pydantic-ai's history processors, the compaction of coding agents; differs: calls stay with their results.
    """

    language_model: lm.LanguageModel | None = None

    def __init__(
        self,
        at: float = 0.8,
        keep: int = 6,
        *,
        window: int | None = None,
        language_model: lm.LanguageModel | str | None = None,
        instructions: str | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        if not isinstance(at, (int, float)) or not 0 < at <= 1:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise errors.ConfigError(f"Compact: at is {at!r:.100}; write a share of the window, such as 0.8.")
        self.at, self.keep = at, checks.whole("Compact", "keep", keep)
        self.window = None if window is None else checks.whole("Compact", "window", window)
        if language_model is not None:
            self.language_model = lm.model_from(language_model, "Compact: language_model")
        self.instructions = instructions

    async def call(self, inputs: Transcript) -> TurnSummary:
        """Return a summary of the turns."""
        model = lm.resolve_model(self.language_model, self.path or self.name)
        system = lm.message("system", self.instructions or _INSTRUCTIONS)
        reply = await model([system, lm.message("user", lm.guard_text(inputs.conversation))])
        return TurnSummary(summary=reply.text.strip())

    async def reply(
        self,
        conversation: Conversation,
        ask: Callable[[Sequence[lm.Message]], Awaitable[lm.LMReply]],
        model: lm.LanguageModel,
        tools: Sequence[Json] = (),
    ) -> lm.LMReply:
        """Return the reply to a conversation, which is shortened as far as necessary.

        Args:
            conversation: The conversation.
            ask: Sends messages to the model.
            model: The model.
            tools: The function schemas that are sent as well.

        Raises:
            ContextWindowError: It is too long, and a summary does not make it shorter.
        """
        window = self.window or await model.context_window()
        room = inf if window is None else self.at * window
        around = lm.estimate_text(len(data.dump_json([*tools]))) if tools else 0
        while True:
            is_long = around + lm.estimate_tokens(conversation.sent()) > room
            if is_long and await self._shorten(conversation, room, model):
                continue
            try:
                return await ask(conversation.sent())
            except errors.ContextWindowError:
                if not await self._shorten(conversation, room, model):
                    raise

    async def _shorten(self, conversation: Conversation, room: float, model: lm.LanguageModel) -> bool:
        """Replace turns before the last ones by a summary; return whether the conversation became shorter.

        Args:
            conversation: The conversation.
            room: How many tokens of it one summary may replace at most.
            model: The model that writes the summary, unless this module has one.
        """
        turns = conversation.later
        cut = max(len(turns) - self.keep, 0)
        while 0 < cut < len(turns) and turns[cut]["role"] == "tool":
            cut -= 1
        least = 2 if turns and str(turns[0]["content"]).startswith(_HEADING) else 1  # a summary alone stays
        if cut < least:
            return False
        while True:
            part = turns[: _fitting(turns[:cut], room, least)]
            text, tokens = _text(part), lm.estimate_tokens(part)
            if tokens > room:  # one turn with its results
                half = max(int(room), _LEAST_TOKENS) * _CHARACTERS_PER_TOKEN // 2
                text = f"{text[:half]} [...] {text[-half:]}"
            try:
                with lm.default_language_model(model):
                    output: Any = await self(Transcript(conversation=text))
                break
            except errors.ContextWindowError:
                room = min(room, tokens) / 2
                if room < _LEAST_TOKENS:
                    raise
        summary = lm.message("user", _HEADING + output.summary)
        if lm.estimate_tokens([summary]) >= tokens:
            return False
        conversation.later[: len(part)] = [summary]
        return True


def _fitting(turns: Sequence[lm.Message], room: float, least: int) -> int:
    """Return how many turns fit into a number of tokens, at least `least`; no call is parted from its results."""
    sizes = [*accumulate(lm.estimate_tokens([turn]) for turn in turns)]
    ends = [end for end in range(least, len(turns) + 1) if end == len(turns) or turns[end]["role"] != "tool"]
    return max((end for end in ends if sizes[end - 1] <= room), default=ends[0])


def _text(turns: Sequence[lm.Message]) -> str:
    """Return turns as text; of media the kind."""
    return "\n\n".join(str(data.ChatMessage.model_validate(turn)) for turn in turns)
