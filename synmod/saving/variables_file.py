"""Variables only: yesterday's prompts into today's code, without touching its structure."""

from __future__ import annotations

import os
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.data import trusted_schema
from synmod.errors import DataError, GraphError, StateError
from synmod.leaves.files import write_atomic
from synmod.leaves.frozen import frozen
from synmod.leaves.names import did_you_mean, path_str
from synmod.lm import LanguageModel
from synmod.saving.checking.terms import check_object
from synmod.saving.text.document import read, written
from synmod.saving.text.faults import in_file, load_fault
from synmod.saving.text.known_keys import check_secrets
from synmod.saving.text.limits import limits_or_default
from synmod.saving.text.read_file import file_bytes
from synmod.tree import Layout, State, class_of, graphdef, iter_graph, record, snapshot, state, update

if TYPE_CHECKING:
    from pathlib import Path

    from synmod.leaves.frozen import Json
    from synmod.saving.text.limits import FileLimits
    from synmod.tree import Recording

__all__ = ["LoadReport", "load_variables", "save_variables"]

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
    values = (state(node, filters) if filters else state(node)).to_json()
    try:
        fingerprint = graphdef(node).fingerprint
    except GraphError:  # some static has no encoding; that never hinders saving values
        fingerprint = None
    sections = {"state": values}
    text = written("variables", sections, limits_or_default(limits), fingerprint=fingerprint)
    check_secrets(text, sections, (model for _, model in iter_graph(node, LanguageModel)))
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
        document = read(file_bytes(path, allowed), allowed, "variables", "program")
        values = _values(check_object(document.sections["state"], ("state",)))
    live = record(node)
    report, leaves = _matched(live, values)
    lacks = report.missing if strict and not allow_missing else ()
    extra = report.unknown if strict and not allow_extra else ()
    if lacks or extra:
        raise StateError(_misfit(name, live, lacks, extra, document.header.get("fingerprint")))
    update(node, State.from_flat(leaves))
    return report


def _values(json: dict[str, Json]) -> dict[str, Json]:
    """Freeze the values of a file."""
    values: dict[str, Json] = {}
    for path, value in json.items():
        try:
            values[path] = frozen(value)
        except DataError as error:
            raise load_fault(("state", path), str(error)) from error
    return values


def _matched(live: Recording[Any], values: dict[str, Json]) -> tuple[LoadReport, dict[Any, Any]]:
    """Find the Variable of each path of a file; alias paths are fine."""
    paths = {visit.path: visit.index for visit in live.leaves if visit.index is not None}
    by_index = {index: path for path, index in paths.items()}
    layout = Layout(lambda: (live.graphdef.root, live.graphdef.definitions), paths)
    anything = trusted_schema(True)
    applied: list[str] = []
    unknown: list[str] = []
    leaves: dict[Any, Any] = {}
    for path, value in values.items():
        index = layout.find(path)
        if not isinstance(index, int):
            unknown.append(path)
            continue
        variable = live.objects[index]
        applied.append(path)
        leaves[by_index[index]] = snapshot(class_of(variable), value, anything, variable._about)
    missing = [path_str(path) for path in paths if path not in leaves]
    return LoadReport(tuple(applied), tuple(missing), tuple(unknown)), leaves


def _misfit(file: str, live: Recording[Any], lacks: tuple[str, ...], extra: tuple[str, ...], fingerprint: Json) -> str:
    """Say which paths do not fit, and whether the file was saved from another structure."""
    known = [path_str(visit.path) for visit in live.leaves]
    lines = [f"{file}: the Variables of the file and of the program are not the same."]
    lines += [f"  missing in the file: {path!r}" for path in lacks]
    hints = [did_you_mean(path, known) for path in extra[:_HINTS]]
    lines += [f"  unknown to the program: {path!r}.{hint}" for path, hint in zip_longest(extra, hints, fillvalue="")]
    try:
        present = live.graphdef.fingerprint
    except GraphError:
        present = None
    if fingerprint is not None and present is not None and fingerprint != present:
        lines.append(
            f"The file was saved from a program of another structure (fingerprint {str(fingerprint)[:12]}, here "
            f"{present[:12]}): it had {len(lacks)} Variables less and {len(extra)} more."
        )
    lines.append("Allow it with allow_missing=True, allow_extra=True, or both with strict=False.")
    return "\n".join(lines)
