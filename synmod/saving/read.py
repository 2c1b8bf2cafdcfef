"""Loading: from a file to a live program (`loader` makes it), and from a file to the Variables of one."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from pydantic_core import PydanticSerializationError, to_json

from synmod import lm, retrieval
from synmod.errors import ArgumentError, GraphError, StateError
from synmod.leaves import Json, checks_keywords, did_you_mean, escape_step, path_str
from synmod.tree import GraphDef, Visit, record, update, walk

from .document import FileLimits, check, check_record, in_file, load_error, read_document, read_json
from .loader import Loader
from .names import validate_value

LanguageModels = Mapping[str, lm.SharedModel | str] | lm.LanguageModel | str | None
Indexes = Mapping[str, retrieval.Index] | retrieval.Index | None

_SHOWN = 20
_LONGEST = 1_000

# -- programs ----------------------------------------------------------------------------------------------------------


@checks_keywords
def loads(
    text: str | bytes,
    *,
    language_models: LanguageModels = None,
    indexes: Indexes = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Return the program of a text. It is as safe as reading the text: only registered classes resolve.

    Args:
        text: The text that `dumps` returned, as str or UTF-8 bytes.
        language_models: Live models or model strings by saved name, or by a text that the file holds as an argument or
            attribute; or one for all. What is not mapped is made from its record or text, with keys found in the
            reader's own environment at call time, if it is the name of a model as its provider spells them.
        indexes: Live indexes of `Retrieve` by saved name, or one for all; an index that is not mapped is its name
            alone, and its search a ConfigError.
        custom_objects: Classes and functions by id or bare name, for this call; None for the id of a data
            model takes the schema of the file.
        limits: The limits of the text.

    Returns:
        The program; `dumps` of it is the same text.

    Raises:
        FormatError: It is not a file of a format that this release reads, or names a model that no file may choose.
        LoadError: Something in it cannot be loaded here; `.where` is the JSON Pointer, `.file` the file.
        RegistryError: An object in `custom_objects` is of a kind that files may not name.
        ArgumentError, ConfigError: An argument is of another kind.

    Example:
        >>> import synmod as sm
        >>> sm.loads(sm.dumps(sm.Sequential([])))
        Sequential(members=[])

    Source: Keras `load_model`, after its CVEs: one format, one loader, no option that widens what resolves.
    """
    if isinstance(text, str):
        data = text.encode(errors="surrogatepass")  # a lone surrogate is not UTF-8, and refused below
    elif isinstance(text, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
        data = bytes(cast("Any", text))
    else:
        raise ArgumentError(f"loads takes str or UTF-8 bytes, not {type(text).__name__}; for a path, use sm.load.")
    sections = read_document(data, limits, "program")
    return _program(sections, language_models, custom_objects, indexes)


@checks_keywords
def load(
    path: str | os.PathLike[str],
    *,
    language_models: LanguageModels = None,
    indexes: Indexes = None,
    custom_objects: Mapping[str, Any] | None = None,
    limits: FileLimits | None = None,
) -> Any:
    """Load a program from its file.

    Args:
        path: The file.
        language_models: As in `loads`.
        indexes: As in `loads`.
        custom_objects: As in `loads`.
        limits: As in `loads`.

    Returns:
        The program.

    Raises:
        FileNotFoundError: The file does not exist.
        FormatError, LoadError, RegistryError, ArgumentError, ConfigError: As in `loads`; a pipe or device is a
            LoadError too.

    Example:
        >>> import synmod as sm, tempfile
        >>> sm.load(sm.save(sm.Sequential([]), tempfile.mkdtemp() + "/empty.json"))
        Sequential(members=[])

    Source: as `loads`.
    """
    with in_file(path):
        sections = read_document(path, limits, "program")
        return _program(sections, language_models, custom_objects, indexes)


def decode_graphdef(
    json: Json, language_models: LanguageModels, custom_objects: Mapping[str, Any] | None
) -> GraphDef[Any]:
    """Return a graph definition under the rules of a load: its modules are made by their constructors.

    Raises:
        ArgumentError: It is not what `to_json` returned.
        FormatError, LoadError: It cannot be read.
    """
    try:
        text = to_json(json)
    except PydanticSerializationError as error:
        raise ArgumentError(f"GraphDef.from_json takes the JSON that to_json returned: {error}.") from None
    sections = check_record(read_json(text), (), ("graph", "data_models", "language_models"))
    return record(_program(sections, language_models, custom_objects)).graphdef


def _program(
    sections: dict[str, Json], language_models: Any, custom_objects: Mapping[str, Any] | None, indexes: Any = None
) -> Any:
    """Return the program of the sections of a file.

    Args:
        sections: `graph`, `data_models`, `language_models`, and `state` where values are to be loaded too.
        language_models: The caller's language models by saved name, or one for all.
        custom_objects: The caller's objects by id or bare name.
        indexes: The caller's indexes by saved name, or one for all.

    Raises:
        FormatError: A field is unknown or missing, or a term or index is invalid.
        LoadError: Something cannot be loaded here, or the code of a class refuses what it is given.
    """
    loader = Loader(sections, custom_objects, language_models, indexes)
    try:
        with lm.text_rules(loader.supplied):
            root = loader.make()
            if "state" in sections:
                _apply(root, sections["state"])
    except GraphError as error:  # such as an empty key on the way to a node
        raise load_error(("graph",), str(error)) from error
    return root


# -- values ------------------------------------------------------------------------------------------------------------


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


@checks_keywords
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
        targets, missing_visits = _find_variables(node, values)
        missing = tuple(path_str(visit.path) for visit in missing_visits)
        unknown = tuple(name for name in values if name not in targets)
        lacks = missing if strict and not allow_missing else ()
        extra = unknown if strict and not allow_extra else ()
        if lacks or extra:
            hint = "\nAllow it with allow_missing=True, allow_extra=True, or both with strict=False."
            raise StateError(_misfit(lacks, extra) + hint)
        update(node, {name: values[name] for name in targets})
    return LoadReport(tuple(targets), missing, unknown)


def _apply(root: Any, state: dict[str, Json]) -> None:
    """Set the values of a program that was just made: one for each Variable, and nothing else.

    Raises:
        LoadError: The paths or values do not fit.
    """
    targets, missing_visits = _find_variables(root, state)
    unknown = [path for path in state if path not in targets]
    if unknown or missing_visits or len({id(variable) for variable in targets.values()}) != len(targets):
        missing = [path_str(visit.path)[:_LONGEST] for visit in missing_visits[:_SHOWN]]
        raise load_error(("state", *unknown[:1]), _misfit(missing, [path[:_LONGEST] for path in unknown[:_SHOWN]]))
    for path, variable in targets.items():
        value = validate_value(variable.schema, state[path], ("state", path))
        variable.restore((value, 0, variable.full_metadata, variable.schema))


def _find_variables(root: Any, paths: Iterable[str]) -> tuple[dict[str, Any], list[Visit]]:
    """Return the Variables that path texts lead to, aliases followed, and visits of the others.

    Paths are followed step by step and never listed, since those of a deep graph may be longer than its file.
    """
    below: dict[tuple[int, str], Visit] = {}
    first: dict[int | None, Visit] = {}
    top: Visit | None = None
    for visit in walk(root):
        top = top or visit
        if visit.first and visit.index is not None:
            first[visit.index] = visit
        below[id(visit.parent), escape_step(visit.step)] = visit
    targets: dict[str, Any] = {}
    for path in paths:
        visit = top
        for step in path.split("/") if path else ():
            visit = visit and below.get((id(first.get(visit.index, visit)), step))
        if visit is not None and visit.kind == "variable":
            targets[path] = visit.value
    matched = {id(variable) for variable in targets.values()}
    return targets, [visit for visit in first.values() if visit.kind == "variable" and id(visit.value) not in matched]


def _misfit(missing: Iterable[str], unknown: Iterable[str]) -> str:
    """Return a message with the paths that do not fit."""
    lines = ["the paths in the file do not match the program's Variables."]
    lines += [f"  missing in the file: {path!r}" for path in missing]
    lines += [f"  unknown to the program: {path!r}.{did_you_mean(path, missing)}" for path in unknown]
    return "\n".join(lines)
