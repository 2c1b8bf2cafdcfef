"""The three phases, and the check that a word is one of them."""

from __future__ import annotations

from typing import Final

from synmod.errors import CallError
from synmod.leaves.names import did_you_mean

PHASES: Final = ("inference", "reward", "optimizer")


def check_phase(name: object) -> str:
    """Return `name` if it is a phase.

    Raises:
        CallError: It is not.
    """
    if isinstance(name, str) and name in PHASES:
        return name
    raise CallError(f"unknown phase {name!r}: write one of {', '.join(map(repr, PHASES))}.{did_you_mean(name, PHASES)}")
