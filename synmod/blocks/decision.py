"""Decision: a model chooses among labels."""

import math
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Unpack

from synmod import data, flow, lm, tree
from synmod.errors import AuthError, CassetteError, ConfigError, RequestError, SynmodWarning
from synmod.leaves import Json, check_type, frozen
from synmod.registry import register_own

from . import checks
from .conversation import Conversation
from .generator import Form, Generator, GeneratorOptions, check_params, object_schema

_THINKING: Final = {"type": "string", "title": "Thinking", "description": "the reasoning, step by step"}
_CONFIDENCE: Final = {"type": "number", "minimum": 0, "maximum": 1, "title": "Confidence"}
_CHOICE: Final = re.compile(r'"choice"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


@register_own()
class Decision(Generator[Any]):
    """A `Generator` that chooses among labels.

    Args:
        labels: A list of distinct labels, or a mapping from label to its meaning. Any text may be a label.
        question: The question to decide.
        multiple: Whether several labels may be chosen.
        with_thinking: Whether the model reasons first.
        confidence: Whether the output has a field `confidence`: the probability of the label's tokens where the
            provider gives log probabilities. Elsewhere several samples are drawn, each at the price of a call, which a
            warning says once: the output is the most frequent label, and its confidence the share of samples that
            agree. They differ only at a temperature above 0.
        samples: Number of samples without log probabilities; also a `Choice` of numbers.
        **options: Keyword arguments of `Generator`; the default of `instructions` is written from question and labels.

    Schemas:
        inputs: any data model
        outputs: `thinking` if requested, then `choice`, one of the labels; with `multiple` instead `choices`, one or
            more distinct labels; with `confidence` followed by `confidence`, a number from 0 to 1

    Raises:
        ConfigError: There are no labels, or one is repeated or not a string; names it. `confidence` is requested of
            `multiple` labels, or `samples` is not a count. Also as for `Generator`.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> decision = sm.Decision({"spam": "prize, lottery", "ham": "lunch"}, language_model="embedded/nearest")
        >>> sm.run(decision, Mail(text="You won the lottery!"))["choice"]
        'spam'

    Source: Synalinks' `Decision`; differs: labels may have descriptions, several may be chosen, and there is a
    confidence, from log probabilities or by self-consistency (Wang et al. 2022).
    """

    graph_ignored: ClassVar[frozenset[str]] = frozenset({"_has_warned"})

    samples: int | tree.Choice | None = None
    """How many samples give the confidence where there are no log probabilities; None without a confidence."""
    _has_warned = False

    def __init__(
        self,
        labels: Sequence[str] | Mapping[str, str],
        *,
        question: str | None = None,
        multiple: bool = False,
        with_thinking: bool = False,
        confidence: bool = False,
        samples: int | tree.Choice = 5,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        check_params(type(self), options)
        check_type(f"{type(self).__name__}: question", question, str | None, "a str", error=ConfigError)
        meanings = _meanings(labels, type(self).__name__)
        if options.get("instructions") is None:
            options["instructions"] = _instructions(meanings, question, multiple)
        schema = _schema(meanings, question, multiple, with_thinking)
        decision = output = data.symbol(data.intern_schema(schema))
        if confidence:
            if multiple:
                raise ConfigError("Decision: confidence=True is for one label; leave out multiple=True.")
            self.samples = checks.whole_or_choice("Decision", "samples", samples)
            fields = {**schema["properties"], "confidence": _CONFIDENCE}
            output = data.symbol(data.intern_schema({**schema, **object_schema(**fields)}))
        form: Any = Form(decision, output, reasoning="thinking" if with_thinking else None, example=decision)
        super().__init__(form, **options)

    async def call(self, inputs: Any, training: bool = False) -> Any:
        """Return the choice of the model, with its confidence if that is requested; otherwise as a `Generator`."""
        if self.samples is None:
            return await super().call(inputs, training)
        reply = await self._confident_reply(self._conversation(inputs))
        return self._result(inputs, self._outputs(reply))

    async def _confident_reply(self, conversation: Conversation) -> lm.LMReply:
        """Return the reply of the model, or the most frequent one of several, whose value has a confidence."""
        ask = partial(self._reply_to, conversation)
        number, own = tree.chosen(self.samples), self._settings["sample"]
        first = (lm.current_sample() if own is None else own) * number
        replies: list[lm.LMReply] = []
        try:
            replies = [await ask(sample=first, logprobs=True)]
        except (AuthError, CassetteError, RequestError) as error:  # OpenAI forbids them to models that reason
            if "logprob" not in str(error):
                raise
        probability = _probability(replies[0], self._labels()) if replies else None
        if probability is not None:
            return _with_confidence(replies[0], probability)
        self._warn(number)
        more: dict[str, Json] = {"logprobs": True} if replies else {}

        async def draw(sample: int) -> lm.LMReply:
            with nullcontext() if sample == first else lm.unstreamed():  # the pieces of several would be mixed
                return await ask(sample=sample, **more)

        draws = [partial(draw, first + place) for place in range(len(replies), number)]
        replies += await flow.together(*draws)
        label, count = Counter(reply["choice"] for reply in replies).most_common(1)[0]
        return _with_confidence(next(reply for reply in replies if reply["choice"] == label), count / number)

    def _labels(self) -> Sequence[str]:
        """Return the labels."""
        return data.schema_of(self._output)["properties"]["choice"]["enum"]

    def _warn(self, number: int) -> None:
        """Warn once of what samples cost."""
        if not self._has_warned:
            self._has_warned = True
            why = f"the model gives no log probabilities, so confidence is the share of {number} samples"
            cost = f"a decision costs {number} calls; pass samples=, or a model with log probabilities"
            warnings.warn(f"{self._where}: {why}: {cost}.", SynmodWarning, stacklevel=2)


def _with_confidence(reply: lm.LMReply, confidence: float) -> lm.LMReply:
    """Return a reply whose value has a confidence."""
    return replace(reply, json=frozen({**reply.json, "confidence": confidence}))


def _probability(reply: lm.LMReply, labels: Sequence[str]) -> float | None:
    """Return the probability of the tokens of a label in a reply; None without log probabilities.

    A token counts if it has a part of the label. The quotation mark behind it counts only if another label goes on
    where this one ends.
    """
    text = "".join(token.token for token in reply.logprobs)
    values = [*_CHOICE.finditer(text)]
    if not values:
        return None
    start, end = values[-1].span(1)  # the last one: a model may write a draft before
    label = reply["choice"]
    end += any(other != label and other.startswith(label) for other in labels)
    total, at = 0.0, 0
    for token in reply.logprobs:
        if at < end and at + len(token.token) > start:
            total += token.logprob
        at += len(token.token)
    return min(1.0, math.exp(total))


def _meanings(labels: Any, kind: str) -> dict[str, str]:
    """Return each label with its meaning, `""` if none is given."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(labels, (list, tuple)):
        pairs = [(label, "") for label in labels]  # pyright: ignore[reportUnknownVariableType]  (users)
    elif isinstance(labels, Mapping):
        pairs = list(labels.items())  # pyright: ignore[reportUnknownArgumentType]  (likewise)
    if not pairs:
        forms = "a non-empty list of strings, or a mapping from label to meaning"
        raise ConfigError(f"{kind}: labels is {labels!r:.100}; write {forms}.")
    meanings: dict[str, str] = {}
    for label, meaning in pairs:
        if not isinstance(label, str) or not isinstance(meaning, str):
            raise ConfigError(f"{kind}: the label {label!r}, or its meaning {meaning!r}, is not a string.")
        if label in meanings:
            raise ConfigError(f"{kind}: the label {label!r} is repeated; labels must be distinct.")
        meanings[label] = meaning
    return meanings


def _instructions(meanings: Mapping[str, str], question: str | None, multiple: bool) -> str:
    """Return the question, then the labels with their meanings, one per line."""
    task = question or f"Decide which {'labels fit' if multiple else 'label fits'} the inputs."
    lines = [f"- {label}: {meaning}" if meaning else f"- {label}" for label, meaning in meanings.items()]
    return "\n".join([task, "", "Labels:", *lines])


def _schema(meanings: Mapping[str, str], question: str | None, multiple: bool, with_thinking: bool) -> dict[str, Any]:
    """Return the schema of a decision."""
    label = {"type": "string", "enum": list(meanings)}
    description = question or ("the labels that fit" if multiple else "the label that fits")
    if explained := "; ".join(f"{label} ({meaning})" for label, meaning in meanings.items() if meaning):
        end = " " if description.endswith(("?", ".", ":")) else ": "
        description += f"{end}{explained}"  # training may remove it from the instructions, not from the schema
    if multiple:
        name, chosen = "choices", {"type": "array", "items": label, "minItems": 1, "uniqueItems": True}
    else:
        name, chosen = "choice", label
    fields: dict[str, Json] = {"thinking": _THINKING} if with_thinking else {}
    fields[name] = {"title": name.capitalize(), "description": description, **chosen}
    return {"title": "Decision", **object_schema(**fields)}
