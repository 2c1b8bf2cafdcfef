"""Language models of a file: mapped to the caller's live ones, made from their records, or left unbound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, SynmodError
from synmod.leaves.names import did_you_mean
from synmod.lm import LanguageModel, UnboundLanguageModel, model_from
from synmod.saving.text.faults import load_fault, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from synmod.leaves.frozen import Json

__all__ = ["made_model", "supplied_models"]

_SHOWN = 100
_ANY_MODEL = "unbound/model"
"""The model string of a model of which the file holds nothing but the name."""

_TAKEN = ("attempts", "timeout_s", "repairs", "structured")


def supplied_models(given: Any, names: Mapping[str, Json]) -> dict[str, LanguageModel]:
    """Read the argument `language_models` of a load.

    Args:
        given: A mapping from saved name to a live model or model string, or one of these for all.
        names: The names in the file.

    Raises:
        LoadError: A name is not in the file ('Did you mean').
        ArgumentError: It is neither.
        ConfigError: A value is neither a LanguageModel nor a model string.
    """
    if given is None:
        return {}
    if isinstance(given, str | LanguageModel):
        model = model_from(given, "language_models")
        return dict.fromkeys(names, model)
    if not hasattr(given, "items"):
        raise ArgumentError(
            f"language_models is a {type(given).__name__}, wanted a mapping from saved name to a LanguageModel or a "
            "model string, or one of these for all."
        )
    bases = {name.partition("#")[0] for name in names}
    known = list(names)[:_SHOWN]
    models: dict[str, LanguageModel] = {}
    for name, model in given.items():
        if name not in names and name not in bases:
            raise load_fault(
                ("language_models",),
                f"no language model of this file is named {name!r}.{did_you_mean(name, known)} "
                f"The file has {', '.join(map(shown, known)) or 'none'}.",
            )
        models[name] = model_from(model, f"language_models[{name!r}]")
    return {name: models[key] for name in names if (key := _key(name, models)) is not None}


def _key(name: str, models: Mapping[str, Any]) -> str | None:
    """The name under which a model was supplied; `m` serves `m#2` too."""
    base = name.partition("#")[0]
    return name if name in models else base if base in models else None


def made_model(name: str, record: dict[str, Json], cls: type | None, decode: Callable[[Json], Any]) -> LanguageModel:
    """Make a model from its record; no key, endpoint or header comes from there.

    Args:
        name: The saved name.
        record: The checked record.
        cls: The class of its id, None where it is not known here.
        decode: Reads a term.

    Raises:
        LoadError: The class does not take what the record holds.
    """
    if record["type"] is None:
        return UnboundLanguageModel(
            name, {**record, "model": _ANY_MODEL}, ["a model of a class that is not registered"]
        )
    config = record.get("config")
    arguments = None if config is None else {key: decode(term) for key, term in config.items()}
    settings = {key: record[key] for key in ("model", *_TAKEN)} | record["defaults"]
    if cls is None or record["supply"]:
        needs = [*record["supply"], *([f"the class {record['type']!r}"] if cls is None else [])]
        return UnboundLanguageModel(name, record if config is None else {**record, "config": arguments}, needs)
    if name != record["model"]:
        settings["name"] = name
    try:
        return cls(**(settings if arguments is None else arguments))
    except (SynmodError, TypeError) as error:
        raise load_fault(("language_models", name), f"{cls.__qualname__} cannot be made: {error}") from error
