"""Names of modules, Variables and labels: snake case, validity, and the one way to tell equal names apart."""

from __future__ import annotations

import keyword
from collections.abc import Container

from synmod.errors import BadNameError


def snake_case(name: str) -> str:
    """Turn a class name into the name of an instance: `HTTPServer` gives `http_server`."""
    name = name.lstrip("_")
    words = "".join(f"_{char}" if _starts_word(name, at) else char for at, char in enumerate(name)).lower()
    if keyword.iskeyword(words):
        return f"{words}_"
    return words if words.isidentifier() else f"_{words}"  # of `_` and `_1` nothing is left that could be a name


def _starts_word(name: str, at: int) -> bool:
    """Tell whether a capital follows a lower-case letter or digit, or a lower-case letter follows it."""
    if at == 0 or not name[at].isupper() or name[at - 1] == "_":
        return False
    before, after = name[at - 1], name[at + 1 : at + 2]
    return before.islower() or before.isdigit() or after.islower()


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
