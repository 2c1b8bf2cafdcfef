"""Decision: one label of several, or some of them, chosen by a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Unpack

from synmod.data import symbol, trusted_schema
from synmod.errors import ConfigError
from synmod.leaves.frozen import Json
from synmod.registry import register_own

from .generator import Form, Generator, GeneratorOptions

_THINKING: Final = {"type": "string", "title": "Thinking", "description": "the reasoning, step by step"}


@register_own()
class Decision(Generator[Any]):
    """A `Generator` that chooses among labels.

    Args:
        labels: A list of distinct labels, or a mapping from label to what it means. Any text may be a label.
        question: What is to be decided.
        multiple: Whether several labels may be chosen.
        with_thinking: Whether the model reasons first.
        **options: Those of `Generator`; the default of `instructions` is written from question and labels.

    Schemas:
        inputs: any data model
        outputs: `thinking` if asked, then `choice`, one of the labels; with `multiple` instead `choices`, distinct,
            at least one

    Raises:
        ConfigError: No labels, one twice, one that is not a string; names it. Also as `Generator`.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> decision = sm.Decision({"spam": "prize, lottery", "ham": "lunch"}, language_model="embedded/nearest")
        >>> sm.run(decision, Mail(text="You won the lottery!"))["choice"]
        'spam'

    Source: Synalinks' `Decision`; differs: labels may carry descriptions, and several may be chosen.
    """

    def __init__(
        self,
        labels: Sequence[str] | Mapping[str, str],
        *,
        question: str | None = None,
        multiple: bool = False,
        with_thinking: bool = False,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        for name in ("data_model", "schema"):
            if name in options:
                raise ConfigError(f"{type(self).__name__}: unknown keyword {name!r}: the labels make the output.")
        if question is not None and not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"{type(self).__name__}: question is a {type(question).__name__}; it must be a string.")
        meanings = _meanings(labels, type(self).__name__)
        if options.get("instructions") is None:
            options["instructions"] = _instructions(meanings, question, multiple)
        decision = symbol(trusted_schema(_schema(meanings, question, multiple, with_thinking)))
        form: Any = Form(decision, decision, reasoning="thinking" if with_thinking else None)
        super().__init__(form, **options)


def _meanings(labels: Any, kind: str) -> dict[str, str]:
    """Return each label with its meaning, `""` where none is given."""
    if isinstance(labels, Mapping):
        given: list[tuple[Any, Any]] = list(labels.items())  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(labels, (list, tuple)):
        given = [(label, "") for label in labels]  # pyright: ignore[reportUnknownVariableType]
    else:
        raise ConfigError(
            f"{kind}: labels is a {type(labels).__name__}; write a list of strings, or a mapping from label to meaning."
        )
    if not given:
        raise ConfigError(f"{kind}: labels is empty; there must be something to choose.")
    meanings: dict[str, str] = {}
    for label, meaning in given:
        if not isinstance(label, str):
            raise ConfigError(f"{kind}: the label {label!r} is a {type(label).__name__}; labels are strings.")
        if not isinstance(meaning, str):
            raise ConfigError(f"{kind}: the meaning of {label!r} is a {type(meaning).__name__}; it must be a string.")
        if label in meanings:
            raise ConfigError(f"{kind}: the label {label!r} is there twice; labels are distinct.")
        meanings[label] = meaning
    return meanings


def _instructions(meanings: Mapping[str, str], question: str | None, multiple: bool) -> str:
    """Return what to decide, and the labels with their meaning, one per line."""
    asked = question or f"Decide which {'labels fit' if multiple else 'label fits'} the inputs."
    lines = [f"- {label}: {meaning}" if meaning else f"- {label}" for label, meaning in meanings.items()]
    return "\n".join([asked, "", "Labels:", *lines])


def _schema(meanings: Mapping[str, str], question: str | None, multiple: bool, with_thinking: bool) -> dict[str, Any]:
    """Return the schema of a decision."""
    label = {"type": "string", "enum": list(meanings)}
    description = question or ("the labels that fit" if multiple else "the label that fits")
    if explained := "; ".join(f"{label} ({meaning})" for label, meaning in meanings.items() if meaning):
        description = f"{description}: {explained}"  # instructions may be trained away, the schema stays
    if multiple:
        name, chosen = "choices", {"type": "array", "items": label, "minItems": 1, "uniqueItems": True}
    else:
        name, chosen = "choice", label
    fields: dict[str, Json] = {"thinking": _THINKING} if with_thinking else {}
    fields[name] = {"title": name.capitalize(), "description": description, **chosen}
    return {
        "title": "Decision",
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
