"""The model `embedded/rules`, which writes rule lines for programs on `embedded/nearest`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from synmod.errors import ConfigError
from synmod.leaves import Json, is_array, is_object
from synmod.lm import LMReply, LMRequest, json_text

from .prompts import WORD, Rule, can_be_label, leaf_text, read_input, read_rules, read_turns, reply_to

_NEW_WORDS: Final = (6, 3, 12, 1)  # per rule line; the next number is used if the value by the previous one was tried


class RulesAdapter:
    """The adapter of `embedded/rules`, which writes better instructions for a program on `embedded/nearest`.

    It reads the inputs of a `synmod.train.Proposer`. For each expected value of a closed field it writes one rule line,
    after the other lines of the current instructions: the words of the existing rule, unless the records contradict
    them, and words that occur with this value and with no other.

    Example:
        >>> from synmod.leaves import parse_json
        >>> records = [
        ...     {"inputs": {"text": "It came late"}, "outputs": {"mood": "good"}, "expected": {"mood": "bad"}},
        ...     {"inputs": {"text": "It was lovely"}, "outputs": {"mood": "good"}, "expected": {"mood": "good"}},
        ... ]
        >>> question = json_text({"current": "Be brief.", "records": records, "tried": []})
        >>> turns = ({"role": "user", "content": f"<inputs>{question}</inputs>"},)
        >>> parse_json(RulesAdapter().send(LMRequest("embedded/rules", turns)).text)["value"].splitlines()
        ['Be brief.', 'bad: came, late', 'good: lovely, was']

    Source: one-rule classifiers; differs: rules are text.
    """

    name = "embedded"
    version = 2

    def send(self, request: LMRequest) -> LMReply:
        """Return `reason` and `value`.

        Raises:
            ConfigError: The prompt is not that of a proposer.
        """
        texts = [text for _, text in read_turns(request)]
        inputs = (read_input(text)[1] for text in reversed(texts))
        question: Mapping[str, Any] = next((fields for fields in inputs if "current" in fields), dict[str, Any]())
        records, tried = question.get("records"), question.get("tried")
        if not is_array(records) or not all(map(is_object, records)):
            raise ConfigError("embedded/rules only answers a synmod.train.Proposer; ask embedded/nearest.")
        value = question["current"]
        if isinstance(value, str):
            choices = [_with_rules(value, records, most) for most in _NEW_WORDS]
            value = next((choice for choice in choices if choice not in (value, *(tried or ()))), value)
        return reply_to(texts, json_text({"reason": "These words occur with one value alone.", "value": value}))


def _with_rules(instructions: str, records: Sequence[Mapping[str, Any]], most: int) -> str:
    """Return instructions with a rule line for each expected value of the records, of at most `most` new words."""
    fields = _count_words(records)
    rules, lines = read_rules(instructions), list[str]()
    for by_label in fields.values():
        for label, counts in by_label.items():
            elsewhere = {word for rival, words in by_label.items() if rival != label for word in words}
            before = [phrase.strip() for phrase in rules.get(label.casefold(), Rule(label, ())).phrases]
            telling = sorted(counts.keys() - elsewhere - {*before}, key=lambda word: (-counts[word], -len(word), word))
            if phrases := [*(phrase for phrase in before if phrase not in elsewhere), *telling[:most]]:
                lines.append(f"{label}: {', '.join(phrases)}")
    replaced = {label.casefold() for by_label in fields.values() for label in by_label}
    rest = "\n".join(line for line in instructions.split("\n") if _head(line) not in replaced).rstrip()
    return "\n".join([rest, *lines] if rest else lines)


def _count_words(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Counter[str]]]:
    """Return how many records hold each word, by expected field and value."""
    outputs = [output for record in records if is_object(output := record.get("outputs"))]
    fields: dict[str, dict[str, Counter[str]]] = {}
    for record in records:
        words = set(WORD.findall(leaf_text(record.get("inputs")).lower()))
        expected = record.get("expected", record.get("target"))
        for field, value in expected.items() if is_object(expected) else ():
            label = _label(value)
            if label and (not outputs or any(field in output for output in outputs)):  # else another module's
                fields.setdefault(field, {}).setdefault(label, Counter()).update(words)
    return fields


def _label(value: Json) -> str:
    """Return a value of a closed field as the label of a rule line; "" if it cannot be one."""
    text = value if isinstance(value, str) else json_text(value) if isinstance(value, bool) else ""
    return text if can_be_label(text) and _head(f"{text}: word") == text.casefold() else ""


def _head(line: str) -> str:
    """Return the case-folded label of a rule line; "" for any other line."""
    return next(iter(read_rules(line)), "")
