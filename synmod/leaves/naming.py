"""Names of modules, Variables and labels: snake case, validity, and the one way to tell equal names apart."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container

from synmod.errors import BadNameError

# A capital starts a word when it follows a lower-case letter or digit, or when a lower-case letter follows it.
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Turn a class name into the name of an instance: `HTTPServer` gives `http_server`."""
    words = _WORD_START.sub("_", name.lstrip("_")).lower()
    return f"{words}_" if keyword.iskeyword(words) else words


def check_name(name: object, kind: str = "module") -> str:
    """Return `name` if it is a valid name.

    Raises:
        BadNameError: It is no identifier, or a Python keyword.
    """
    if isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name):
        return name
    raise BadNameError(
        f"{name!r} is not a valid {kind} name: write an identifier that is no keyword, such as 'my_{kind.lower()}'."
    )


def unused(name: str, taken: Container[str]) -> str:
    """Give `name`, or `name_1`, `name_2`, ... , the first that is not taken."""
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
