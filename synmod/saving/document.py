"""The document: its text within limits, its header and sections, what it names, and the errors with a place in it.

The text of a file is written one key per line, and read strictly within limits. A document names registered code by id,
attributes by name, data models by index.
"""

import json
import os
import re
import stat
import types
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic_core import PydanticSerializationError, to_json

from synmod import data, errors, flow, leaves, lm, module, registry
from synmod.leaves import Json

Where: TypeAlias = tuple[str | int, ...]
"""A place in a document: the keys and indices that lead to it."""

_SHOWN = 200
_LISTED = 20
_LONGEST_PLACE = 500

# -- what cannot be loaded ---------------------------------------------------------------------------------------------


def load_error(where: Where, text: str, error: type[errors.LoadError] = errors.LoadError) -> errors.LoadError:
    """Return an error whose message begins with the place in the document."""
    place = leaves.pointer(where)
    short = place if len(place) <= _LONGEST_PLACE else f"{place[:_LONGEST_PLACE]}..."  # a key may be long
    return error(f"{short}: {text}" if place else text, where=place)


def format_error(where: Where, text: str) -> errors.LoadError:
    """Return the error of something that this format does not allow."""
    return load_error(where, text, errors.FormatError)


def short_text(value: Json) -> str:
    """Return a value from a file as text, shortened: it may be megabytes long."""
    text = "an object" if leaves.is_object(value) else "an array" if leaves.is_array(value) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@contextmanager
def in_file(path: str | os.PathLike[str]) -> Generator[None]:
    """Name the file in every LoadError and StateError that passes, once.

    Raises:
        ArgumentError: It is not a path.
    """
    file = leaves.path_text(path)
    try:
        yield
    except errors.LoadError as error:
        if error.file is None:
            error.file = file
            error.args = (f"{file}: {error}",)
        raise
    except errors.StateError as error:
        error.args = (f"{file}: {error}", *error.args[1:])
        raise


_WANTED: Final = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}


def check(value: Json, where: Where, kind: type) -> Json:
    """Return a value after checking that it is a dict, list, str or bool."""
    if type(value) is not kind:
        raise format_error(where, f"wanted {_WANTED[kind]}, got {short_text(value)}.")
    return value


def check_record(value: Json, where: Where, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Json]:
    """Return an object after checking that it has all needed fields, and no unknown one."""
    record = check(value, where, dict)
    for name in needed:
        if name not in record:
            raise format_error(where, f"the field {name!r} is missing.")
    for name in record:
        if name not in needed and name not in optional:
            raise format_error((*where, name), f"unknown field; known are {', '.join([*needed, *optional])}.")
    return record


def check_pairs(value: Json, where: Where) -> Iterator[tuple[Where, Json, Json]]:
    """Yield the place and both parts of each pair in an array."""
    for number, pair in enumerate(check(value, where, list)):
        if len(check(pair, (*where, number), list)) != 2:
            raise format_error((*where, number), "wanted a pair.")
        yield (*where, number), *pair


def check_index(index: Json, size: int, where: Where, table: str) -> int:
    """Return an index after checking it against the size of its table; a bool is not an index."""
    if type(index) is not int or not 0 <= index < size:
        raise format_error(where, f"{short_text(index)} is not an index into the {size:,} {table}.")
    return index


# -- what cannot be saved ----------------------------------------------------------------------------------------------


class Problems(list[errors.SaveProblem]):
    """The problems found so far; saving goes on, so that one error lists them all."""

    def note(self, place: str, what: str, remedy: str) -> None:
        """Add a problem."""
        self.append(errors.SaveProblem(place, what, remedy))

    def raise_if_any(self, *, as_graph: bool = False) -> None:
        """Raise one error for all problems, if there are any.

        Raises:
            SaveError: There are problems; the message lists the first twenty.
            GraphError: There are problems in a graph definition.
        """
        if not self:
            return
        lines = [f"{place}: {what}: {remedy}." if place else f"{what}: {remedy}." for place, what, remedy in self]
        if len(lines) > _LISTED:
            lines[_LISTED:] = [f"... and {len(lines) - _LISTED} more, in .problems"]
        text = "This cannot be saved:" + (f" {lines[0]}" if len(lines) == 1 else "".join(f"\n- {x}" for x in lines))
        raise errors.GraphError(text) if as_graph else errors.SaveError(text, self)


# -- text --------------------------------------------------------------------------------------------------------------

_DEEPEST: Final = 200
"""The largest `max_depth`: code that reads a document recurses."""

_BLOCK: Final = 2**16
_NO_MARKS = bytes(byte for byte in range(256) if byte not in b",[]{}")
_STEP = {ord(","): 0, ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_HIDDEN = "[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"


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
            leaves.check_int(f"FileLimits: {field.name}", getattr(self, field.name))
        leaves.check_number("FileLimits: max_depth", self.max_depth, 1, _DEEPEST)


def _limits_or_default(limits: FileLimits | None) -> FileLimits:
    """Return the limits, the default ones for None.

    Raises:
        ArgumentError: `limits` is something else.
    """
    if limits is None:
        return FileLimits()
    leaves.check_type("limits", limits, FileLimits, "sm.FileLimits(...)")
    return limits


def _find_exceeded_limits(content: bytes, limits: FileLimits) -> Iterator[tuple[str, int, str]]:
    """Yield each limit that a text exceeds, its size and a message; the cheap checks come first.

    The number of values may be too large, never too small; the depth is exact for a text that is JSON.
    """

    def fault(name: str, size: int, what: str) -> Iterator[tuple[str, int, str]]:
        most: int = getattr(limits, name)
        if size > most:
            yield name, size, f"{name} is {most:,}, the file has {size:,} {what}"

    yield from fault("max_bytes", len(content), "bytes")
    marks = [block.translate(None, _NO_MARKS) for block in _outside_strings(content)]
    values = 1 + sum(len(block) - block.count(b"]") - block.count(b"}") for block in marks)
    yield from fault("max_values", values, "JSON values")
    steps = map(_STEP.__getitem__, b"".join(marks))
    yield from fault("max_depth", max(accumulate(steps), default=0), "levels of nesting")


def _outside_strings(content: bytes) -> Iterator[bytes]:
    """Yield what is outside the strings of a text, block by block: a text may hold millions of empty strings."""
    content = content.replace(rb"\\", b"").replace(rb"\"", b"")  # no quote that is left is escaped
    inside = 0
    for start in range(0, len(content), _BLOCK):
        parts = content[start : start + _BLOCK].split(b'"')
        yield b"".join(parts[inside::2])
        inside = (inside + len(parts) - 1) % 2


def _text(document: Mapping[str, Json], limits: FileLimits | None, place: Callable[[Where], str]) -> str:
    """Return the text of a document, with a line feed at the end.

    Raises:
        SaveError: It exceeds a limit, so that a load would refuse it.
    """
    try:
        content = to_json(document, indent=2) + b"\n"
        excess = list(_find_exceeded_limits(content, _limits_or_default(limits)))
    except PydanticSerializationError:  # its writer recurses, to about 250 levels
        content, excess = b"", [("max_depth", _DEEPEST, f"the file has over {_DEEPEST} levels of nesting")]
    problems = Problems()
    for name, size, what in excess:
        largest = place(_largest(document)) if name == "max_bytes" else ""
        remedy = f"pass limits=sm.FileLimits({name}={size}) to save and to load, or keep large data out of the file"
        problems.note(largest, what, f"{remedy}: an attribute that is sm.static(...) is not saved")
    problems.raise_if_any()
    text = content.decode()
    # characters that a diff would hide or misplace are escaped
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_HIDDEN, lambda excess: f"\\u{ord(excess.group()):04x}", text)


def _largest(part: Any, where: Where = ()) -> Where:
    """Return the place of most bytes of a document: the deepest part that is over half of each part around it."""
    items: Any = part.items() if leaves.is_object(part) else enumerate(part) if leaves.is_array(part) else ()
    parts = {key: (len(to_json(inner)), inner) for key, inner in items}
    if not parts:
        return where
    key = max(parts, key=lambda key: parts[key][0])
    size, inner = parts[key]
    return _largest(inner, (*where, key)) if size * 2 > sum(length for length, _ in parts.values()) else where


def read_json(content: bytes, limits: FileLimits | None = None) -> Json:
    """Return the JSON value of a text; a text that exceeds a limit is not parsed.

    Raises:
        FormatError: It is not a JSON text, exceeds a limit, or another parser could read it differently: a byte order
            mark, a duplicate key, NaN or infinity, a number that overflows, an int over 1,000 digits, a lone surrogate.
    """
    for name, _, what in _find_exceeded_limits(content, _limits_or_default(limits)):
        raise format_error((), f"{what} or more: limits=sm.FileLimits({name}=...) raises the limit.")
    try:
        return leaves.parse_json(content, _DEEPEST)
    except errors.DataError as error:
        raise format_error((), str(error)) from None


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
    "checkpoint": ("params", "aux"),
    "optimizer": ("class", "state"),
}
"""What a file of each kind holds beside its header."""

OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {"checkpoint": ("states",)}
"""The optional sections of a kind."""

_READ_BY = {
    "program": "sm.load(path)",
    "variables": "sm.load_variables(program, path)",
    "checkpoint": "sm.Trainer.load(prefix)",
    "optimizer": "trainer.load_optimizer_states(path)",
}
_RELEASE = r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}([a-z]{1,6}[0-9]{0,6})?"
_SHORTEST_KEY = 12  # a shorter text may well be an ordinary word


def write_document(
    kind: str,
    sections: Mapping[str, Json],
    limits: FileLimits | None,
    models: Iterable[lm.SharedModel],
    place: Callable[[Where], str] = leaves.path_str,
) -> str:
    """Return the text of a document.

    Args:
        kind: One of `SECTIONS`.
        sections: The sections, in the order of the file.
        limits: The limits of the text.
        models: The language models of the program, whose keys must not be in the text.
        place: Returns the place in the program of a place in the sections, for messages.

    Raises:
        SaveError: It exceeds a limit, or contains a key of a model; names every place, never the secret.
    """
    header = {"synmod": FIRST_READERS[FORMAT], "format": FORMAT, "kind": kind}
    text = _text({"header": header, **sections}, limits, place)
    default = lm.current_language_model()
    all_models = models if default is None else (*models, default)
    keys = set(lm.environment_secrets()).union(*(model.all_secrets() for model in all_models))
    long_keys = [key for key in keys if len(key) >= _SHORTEST_KEY]
    secrets = [key for key in long_keys if json.dumps(key, ensure_ascii=False)[1:-1] in text]
    problems = Problems()
    for name in sorted({place(where) for where in _places(sections, (), secrets)}) if secrets else ():
        remedy = "pass it to the live model again after a load (api_key=..., or the environment)"
        problems.note(name, "a key of a model", remedy)
    problems.raise_if_any()
    return text


def _places(value: Any, where: Where, secrets: list[str]) -> Iterator[Where]:
    """Yield the places of the strings that contain a secret; for a key that contains one, the object around it."""
    if isinstance(value, str):
        if any(secret in value for secret in secrets):
            yield where
    elif leaves.is_mapping(value):
        for key, part in value.items():
            if any(secret in key for secret in secrets):
                yield where
            yield from _places(part, (*where, key), secrets)
    elif leaves.is_array(value):
        for number, part in enumerate(value):
            yield from _places(part, (*where, number), secrets)


def read_document(source: bytes | str | os.PathLike[str], limits: FileLimits | None, *kinds: str) -> dict[str, Json]:
    """Return the sections of a document, in the newest format.

    Args:
        source: The path of a file, or its bytes.
        limits: The limits of its text.
        *kinds: The kinds that the caller accepts; messages name the first.

    Raises:
        FileNotFoundError: The file does not exist.
        LoadError: It is a folder, a pipe or a device.
        FormatError: It is not a JSON text of a format that this release reads, is of another kind, or has a missing or
            unknown section or field.
    """
    content = source if isinstance(source, bytes) else _file_bytes(source, _limits_or_default(limits).max_bytes)
    document = check(read_json(content, limits), (), dict)
    if "header" not in document:
        raise format_error((), "no header: this is not a file of synmod, or it is truncated.")
    header = _check_header(check(document.pop("header"), ("header",), dict))
    kind = header["kind"]
    if kind not in kinds:
        text = f"this is a file of kind {kind!r}, wanted {kinds[0]!r}: read it with {_READ_BY[kind]}."
        raise format_error(("header", "kind"), text)
    for migrate in MIGRATIONS[header["format"] - 1 :]:
        document = migrate(document)
    return check_record(document, (), SECTIONS[kind], OPTIONAL.get(kind, ()))


def _check_header(header: dict[str, Json]) -> dict[str, Any]:
    """Return the header after checking it; the format comes first, since a newer one may have another header."""
    version, release, kind = (header.get(name) for name in ("format", "synmod", "kind"))
    if type(version) is not int or version < 1:
        text = f"{short_text(version)} is not a format: wanted an int from 1 to {FORMAT}."
        raise format_error(("header", "format"), text)
    is_release = isinstance(release, str) and re.fullmatch(_RELEASE, release, re.ASCII)
    if version > FORMAT:
        needed = release if is_release else "the release that wrote it"
        text = f"format {version}, and this release reads up to format {FORMAT}: upgrade to synmod-lm >= {needed}."
        raise format_error(("header", "format"), text)
    if not isinstance(kind, str) or kind not in SECTIONS:
        text = f"{short_text(kind)} is not a kind: wanted one of {', '.join(SECTIONS)}."
        raise format_error(("header", "kind"), text)
    if not is_release:
        raise format_error(("header", "synmod"), f"{short_text(release)} is not a release.")
    return check_record(header, ("header",), ("synmod", "format", "kind"))


def _file_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a regular file, at most `most + 1` bytes.

    Raises:
        FileNotFoundError: The file does not exist.
        LoadError: It is a folder, a pipe or a device, or its content cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)  # without waiting: opening a pipe would wait for a writer
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise load_error((), "this is not a regular file, but a folder, pipe, socket or device.")
        content = b""
        while len(content) <= most and (block := os.read(descriptor, most + 1 - len(content))):
            content += block
    except OSError as error:  # which has no path, unlike that of opening
        raise load_error((), f"the file cannot be read: {error.strerror}.") from error
    finally:
        os.close(descriptor)
    return content


# -- ids ---------------------------------------------------------------------------------------------------------------

_ID = r"[A-Za-z_][A-Za-z0-9_.-]*>[A-Za-z_][A-Za-z0-9_.-]*"


class Resolver:
    """Finds the objects that one file names: in the caller's custom objects, then in the registry, and nowhere else.

    Args:
        custom_objects: `{id or bare name: object}`; None for an id takes the schema of the file.

    Raises:
        ArgumentError: `custom_objects` is not a mapping with str keys.
        RegistryError: An object in it, once a file uses it, is of a kind that files may not name.
    """

    def __init__(self, custom_objects: Mapping[str, Any] | None) -> None:
        custom: Any = {} if custom_objects is None else custom_objects
        if not hasattr(custom, "items") or not all(isinstance(key, str) for key in custom):
            raise errors.ArgumentError("custom_objects: wanted a mapping from id or bare name to a class or function.")
        self._custom: dict[str, Any] = dict(custom)
        self._bare: dict[str, str] = {}
        """The ids that bare names of the custom objects stand for."""

    def find(self, public_id: Any, where: Where) -> Any:
        """Return the object of an id.

        Raises:
            LoadError: It is not an id, or not registered.
        """
        target = self.find_or_none(public_id, where)
        if target is None:
            name, package = short_text(public_id), short_text(str(public_id).partition(">")[0])
            text = f"{name} is not registered. Import the package that registers it ({package}) before loading, on the "
            text += f"command line by --import; the loader never imports it. Or pass custom_objects={{{name}: ...}}."
            raise load_error(where, text + leaves.did_you_mean(public_id, registry.registered()))
        return target

    def find_or_none(self, public_id: Any, where: Where) -> Any:
        """Return the object of an id, None where it is not registered or the caller maps it to None.

        Raises:
            LoadError: It is not an id.
        """
        if type(public_id) is not str or not re.fullmatch(_ID, public_id, re.ASCII):
            text = f"{short_text(public_id)} is not an id: ids have the form 'package>Name'; an import path is not one."
            raise load_error(where, text)
        bare = public_id.partition(">")[2]
        key = public_id if public_id in self._custom else bare
        if key not in self._custom:
            return registry.lookup(public_id)
        if key == bare and self._bare.setdefault(bare, public_id) != public_id:
            text = f"{bare!r} in custom_objects could mean {self._bare[bare]!r} or {public_id!r}: write the id."
            raise load_error(where, text)
        target = self._custom[key]
        if target is not None:
            registry.check_registrable(target, key)
        return target

    def find_class(self, public_id: Any, where: Where, fits: Callable[[type], bool], expected: str) -> type:
        """Return the class of an id.

        Raises:
            LoadError: It is not registered, or an object of another kind.
        """
        return check_class(self.find(public_id, where), where, fits, expected)


def check_class(target: Any, where: Where, fits: Callable[[type], bool], expected: str) -> type:
    """Return the object of an id after checking that it is a class of the wanted kind.

    Raises:
        LoadError: It is another class, or a function.
    """
    if not isinstance(target, type) or not fits(target):
        kind = "class" if isinstance(target, type) else "function"
        raise load_error(where, f"this is the {kind} {target.__qualname__}, wanted {expected}.")
    return target


@contextmanager
def user_code(where: Where, cls: type, path: Callable[[], str] | None = None) -> Generator[None]:
    """Turn what the code of a class raises into a LoadError with the place in the file.

    Args:
        where: The place in the document.
        cls: The class.
        path: Returns the path of the object in the program; called only after a failure.

    Raises:
        LoadError: The block raised an Exception, which is the cause. Cancellation and interrupts pass.
    """
    try:
        yield
    except errors.LoadError:
        raise
    except Exception as error:
        place = "" if path is None else f"{path()!r} "
        text = f"{place}({cls.__qualname__}) cannot be made: {type(error).__name__}: {error}"
        raise load_error(where, text) from error


# -- attributes --------------------------------------------------------------------------------------------------------

_INT_STEP = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_DECLARATIONS = frozenset({"input_spec", "output_spec"})
"""Descriptors of Module that an instance may set."""


def attribute_fault(cls: type, name: str) -> str | None:
    """Return why instances of a class cannot have a saved attribute of this name: it could be code, or bookkeeping."""
    if _INT_STEP.fullmatch(name):
        return None  # such as a member of a Sequential, which no code can name as an attribute
    if not name.isidentifier():
        return "an attribute name that is not an identifier"
    if name.startswith("__") and name.endswith("__"):
        return "an attribute with the name of a special method"
    if name in _DECLARATIONS:
        return None
    if name.startswith("_") and any(name in vars(base) for base in module.Module.__mro__):
        return "an attribute with the name of the base class's own bookkeeping"
    for base in cls.__mro__:
        if name in vars(base):
            member: object = vars(base)[name]
            if isinstance(member, types.MemberDescriptorType) and base is not module.Module:
                return None
            if hasattr(type(member), "__get__"):
                return f"an attribute that hides {name!r} of class {base.__name__}"
    if issubclass(cls, module.Module) and name in module.declaration_of(cls).reserved:
        return f"an attribute that hides {name!r} of Module"
    return None


# -- data models -------------------------------------------------------------------------------------------------------

_LONGEST_DIFFERENCE = 100
_IDS: dict[int, str] = {}
"""The ids of unknown data models, by identity of the symbols and values that stand in for them, while these live."""


def remember_id(stand_in: Any, public_id: str | None) -> Any:
    """Return a symbol or value after noting the id of its data model, which is not known in this process."""
    if public_id is not None:
        _IDS[id(stand_in)] = public_id
        weakref.finalize(stand_in, _IDS.pop, id(stand_in), None)
    return stand_in


def id_and_schema(declared: Any) -> tuple[str | None, data.Schema]:
    """Return the id and the schema of a class, symbol or value, of the class of an instance, or of part of a graph."""
    if isinstance(declared, flow.Declared):
        if declared.data_model is None:
            return _IDS.get(id(declared)), declared.schema
        declared = declared.data_model
    schema = data.schema_of(declared)
    if isinstance(declared, data.HasSchema):
        return _IDS.get(id(cast("Any", declared))), schema
    return registry.id_of(declared if isinstance(declared, type) else type(declared)), schema


class ModelEntry(NamedTuple):
    """A data model in a file: its id if it has one, its class if the id is known here, and its schema."""

    public_id: str | None
    cls: type[data.DataModel] | None
    schema: data.Schema


def validate_value(schema: data.Schema | None, value: leaves.Json, where: Where) -> leaves.Json:
    """Return a frozen value after validating it, if a schema is given.

    Raises:
        LoadError: It is not JSON, or does not satisfy the schema.
    """
    try:
        json = leaves.frozen(value)
        if schema is not None:
            data.validate(schema, json, "a value")
    except (errors.SchemaError, errors.DataError) as error:
        raise load_error(where, str(error)) from error
    return json


def read_data_model(
    entry: leaves.Json, where: Where, resolver: Resolver, read_schema: Callable[[leaves.Json, Where, Any], data.Schema]
) -> ModelEntry:
    """Return one data model of a document.

    Raises:
        FormatError: A field is unknown or missing.
        LoadError: A class that is known here has another schema.
    """
    record = check_record(entry, where, ("schema",), ("name", "title"))
    check(record.get("title", ""), (*where, "title"), str)
    schema = read_schema(record["schema"], (*where, "schema"), "object")
    name = record.get("name")
    target = resolver.find_or_none(name, (*where, "name")) if "name" in record else None
    if target is None:
        return ModelEntry(name, None, schema)
    cls = check_class(target, (*where, "name"), lambda target: issubclass(target, data.DataModel), "a DataModel")
    current = data.schema_of_class(cls)
    if current is not schema and not data.json_equal(current, schema):
        text = f"the schema of {name!r} differs from that of the class here:\n{_difference(schema, current)}\n"
        remedy = f"To take the schema of the file, pass custom_objects={{{name!r}: None}}."
        raise load_error(where, text + remedy)
    return ModelEntry(name, cls, schema)


def _difference(stored: data.Schema, current: data.Schema) -> str:
    """Return the lines in which two schemas differ, whatever the order of their keys."""
    from difflib import unified_diff

    before, after = (
        json.dumps(data.thaw(schema), indent=1, sort_keys=True).splitlines() for schema in (stored, current)
    )
    lines = list(unified_diff(before, after, "the file", "the class", lineterm="", n=0))[:_LONGEST_DIFFERENCE]
    return "\n".join(line[:_LONGEST_DIFFERENCE] for line in lines if not line.startswith("@@"))
