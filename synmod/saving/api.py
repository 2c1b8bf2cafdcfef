"""save, load and their kin: programs out to text and files, and back; Variables alone; graph definitions as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic_core import PydanticSerializationError, to_json

from synmod.errors import ArgumentError, DataError, SaveError, SaveProblem, StateError
from synmod.leaves.files import write_atomic
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.names import did_you_mean, path_str
from synmod.lm import LanguageModel
from synmod.tree import (
    CODEC,
    DICT,
    NODE,
    SEQUENCE,
    GraphDef,
    VariableDef,
    build_graph,
    class_of,
    iter_graph,
    kind_of,
    record,
    state,
    update,
    walk,
)

from .document import (
    DEFAULT_LIMITS,
    FileLimits,
    encoded,
    file_bytes,
    limits_or_default,
    read_document,
    read_json,
    write_document,
)
from .problems import check_fields, check_object, in_file, load_fault
from .read import find_variables, read_program
from .write import write_graph

# -- Variables only ----------------------------------------------------------------------------------------------------

_HINTS = 20


class LoadReport(NamedTuple):
    """What a `load_variables` did, as path texts.

    Attributes:
        applied: Paths of the file whose values the program has now.
        missing: Variables of the program that the file has no value for; they kept theirs.
        unknown: Paths of the file that the program does not have.

    Example:
        >>> LoadReport(("prompt",), (), ()).applied
        ('prompt',)

    Source: PyTorch's `load_state_dict` result.
    """

    applied: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]


def save_variables(node: Any, path: str | os.PathLike[str], *filters: Any, limits: FileLimits | None = None) -> Path:
    """Save the values of a program's Variables, without its structure.

    Args:
        node: A program.
        path: The file; missing folders are made.
        *filters: Which Variables: those that any of the filters takes; without one all.
        limits: What the file must not exceed.

    Returns:
        The path.

    Raises:
        SaveError: It would be too large or would hold a key, or a file operation failed.
        ArgumentError: `node` holds no graph, or something is no filter.

    Example:
        >>> import synmod as sm, tempfile
        >>> program = {"style": sm.Param("brief")}
        >>> path = save_variables(program, tempfile.mkdtemp() + "/style.json")
        >>> program["style"].assign("long")
        >>> load_variables(program, path).applied
        ('style',)
        >>> program["style"].value
        'brief'

    Source: Keras `save_weights`.
    """
    values = state(node, filters or ...).to_json()
    models = [model for _, model in iter_graph(node, LanguageModel)]
    text = write_document("variables", {"state": values}, limits_or_default(limits), models)
    return write_atomic(path, text)


def load_variables(
    node: Any,
    path: str | os.PathLike[str],
    *,
    strict: bool = True,
    allow_missing: bool = False,
    allow_extra: bool = False,
    limits: FileLimits | None = None,
) -> LoadReport:
    """Load values into a program's Variables: by path, validated, all or none.

    Args:
        node: A program.
        path: A file of `save_variables`, or a saved program, whose values are taken.
        strict: False allows missing and unknown paths.
        allow_missing: Variables that the file does not have keep their values.
        allow_extra: Paths that the program does not have are skipped.
        limits: What the file may have at most.

    Returns:
        Which paths were applied, missing and unknown.

    Raises:
        FileNotFoundError: There is no such file.
        FormatError, LoadError: It is no such file.
        StateError: Missing or unknown paths that are not allowed, all in one; nothing was changed.
        StateSchemaError: Values that miss the live schemas, all in one; nothing was changed.

    Example:
        >>> import synmod as sm, tempfile
        >>> path = save_variables({"style": sm.Param("brief")}, tempfile.mkdtemp() + "/style.json")
        >>> load_variables({"tone": sm.Param("warm")}, path, strict=False)
        LoadReport(applied=(), missing=('tone',), unknown=('style',))

    Source: Keras `load_weights`, PyTorch `load_state_dict`; differs: atomic, validated.
    """
    allowed = limits_or_default(limits)
    name = os.fsdecode(path)
    with in_file(name):
        sections = read_document(file_bytes(path, allowed), allowed, "variables", "program")
        values = {path: _frozen(path, value) for path, value in check_object(sections["state"], ("state",)).items()}
    found, visits = find_variables(node, values)
    paths = {path_str(visit.path): visit.value for visit in visits}
    unknown = tuple(path for path in values if path not in found)
    known = {id(variable) for variable in found.values()}
    missing = tuple(path for path, variable in paths.items() if id(variable) not in known)
    lacks = missing if strict and not allow_missing else ()
    extra = unknown if strict and not allow_extra else ()
    if lacks or extra:
        raise StateError(_misfit(name, list(paths), lacks, extra))
    update(node, {path: values[path] for path in found})
    return LoadReport(tuple(found), missing, unknown)


def _frozen(path: str, value: Any) -> Any:
    """Return a value of a file, frozen."""
    try:
        return frozen(value)
    except DataError as error:
        raise load_fault(("state", path), str(error)) from error


def _misfit(file: str, known: list[str], lacks: tuple[str, ...], extra: tuple[str, ...]) -> str:
    """Return a message with the paths that do not fit."""
    lines = [f"{file}: the Variables of the file and of the program are not the same."]
    lines += [f"  missing in the file: {path!r}" for path in lacks]
    hints = {path: did_you_mean(path, known) for path in extra[:_HINTS]}
    lines += [f"  unknown to the program: {path!r}.{hints.get(path, '')}" for path in extra]
    lines.append("Allow it with allow_missing=True, allow_extra=True, or both with strict=False.")
    return "\n".join(lines)


# -- programs ----------------------------------------------------------------------------------------------------------

LanguageModels = Mapping[str, LanguageModel | str] | LanguageModel | str | None

_SECTIONS = ("graph", "data_models", "language_models")


def dumps(program: Any, *, limits: FileLimits | None = None) -> str:
    """Return the text of a program's file.

    Args:
        program: A Module or another registered node, or a list or dict of them: one file, sharing kept.
        limits: What the text must not exceed; what saves within the default limits loads within them.

    Returns:
        The text: UTF-8 JSON, one key a line; the same program gives the same text.

    Raises:
        SaveError: Something cannot be saved; `.problems` lists every place with what it is and the remedy.
        GraphError: The program cannot be walked.
        SealedError: A container of a built module was changed behind its back.

    Example:
        >>> import synmod as sm
        >>> text = sm.dumps(sm.Sequential([]))
        >>> sm.dumps(sm.loads(text)) == text
        True

    Source: Keras' config round trip, Flax NNX's graph and state; differs: data and structure are kept apart by form.
    """
    _check_root(program)
    written = write_graph(program)
    written.problems.raise_if_any()
    sections = {**written.graph, "state": written.state}
    return write_document("program", sections, limits_or_default(limits), written.language_models, written.place)


def save(program: Any, path: str | os.PathLike[str], *, limits: FileLimits | None = None) -> Path:
    """Save a program as one JSON file, atomically.

    Inside `using(program, state)` the overlaid values are saved.

    Args:
        program: As in `dumps`.
        path: The file; missing folders are made.
        limits: As in `dumps`.

    Returns:
        The path.

    Raises:
        SaveError: Something cannot be saved, and no file was touched; or a file operation failed, and what stood
            there before is untouched.

    Example:
        >>> import synmod as sm, tempfile
        >>> path = sm.save(sm.Sequential([]), tempfile.mkdtemp() + "/empty.json")
        >>> sm.load(path)
        Sequential(members=[])

    Source: safetensors and SQLite (promises about files).
    """
    return write_atomic(path, dumps(program, limits=limits))


def loads(
    text: str | bytes,
    *,
    language_models: LanguageModels = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Return the program of a text. As safe as reading a text: only registered classes resolve.

    Args:
        text: What `dumps` returned, as str or UTF-8 bytes.
        language_models: Live models or model strings by saved name, or one for all; what is not mapped is made from its
            record, with keys found in the reader's own environment at call time.
        custom_objects: Classes and functions by id or bare name, for this call; None for the id of a data
            model takes the schema of the file.
        limits: What the text may have at most.

    Returns:
        The program; `dumps` of it is the same text.

    Raises:
        FormatError: It is not a file of a format that this release reads.
        LoadError: It holds what cannot be loaded here; `.where` is the JSON Pointer, `.file` the file.
        RegistryError: An object in `custom_objects` is of a kind that files may not name.
        ArgumentError, ConfigError: An argument of another kind.

    Example:
        >>> import synmod as sm
        >>> sm.loads(sm.dumps(sm.Sequential([])))
        Sequential(members=[])

    Source: Keras `load_model`, after its CVEs: one format, one loader, no option that widens what resolves.
    """
    with in_file(None):
        sections = read_document(_bytes(text), limits_or_default(limits), "program")
        return read_program(sections, language_models=language_models, custom_objects=custom_objects)


def load(
    path: str | os.PathLike[str],
    *,
    language_models: LanguageModels = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Load a program from its file.

    Args:
        path: The file.
        language_models: As in `loads`.
        custom_objects: As in `loads`.
        limits: As in `loads`.

    Returns:
        The program.

    Raises:
        FileNotFoundError: There is no such file.
        FormatError, LoadError, RegistryError, ArgumentError, ConfigError: As in `loads`; a pipe or device is a
            LoadError too.

    Example:
        >>> import synmod as sm, tempfile
        >>> sm.load(sm.save(sm.Sequential([]), tempfile.mkdtemp() + "/empty.json"))
        Sequential(members=[])

    Source: as `loads`.
    """
    with in_file(os.fsdecode(path)):
        allowed = limits_or_default(limits)
        sections = read_document(file_bytes(path, allowed), allowed, "program")
        return read_program(sections, language_models=language_models, custom_objects=custom_objects)


def _bytes(text: Any) -> bytes:
    """Return the text as UTF-8."""
    if isinstance(text, str):
        return encoded(text)
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(cast("Any", text))
    raise ArgumentError(f"loads takes str or UTF-8 bytes, not {type(text).__name__}; for a path there is sm.load.")


def _check_root(program: Any) -> None:
    """Raise if there is no node in what is to be saved."""
    kind = kind_of(program)
    if kind == NODE or (kind in (SEQUENCE, DICT) and any(visit.kind == "node" for visit in walk(program))):
        return
    cls = class_of(program)
    name = f"the class {program.__name__}" if issubclass(cls, type) else f"an object of type {cls.__name__}"
    what = "there is nothing to save in it"
    remedy = "pass a Module, another registered node, or a list or dict of them"
    raise SaveError(f"This is {name}: {what}; {remedy}.", (SaveProblem("", f"{name}: {what}", remedy),))


def _encode(graphdef: GraphDef[Any]) -> dict[str, Json]:
    """Return a graph definition as one object of three keys.

    Raises:
        GraphError: Something cannot be written; lists every offender.
    """
    variables = [each for each in graphdef.definitions.values() if isinstance(each, VariableDef)]
    values = {each.index: (None, each.metadata) for each in variables}
    written = write_graph(build_graph(graphdef, values, dict(graphdef.kept)))
    written.problems.raise_if_any(as_graph=True)
    return written.graph


def _decode(json: Json, *, language_models: LanguageModels = None, custom_objects: Any = None) -> GraphDef[Any]:
    """Return a graph definition under the rules of a load: its modules are made by their constructors.

    Raises:
        ArgumentError: It is not what `to_json` returned.
        FormatError, LoadError: It cannot be read.
    """
    try:
        text = to_json(json)
    except PydanticSerializationError as error:
        raise ArgumentError(f"GraphDef.from_json takes the JSON that to_json returned: {error}.") from None
    sections = check_object(read_json(text, DEFAULT_LIMITS), ())
    check_fields(sections, (), _SECTIONS)
    return record(read_program(sections, language_models=language_models, custom_objects=custom_objects)).graphdef


CODEC["encode"] = _encode
CODEC["decode"] = _decode
