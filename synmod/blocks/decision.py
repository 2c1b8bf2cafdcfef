"""Decision: a model chooses among labels."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Unpack

from synmod import data
from synmod.errors import ConfigError
from synmod.leaves import Json, check_type
from synmod.registry import register_own

from .generator import Form, Generator, GeneratorOptions, check_params, object_schema

_THINKING: Final = {"type": "string", "title": "Thinking", "description": "the reasoning, step by step"}


@register_own()
class Decision(Generator[Any]):
    """A `Generator` that chooses among labels.

    Args:
        labels: A list of distinct labels, or a mapping from label to its meaning. Any text may be a label.
        question: The question to decide.
        multiple: Whether several labels may be chosen.
        with_thinking: Whether the model reasons first.
        **options: Keyword arguments of `Generator`; the default of `instructions` is written from question and labels.

    Schemas:
        inputs: any data model
        outputs: `thinking` if requested, then `choice`, one of the labels; with `multiple` instead `choices`, one or
            more distinct labels

    Raises:
        ConfigError: There are no labels, or one is repeated or not a string; names it. Also as for `Generator`.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> decision = sm.Decision({"spam": "prize, lottery", "ham": "lunch"}, language_model="embedded/nearest")
        >>> sm.run(decision, Mail(text="You won the lottery!"))["choice"]
        'spam'

    Source: Synalinks' `Decision`; differs: labels may have descriptions, and several may be chosen.
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
        check_params(type(self), options)
        check_type(f"{type(self).__name__}: question", question, str | None, "a str", error=ConfigError)
        meanings = _meanings(labels, type(self).__name__)
        if options.get("instructions") is None:
            options["instructions"] = _instructions(meanings, question, multiple)
        decision = data.symbol(data.intern_schema(_schema(meanings, question, multiple, with_thinking)))
        form: Any = Form(decision, decision, reasoning="thinking" if with_thinking else None)
        super().__init__(form, **options)


def _meanings(labels: Any, kind: str) -> dict[str, str]:
    """Return each label with its meaning, `""` if none is given."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(labels, (list, tuple)):
        pairs = [(label, "") for label in labels]  # pyright: ignore[reportUnknownVariableType]  (users)
    elif isinstance(labels, Mapping):
        pairs = list(labels.items())  # pyright: ignore[reportUnknownArgumentType]  (likewise)
    if not pairs:
        forms = "a non-empty list of strings, or a mapping from label to meaning"
        raise ConfigError(f"{kind}: labels is {labels!r:.100}; write {forms}.")
    meanings: dict[str, str] = {}
    for label, meaning in pairs:
        if not isinstance(label, str) or not isinstance(meaning, str):
            raise ConfigError(f"{kind}: the label {label!r}, or its meaning {meaning!r}, is not a string.")
        if label in meanings:
            raise ConfigError(f"{kind}: the label {label!r} is repeated; labels must be distinct.")
        meanings[label] = meaning
    return meanings


def _instructions(meanings: Mapping[str, str], question: str | None, multiple: bool) -> str:
    """Return the question, then the labels with their meanings, one per line."""
    task = question or f"Decide which {'labels fit' if multiple else 'label fits'} the inputs."
    lines = [f"- {label}: {meaning}" if meaning else f"- {label}" for label, meaning in meanings.items()]
    return "\n".join([task, "", "Labels:", *lines])


def _schema(meanings: Mapping[str, str], question: str | None, multiple: bool, with_thinking: bool) -> dict[str, Any]:
    """Return the schema of a decision."""
    label = {"type": "string", "enum": list(meanings)}
    description = question or ("the labels that fit" if multiple else "the label that fits")
    if explained := "; ".join(f"{label} ({meaning})" for label, meaning in meanings.items() if meaning):
        end = " " if description.endswith(("?", ".", ":")) else ": "
        description += f"{end}{explained}"  # training may remove it from the instructions, not from the schema
    if multiple:
        name, chosen = "choices", {"type": "array", "items": label, "minItems": 1, "uniqueItems": True}
    else:
        name, chosen = "choice", label
    fields: dict[str, Json] = {"thinking": _THINKING} if with_thinking else {}
    fields[name] = {"title": name.capitalize(), "description": description, **chosen}
    return {"title": "Decision", **object_schema(**fields)}
