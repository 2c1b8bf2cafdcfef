"""A loaded model that nobody has supplied yet: everything works but a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from synmod.errors import UnboundModelError
from synmod.lm import LanguageModel

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.lm import LMRequest

__all__ = ["Unbound", "unbound_model"]

_ANY_MODEL = "unbound/model"


class Unbound:
    """The adapter of such a model: keeps the record of the file, and says what to write.

    Attributes:
        record: The record as it stood in the file; saved again as it is.
        config: The live values of the record's config, None where it has none.
    """

    name = "unbound"
    version = 1

    def __init__(self, saved_name: str, record: dict[str, Json], needs: str, config: dict[str, Any] | None) -> None:
        self.saved_name = saved_name
        self.config = config
        self.record = record
        self.needs = needs

    async def send(self, request: LMRequest) -> NoReturn:
        """Refuse.

        Raises:
            UnboundModelError: Always.
        """
        raise UnboundModelError(
            f"The model {self.saved_name!r} came from a file, which rightly does not hold {self.needs}. Supply it: "
            f"sm.load(path, language_models={{{self.saved_name!r}: sm.LanguageModel(...)}}).",
            model=request.model,
        )


def unbound_model(
    saved_name: str, record: dict[str, Json], needs: str, settings: dict[str, Any], config: dict[str, Any] | None
) -> LanguageModel:
    """Make a model that answers every call with what it lacks."""
    adapter = Unbound(saved_name, record, needs, config)
    return LanguageModel(**{"model": _ANY_MODEL, **settings, "name": saved_name, "adapter": adapter})
