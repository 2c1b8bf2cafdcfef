"""A model of a loaded file that rightly does not say how to reach it: everything works but a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from synmod.errors import UnboundModelError
from synmod.leaves.frozen import Json
from synmod.lm.model import LanguageModel

if TYPE_CHECKING:
    from synmod.lm.records import LMRequest

__all__ = ["UnboundLanguageModel"]


class _NoConnection:
    """The adapter of an unbound model: refuses every request before anything is done."""

    __slots__ = ("_said",)

    name = "unbound"
    version = 1

    def __init__(self, said: str) -> None:
        self._said = said

    def check(self, request: LMRequest) -> NoReturn:  # noqa: ARG002  # no request will do
        """Refuse.

        Raises:
            UnboundModelError: Always.
        """
        raise UnboundModelError(self._said)

    async def send(self, request: LMRequest) -> NoReturn:
        """Refuse, for one who does not ask first."""
        self.check(request)


class UnboundLanguageModel(LanguageModel):
    """A model that was saved without its connection, as it must be; saving it again gives the same record.

    Args:
        name: The name in the file.
        record: The record in the file; kept as it is.
        needs: What the file does not hold: names such as `api_base`, never values; or a class that is not registered.

    Raises:
        ConfigError: `record` holds no usable model string.
        UnboundModelError: By a call; says what is needed, and the line to write.

    Example:
        >>> lm = UnboundLanguageModel("house", {"model": "openai/house"}, ["api_base"])
        >>> lm.name
        'house'

    Source: unbound variables; differs: nothing else of the program is held up.
    """

    __slots__ = ("_record",)

    def __init__(self, name: str, record: Mapping[str, Json], needs: Sequence[str]) -> None:
        wants = ", ".join(needs) or "a live model"
        super().__init__(
            str(record.get("model")),
            name=name,
            adapter=_NoConnection(
                f"the model {name!r} was loaded without its connection; it needs {wants}."
                f" Write load(..., language_models={{{name!r}: LanguageModel(...)}})."
            ),
        )
        self._record = record

    def record(self) -> dict[str, Any]:
        """Give the record of the file again."""
        return dict(self._record)
