"""Secrets: the keys and hidden headers in use in this process, and texts without them.

A reply may quote a key. What is written to a file goes through `scrub`, where no model is at hand any more.
"""

import json
import os
import re
from collections.abc import Iterable
from typing import Any, Final

from .names import pointer

SHORTEST_SECRET: Final = 8
"""Shorter texts are no secrets: they stand in any prose."""

_MOST: Final = 256  # keys that rotate must not fill the memory
_IN_USE: Final[dict[str, None]] = {}
"""The secrets of the models of this process, the latest last."""


def remember_secrets(secrets: Iterable[str]) -> None:
    """Keep texts out of the files of this process from now on."""
    _IN_USE.update(dict.fromkeys(secrets))
    for oldest in list(_IN_USE)[: max(len(_IN_USE) - _MOST, 0)]:
        _IN_USE.pop(oldest, None)


def scrub(text: str) -> str:
    """Return a text that is to be written, with `***` for every secret in use.

    Example:
        >>> remember_secrets(["sk-of-the-docs-1"])
        >>> scrub('{"reply": "your key sk-of-the-docs-1 is wrong"}')
        '{"reply": "your key *** is wrong"}'
    """
    return without_secrets(text, list(_IN_USE)) if _IN_USE else text


def scrub_json(value: Any) -> Any:
    """Return plain JSON that is to be written, with `***` for every secret in use."""
    if not _IN_USE:
        return value
    text = json.dumps(value, ensure_ascii=False)
    clean = scrub(text)
    return value if clean == text else json.loads(clean)


_AS_IT_IS: Final = re.compile(r"[\w .:=+-]*")  # has the same form everywhere


def _forms(secret: str) -> set[str]:
    """Return the forms of a secret: plain, in JSON, in JSON within JSON, in a pointer; and the `repr` of each."""
    if _AS_IT_IS.fullmatch(secret):
        return {secret}
    in_json = json.dumps(secret, ensure_ascii=False)[1:-1]
    written = {secret, in_json, json.dumps(in_json, ensure_ascii=False)[1:-1], pointer([secret])[1:]}
    return written | {repr(text)[1:-1] for text in written}


def without_secrets(text: str, secrets: Iterable[str], *, cut: bool = False) -> str:
    """Return a text with `***` for every form of every secret; the longest first, since one may contain another.

    Args:
        text: Plain text or JSON.
        secrets: Texts that no file and no error may show.
        cut: Whether parts of the text may have been cut: then the beginning of a secret, of at least eight characters,
            is replaced too if no letter or digit follows it.

    Example:
        >>> without_secrets("got 'key-12345", ["key-123456789"], cut=True)
        "got '***"
    """
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
    for written in forms:
        text = text.replace(written, "***")
    for written in forms if cut else ():
        parts, done, at = list[str](), 0, text.find(written[:SHORTEST_SECRET])
        while at >= 0:
            end = at + len(os.path.commonprefix([written, text[at : at + len(written)]]))  # noqa: RUF071  (of characters, not paths)
            is_cut = not text[end : end + 1].isalnum()
            if is_cut:
                parts += [text[done:at], "***"]
                done = end
            at = text.find(written[:SHORTEST_SECRET], end if is_cut else at + 1)
        text = "".join([*parts, text[done:]])
    return text
