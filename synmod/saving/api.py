"""save, load and their kin: programs out to text and files, and back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from synmod.errors import ArgumentError, SaveError, SaveProblem
from synmod.leaves.files import write_atomic
from synmod.leaves.frozen import is_object
from synmod.saving.checking.check import checked
from synmod.saving.checking.resolver import Resolver
from synmod.saving.making.make import Made, make
from synmod.saving.making.model_makers import supplied_models
from synmod.saving.making.module_restore import finish, finish_waiting
from synmod.saving.text.document import read, resealed, rewritten, written
from synmod.saving.text.faults import in_file
from synmod.saving.text.known_keys import check_secrets
from synmod.saving.text.limits import FileLimits, limits_or_default
from synmod.saving.text.parse import encoded
from synmod.saving.text.read_file import file_bytes
from synmod.saving.vocabulary.problems import raise_if_any
from synmod.saving.writing.encode import encoded_graph
from synmod.tree import DICT, NODE, SEQUENCE, class_of, kind_of, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.lm import LanguageModel
    from synmod.saving.text.document import Document

    LanguageModels = Mapping[str, LanguageModel | str] | LanguageModel | str | None

__all__ = ["aload", "aloads", "dumps", "load", "loads", "reseal", "save"]


def dumps(program: Any, *, limits: FileLimits | None = None) -> str:
    """Write a program as the text of its file.

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
    graph = encoded_graph(program)
    raise_if_any(graph.problems)
    sections = {**graph.json, "state": graph.state}
    text = written("program", sections, limits_or_default(limits))
    check_secrets(text, sections, graph.language_models)
    return text


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
    """Make a program of the text of its file. As safe as reading a text: only registered classes resolve.

    Args:
        text: What `dumps` gave, as str or UTF-8 bytes.
        language_models: Live models or model strings by saved name, or one for all; what is not mapped is made of its
            record, with keys found in the reader's own environment at call time.
        custom_objects: Classes and functions by id or bare name, for this call; None for an id of a data model says:
            take the schema of the file.
        limits: What the text may have at most.

    Returns:
        The program; `dumps` of it is the same text.

    Raises:
        FormatError: It is no file of a format that this release reads, or it was changed after it was saved.
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
        made = _made(_bytes(text), language_models, custom_objects, limits)
        finish(made.builds)
    return made.root


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
        made = _made(file_bytes(path, limits_or_default(limits)), language_models, custom_objects, limits)
        finish(made.builds)
    return made.root


async def aloads(
    text: str | bytes,
    *,
    language_models: LanguageModels = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Make a program of the text of its file, waiting for classes whose `build_from_config` is async.

    Args:
        text: As in `loads`.
        language_models: As in `loads`.
        custom_objects: As in `loads`.
        limits: As in `loads`.

    Returns:
        The program.

    Raises:
        FormatError, LoadError, RegistryError, ArgumentError, ConfigError: As in `loads`.

    Example:
        >>> import synmod as sm
        >>> sm.run(sm.aloads(sm.dumps(sm.Sequential([]))))
        Sequential(members=[])

    Source: as `loads`.
    """
    with in_file(None):
        made = _made(_bytes(text), language_models, custom_objects, limits)
        await finish_waiting(made.builds)
    return made.root


async def aload(
    path: str | os.PathLike[str],
    *,
    language_models: LanguageModels = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Load a program from its file, waiting for classes whose `build_from_config` is async.

    Args:
        path: The file.
        language_models: As in `loads`.
        custom_objects: As in `loads`.
        limits: As in `loads`.

    Returns:
        The program.

    Raises:
        FileNotFoundError: There is no such file.
        FormatError, LoadError, RegistryError, ArgumentError, ConfigError: As in `load`.

    Example:
        >>> import synmod as sm, tempfile
        >>> sm.run(sm.aload(sm.save(sm.Sequential([]), tempfile.mkdtemp() + "/empty.json")))
        Sequential(members=[])

    Source: as `load`.
    """
    with in_file(os.fsdecode(path)):
        made = _made(file_bytes(path, limits_or_default(limits)), language_models, custom_objects, limits)
        await finish_waiting(made.builds)
    return made.root


def reseal(
    path: str | os.PathLike[str],
    *,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Path:
    """Write the new digest of a file that was edited on purpose, by hand or by a git merge.

    The file is checked as `load` would check it, short of making anything.

    Args:
        path: The file.
        custom_objects: As in `loads`.
        limits: As in `loads`.

    Returns:
        The path.

    Raises:
        FileNotFoundError: There is no such file.
        FormatError, LoadError: It could not be loaded; it stays as it is.
        SaveError: It could not be written.

    Example:
        >>> import synmod as sm, tempfile
        >>> path = sm.save(sm.Sequential([]), tempfile.mkdtemp() + "/empty.json")
        >>> sm.reseal(path) == path
        True

    Source: package managers' lock files.
    """
    allowed = limits_or_default(limits)
    with in_file(os.fsdecode(path)):
        document = resealed(file_bytes(path, allowed), allowed)
        if document.header["kind"] == "program":
            _checked(document.newest(), None, custom_objects)
    return write_atomic(path, rewritten(document))


def _made(
    data: bytes, language_models: LanguageModels, custom_objects: Mapping[str, Any] | None, limits: FileLimits | None
) -> Made:
    """Check and make."""
    return make(_checked(read(data, limits_or_default(limits), "program"), language_models, custom_objects))


def _checked(document: Document, language_models: LanguageModels, custom_objects: Mapping[str, Any] | None) -> Any:
    """Check the sections of a program."""
    names = document.sections["language_models"]
    supplied = supplied_models(language_models, names if is_object(names) else {})
    _, sections, depth, values, limits = document
    return checked(sections, depth, values, Resolver(custom_objects), supplied, limits)


def _bytes(text: Any) -> bytes:
    """The text as UTF-8."""
    if isinstance(text, str):
        return encoded(text)
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(cast("Any", text))
    raise ArgumentError(f"loads takes str or UTF-8 bytes, not {type(text).__name__}; for a path there is sm.load.")


def _check_root(program: Any) -> None:
    """Refuse what holds no node."""
    kind = kind_of(program)
    if kind == NODE or (kind in (SEQUENCE, DICT) and any(visit.kind == "node" for visit in walk(program))):
        return
    cls = class_of(program)
    name = f"the class {program.__name__}" if issubclass(cls, type) else f"an object of type {cls.__name__}"
    what = "there is nothing to save in it"
    remedy = "give a Module, another registered node, or a list or dict of them"
    raise SaveError(f"This is {name}: {what}; {remedy}.", (SaveProblem("", f"{name}: {what}", remedy),))
