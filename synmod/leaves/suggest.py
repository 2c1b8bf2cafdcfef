"""'Did you mean': the nearest known word to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 200  # a longer word is no typing mistake, and comparing it costs time an attacker could ask for


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """Give the sentence " Did you mean 'x'?", or "" where nothing known is near."""
    from difflib import get_close_matches

    text = str(word)
    if len(text) > _LONGEST:
        return ""
    by_folded = {str(option).casefold(): str(option) for option in known if len(str(option)) <= _LONGEST}
    near = get_close_matches(text.casefold(), by_folded, n=1)
    return f" Did you mean {by_folded[near[0]]!r}?" if near else ""
