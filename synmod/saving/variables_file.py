"""Variables only: yesterday's prompts into today's code, without touching its structure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from synmod.errors import DataError, StateError
from synmod.leaves.files import write_atomic
from synmod.leaves.frozen import frozen
from synmod.leaves.names import did_you_mean, path_str
from synmod.lm import LanguageModel
from synmod.tree import iter_graph, state, update

from .document import file_bytes, read_document, write_document
from .json_text import FileLimits, limits_or_default
from .problems import check_object, in_file, load_fault
from .read import find_variables

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
