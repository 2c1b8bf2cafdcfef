"""Names of modules and fields, the texts of paths, and the checks of arguments.

Each check returns its argument, or raises an error of one form, "X must be Y, got Z."
"""

import itertools
import keyword
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from math import inf
from numbers import Real
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from synmod.errors import ArgumentError, BadNameError, SynmodError

P = ParamSpec("P")
T = TypeVar("T")

KeyPath: TypeAlias = tuple[str | int, ...]
"""Steps from a root: attribute names, dict keys, indices."""


@lru_cache(maxsize=1024)  # called for each symbol of a class
def snake_case(name: str) -> str:
    """Return the name of an instance of the class `name`: `http_server` for `HTTPServer`."""
    words = _WORD_STARTS.sub("_", name.lstrip("_")).lower()
    if keyword.iskeyword(words):
        return f"{words}_"
    return words if words.isidentifier() else f"_{words}"


_WORD_STARTS: Final = re.compile(r"(?<=[^\W_])(?:(?<=[a-z0-9])(?=[A-Z])|(?=[A-Z][a-z]))")
"""Where a capital follows a lower-case letter or digit, or is followed by a lower-case letter."""


def unique_name(name: str, names: Container[str]) -> str:
    """Return the first of `name`, `name_1`, `name_2`, ... that is not taken."""
    return name if name not in names else next_name(name, names)


def next_name(name: str, names: Container[str]) -> str:
    """Return the first of `name_1`, `name_2`, ... that is not taken."""
    return next(new for number in itertools.count(1) if (new := f"{name}_{number}") not in names)


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


def find_cycle(needs: Mapping[T, Iterable[T]]) -> list[T]:
    """Return a cycle in a graph, given what each thing needs; empty without a cycle."""
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return error.args[1]
    return []


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


# -- checks of arguments -----------------------------------------------------------------------------------------------

_LONGEST_WORD = 200  # a longer word is not a typing mistake, and comparing it would take noticeable time


def must_be(what: str, expected: str, value: Any) -> str:
    """Return the message for an argument that is not what it must be."""
    return f"{what} must be {expected}, got {value!r:.100}."


def check_int(what: str, value: Any, minimum: int | None = 1, *, error: type[SynmodError] = ArgumentError) -> int:
    """Return a whole number.

    Args:
        what: The name of the number, such as `"Retry: attempts"`.
        value: The argument.
        minimum: The least allowed number; None for any.
        error: The class of the error.

    Raises:
        error: `value` is not an int (a bool is none), or is less than the minimum.
    """
    if not isinstance(value, int) or isinstance(value, bool) or (minimum is not None and value < minimum):
        raise error(must_be(what, "a whole number" + ("" if minimum is None else f" of at least {minimum}"), value))
    return value


def check_number(
    what: str, value: Any, minimum: float = -inf, maximum: float = inf, *, error: type[SynmodError] = ArgumentError
) -> float:
    """Return a number from `minimum` to `maximum`.

    Raises:
        error: `value` is not a number (a bool or NaN is none), or out of this range.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not minimum <= float(value) <= maximum:
        limits = (
            "" if minimum == -inf else f" of at least {minimum}" if maximum == inf else f" from {minimum} to {maximum}"
        )
        raise error(must_be(what, f"a number{limits}", value))
    return value  # pyright: ignore[reportReturnType]  # a Real such as numpy's behaves as a float


def check_seconds(what: str, value: Any, *, error: type[SynmodError] = ArgumentError) -> float:
    """Return a time in seconds.

    Raises:
        error: `value` is not a positive, finite number.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < inf:
        raise error(must_be(what, "a positive number of seconds", value))
    return value  # pyright: ignore[reportReturnType]  # as above


def check_type(what: str, value: Any, types: Any, expected: str, *, error: type[SynmodError] = ArgumentError) -> None:
    """Refuse an argument of another type, since not all callers are typed.

    Args:
        what: The name of the argument.
        value: The argument.
        types: A class, or a union of classes.
        expected: The types in words.
        error: The class of the error.

    Raises:
        error: `value` is not an instance of `types`.
    """
    if not isinstance(value, types):
        raise error(must_be(what, expected, value))


def check_choice(what: str, value: T, choices: Sequence[Any], *, error: type[SynmodError] = ArgumentError) -> T:
    """Return one of several allowed values.

    Raises:
        error: `value` is another one ('Did you mean').
    """
    if value not in choices:
        expected = " or ".join(map(repr, choices)) if len(choices) < 4 else f"one of {', '.join(map(repr, choices))}"
        raise error(must_be(what, expected, value) + did_you_mean(value, choices))
    return value


def check_name(name: object, kind: str = "module") -> str:
    """Return `name` if it is an identifier and not a Python keyword (BadNameError)."""
    if isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name):
        return name
    raise BadNameError(
        f"{name!r} is not a valid {kind} name: write an identifier that is not a keyword, such as 'my_{kind.lower()}'."
    )


def did_you_mean(word: object, words: Iterable[object]) -> str:
    """Return the sentence " Did you mean 'x'?", or "" where no known word is close."""
    from difflib import get_close_matches

    text = str(word)
    if len(text) > _LONGEST_WORD:
        return ""
    by_folded = {str(option).casefold(): str(option) for option in words if len(str(option)) <= _LONGEST_WORD}
    near = get_close_matches(text.casefold(), by_folded, n=1)
    return f" Did you mean {by_folded[near[0]]!r}?" if near else ""


_OTHER_LIBRARIES: Final = {
    "verbose": "progress",
    "loss": "reward",
    "num_epochs": "epochs",
    "max_epochs": "epochs",
    "filename": "path",
    "to_file": "path",
    "show_progress": "progress",
    "num_threads": "concurrency",
    "num_workers": "concurrency",
}
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
    parameters = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    names = [name for name in parameters if name != "self"]

    @wraps(fn)
    def call_checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            for word in kwargs:
                if word not in names:
                    ours = _OTHER_LIBRARIES.get(word)
                    hint = f" Did you mean {ours!r}?" if ours in names else did_you_mean(word, names)
                    name = fn.__qualname__.removesuffix(".__init__")
                    raise ArgumentError(f"{name}: unknown keyword {word!r}.{hint} It takes {', '.join(names)}.")
            return fn(*args, **kwargs)
        finally:
            del args, kwargs  # one may be a key, and reporters of errors print the values in frames

    return call_checked
