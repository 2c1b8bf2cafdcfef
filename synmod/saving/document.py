"""The document: a header that names kind and format, then the sections; the bytes of its file.

The text of a file is written one key per line, and read strictly within limits.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, Final, NoReturn, cast

from pydantic_core import PydanticSerializationError, to_json

from synmod.errors import ArgumentError, SaveError, SaveProblem
from synmod.leaves.frozen import Json
from synmod.leaves.names import path_str
from synmod.lm import LanguageModel, current_language_model, environment_secrets

from .problems import Where, check_fields, check_object, load_fault, malformed, shown

# -- text --------------------------------------------------------------------------------------------------------------

MAX_DIGITS: Final = 1_000
"""How many digits an int may have, as everywhere in synmod."""

_DEEPEST: Final = 200
"""The largest `max_depth`: what reads a document may recurse."""

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_HIDDEN = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits of one `save` or `load`; a caller may raise them, a file cannot.

    Attributes:
        max_bytes: Size of the file.
        max_depth: Nesting of the whole document, at most 200; `[]` is 1.
        max_values: Number of JSON values: commas and opening brackets outside strings.

    Raises:
        ArgumentError: A limit is not a positive int, or `max_depth` is over 200.

    Example:
        >>> FileLimits(max_bytes=64 * 2**20).max_depth
        64

    Source: safetensors' header cap, SQLite's run-time limits.
    """

    max_bytes: int = 16 * 2**20
    max_depth: int = 64
    max_values: int = 250_000

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if type(limit) is not int or limit < 1:
                raise ArgumentError(f"FileLimits({field.name}={limit!r:.100}): wanted an int of at least 1.")
        if self.max_depth > _DEEPEST:
            raise ArgumentError(f"FileLimits(max_depth={self.max_depth}): wanted at most {_DEEPEST}.")


DEFAULT_LIMITS = FileLimits()
"""What holds without an argument."""


def limits_or_default(limits: FileLimits | None) -> FileLimits:
    """Return the limits that hold.

    Raises:
        ArgumentError: It is something else.
    """
    if limits is None:
        return DEFAULT_LIMITS
    if not isinstance(limits, FileLimits):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
        raise ArgumentError(f"limits is a {type(limits).__name__}, wanted sm.FileLimits(...).")
    return limits


def write_json(document: Json, limits: FileLimits) -> str:
    """Return the text of a document, with a line feed at the end.

    Raises:
        SaveError: It would be beyond a limit, so that a load would refuse it.
    """
    try:
        data = to_json(document, indent=2)
    except PydanticSerializationError:  # its writer recurses, to about 250 levels
        found = {"max_depth": (_DEEPEST + 1, limits.max_depth)}
        raise _too_large(found) from None
    values, depth = _measure(data)
    found = {
        "max_bytes": (len(data) + 1, limits.max_bytes),
        "max_depth": (depth, limits.max_depth),
        "max_values": (values, limits.max_values),
    }
    found = {name: pair for name, pair in found.items() if pair[0] > pair[1]}
    if found:
        raise _too_large(found)
    text = data.decode()
    return (text if text.isascii() else _HIDDEN.sub(_escaped, text)) + "\n"


def _too_large(found: dict[str, tuple[int, int]]) -> SaveError:
    """Return the error that names each limit that a file would pass."""
    problems = [
        SaveProblem(
            "",
            f"{name} is {most:,}, the file has {size:,}: {size - most:,} too many",
            f"pass limits=sm.FileLimits({name}={size}) to save and to load, or keep large data outside the program",
        )
        for name, (size, most) in found.items()
    ]
    text = "; ".join(f"{problem.what}: {problem.remedy}" for problem in problems)
    return SaveError(f"The file would be too large: {text}", problems)


def _escaped(found: re.Match[str]) -> str:
    """Return a character that a diff would hide or misplace as its escape."""
    return f"\\u{ord(found.group()):04x}"


def _measure(data: bytes) -> tuple[int, int]:
    """Return the number of JSON values, never too small, and the depth, exact for a text that is JSON."""
    outside = _STRINGS.sub(b"", data)
    values = 1 + outside.count(b",") + outside.count(b"[") + outside.count(b"{")
    brackets = outside.translate(None, _NO_BRACKETS)
    return values, max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def read_json(data: bytes, limits: FileLimits) -> Json:
    """Return the document of a text; what is beyond a limit is not parsed.

    Raises:
        FormatError: It is not a JSON text, is beyond a limit, or another parser could read it otherwise: a byte order
            mark, a duplicate key, NaN or infinity, a number that overflows, an int over 1,000 digits, a lone surrogate.
    """
    if len(data) > limits.max_bytes:
        raise _beyond("bytes", len(data), "max_bytes", limits.max_bytes)
    values, depth = _measure(data)
    if values > limits.max_values:
        raise _beyond("JSON values", values, "max_values", limits.max_values)
    if depth > limits.max_depth:
        raise _beyond("levels of nesting", depth, "max_depth", limits.max_depth)
    try:
        text = data.decode()
        document = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
        )
        if _SURROGATE.search(data):
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise malformed((), f"not UTF-8 at byte {error.start}.") from None
    except UnicodeEncodeError:
        raise malformed((), "a lone surrogate in a string: no UTF-8 file can hold it.") from None
    except json.JSONDecodeError as error:
        raise malformed((), f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise malformed((), f"nested over {_DEEPEST} levels, or loaded from a stack that is almost full.") from None
    return document


def encoded(text: str) -> bytes:
    """Return the UTF-8 of a text.

    Raises:
        FormatError: It has a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise malformed((), f"a lone surrogate at character {error.start}: this is not Unicode text.") from None


def _beyond(what: str, size: int, name: str, most: int) -> Exception:
    """Return the error of a text that is beyond a limit."""
    return malformed((), f"{size:,} {what}, and {name} is {most:,}: limits=sm.FileLimits({name}=...) raises it.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of two equal keys two parsers would keep different ones."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise malformed((), f"the key {shown(key)} stands twice in one object.")
            seen.add(key)
    return made


def _no_constant(word: str) -> NoReturn:
    """Raise for what Python's parser takes beyond JSON."""
    raise malformed((), f"{word} is not JSON.")


def _finite(digits: str) -> float:
    """Return a number that does not overflow."""
    number = float(digits)
    if not isfinite(number):
        raise malformed((), f"the number {digits[:40]} overflows.")
    return number


def _short(digits: str) -> int:
    """Return an int, which is not too long to be converted."""
    if len(digits) > MAX_DIGITS and len(digits.lstrip("-")) > MAX_DIGITS:
        raise malformed((), f"an int of over {MAX_DIGITS:,} digits.")
    return int(digits)


# -- sections ----------------------------------------------------------------------------------------------------------

MIGRATIONS: tuple[Callable[[dict[str, Json]], dict[str, Json]], ...] = ()
"""Pure functions on the sections: the n-th (from 0) turns format n + 1 into format n + 2."""

FORMAT: Final = len(MIGRATIONS) + 1
"""The format that is written."""

FIRST_READERS: Final = {1: "0.1.0"}
"""The first release that reads a format; a header names it, so that an older reader can name what to install."""

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "program": ("graph", "data_models", "language_models", "state"),
    "variables": ("state",),
    "checkpoint": ("params", "aux", "states"),
}
"""What a file of each kind holds beside its header."""

_READ_BY = {
    "program": "sm.load(path)",
    "variables": "sm.load_variables(program, path)",
    "checkpoint": "the Trainer that wrote it",
}
_RELEASE = re.compile(r"[0-9]+(\.[0-9]+){0,3}([a-z]+[0-9]*)?", re.ASCII)
_SHORTEST_KEY = 12  # a shorter text may well be an ordinary word


def write_document(
    kind: str,
    sections: Mapping[str, Json],
    limits: FileLimits,
    models: Iterable[LanguageModel],
    place: Callable[[Where], str] = path_str,
) -> str:
    """Return the text of a document.

    Args:
        kind: `program` or `variables`.
        sections: The sections, in the order of the file.
        limits: What the text must not exceed.
        models: The language models of the program, which know their keys.
        place: Names a place of the sections in the program, for messages.

    Raises:
        SaveError: It would be beyond a limit, or hold a key.
    """
    header = {"synmod": FIRST_READERS[FORMAT], "format": FORMAT, "kind": kind}
    text = write_json({"header": header, **sections}, limits)
    _check_secrets(text, sections, models, place)
    return text


def read_document(data: bytes, limits: FileLimits, *kinds: str) -> dict[str, Json]:
    """Return the sections of a document, in the newest format.

    Args:
        data: The bytes of the file.
        limits: What they must not exceed.
        *kinds: The kinds that the caller can use; the first is what it is for.

    Raises:
        FormatError: It is not a JSON text of a format that this release reads, not of these kinds, or has a section or
            field too many or too few.
    """
    document = check_object(read_json(data, limits), ())
    header = _checked_header(document)
    kind = header["kind"]
    if kind not in kinds:
        raise malformed(
            ("header", "kind"), f"this is a file of kind {kind!r}, wanted {kinds[0]!r}: read it with {_READ_BY[kind]}."
        )
    sections = {name: content for name, content in document.items() if name != "header"}
    for migrate in MIGRATIONS[header["format"] - 1 :]:
        sections = migrate(sections)
    check_fields(sections, (), SECTIONS[kind])
    return sections


def _checked_header(document: dict[str, Json]) -> dict[str, Any]:
    """Return the header; a newer format is refused first, since its header may look different."""
    if "header" not in document:
        raise malformed((), "no header: this is not a file of synmod, or it was cut off.")
    header = check_object(document["header"], ("header",))
    version = header.get("format")
    if type(version) is not int or version < 1:
        raise malformed(("header", "format"), f"{shown(version)} is not a format: wanted an int from 1 to {FORMAT}.")
    release = header.get("synmod")
    known = isinstance(release, str) and len(release) < 40 and _RELEASE.fullmatch(release)
    if version > FORMAT:
        raise malformed(
            ("header", "format"),
            f"format {version}, and this release reads up to format {FORMAT}: "
            f"upgrade to synmod >= {release if known else 'the release that wrote it'}.",
        )
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in SECTIONS:
        raise malformed(("header", "kind"), f"{shown(kind)} is not a kind: wanted one of {', '.join(SECTIONS)}.")
    check_fields(header, ("header",), ("synmod", "format", "kind"))
    if not known:
        raise malformed(("header", "synmod"), f"{shown(release)} is not a release.")
    return header


def file_bytes(path: str | os.PathLike[str], limits: FileLimits) -> bytes:
    """Return the content of a regular file, of which at most `max_bytes` and one are read.

    Raises:
        FileNotFoundError: There is none.
        LoadError: It is a folder, a pipe or a device.
        FormatError: It is larger than `max_bytes`.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)  # without waiting: opening a pipe would wait for a writer
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise load_fault((), "this is not a regular file, but a folder, pipe, socket or device.")
        data = b""
        while len(data) <= limits.max_bytes and (block := os.read(descriptor, limits.max_bytes + 1 - len(data))):
            data += block
    finally:
        os.close(descriptor)
    if len(data) > limits.max_bytes:
        raise malformed(
            (),
            f"over {limits.max_bytes:,} bytes, and that is max_bytes: limits=sm.FileLimits(max_bytes=...) raises it.",
        )
    return data


def _check_secrets(
    text: str, sections: Mapping[str, Json], models: Iterable[LanguageModel], place: Callable[[Where], str]
) -> None:
    """Raise if a text that is to be written holds a key that synmod knows.

    Raises:
        SaveError: Names every place, never the secret.
    """
    default = current_language_model()
    known = set(environment_secrets())
    for model in (*models, *((default,) if default is not None else ())):
        known |= model.known_secrets()
    found = [each for each in known if len(each) >= _SHORTEST_KEY and encode_basestring(each)[1:-1] in text]
    if found:
        remedy = "pass it to the live model (api_key=..., or the environment), which a load gets anew"
        places = sorted({place(where) for where in _places(sections, (), found)})
        problems = [SaveProblem(each, "a key that synmod knows", remedy) for each in places]
        raise SaveError(f"This cannot be saved: {', '.join(places[:10])}: a key that synmod knows: {remedy}.", problems)


def _places(value: Any, where: Where, secrets: list[str]) -> Iterator[Where]:
    """Yield the places of the texts that hold a secret; of a key that holds one, the object around it."""
    if isinstance(value, str):
        if any(secret in value for secret in secrets):
            yield where
    elif isinstance(value, Mapping):
        for key, part in cast("Mapping[str, Any]", value).items():
            if any(secret in key for secret in secrets):
                yield where
            yield from _places(part, (*where, key), secrets)
    elif isinstance(value, list):
        for number, part in enumerate(cast("list[Any]", value)):
            yield from _places(part, (*where, number), secrets)
