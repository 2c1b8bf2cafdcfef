"""The columns of a summary: what each is called and what it says of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from synmod.lm import estimate_text
from synmod.view.rows import Row
from synmod.view.units import count_text, dollars_text, seconds_text, size_text


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        heading: What stands above it.
        cell: The text for a row; empty where there is nothing to say.
        right: Whether it is set to the right.
        always: Whether it is shown although no row has anything to say.
    """

    heading: str
    cell: Callable[[Row], str]
    right: bool = False
    always: bool = False


def _class(row: Row) -> str:
    """The class, with a mark where it is not built; of a further name the place where the module stands."""
    if row.member.stands_for is not None:
        return f"= {row.member.stands_for.tail(_LONGEST) or '(root)'}"
    return f"{type(row.member.module).__name__}{'' if row.built else ' (unbuilt)'}"


def _variables(row: Row) -> str:
    """How many Variables, trainable and frozen."""
    held = row.held
    kinds = ((held.trainable, "trainable"), (held.frozen, "frozen"))
    return ", ".join(f"{count_text(count)} {kind}" for count, kind in kinds if count)


def _used(row: Row) -> str:
    """The tokens that a recorded call used."""
    if row.spent is None or not row.spent.usage.calls:
        return ""
    return count_text(row.spent.usage.prompt_tokens + row.spent.usage.completion_tokens)


_LONGEST: Final = 80

COLUMNS: Final[dict[str, Column]] = {
    "path": Column("path", lambda row: row.path, always=True),
    "class": Column("class", _class, always=True),
    "variables": Column("Variables", _variables),
    "size": Column("size", lambda row: size_text(row.held.size) if _has_any(row) else "", right=True),
    "tokens": Column(
        "tokens", lambda row: f"~{count_text(estimate_text(row.held.characters))}" if _has_any(row) else "", right=True
    ),
    "language_model": Column("language model", lambda row: ", ".join(row.models)),
    "stash": Column("stash", lambda row: ", ".join(row.stash)),
    "pop": Column("pop", lambda row: ", ".join(row.pop)),
    "invocations": Column(
        "invocations", lambda row: count_text(row.spent.invocations) if row.spent is not None else "", right=True
    ),
    "used": Column("tokens used", _used, right=True),
    "cost": Column(
        "cost",
        lambda row: dollars_text(row.spent.usage.cost_usd) if row.spent is not None and row.spent.usage.calls else "",
        right=True,
    ),
    "latency": Column("latency", lambda row: "" if row.latency_s is None else seconds_text(row.latency_s), right=True),
    "schemas": Column("schemas", lambda row: str(row.contract)),
}
"""The columns of a summary by name, in their usual order: the widest at the end."""


def _has_any(row: Row) -> bool:
    """Tell whether a row counts any Variable."""
    return bool(row.held.trainable or row.held.frozen)
