"""The document: a header that names kind and format, then the sections; the bytes of its file; no key in it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any, Final, cast

from synmod.errors import SaveError, SaveProblem
from synmod.leaves.frozen import Json
from synmod.leaves.names import path_str
from synmod.lm import LanguageModel, current_language_model, environment_secrets

from .json_text import FileLimits, read_json, write_json
from .problems import Where, check_fields, check_object, load_fault, malformed, shown

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
