"""Files of Variables alone: the values of a program without its structure, saved, and loaded by path."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from synmod import leaves, lm, tree
from synmod.errors import StateError

from .document import FileLimits, check, in_file, read_document, validate_value, write_document
from .read import misfit


@leaves.checks_keywords
def save_variables(node: Any, path: str | os.PathLike[str], *filters: Any, limits: FileLimits | None = None) -> Path:
    """Save the values of a program's Variables, without its structure.

    Args:
        node: A program.
        path: The file; missing folders are made, with a warning in the log: the path may be mistyped.
        *filters: Select the Variables that any of the filters accepts; without filters, all.
        limits: The limits of the file.

    Returns:
        The path.

    Raises:
        SaveError: The file would exceed a limit or contain a key, or a file operation failed.
        ArgumentError: `node` holds no graph, or something is not a filter.

    Example:
        >>> import synmod as sm, tempfile
        >>> program = {"style": sm.Param("brief")}
        >>> path = sm.save_variables(program, tempfile.mkdtemp() + "/style.json")
        >>> program["style"].assign("long")
        >>> sm.load_variables(program, path).applied
        ('style',)
        >>> program["style"].value
        'brief'

    Source: Keras `save_weights`.
    """
    values = tree.state(node, filters or ...).to_json()
    models = [model for _, model in tree.iter_graph(node, lm.SharedModel)]
    return leaves.write_atomic(path, write_document("variables", {"state": values}, limits, models))


class LoadReport(NamedTuple):
    """What `load_variables` did, as paths.

    Attributes:
        applied: Paths whose values were loaded.
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


@leaves.checks_keywords
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
        limits: The limits of the file.

    Returns:
        Which paths were applied, missing and unknown.

    Raises:
        FileNotFoundError: The file does not exist.
        ArgumentError: `path` is not a path.
        FormatError, LoadError: It is not a file of values.
        StateError: Paths are missing or unknown, and not allowed to be; lists them all. Nothing was changed.
        StateSchemaError: Values do not satisfy the live schemas; lists them all. Nothing was changed.

    Example:
        >>> import synmod as sm, tempfile
        >>> path = sm.save_variables({"style": sm.Param("brief")}, tempfile.mkdtemp() + "/style.json")
        >>> load_variables({"tone": sm.Param("warm")}, path, strict=False)
        LoadReport(applied=(), missing=('tone',), unknown=('style',))

    Source: Keras `load_weights`, PyTorch `load_state_dict`; differs: atomic, validated.
    """
    with in_file(path):
        section = check(read_document(path, limits, "variables", "program")["state"], ("state",), dict)
        values = {name: validate_value(None, value, ("state", name)) for name, value in section.items()}
        targets, missing_visits = tree.find_variables(node, values)
        missing = tuple(leaves.path_str(visit.path) for visit in missing_visits)
        unknown = tuple(name for name in values if name not in targets)
        lacks = missing if strict and not allow_missing else ()
        extra = unknown if strict and not allow_extra else ()
        if lacks or extra:
            hint = "\nAllow it with allow_missing=True, allow_extra=True, or both with strict=False."
            raise StateError(misfit(lacks, extra) + hint)
        tree.update(node, {name: values[name] for name in targets})
    return LoadReport(tuple(targets), missing, unknown)
