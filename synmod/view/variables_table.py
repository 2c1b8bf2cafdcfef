"""`format_variables`: a light table of Variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from synmod.data import dump_json
from synmod.errors import ArgumentError
from synmod.leaves.names import path_str
from synmod.lm import estimate_text
from synmod.tree import PathMap, Variable, VariableState
from synmod.view.plain import table
from synmod.view.schema_text import schema_text
from synmod.view.units import count_text, plural, size_text

_HEADINGS = ("Variable", "type", "trainable", "size", "tokens", "schema", "value")
_RIGHT = (False, False, False, True, True, False, False)
_VALUE_SHOWN = 48


def format_variables(variables: Any) -> str:
    """Write Variables as a table: a line each, totals last.

    Args:
        variables: Variables in a list or tuple, by path in a mapping, or a State: what `module.variables`,
            `module.variables_by_path()`, `sm.variables(module)` and `sm.state(module)` give.

    Returns:
        The text; a Variable without a path is shown by its name.

    Raises:
        ArgumentError: It is no such thing, or something in it is no Variable.

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
    """Give each Variable with its path, or its name where no path is given."""
    if isinstance(variables, PathMap):
        by_path = cast("PathMap[Any]", variables).flat()
        pairs = [(path_str(path), variable) for path, variable in by_path.items()]
    elif isinstance(variables, Mapping):
        named = cast("Mapping[Any, Any]", variables)
        pairs = [(path if isinstance(path, str) else path_str(path), variable) for path, variable in named.items()]
    elif isinstance(variables, Iterable) and not isinstance(variables, str):
        pairs = [("", variable) for variable in cast("Iterable[Any]", variables)]
    else:
        raise ArgumentError(
            f"format_variables takes Variables, got {variables!r:.100}: give `module.variables` or "
            "`module.variables_by_path()`."
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
