"""The document: a header that says what it is and vouches for the rest, then the sections.

`written` turns sections into text; `read` turns bytes back into sections, and trusts nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from synmod.errors import SaveError, SaveProblem
from synmod.saving.text.faults import malformed, shown
from synmod.saving.text.layout import Text, compact_plain, compact_sections, digest, layout
from synmod.saving.text.migrations import MIGRATIONS, migrated
from synmod.saving.text.parse import parse_document
from synmod.saving.text.schema_check import schema_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from synmod.leaves.frozen import Json
    from synmod.saving.text.limits import FileLimits

__all__ = ["FIRST_READERS", "FORMAT", "Document", "check_fields", "read", "resealed", "rewritten", "written"]

FORMAT: Final = len(MIGRATIONS) + 1
"""The format that is written."""

FIRST_READERS: Final = {1: "0.1.0"}
"""The first release that reads a format; a header names it, so that an older reader can say what to install."""

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
_HEADER = {"program": (), "variables": ("fingerprint",), "checkpoint": ()}
_NO_DIGEST = "0" * 64
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RELEASE = re.compile(r"[0-9]+(\.[0-9]+){0,3}([a-z]+[0-9]*)?", re.ASCII)


def written(kind: str, sections: Mapping[str, Json], limits: FileLimits, **header: Json) -> str:
    """Write a document.

    Args:
        kind: `program` or `variables`.
        sections: The sections, in the order of the file.
        limits: What the text must not exceed.
        **header: Further fields of the header.

    Raises:
        SaveError: It would be beyond a limit, so nobody could load it without raising that limit too.
    """
    head = {"synmod": FIRST_READERS[FORMAT], "format": FORMAT, "kind": kind, **header, "sha256": _NO_DIGEST}
    text = layout({"header": head, **sections})
    _check_limits(text, sections, limits)
    return text.text.replace(_NO_DIGEST, digest(compact_sections(dict(sections), text.depth)), 1)


def _check_limits(text: Text, sections: Mapping[str, Json], limits: FileLimits) -> None:
    """Refuse a text that `load` would refuse."""
    size = len(text.text) if text.text.isascii() else len(text.text.encode())
    found = {"max_bytes": size, "max_depth": text.depth, "max_values": text.values}
    problems = [
        SaveProblem(
            "",
            f"{name} is {getattr(limits, name):,}, the file has {size:,}: {size - getattr(limits, name):,} too many",
            f"pass limits=sm.FileLimits({name}={size}) to save and to load, or keep large data outside the program",
        )
        for name, size in found.items()
        if size > getattr(limits, name)
    ]
    schemas = schema_problem(sections, text.text, limits)
    if schemas is not None:
        problems.append(schemas)
    if problems:
        raise SaveError(
            "The file would be too large: " + "; ".join(f"{p.what}: {p.remedy}" for p in problems), problems
        )


class Document(NamedTuple):
    """A document that was read: header, sections, how deep it nests, how many JSON values it has, and its limits."""

    header: dict[str, Json]
    sections: dict[str, Json]
    depth: int
    values: int
    limits: FileLimits

    def newest(self) -> Document:
        """The same in the newest format."""
        return self._replace(sections=migrated(self.sections, self.header["format"]))


def read(data: bytes, limits: FileLimits, *kinds: str) -> Document:
    """Read a document.

    Args:
        data: The bytes of the file.
        limits: What they must not exceed.
        *kinds: The kinds that the caller can use; the first is what it is for.

    Returns:
        The document, its sections migrated to the newest format.

    Raises:
        FormatError: It is no JSON text of a format that this release reads, not of these kinds, has a section or field
            too many or too few, or its digest is wrong.
    """
    content, depth, values = parse_document(data, limits)
    del data
    document = _mapping(content, ())
    header = _checked_header(document)
    kind = header["kind"]
    if kind not in kinds:
        raise malformed(
            ("header", "kind"), f"this is a file of kind {kind!r}, wanted {kinds[0]!r}: read it with {_READ_BY[kind]}."
        )
    sections = {name: content for name, content in document.items() if name != "header"}
    document.clear()
    if _digest(sections, depth) != header["sha256"]:
        raise malformed(
            ("header", "sha256"),
            "the digest does not fit the content: the file was changed after it was saved. "
            "If that was intended (an edit, a git merge), check it and call sm.reseal(path).",
        )
    sections = migrated(sections, header["format"])
    check_fields(sections, (), SECTIONS[kind])
    return Document(header, sections, depth, values, limits)


def resealed(data: bytes, limits: FileLimits) -> Document:
    """Read a document whose digest may be wrong: the header as it must be, and the sections as they are in the file."""
    content, depth, values = parse_document(data, limits)
    document = _mapping(content, ())
    header = _checked_header(document)
    sections = {name: content for name, content in document.items() if name != "header"}
    check_fields(migrated(sections, header["format"]), (), SECTIONS[header["kind"]])
    return Document({**header, "sha256": _digest(sections, depth)}, sections, depth, values, limits)


def _digest(sections: dict[str, Json], depth: int) -> str:
    """The digest of what was parsed; here a lone surrogate, which JSON can spell, comes to light."""
    try:
        return digest(compact_plain(sections, depth))
    except UnicodeEncodeError:
        raise malformed((), "a lone surrogate in a text: no UTF-8 file can hold it.") from None


def rewritten(document: Document) -> str:
    """Write a document that was read, header and all."""
    return layout({"header": document.header, **document.sections}).text


def _checked_header(document: dict[str, Json]) -> dict[str, Any]:
    """Check everything in the header but the digest; a newer format first, since its header may look different."""
    if "header" not in document:
        raise malformed((), "no header: this is no file of synmod, or it was cut off.")
    header = _mapping(document["header"], ("header",))
    version = header.get("format")
    if type(version) is not int or version < 1:
        raise malformed(("header", "format"), f"{shown(version)} is no format: wanted an int from 1 to {FORMAT}.")
    if version > FORMAT:
        release = header.get("synmod")
        known = isinstance(release, str) and len(release) < 40 and _RELEASE.fullmatch(release)
        raise malformed(
            ("header", "format"),
            f"format {version}, and this release reads up to format {FORMAT}: "
            f"upgrade to synmod >= {release if known else 'the release that wrote it'}.",
        )
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in SECTIONS:
        raise malformed(("header", "kind"), f"{shown(kind)} is no kind: wanted one of {', '.join(SECTIONS)}.")
    check_fields(header, ("header",), ("synmod", "format", "kind", *_HEADER[kind], "sha256"))
    for name, pattern in (("synmod", _RELEASE), ("sha256", _DIGEST), ("fingerprint", _DIGEST)):
        value = header.get(name)
        if name == "fingerprint" and value is None:
            continue
        if not isinstance(value, str) or len(value) > 64 or not pattern.fullmatch(value):
            raise malformed(("header", name), f"{shown(header[name])} cannot stand here.")
    return header


def check_fields(
    record: Mapping[str, Json], where: tuple[str | int, ...], needed: Sequence[str], optional: Sequence[str] = ()
) -> None:
    """Check that a record has all the fields it needs and none that nobody knows."""
    for name in needed:
        if name not in record:
            raise malformed(where, f"the field {name!r} is missing.")
    if len(record) > len(needed):
        for name in record:
            if name not in needed and name not in optional:
                raise malformed((*where, name), f"unknown field; known are {', '.join([*needed, *optional])}.")


def _mapping(content: Json, where: tuple[str | int, ...]) -> dict[str, Json]:
    """Check that something is an object."""
    if not isinstance(content, dict):
        raise malformed(where, f"wanted an object, got {shown(content)}.")
    return cast("dict[str, Json]", content)
