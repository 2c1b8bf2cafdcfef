"""`plot`: a picture of a program in one of the formats, as text and, if wanted, as a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from synmod.data import dump_json
from synmod.errors import ArgumentError
from synmod.leaves.files import write_atomic
from synmod.leaves.names import did_you_mean
from synmod.view.pictured import picture_of

if TYPE_CHECKING:
    from synmod.module import Module


def _json(module: Module) -> str:
    return dump_json(picture_of(module).to_json(), indent=2) + "\n"


def _mermaid(module: Module) -> str:
    from synmod.view.mermaid import mermaid

    return mermaid(picture_of(module))


def _dot(module: Module) -> str:
    from synmod.view.dot import dot

    return dot(picture_of(module))


def _svg(module: Module) -> str:
    from synmod.view.svg import svg

    return svg(picture_of(module))


def _html(module: Module) -> str:
    from synmod.view.html import html
    from synmod.view.summary import summary

    return html(picture_of(module), summary(module, None, None, "pre", None))


FORMATS: Final[dict[str, Callable[[Module], str]]] = {
    "mermaid": _mermaid,
    "dot": _dot,
    "svg": _svg,
    "html": _html,
    "json": _json,
}
"""The formats of `plot` by name."""


def plot(module: Module, path: Any, format: Any) -> str:  # noqa: A002  # the word of the contract
    """Draw a module; see `Module.plot`."""
    if not isinstance(format, str) or format not in FORMATS:
        near = did_you_mean(format, FORMATS) if isinstance(format, str) else ""
        raise ArgumentError(f"plot: format={format!r:.100} is unknown; there are {', '.join(FORMATS)}.{near}")
    if path is not None and not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"plot: path={path!r:.100} is no path; write a file name, or None for the text alone.")
    text = FORMATS[format](module)
    if path is not None:
        write_atomic(cast("str | os.PathLike[str]", path), text)
    return text
