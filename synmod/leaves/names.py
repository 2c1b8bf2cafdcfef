"""Names of modules, fields and runs, of places in a program and in JSON, and of random choices (`rng`)."""

import itertools
import keyword
import os
from collections.abc import Callable, Container, Iterable
from functools import lru_cache, wraps
from random import Random
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from synmod.errors import ArgumentError, BadNameError

P = ParamSpec("P")
T = TypeVar("T")

KeyPath: TypeAlias = tuple[str | int, ...]
"""Steps from a root: attribute names, dict keys, indices."""

_LONGEST_WORD = 200  # a longer word is not a typing mistake, and comparing it would take noticeable time
_RANDOM_BITS = 44  # of the first id of a process; the others count up from it


@lru_cache(maxsize=1024)  # called for each symbol of a class
def snake_case(name: str) -> str:
    """Return the name of an instance of the class `name`: `http_server` for `HTTPServer`."""
    name = name.lstrip("_")
    words = "".join(f"_{char}" if _starts_word(name, at) else char for at, char in enumerate(name)).lower()
    if keyword.iskeyword(words):
        return f"{words}_"
    return words if words.isidentifier() else f"_{words}"


def _starts_word(name: str, at: int) -> bool:
    """Whether a capital follows a lower-case letter or digit, or is followed by a lower-case letter."""
    if at == 0 or not name[at].isupper() or name[at - 1] == "_":
        return False
    before, after = name[at - 1], name[at + 1 : at + 2]
    return before.islower() or before.isdigit() or after.islower()


def check_name(name: object, kind: str = "module") -> str:
    """Return `name` if it is an identifier and not a Python keyword (BadNameError)."""
    if isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name):
        return name
    raise BadNameError(
        f"{name!r} is not a valid {kind} name: write an identifier that is not a keyword, such as 'my_{kind.lower()}'."
    )


def unused(name: str, taken: Container[str]) -> str:
    """Return the first of `name`, `name_1`, `name_2`, ... that is not taken."""
    return name if name not in taken else numbered(name, taken)


def numbered(name: str, taken: Container[str]) -> str:
    """Return the first of `name_1`, `name_2`, ... that is not taken."""
    return next(new for number in itertools.count(1) if (new := f"{name}_{number}") not in taken)


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """Return the sentence " Did you mean 'x'?", or "" where no known word is close."""
    from difflib import get_close_matches

    text = str(word)
    if len(text) > _LONGEST_WORD:
        return ""
    by_folded = {str(option).casefold(): str(option) for option in known if len(str(option)) <= _LONGEST_WORD}
    near = get_close_matches(text.casefold(), by_folded, n=1)
    return f" Did you mean {by_folded[near[0]]!r}?" if near else ""


_OF_OTHERS: Final = {
    "verbose": "progress", "loss": "reward", "num_epochs": "epochs", "max_epochs": "epochs", "filename": "path",
    "to_file": "path", "show_progress": "progress", "num_threads": "concurrency", "num_workers": "concurrency",
}  # fmt: skip
"""Keywords of other libraries, each with ours."""


def checks_keywords(fn: Callable[P, T]) -> Callable[P, T]:
    """Make a function, or an `__init__`, raise ArgumentError for an unknown keyword; the message lists the known ones.

    Example:
        >>> @checks_keywords
        ... def spend(*, cost: float) -> float:
        ...     return cost
        >>> spend(csot=1.0)
        Traceback (most recent call last):
        synmod.errors.ArgumentError: spend: unknown keyword 'csot'. Did you mean 'cost'? It takes cost.

    Source: Python 3.13's suggestions for keywords; differs: lists all of them.
    """
    function: Any = fn
    code = function.__code__
    taken = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    known = [name for name in taken if name != "self"]

    @wraps(fn)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            for word in kwargs:
                if word not in known:
                    ours = _OF_OTHERS.get(word)
                    hint = f" Did you mean {ours!r}?" if ours in known else did_you_mean(word, known)
                    name = fn.__qualname__.removesuffix(".__init__")
                    raise ArgumentError(f"{name}: unknown keyword {word!r}.{hint} It takes {', '.join(known)}.")
            return fn(*args, **kwargs)
        finally:
            del args, kwargs  # one may be a key, and reporters of errors print the values in frames

    return checked


def escape_step(step: str | int) -> str:
    """Return one step as it is written between slashes (`~0` for `~`, `~1` for `/`, `~2` for `#`)."""
    text = str(step)
    if "~" in text or "/" in text or "#" in text:
        return text.replace("~", "~0").replace("/", "~1").replace("#", "~2")
    return text


def path_str(path: Iterable[str | int]) -> str:
    """Return the text of a path: its steps joined by `/`, "" for the root.

    Example:
        >>> path_str(("layers", 0, "prompt"))
        'layers/0/prompt'

    Source: tf.Module names, JSON Pointer escapes.
    """
    return "/".join(map(escape_step, path))


def with_label(path: str, name: str) -> str:
    """Return a path with the label of its module, unless that is the last step; the label alone for an empty path.

    Example:
        >>> with_label("routes/technical/0", "answer"), with_label("writer", "writer"), with_label("", "desk")
        ('routes/technical/0 (answer)', 'writer', 'desk')

    Source: Keras' layer names.
    """
    if not path:
        return name
    return path if not name or path.rpartition("/")[2] == name else f"{path} ({name})"


def parse_path(text: str) -> tuple[str, ...]:
    """Return the steps of a path, all as str: the text does not show which of them were ints."""
    if not text:
        return ()
    if "~" not in text:
        return tuple(text.split("/"))
    return tuple(step.replace("~2", "#").replace("~1", "/").replace("~0", "~") for step in text.split("/"))


def pointer(steps: Iterable[str | int]) -> str:
    """Return the JSON Pointer (RFC 6901) of a place: "" for the whole, else a slash before each step."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _new_count() -> "itertools.count[int]":
    return itertools.count(int.from_bytes(os.urandom(8), "big") >> (64 - _RANDOM_BITS))


class _RunIds:
    """The ids of this process; a forked child starts from another random number."""

    numbers = _new_count()

    @classmethod
    def renew(cls) -> None:
        cls.numbers = _new_count()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RunIds.renew)


def new_run_id() -> str:
    """Return an id of about eleven hexadecimal digits that no other run has, in this process or another.

    Source: trace ids of OpenTelemetry; differs: short, because people read them in error notes.
    """
    return f"{next(_RunIds.numbers):x}"


class _Seeded(Random):
    """A generator that draws from `random()` alone: the one sequence that is the same in every version of Python."""

    def random(self) -> float:
        return super().random()  # overridden, so that the other methods draw from it and not from `getrandbits`


def rng(seed: int, step: int, purpose: str) -> Random:
    """Return the random generator for one choice.

    No generator is shared and none is saved: the choices of any step can be repeated from its arguments.

    Args:
        seed: The seed of the run.
        step: Number of the step.
        purpose: What the choice is for, a path-like name such as `"propose/writer/instructions"`.

    Returns:
        A `random.Random` seeded with `f"{seed}/{step}/{purpose}"`. Its choices, shuffles and samples use `random()`
        only, so that they are equal on every version of Python.

    Raises:
        ArgumentError: Seed or step is not an int, or purpose is empty.

    Example:
        >>> rng(7, 0, "minibatch").random() == rng(7, 0, "minibatch").random()
        True

    Source: JAX's split keys; differs: names instead of splits.
    """
    for name, number in (("seed", seed), ("step", step)):
        if not isinstance(number, int) or isinstance(number, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ArgumentError(f"rng got {name}={number!r}: write a whole number.")
    if not isinstance(purpose, str) or not purpose:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
        raise ArgumentError(f"rng got purpose={purpose!r}: write what the choice is for, such as 'minibatch'.")
    return _Seeded(f"{seed}/{step}/{purpose}")
