"""Choices: Variables that hold one of several values, such as a number, a model or a module by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from synmod.errors import ArgumentError
from synmod.leaves import Json, check_int
from synmod.registry import register_own

from .variable import Param


@register_own()
class Choice(Param):
    """A Param that holds one of several options: it stands where a model, a sampling parameter or a number stands.

    It is read at each call, so overlays, files, diffs and optimizers treat it as any Variable: `Mipro` draws over it,
    `Gepa` and `Omega` change it, `GridSearch` tries all combinations.

    Args:
        options: JSON values, or a mapping from a name to a model or module. Of a mapping the name is the value, and
            what stands behind it is held by the module that takes the choice.
        index: Which of them is the first value.
        **options_of_variable: Keyword arguments of `Variable`: `name`, `description`, `trainable`, metadata.

    Raises:
        ArgumentError: There are no options, two are equal, or `index` is none of theirs.

    Example:
        >>> temperature = Choice([0, 0.7, 1.0], index=1)
        >>> temperature.value, temperature.options
        (0.7, (0, 0.7, 1.0))

    Source: KerasTuner's `Choice`, Synalinks' choice of models; differs: a Variable, not a parameter of a build.
    """

    __slots__ = ("behind",)

    def __init__(self, options: Sequence[Json] | Mapping[str, Any], index: int = 0, **options_of_variable: Any) -> None:
        self.behind: Mapping[str, Any] = dict(options) if isinstance(options, Mapping) else {}
        """What stands behind each name; empty where the options are values, and of a choice from a file."""
        values = list(options)
        if isinstance(options, str) or not values:
            raise ArgumentError(f"Choice: the options are {options!r:.100}; give at least one, as a list or a mapping.")
        at = check_int("Choice: index", index, 0, error=ArgumentError)
        if at >= len(values):
            raise ArgumentError(f"Choice: index is {at}, and there are {len(values)} options.")
        super().__init__(values[at], schema={"enum": values}, **options_of_variable)
        if len(self.options) != len({repr(option) for option in self.options}):
            raise ArgumentError(f"Choice: two of the options {values!r:.200} are equal.")

    def __repr__(self) -> str:
        return f"Choice({list(self.options)!r}, index={self.options.index(self.value)})"

    @property
    def options(self) -> tuple[Json, ...]:
        """The values that it may have, in order; names of a mapping."""
        return tuple(self.schema["enum"])


def chosen(value: object) -> Any:
    """Return what a `Choice` holds now; any other value itself.

    Example:
        >>> chosen(Choice([1, 2])), chosen(3)
        (1, 3)
    """
    return value.value if isinstance(value, Choice) else value
