"""Secrets in a trace: whatever text holds one, it does not leave the trace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


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


def _forms(secret: str) -> list[str]:
    """As it stands in text, in JSON, and in JSON that is a text in JSON: a reply often is one."""
    forms = [secret]
    for _ in range(3):
        forms.append(json.dumps(forms[-1])[1:-1])
    return forms
