"""Which model a module gets: its own, one named by a string, the default, or the one that stands in."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Final

from synmod.errors import ConfigError
from synmod.lm.model import LanguageModel
from synmod.lm.standing_in import STAND_INS, StandIns, for_all, stand_ins_in_force
from synmod.scope import reset

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json

__all__ = [
    "default_language_model",
    "model_from",
    "models_in_force",
    "resolve_model",
    "set_default_language_model",
    "use_language_models",
]

_BY_STRING: Final[dict[str, LanguageModel]] = {}
_MAKING: Final = threading.Lock()


class _Setting:
    """One statement that set the default of the process; undone if it turns out to be the head of a `with`."""

    __slots__ = ("before", "model", "undone")

    def __init__(self, model: LanguageModel | None) -> None:
        self.model = model
        self.undone = False
        self.before: _Setting | None = None  # only of one undone

    def in_force(self) -> _Setting:
        """Step back to the last setting that stands."""
        setting = self
        while setting.undone and setting.before is not None:
            setting = setting.before
        return setting


class _Process:
    """The default model of the process: what all tasks, threads and loops see."""

    __slots__ = ("lock", "setting")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.setting = _Setting(None)


_PROCESS: Final = _Process()

_BLOCK: ContextVar[_Block | None] = ContextVar("synmod_default_language_model", default=None)


def model_from(model: LanguageModel | str, where: str = "language_model") -> LanguageModel:
    """Give the model itself, or the one model of this process that a string names.

    Raises:
        ConfigError: It is neither, or the string is not `provider/name`. Begins with `where`.
    """
    if isinstance(model, LanguageModel):
        return model
    if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
        raise ConfigError(
            f"{where}: got {type(model).__name__}, wanted a LanguageModel or a string such as 'openai/gpt-4o-mini'."
        )
    with _MAKING:
        known = _BY_STRING.get(model)
        if known is None:
            known = _BY_STRING[model] = LanguageModel(model)
    return known


def default_language_model() -> LanguageModel | None:
    """Tell the default model in force here: that of the innermost block, else that of the process, else None."""
    block = _BLOCK.get()
    return _PROCESS.setting.model if block is None else block.model


def resolve_model(model: LanguageModel | str | None, where: str) -> LanguageModel:
    """Give the model that a module shall call: its own, else the default in force now.

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
    found = default_language_model() or for_all()
    if found is None:
        raise ConfigError(
            f"{where or 'The module'}: no language model. Pass language_model=... to the module, or call"
            " sm.set_default_language_model('provider/model'): as a statement for the process, in `with` for a block."
        )
    return found


def models_in_force() -> Json:
    """Tell as JSON which models answer here for modules that hold none, or others: the default and the stand-ins.

    Source: what a memo must know beside the module itself.
    """
    default = default_language_model()
    stand_ins = [[name, _told(model)] for name, model in stand_ins_in_force()]
    return {"default": None if default is None else _told(default), "stand_ins": stand_ins}


def _told(model: LanguageModel) -> Json:
    """What of a model its replies depend on, and a file holds."""
    settings = model.settings
    return [settings.name, settings.model, settings.defaults]


class DefaultLanguageModel:
    """What `set_default_language_model` returns: as a context manager it limits the default to a block."""

    __slots__ = ("_before", "_setting")

    def __init__(self, setting: _Setting, before: _Setting) -> None:
        self._setting = setting
        self._before = before

    def __enter__(self) -> LanguageModel | None:
        """Take the default back from the process, and let it hold for the block."""
        with _PROCESS.lock:
            if not self._setting.undone:
                self._setting.before = self._before
                self._setting.undone = True
            _PROCESS.setting = _PROCESS.setting.in_force()
        block = _Block(self, self._setting.model)
        block.token = _BLOCK.set(block)
        return block.model

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Give back what held before the block."""
        block = _BLOCK.get()
        if block is not None and block.opener is self:
            reset(_BLOCK, block.token)


class _Block:
    """One entry of a block: who opened it, its model, and the token that gives back what held before."""

    __slots__ = ("model", "opener", "token")

    def __init__(self, opener: DefaultLanguageModel, model: LanguageModel | None) -> None:
        self.opener = opener
        self.model = model
        self.token: Token[_Block | None]  # set when the block begins


def set_default_language_model(model: LanguageModel | str | None) -> DefaultLanguageModel:
    """Set the model for modules that have none of their own.

    As a statement it holds for the process: all tasks, threads and loops see it. Used with `with` it holds for the
    block and what the block starts, and the default of the process is what it was before. A block wins over the
    process. It never touches the disk.

    Args:
        model: A model, a string such as "openai/gpt-4o-mini", or None for no default.

    Returns:
        A context manager; leave it alone for the statement.

    Raises:
        ConfigError: It is neither a model nor such a string.

    Example:
        >>> with set_default_language_model("embedded/nearest") as lm:
        ...     lm.model
        'embedded/nearest'

    Source: DSPy's `configure` and `context`; differs: one function, and the statement reaches every task.
    """
    chosen = None if model is None else model_from(model, "set_default_language_model")
    setting = _Setting(chosen)
    with _PROCESS.lock:
        before, _PROCESS.setting = _PROCESS.setting, setting
    return DefaultLanguageModel(setting, before)


class use_language_models:  # noqa: N801  # reads as a function, like contextlib's classes
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

    __slots__ = ("_by_name", "_everybody")

    def __init__(self, models: LanguageModel | str | Mapping[str, LanguageModel | str]) -> None:
        where = "use_language_models"
        self._everybody: LanguageModel | None = None
        self._by_name: dict[str, LanguageModel] = {}
        if isinstance(models, Mapping):
            self._by_name = {str(name): model_from(model, f"{where}[{name!r}]") for name, model in models.items()}
        else:
            self._everybody = model_from(models, where)

    def __enter__(self) -> None:
        """Begin the block."""
        block = StandIns(self, self._everybody, self._by_name)
        block.token = STAND_INS.set(block)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the block."""
        block = STAND_INS.get()
        if block is not None and block.opener is self:
            reset(STAND_INS, block.token)
