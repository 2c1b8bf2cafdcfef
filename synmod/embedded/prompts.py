"""The texts that the embedded models read and write: turns, inputs, examples in tags, rule lines; and their replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from synmod.data import parse_json
from synmod.errors import DataError
from synmod.leaves import Json, is_array, is_object
from synmod.lm import REPAIR_OPENING, LMReply, LMRequest
from synmod.scope import Usage

WORD: Final = re.compile(r"\w+")
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_RULE: Final = re.compile(
    r"""(?: [-*•]\s* )?
        (?P<head> (?: "[^"]*" | '[^']*' | `[^`]*` | “[^”]*” )\s* | [^:=]+? )
        (?: : | => | -> | → | = ) \s*
        (?P<phrases> \S.*)""",
    re.VERBOSE,
)
_QUOTES: Final = "*\"'`‘’“”"
_NOT_IN_LABELS: Final = frozenset("`()[]{}<>?!")
_LONGEST_LABEL: Final = 5  # words; a longer head is a sentence, not a label


class Rule(NamedTuple):
    """A rule line, `label: word, phrase`; each phrase as `pad_words` returns it."""

    label: str
    phrases: tuple[str, ...]


def read_turns(request: LMRequest) -> list[tuple[str, str]]:
    """Return role and text of the turns, without repair turns and the replies that they correct."""
    turns: list[tuple[str, str]] = []
    for turn in request.messages:
        role, content = turn["role"], turn["content"]
        text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())
        if role == "user" and text.startswith(REPAIR_OPENING):
            if turns and turns[-1][0] == "assistant":
                turns.pop()
        else:
            turns.append((role, text))
    return turns


def blocks_of(text: str, tag: str) -> list[str]:
    """Return the texts between the tags of a name, in order."""
    if f"<{tag}>" not in text:
        return []
    return [part.partition(f"</{tag}>")[0] for part in text.split(f"<{tag}>")[1:] if f"</{tag}>" in part]


def read_input(text: str) -> tuple[str, Mapping[str, Json]]:
    """Return the input of a turn (its last `<inputs>`, else all of it): its text, and its fields if it is an object."""
    inputs = (blocks_of(text, "inputs") or [text])[-1]
    json = json_or_none(inputs)
    return (leaf_text(json), json) if is_object(json) else (inputs, {})


def json_or_none(text: str) -> Json:
    """Return the JSON value of a text; None if it is not JSON."""
    try:
        return parse_json(text)
    except DataError:
        return None


def leaf_text(json: Json) -> str:
    """Return the strings and numbers of a JSON value, in order, one per line."""
    if is_object(json) or is_array(json):
        return "\n".join(filter(None, map(leaf_text, json.values() if is_object(json) else json)))
    return "" if json is None or isinstance(json, bool) else str(json)


def pad_words(text: str) -> str:
    """Return the words of a text between spaces, so that a substring search finds whole phrases only."""
    return f" {' '.join(WORD.findall(text.lower()))} "


@lru_cache(maxsize=128)
def read_rules(instructions: str) -> Mapping[str, Rule]:
    """Return the rules by case-folded label; lines with the same label form one rule."""
    rules: dict[str, Rule] = {}
    for line in filter(None, map(_RULE.fullmatch, map(str.strip, instructions.split("\n")))):
        label = line["head"].strip().strip(_QUOTES).strip()
        phrases = [pad_words(item) for item in re.split("[,;]", line["phrases"]) if WORD.search(item)]
        if label and phrases:
            rule = rules.get(label.casefold(), Rule(label, ()))
            rules[label.casefold()] = rule._replace(phrases=tuple(dict.fromkeys((*rule.phrases, *phrases))))
    return rules


def can_be_label(text: str) -> bool:
    """Whether a text is short and plain enough to be the label of a rule line rather than a sentence."""
    return len(text.split()) <= _LONGEST_LABEL and _NOT_IN_LABELS.isdisjoint(text)


def reply_to(prompt: Sequence[str], text: str) -> LMReply:
    """Return the reply to the texts of a prompt, with its usage."""
    tokens = _count_all(tuple(prompt[:-1])) + _count_all(tuple(prompt[-1:]))
    return LMReply(text, usage=Usage(prompt_tokens=tokens, completion_tokens=_count_tokens(text), cost_usd=0.0))


@lru_cache(maxsize=64)
def _count_all(texts: tuple[str, ...]) -> int:
    """Count the tokens of texts; cached, since prompts differ in their last turn alone."""
    return sum(_count_tokens(line) for text in texts for line in text.split("\n"))


@lru_cache(maxsize=2048)
def _count_tokens(text: str) -> int:
    """Count words and signs; cached, since the lines of prompts repeat."""
    return len(_TOKEN.findall(text))
