"""Tokens: an estimate that is there at once, and a count where a tokenizer is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from synmod.lm.messages import Message

__all__ = ["estimate_text", "estimate_tokens"]

_CHARACTERS_PER_TOKEN: Final = 3


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Estimate how many tokens turns take: a third of their characters, rounded up, so rather too many."""
    characters = 0
    for turn in messages:
        content = turn["content"]
        if isinstance(content, str):
            characters += len(content)
        elif content is not None:
            characters += sum(len(part["text"]) for part in content)
    return estimate_text(characters)


def estimate_text(characters: int) -> int:
    """Estimate how many tokens a text of so many characters takes."""
    return -(-characters // _CHARACTERS_PER_TOKEN)
