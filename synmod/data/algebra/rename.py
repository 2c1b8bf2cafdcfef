"""Prefix and suffix: every top-level field under another name."""

from __future__ import annotations

from typing import Any

from synmod.data.parts import Parts, parts_of
from synmod.data.schema import Schema
from synmod.data.value import JsonDataModel, wrap
from synmod.errors import DataError
from synmod.leaves.frozen import frozen_dict

from .plans import Operands, Values


class Rename:
    """The plan of `prefix` and `suffix`: a text before and after each name."""

    def __init__(self, operands: Operands, before: str = "", after: str = "") -> None:
        (schema,) = operands
        self._before, self._after = before, after
        self.schema: Schema | None = None
        if schema is not None:
            parts = parts_of(schema)
            self._names = {name: self._renamed(name) for name in parts.fields}
            self.schema = Parts(
                frozen_dict({self._names[name]: field for name, field in parts.fields.items()}),
                [self._names[name] for name in parts.required],
                parts.extra,
                parts.definitions,
                parts.title,
                parts.description,
            ).schema

    def _renamed(self, name: str) -> str:
        return f"{self._before}{name}{self._after}"

    def apply(self, args: Values, where: str = "") -> JsonDataModel[Any] | None:  # noqa: ARG002  (only concat tells where)
        """Rename the keys, those that no schema declares too; contents are shared."""
        (value,) = args
        if value is None or self.schema is None:
            return None
        names = self._names
        renamed = {names.get(key) or self._renamed(key): content for key, content in value._json.items()}
        return wrap(frozen_dict(renamed), self.schema)


def checked_prefix(prefix: object) -> str:
    """Give the prefix back if it is an identifier (DataError)."""
    if isinstance(prefix, str) and prefix.isidentifier():
        return prefix
    raise DataError(f"The prefix {prefix!r:.100} is no identifier: write one such as 'my'.")


def checked_suffix(suffix: object) -> str:
    """Give the suffix back if it can be part of an identifier (DataError)."""
    if isinstance(suffix, str) and suffix and f"_{suffix}".isidentifier():
        return suffix
    raise DataError(f"The suffix {suffix!r:.100} cannot be part of an identifier: write one such as 'old' or '2'.")
