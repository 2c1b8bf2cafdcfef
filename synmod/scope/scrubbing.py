"""Secrets in what hooks write down: whatever text holds one, it goes out as stars."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_MOST_LEARNED: Final = 256


class Secrets:
    """What must not be seen, as the models say that were called.

    Args:
        known: For each model that was called, a function that gives the texts it hides.
    """

    __slots__ = ("_pattern",)

    def __init__(self, known: Iterable[Callable[[], Iterable[str]]]) -> None:
        texts = {form for tell in known for secret in tell() for form in _forms(secret)}
        longest_first = sorted(texts, key=len, reverse=True)  # one may hold another
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if texts else None

    def removed(self, written: T) -> T:
        """Give JSON with `***` in the place of each secret; itself where there is none."""
        if self._pattern is None:
            return written
        text = json.dumps(written)
        clean: Any = json.loads(self._pattern.sub("***", text)) if self._pattern.search(text) else written
        return clean


class LearnedSecrets:
    """Those of the models that were called lately, for who writes while calls go on."""

    __slots__ = ("_secrets", "_texts")

    def __init__(self) -> None:
        self._texts: tuple[str, ...] = ()
        self._secrets = Secrets(())

    def learn(self, tell: Callable[[], Iterable[str]] | None) -> None:
        """Take what a model hides; beyond a bound what was learned first is forgotten."""
        fresh = [] if tell is None else [text for text in tell() if text not in self._texts]
        if fresh:
            texts = self._texts = (*self._texts, *fresh)[-_MOST_LEARNED:]
            self._secrets = Secrets((lambda: texts,))

    def removed(self, written: T) -> T:
        """Give JSON with `***` in the place of each."""
        return self._secrets.removed(written)


def _forms(secret: str) -> list[str]:
    """As it stands in text, in JSON, and in JSON that is a text in JSON: a reply often is one."""
    forms = [secret]
    for _ in range(3):
        forms.append(json.dumps(forms[-1])[1:-1])
    return forms
