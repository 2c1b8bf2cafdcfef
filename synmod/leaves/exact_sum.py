"""Exact sums of floats: what the order of adding cannot change, to the last digit."""

from __future__ import annotations

import math

Parts = tuple[float, ...]
"""A sum without rounding, as floats that do not overlap, smallest first."""


def added(parts: Parts, term: float) -> Parts:
    """Add a number to a sum, exactly.

    Args:
        parts: The sum so far, `()` for zero.
        term: A finite number.

    Returns:
        The new sum; `total` rounds it, once.

    Example:
        >>> parts = ()
        >>> for _ in range(10):
        ...     parts = added(parts, 0.1)
        >>> total(parts)
        1.0

    Source: Shewchuk, Adaptive Precision Floating-Point Arithmetic; Python's `math.fsum`.
    """
    rest: list[float] = []
    for part in parts:
        if abs(term) < abs(part):
            term, part = part, term
        high = term + part
        low = part - (high - term)
        if low:
            rest.append(low)
        term = high
    return (*rest, term)


def total(parts: Parts) -> float:
    """Round a sum to the nearest float."""
    return parts[0] if len(parts) == 1 else math.fsum(parts)
