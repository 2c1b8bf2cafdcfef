"""Ids of runs: short texts that no other run has, in this process or another."""

from __future__ import annotations

import itertools
import os

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIX_LENGTH = 8  # 41 random bits: a thousand processes meet with a chance of one in four million


def base36(number: int) -> str:
    """Write a natural number with the digits 0-9 and a-z."""
    text = ""
    while True:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
        if not number:
            return text


class _Issuer:
    """Gives out ids: a random text of the process and a number; a forked child starts with a text of its own."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Draw the text of this process; its length is fixed, so that text and number need no mark between them."""
        random = int.from_bytes(os.urandom(8), "big") % 36**_PREFIX_LENGTH
        self._prefix = base36(random).rjust(_PREFIX_LENGTH, "0")
        self._numbers = itertools.count()

    def next(self) -> str:
        """Give an id; `next` on a count is atomic, so threads need no lock."""
        return self._prefix + base36(next(self._numbers))


_ISSUER = _Issuer()


def new_run_id() -> str:
    """Make an id of letters and digits, unique in this process, across processes and after a fork.

    Returns:
        About ten characters, without a dash.

    Example:
        >>> new_run_id() == new_run_id()
        False

    Source: trace ids of OpenTelemetry; differs: short, since people read them in error notes.
    """
    return _ISSUER.next()
