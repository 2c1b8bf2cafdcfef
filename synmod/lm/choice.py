"""Which model answers: one named by a string, the default, or one that stands in; and which sample it draws."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from synmod.errors import ConfigError
from synmod.leaves.frozen import Json
from synmod.scope import reset

if TYPE_CHECKING:
    from .model import LanguageModel

__all__ = [
    "check_sample",
    "current_language_model",
    "current_sample",
    "default_language_model",
    "drawing",
    "model_from",
    "models_in_force",
    "resolve_model",
    "set_default_language_model",
    "stand_in_for",
    "use_language_models",
]


class _Process:
    """What all tasks, threads and loops share: the default model, and the models made from strings."""

    def __init__(self) -> None:
        self.default: LanguageModel | None = None
        self.by_string: dict[str, LanguageModel] = {}
        self.making = threading.Lock()


_PROCESS: Final = _Process()

_DEFAULT: Final[ContextVar[tuple[LanguageModel | None] | None]] = ContextVar("synmod_default_model", default=None)
"""The default of the innermost block; None where there is no block."""

_STAND_INS: Final[ContextVar[tuple[Mapping[str | None, LanguageModel], ...]]] = ContextVar(
    "synmod_stand_ins", default=()
)
"""The blocks of stand-ins, innermost first: saved name -> model; the name None stands for every model."""

_SAMPLE: Final[ContextVar[int]] = ContextVar("synmod_sample", default=0)

current_sample = _SAMPLE.get


def model_from(model: LanguageModel | str, where: str = "language_model") -> LanguageModel:
    """Return the model itself, or the one model of this process that a string names.

    Raises:
        ConfigError: It is neither, or the string is not `provider/name`. Begins with `where`.
    """
    from .model import LanguageModel

    if isinstance(model, LanguageModel):
        return model
    if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
        raise ConfigError(
            f"{where}: got {type(model).__name__}, wanted a LanguageModel or a string such as 'openai/gpt-4o-mini'."
        )
    with _PROCESS.making:
        known = _PROCESS.by_string.get(model)
        if known is None:
            known = _PROCESS.by_string[model] = LanguageModel(model)
    return known


def set_default_language_model(model: LanguageModel | str | None) -> None:
    """Set the model of the process for modules that have none of their own.

    All tasks, threads and loops see it; a block of `default_language_model` wins over it. It is never saved.

    Args:
        model: A model, a string such as "openai/gpt-4o-mini", or None for no default.

    Raises:
        ConfigError: It is neither a model nor such a string.

    Example:
        >>> set_default_language_model("embedded/nearest")
        >>> current_language_model()
        LanguageModel('embedded/nearest', attempts=3)
        >>> set_default_language_model(None)

    Source: DSPy's `configure`; differs: it reaches every task and thread.
    """
    _PROCESS.default = None if model is None else model_from(model, "set_default_language_model")


@contextmanager
def default_language_model(model: LanguageModel | str | None) -> Generator[LanguageModel | None]:
    """Set the model for modules that have none of their own, for a block and what the block starts.

    Args:
        model: A model, a string such as "openai/gpt-4o-mini", or None for no default in the block.

    Raises:
        ConfigError: It is neither a model nor such a string.

    Example:
        >>> with default_language_model("embedded/nearest") as lm:
        ...     lm.model
        'embedded/nearest'

    Source: DSPy's `context`.
    """
    chosen = None if model is None else model_from(model, "default_language_model")
    token = _DEFAULT.set((chosen,))
    try:
        yield chosen
    finally:
        reset(_DEFAULT, token)


def current_language_model() -> LanguageModel | None:
    """Return the default model in force here: that of the innermost block, else that of the process, else None."""
    block = _DEFAULT.get()
    return _PROCESS.default if block is None else block[0]


def resolve_model(model: LanguageModel | str | None, where: str) -> LanguageModel:
    """Return the model that a module shall call: its own, else the default in force now.

    Args:
        model: What the module holds.
        where: Path of the module, for the message.

    Returns:
        A model; whether another stands in for it is decided when it is called.

    Raises:
        ConfigError: The module holds none and there is no default, or the string names none.

    Example:
        >>> resolve_model("embedded/nearest", "writer")
        LanguageModel('embedded/nearest', attempts=3)

    Source: DSPy's `settings.lm`.
    """
    if model is not None:
        return model_from(model, where)
    found = current_language_model() or next((block[None] for block in _STAND_INS.get() if None in block), None)
    if found is None:
        raise ConfigError(
            f"{where or 'The module'}: no language model. Pass language_model=... to the module, call"
            " sm.set_default_language_model('provider/model') for the process, or write"
            " `with sm.default_language_model('provider/model'):` for a block."
        )
    return found


@contextmanager
def use_language_models(models: LanguageModel | str | Mapping[str, LanguageModel | str]) -> Generator[None]:
    """Let other models answer inside a block, whatever the modules hold.

    Every model call begun in the block goes to them; the innermost block wins; nothing in the program changes. So a
    finished program is tested, or run on another provider, in one line.

    Args:
        models: One model or string stands in for every model; a mapping of saved names stands in for those.

    Raises:
        ConfigError: Something in it is neither a model nor a string of the form `provider/name`.

    Example:
        >>> with use_language_models("embedded/nearest"):
        ...     pass

    Source: httpx's transports, pydantic-ai's `override`.
    """
    where = "use_language_models"
    block: dict[str | None, LanguageModel] = {}
    if isinstance(models, Mapping):
        block.update({str(name): model_from(model, f"{where}[{name!r}]") for name, model in models.items()})
    else:
        block[None] = model_from(models, where)
    token = _STAND_INS.set((block, *_STAND_INS.get()))
    try:
        yield
    finally:
        reset(_STAND_INS, token)


def stand_in_for(name: str) -> LanguageModel | None:
    """Return the model that answers for the model of this name; None if it answers itself."""
    for block in _STAND_INS.get():
        for key in (None, name, name.partition("#")[0]):
            if key in block:
                return block[key]
    return None


def models_in_force() -> Json:
    """Return as JSON which models answer here for modules that hold none, or others: the default and the stand-ins.

    Source: what a memo must know beside the module itself.
    """
    default = current_language_model()
    stand_ins: list[Json] = []
    for block in _STAND_INS.get():
        stand_ins += [[key, _identity(block[key])] for key in sorted(block, key=str)]
        if None in block:
            break
    return {"default": None if default is None else _identity(default), "stand_ins": stand_ins}


def _identity(model: LanguageModel) -> Json:
    """Return what the replies of a model depend on and a file may hold."""
    return [model.name, model.model, model.defaults]


def check_sample(sample: object) -> int:
    """Return the number of a draw.

    Raises:
        ConfigError: It is not an int of at least 0.
    """
    if isinstance(sample, int) and not isinstance(sample, bool) and sample >= 0:
        return sample
    raise ConfigError(f"sample: got {sample!r:.100}, wanted the number of the draw: an int of at least 0.")


@contextmanager
def drawing(sample: int) -> Generator[None]:
    """Number the model calls of a block as draws of this sample, unless they pass a number of their own.

    Args:
        sample: The number, from 0.

    Raises:
        ConfigError: It is not an int of at least 0.

    Example:
        >>> with drawing(2):
        ...     current_sample()
        2

    Source: best-of-n sampling; DSPy's `rollout_id`.
    """
    token = _SAMPLE.set(check_sample(sample))
    try:
        yield
    finally:
        reset(_SAMPLE, token)
