"""Prefix, Suffix and Factorize: fields renamed or gathered, as modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from synmod.blocks.algebra_block import AlgebraBlock
from synmod.data import checked_prefix, checked_suffix, ops
from synmod.errors import ConfigError
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.module import ModuleOptions


@register_own()
class Prefix(AlgebraBlock):
    """Renames every top-level field `k` to `prefix_k`: `sm.ops.prefix` as a module.

    Args:
        prefix: An identifier.
        **options: Those of `Module`.

    Schemas:
        inputs: any data model
        outputs: the same fields under their new names

    Raises:
        DataError: The prefix is no identifier.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Prefix("first"), Query(question="Who?")).get_json()
        {'first_question': 'Who?'}

    Source: Synalinks' `prefix`.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_prefix"})

    def __init__(self, prefix: str, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self._prefix = checked_prefix(prefix)

    def _apply(self, inputs: Any) -> Any:
        return ops.prefix(inputs, self._prefix)


@register_own()
class Suffix(AlgebraBlock):
    """Renames every top-level field `k` to `k_suffix`: `sm.ops.suffix` as a module.

    Args:
        suffix: Part of an identifier.
        **options: Those of `Module`.

    Schemas:
        inputs: any data model
        outputs: the same fields under their new names

    Raises:
        DataError: The suffix is no part of an identifier.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Suffix("2"), Query(question="Who?")).get_json()
        {'question_2': 'Who?'}

    Source: Synalinks' `suffix`.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_suffix"})

    def __init__(self, suffix: str, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self._suffix = checked_suffix(suffix)

    def _apply(self, inputs: Any) -> Any:
        return ops.suffix(inputs, self._suffix)


@register_own()
class Factorize(AlgebraBlock):
    """Gathers numbered repeats `k, k_1 .. k_n` into one array: `sm.ops.factorize` as a module.

    Args:
        names: For a field `k`, the name of its array; `k_list` where not given.
        **options: Those of `Module`.

    Schemas:
        inputs: any data model
        outputs: the same with an array in the place of each group

    Raises:
        ConfigError: `names` is no mapping of names.
        SchemaError: When called: a key of `names` heads no group.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> both = Query(question="Who?").to_json_data_model() + Query(question="Why?")
        >>> sm.run(sm.Factorize({"question": "questions"}), both).get_json()
        {'questions': ['Who?', 'Why?']}

    Source: Synalinks' `factorize`; differs: no plurals, no stemming.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_names"})

    def __init__(self, names: Mapping[str, str] | None = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self._names = _checked_names(names)

    def _apply(self, inputs: Any) -> Any:
        return ops.factorize(inputs, self._names)


def _checked_names(names: Any) -> dict[str, str] | None:
    """Return a copy of a mapping of names."""
    if names is None:
        return None
    if isinstance(names, dict) and all(isinstance(text, str) for pair in names.items() for text in pair):  # pyright: ignore[reportUnknownVariableType]
        return dict(names)  # pyright: ignore[reportUnknownArgumentType]
    raise ConfigError(f"Factorize: names is {names!r:.200}; give a mapping such as {{'query': 'queries'}}.")
