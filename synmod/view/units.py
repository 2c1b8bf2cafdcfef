"""Figures as people read them: sizes, counts, times, money."""

from __future__ import annotations

from typing import Final

_KILO: Final = 1000


def size_text(size: int) -> str:
    """Write a number of bytes."""
    if size < _KILO:
        return f"{size} B"
    return f"{size / _KILO:.1f} kB" if size < _KILO**2 else f"{size / _KILO**2:.1f} MB"


def count_text(count: int) -> str:
    """Write a count, thousands set apart."""
    return f"{count:,}"


def seconds_text(seconds: float) -> str:
    """Write a time, in the unit that needs no zeros."""
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


def dollars_text(cost_usd: float | None) -> str:
    """Write a cost; nothing where no price is known."""
    if cost_usd is None:
        return "?"
    if not cost_usd:
        return "$0"
    return f"${cost_usd:.6f}" if cost_usd < 0.01 else f"${cost_usd:,.4f}"


def plural(count: int, word: str) -> str:
    """Write a count with its word."""
    return f"{count_text(count)} {word}{'' if count == 1 else 's'}"
