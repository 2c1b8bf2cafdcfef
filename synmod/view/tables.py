"""Tables of plain text, whatever characters are in the cells; figures as people read them; a table of Variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast
from unicodedata import combining, east_asian_width

from synmod.data import dump_json
from synmod.errors import ArgumentError
from synmod.leaves.names import path_str
from synmod.lm import estimate_text
from synmod.tree import Variable, VariableState

from .schemas import schema_text

_GAP: Final = "  "
_LINE_BREAKS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Return what is no printable character as an escape: no control character reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _LINE_BREAKS.get(c) or c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """How many columns a text takes: wide characters two, accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return the lines of a table.

    Args:
        headings: One for each column.
        rows: The cells.
        right: Which columns are set to the right, as numbers are.

    Returns:
        The lines: headings, a rule, a line a row; without blanks at their ends.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([width(heading), *(width(row[i]) for row in cells)]) for i, heading in enumerate(headings)]
    lines = [_line(headings, widths, right), _GAP.join("─" * wide for wide in widths)]
    return lines + [_line(row, widths, right) for row in cells]


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Return one line."""
    padded = [
        " " * (wide - width(cell)) + cell if is_right else cell + " " * (wide - width(cell))
        for cell, wide, is_right in zip(cells, widths, right, strict=True)
    ]
    return _GAP.join(padded).rstrip()


_KILO: Final = 1000


def size_text(size: int) -> str:
    """Return a number of bytes."""
    if size < _KILO:
        return f"{size} B"
    return f"{size / _KILO:.1f} kB" if size < _KILO**2 else f"{size / _KILO**2:.1f} MB"


def count_text(count: int) -> str:
    """Return a count, thousands set apart."""
    return f"{count:,}"


def seconds_text(seconds: float) -> str:
    """Return a time, in the unit that needs no zeros."""
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


def dollars_text(cost_usd: float | None) -> str:
    """Return a cost; nothing where no price is known."""
    if cost_usd is None:
        return "?"
    if not cost_usd:
        return "$0"
    return f"${cost_usd:.6f}" if cost_usd < 0.01 else f"${cost_usd:,.4f}"


def plural(count: int, word: str) -> str:
    """Return a count with its word."""
    return f"{count_text(count)} {word}{'' if count == 1 else 's'}"


_HEADINGS = ("Variable", "type", "trainable", "size", "tokens", "schema", "value")
_RIGHT = (False, False, False, True, True, False, False)
_VALUE_SHOWN = 48


def format_variables(variables: Any) -> str:
    """Return Variables as a table: a line each, totals last.

    Args:
        variables: Variables in a list or tuple, by path in a mapping, or a State: what `module.variables`,
            `sm.variables(module)` and `sm.state(module)` return.

    Returns:
        The text; a Variable without a path is shown by its name.

    Raises:
        ArgumentError: It is not such a thing, or something in it is not a Variable.

    Example:
        >>> import synmod as sm
        >>> print(sm.format_variables([sm.Param("Be brief.", name="tone")]))
        Variable  type   trainable  size  tokens  schema  value
        ────────  ─────  ─────────  ────  ──────  ──────  ───────────
        tone      Param  yes        11 B      ~4  str     "Be brief."
        1 Variable (1 trainable, 0 frozen), 11 B, about 4 tokens

    Source: Sonnet `format_variables`.
    """
    rows: list[list[str]] = []
    trainable = size = characters = 0
    for label, variable in _labelled(variables):
        text = dump_json(variable.value)
        wide = len(text.encode(errors="replace"))
        rows.append(
            [
                label,
                (variable.type if isinstance(variable, VariableState) else type(variable)).__name__,
                "yes" if variable.trainable else "no",
                size_text(wide),
                f"~{count_text(estimate_text(len(text)))}",
                schema_text(variable.schema),
                text if len(text) <= _VALUE_SHOWN else f"{text[: _VALUE_SHOWN - 1]}…",
            ]
        )
        trainable, size, characters = trainable + variable.trainable, size + wide, characters + len(text)
    kinds = f"{count_text(trainable)} trainable, {count_text(len(rows) - trainable)} frozen"
    tokens = count_text(estimate_text(characters))
    total = f"{plural(len(rows), 'Variable')} ({kinds}), {size_text(size)}, about {tokens} tokens"
    return "\n".join([*table(_HEADINGS, rows, _RIGHT), total])


def _labelled(variables: Any) -> list[tuple[str, Variable | VariableState]]:
    """Return each Variable with its path, or its name where no path is given."""
    if isinstance(variables, Mapping):
        named = cast("Mapping[Any, Any]", variables)
        pairs = [(path if isinstance(path, str) else path_str(path), variable) for path, variable in named.items()]
    elif isinstance(variables, Iterable) and not isinstance(variables, str):
        pairs = [("", variable) for variable in cast("Iterable[Any]", variables)]
    else:
        raise ArgumentError(
            f"format_variables takes Variables, got {variables!r:.100}: pass `module.variables` or "
            "`sm.variables(module)`."
        )
    for path, variable in pairs:
        if not isinstance(variable, Variable | VariableState):
            at = f" at {path!r}" if path else ""
            raise ArgumentError(f"format_variables takes Variables, got a {type(variable).__name__}{at}.")
    return [(path or _name(variable), variable) for path, variable in pairs]


def _name(variable: Any) -> str:
    """The label of a Variable without a path."""
    name: str | None = variable.name if isinstance(variable, Variable) else None
    return name or "-"
