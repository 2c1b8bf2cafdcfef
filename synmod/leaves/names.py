"""Names of modules and fields, and the texts of paths: of places in a program and in JSON."""

import itertools
import keyword
from collections.abc import Container, Iterable
from functools import lru_cache
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""Steps from a root: attribute names, dict keys, indices."""


@lru_cache(maxsize=1024)  # called for each symbol of a class
def snake_case(name: str) -> str:
    """Return the name of an instance of the class `name`: `http_server` for `HTTPServer`."""
    name = name.lstrip("_")
    words = "".join(f"_{char}" if _starts_word(name, at) else char for at, char in enumerate(name)).lower()
    if keyword.iskeyword(words):
        return f"{words}_"
    return words if words.isidentifier() else f"_{words}"


def _starts_word(name: str, at: int) -> bool:
    """Whether a capital follows a lower-case letter or digit, or is followed by a lower-case letter."""
    if at == 0 or not name[at].isupper() or name[at - 1] == "_":
        return False
    before, after = name[at - 1], name[at + 1 : at + 2]
    return before.islower() or before.isdigit() or after.islower()


def unique_name(name: str, names: Container[str]) -> str:
    """Return the first of `name`, `name_1`, `name_2`, ... that is not taken."""
    return name if name not in names else next_name(name, names)


def next_name(name: str, names: Container[str]) -> str:
    """Return the first of `name_1`, `name_2`, ... that is not taken."""
    return next(new for number in itertools.count(1) if (new := f"{name}_{number}") not in names)


def escape_step(step: str | int) -> str:
    """Return one step as it is written between slashes (`~0` for `~`, `~1` for `/`, `~2` for `#`)."""
    text = str(step)
    if "~" in text or "/" in text or "#" in text:
        return text.replace("~", "~0").replace("/", "~1").replace("#", "~2")
    return text


def path_str(path: Iterable[str | int]) -> str:
    """Return the text of a path: its steps joined by `/`, "" for the root.

    Example:
        >>> path_str(("layers", 0, "prompt"))
        'layers/0/prompt'

    Source: tf.Module names, JSON Pointer escapes.
    """
    return "/".join(map(escape_step, path))


def with_label(path: str, name: str) -> str:
    """Return a path with the label of its module, unless that is the last step; the label alone for an empty path.

    Example:
        >>> with_label("routes/technical/0", "answer"), with_label("writer", "writer"), with_label("", "desk")
        ('routes/technical/0 (answer)', 'writer', 'desk')

    Source: Keras' layer names.
    """
    if not path:
        return name
    return path if not name or path.rpartition("/")[2] == name else f"{path} ({name})"


def parse_path(text: str) -> tuple[str, ...]:
    """Return the steps of a path, all as str: the text does not show which of them were ints."""
    if not text:
        return ()
    if "~" not in text:
        return tuple(text.split("/"))
    return tuple(step.replace("~2", "#").replace("~1", "/").replace("~0", "~") for step in text.split("/"))


def pointer(steps: Iterable[str | int]) -> str:
    """Return the JSON Pointer (RFC 6901) of a place: "" for the whole, else a slash before each step."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
