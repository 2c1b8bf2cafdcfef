"""Names that must differ: `name`, then `name_1`, `name_2`, ... , in linear time however many are equal."""

from __future__ import annotations

from collections.abc import Callable


class Keys:
    """Hands out names, each once.

    Args:
        is_taken: Tells whether a name is in use already for another reason.
    """

    __slots__ = ("_given", "_is_taken", "_numbers")

    def __init__(self, is_taken: Callable[[str], bool] = lambda _: False) -> None:
        self._is_taken = is_taken
        self._given: set[str] = set()
        self._numbers: dict[str, int] = {}

    def give(self, name: str) -> str:
        """Give `name`, or the first of `name_1`, `name_2`, ... that is free."""
        number = self._numbers.get(name, 0)
        key = f"{name}_{number}" if number else name
        while key in self._given or self._is_taken(key):
            number += 1
            key = f"{name}_{number}"
        self._numbers[name] = number + 1
        self._given.add(key)
        return key
