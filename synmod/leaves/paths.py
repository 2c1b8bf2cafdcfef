"""Paths: where something stands in a program, and where inside a JSON value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""Steps from a root: attribute names, dict keys, indices."""


def escape_step(step: str | int) -> str:
    """Write one step so that it can stand between slashes (`~0` for `~`, `~1` for `/`, `~2` for `#`)."""
    text = str(step)
    if "~" in text or "/" in text or "#" in text:
        return text.replace("~", "~0").replace("/", "~1").replace("#", "~2")
    return text


def path_str(path: Iterable[str | int]) -> str:
    """Join the steps of a path.

    Args:
        path: Steps; only dict keys can need escapes.

    Returns:
        The steps joined by `/`; the root is `""`.

    Example:
        >>> path_str(("layers", 0, "prompt"))
        'layers/0/prompt'

    Source: tf.Module names, JSON Pointer escapes.
    """
    return "/".join(map(escape_step, path))


def parse_path(text: str) -> tuple[str, ...]:
    """Take a path text apart; the steps are texts, since only the graph knows which were ints."""
    if not text:
        return ()
    if "~" not in text:
        return tuple(text.split("/"))
    return tuple(step.replace("~2", "#").replace("~1", "/").replace("~0", "~") for step in text.split("/"))


def pointer(steps: Iterable[str | int]) -> str:
    """Write a JSON Pointer (RFC 6901): `""` for the whole, else a slash before each step."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
