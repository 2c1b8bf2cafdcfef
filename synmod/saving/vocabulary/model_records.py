"""Records of language models: what a file holds of one, and how it is checked. Never a key, an endpoint or a header."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from synmod.leaves.frozen import is_object
from synmod.leaves.names import did_you_mean
from synmod.lm import SAMPLING, STRUCTURED, LanguageModel, UnboundLanguageModel
from synmod.registry import id_of
from synmod.saving.text.document import check_fields
from synmod.saving.text.faults import malformed, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json
    from synmod.saving.vocabulary.problems import Problems

__all__ = ["SETTINGS", "check_record", "record_of"]

SETTINGS: Final = ("model", "attempts", "timeout_s", "repairs", "structured", "limit", "fallback", "defaults", "supply")
"""The fields of a record beside `type` and, for a registered subclass, `config`."""

SUPPLIED: Final = ("api_base", "headers", "extra_body", "adapter")
"""What the author of a file had to supply: names, never values."""

_MODEL = re.compile(r"[a-z0-9_]+(/[A-Za-z0-9][A-Za-z0-9._:@+-]*)+")
_MOST_ATTEMPTS = 10
_LONGEST_TIMEOUT_S = 3600


def record_of(
    model: LanguageModel, place: str, problems: Problems, config_of: Callable[[Any], Json]
) -> dict[str, Json]:
    """Write the record of a model.

    A model whose class nobody registered (a test double) leaves its name alone; one that a load left unbound is
    written as it stood in its file.

    Args:
        model: The model.
        place: Where it was met, for messages.
        problems: Takes what could not be loaded again.
        config_of: Writes the config of a registered subclass, or of an unbound model, as terms.
    """
    if isinstance(model, UnboundLanguageModel):
        kept = model.record()
        if kept["type"] is None:
            return {"type": None}
        return {**kept, "config": config_of(model)} if kept.get("config") is not None else kept
    public_id = id_of(type(model))
    if public_id is None:
        return {"type": None}
    settings = model.settings
    record: dict[str, Json] = {"type": public_id}
    if type(model) is not LanguageModel:
        record["config"] = config_of(model)
    record |= {
        "model": settings.model,
        "attempts": settings.attempts,
        "timeout_s": settings.timeout_s,
        "repairs": settings.repairs,
        "structured": settings.structured,
        "limit": None,
        "fallback": None,
        "defaults": {name: settings.defaults[name] for name in SAMPLING if name in settings.defaults},
        "supply": [name for name in SUPPLIED if name in settings.supply],
    }
    for field, fault in faults_of(record):
        problems.note(place, f"a language model whose {field} is {shown(record[field])}", fault)
    return record


def check_record(record: Json, where: tuple[str | int, ...]) -> None:
    """Check a record of a file.

    Raises:
        FormatError: A field is missing, unknown, or holds what must not come from a file.
    """
    if not is_object(record):
        raise malformed(where, f"wanted an object, got {shown(record)}.")
    kind = record.get("type", 0)
    if kind is None:
        check_fields(record, where, ("type",))
        return
    if not isinstance(kind, str):
        raise malformed((*where, "type"), f"wanted the id of a class or null, got {shown(kind)}.")
    check_fields(record, where, ("type", *SETTINGS), ("config",))
    for field, fault in faults_of(record):
        raise malformed((*where, field), f"{shown(record[field])} cannot stand here: {fault}.")


def faults_of(record: dict[str, Json]) -> list[tuple[str, str]]:
    """Find what must not stand in the record of a file: the field, and what may stand there."""
    faults: list[tuple[str, str]] = []
    model = record["model"]
    if not isinstance(model, str) or not _MODEL.fullmatch(model) or ".." in model:
        faults.append(("model", "write 'provider/name', without a scheme, an address or '..'"))
    if not _int_between(record["attempts"], 1, _MOST_ATTEMPTS):
        faults.append(("attempts", f"an int from 1 to {_MOST_ATTEMPTS}"))
    timeout = record["timeout_s"]
    if timeout is not None and not (type(timeout) in (int, float) and 0 < timeout <= _LONGEST_TIMEOUT_S):
        faults.append(("timeout_s", f"seconds above 0, up to {_LONGEST_TIMEOUT_S}, or null"))
    if not _int_between(record["repairs"], 0, _MOST_ATTEMPTS):
        faults.append(("repairs", f"an int from 0 to {_MOST_ATTEMPTS}"))
    structured = record["structured"]
    if structured is not None and structured not in STRUCTURED:
        faults.append(("structured", f"null or one of {', '.join(STRUCTURED)}"))
    faults += [(field, "only null is known so far") for field in ("limit", "fallback") if record[field] is not None]
    faults += _faults_of_defaults(record["defaults"])
    supply = record["supply"]
    if not isinstance(supply, list) or [name for name in SUPPLIED if name in supply] != supply:
        faults.append(("supply", f"a list of names among {', '.join(SUPPLIED)}, in this order"))
    return faults


def _faults_of_defaults(defaults: Json) -> list[tuple[str, str]]:
    """Only sampling parameters may come from a file."""
    if not is_object(defaults):
        return [("defaults", "an object of sampling parameters")]
    unknown = [name for name in defaults if name not in SAMPLING]
    if not unknown:
        return []
    return [("defaults", f"{shown(unknown[0])} is no sampling parameter.{did_you_mean(unknown[0], SAMPLING)}")]


def _int_between(number: Json, least: int, most: int) -> bool:
    """Whether something is an int (no bool) within bounds."""
    return type(number) is int and least <= number <= most
