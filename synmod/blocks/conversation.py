"""The conversation of one run of a block: its turns as they are sent and as the result holds them; its open calls."""

from collections.abc import Sequence

from synmod import data, errors, lm
from synmod.leaves import Json, frozen_dict, frozen_list


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
