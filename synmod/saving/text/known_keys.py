"""No key in a file: the text that is to be written is searched for every secret that synmod knows."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import TYPE_CHECKING, cast

from synmod.errors import SaveError, SaveProblem
from synmod.leaves.names import pointer
from synmod.lm import LanguageModel, default_language_model, environment_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from synmod.leaves.frozen import Json

__all__ = ["check_secrets"]

_SHORTEST = 12  # a shorter text may well be an ordinary word


def check_secrets(text: str, sections: Mapping[str, Json], models: Iterable[LanguageModel]) -> None:
    """Refuse a text that holds a secret.

    Args:
        text: What would be written.
        sections: The same as JSON, to tell the place.
        models: The language models of the program, which know their keys.

    Raises:
        SaveError: Gives every place, never the secret.
    """
    default = default_language_model()
    known = set(environment_secrets())
    for model in (*models, *((default,) if default is not None else ())):
        known |= model.known_secrets()
    found = [secret for secret in known if len(secret) >= _SHORTEST and encode_basestring(secret)[1:-1] in text]
    if not found:
        return
    remedy = "pass it to the live model (api_key=..., or the environment), which a load gets anew"
    problems = [SaveProblem(place, "a key that synmod knows", remedy) for place in _places(sections, found)]
    places = ", ".join(problem.path for problem in problems[:10])
    raise SaveError(f"This cannot be saved: at {places or 'the header'}: a key that synmod knows: {remedy}.", problems)


def _places(sections: Mapping[str, Json], secrets: list[str]) -> list[str]:
    """The pointers to the texts that hold a secret; of a key that holds one, the object around it."""
    found: list[str] = []
    pending: list[tuple[tuple[str | int, ...], Json]] = [((), dict(sections))]
    while pending:
        where, value = pending.pop()
        if isinstance(value, str):
            if any(secret in value for secret in secrets):
                found.append(pointer(where))
        elif isinstance(value, dict):
            for key, part in cast("dict[str, Json]", value).items():
                if any(secret in key for secret in secrets):
                    found.append(pointer(where) or "/")
                pending.append(((*where, key), part))
        elif isinstance(value, list):
            pending += [((*where, number), part) for number, part in enumerate(cast("list[Json]", value))]
    return found
