"""Checkpoints: the JSON files of a Trainer, made to be read and compared by people.

Three files of one prefix: the program, the values of an epoch, and the states of the optimizer. Once all are written,
each is put in place whole, the values last, so a failure at any moment leaves the checkpoint before it whole.
"""

import os
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias, cast

from synmod import data, errors, leaves, lm, module as modules, registry, saving, tree

from .optimizer import Optimizer
from .runs import models_of

Values: TypeAlias = Mapping[str, leaves.Json]
"""Values by path text."""
Stored: TypeAlias = tuple[str, Values]
"""The class of an optimizer, and its values."""


def _files(prefix: str | os.PathLike[str], epoch: int) -> tuple[Path, Path, Path]:
    """Return the files of a prefix: the program, the values of an epoch, and the states of the optimizer."""
    stem = leaves.path_text(prefix)
    return Path(f"{stem}-program.json"), Path(f"{stem}-{epoch:04d}.json"), Path(f"{stem}-{epoch:04d}.states.json")


def list_checkpoints(prefix: str | os.PathLike[str]) -> list[int]:
    """Return the epochs whose values were saved under a prefix, in order.

    Args:
        prefix: As in `Trainer.save_checkpoint`.

    Example:
        >>> list_checkpoints("no/such/folder/agent")
        []

    Source: MXNet's `prefix-0001.params`; differs: the folder is listed.
    """
    folder, name = os.path.split(leaves.path_text(prefix))
    pattern = re.compile(re.escape(name) + r"-(\d{4,})\.json")
    return sorted(int(match[1]) for file in Path(folder).glob("*.json") if (match := pattern.fullmatch(file.name)))


def latest_checkpoint(prefix: str | os.PathLike[str]) -> int | None:
    """Return the last epoch that was saved under a prefix; None for no epoch.

    Args:
        prefix: As in `Trainer.save_checkpoint`.

    Example:
        >>> latest_checkpoint("no/such/folder/agent") is None
        True

    Source: TensorFlow's `latest_checkpoint`.
    """
    return max(list_checkpoints(prefix), default=None)


# -- writing -----------------------------------------------------------------------------------------------------------


def write_checkpoint(
    prefix: str | os.PathLike[str],
    epoch: int,
    program: modules.Module,
    params: tree.State,
    aux: tree.State,
    states: tree.State | None = None,
    optimizer: Optimizer | None = None,
    keep: int | None = None,
    models: Iterable[lm.SharedModel] | None = None,
    initial_values: tree.State | None = None,
) -> None:
    """Write the files of an epoch, the values last; then remove older epochs.

    Args:
        prefix: The beginning of the names of the files.
        epoch: Its number.
        program: Its structure and config.
        params: Values of params and fixed Variables.
        aux: Values of the rest.
        states: Values of state Variables; None leaves them out.
        optimizer: Whose states are saved; None for none.
        keep: How many epochs stay, with this one; None for all.
        models: The models whose keys must not be in the files; None for those of the program.
        initial_values: The values in the file of the program, which is the same for all epochs; None for those it has.

    Raises:
        TrainerError: `epoch` or `keep` is not such a number.
        SaveError: Something cannot be saved, or a file cannot be written. The files before it are whole.
    """
    leaves.check_int("save_checkpoint: epoch", epoch, 0, error=errors.TrainerError)
    if keep is not None:
        leaves.check_int("save_checkpoint: keep", keep, error=errors.TrainerError)
    models = models_of(program) if models is None else models
    of_program, of_values, of_optimizer = _files(prefix, epoch)
    with nullcontext() if initial_values is None else tree.using(program, initial_values):
        texts = {of_program: saving.dumps(program)}
    if optimizer is not None:
        texts[of_optimizer] = optimizer_text(optimizer, models)
    texts[of_values] = values_text(params, aux, states, models)
    with _whole(of_optimizer, *texts), ExitStack() as files:
        for put in [files.enter_context(leaves.stage_file(file, text)) for file, text in texts.items()]:
            put()
        if optimizer is None:
            of_optimizer.unlink(missing_ok=True)  # of an earlier run: it does not belong to these values
    if keep is not None:
        older = [number for number in list_checkpoints(prefix) if number < epoch]
        for number in older[: max(0, len(older) - keep + 1)]:
            for file in _files(prefix, number)[1:]:
                file.unlink(missing_ok=True)


@contextmanager
def _whole(*files: Path) -> Generator[None]:
    """Put files back as they were where the block fails: an epoch that is saved again is the former or the new one."""
    before = {file: file.read_bytes() for file in files if file.exists()}
    try:
        yield
    except BaseException:
        for file in files:
            if file not in before:
                file.unlink(missing_ok=True)
            elif not file.exists() or file.read_bytes() != before[file]:
                saving.write_atomic(file, before[file])
        raise


def _path_of(where: Sequence[str | int]) -> str:
    """Return the path of the Variable at a place of a file."""
    return "/".join(map(str, where[1:]))


def values_text(
    params: tree.State, aux: tree.State, states: tree.State | None, models: Iterable[lm.SharedModel]
) -> str:
    """Return the text of the file of an epoch's values (SaveError: it holds a key, or is too large)."""
    parts = {"params": params, "aux": aux, "states": states}
    sections = {name: part.to_json() for name, part in parts.items() if part is not None}
    return saving.write_document("checkpoint", sections, None, models, _path_of)


def optimizer_text(optimizer: Optimizer, models: Iterable[lm.SharedModel]) -> str:
    """Return the text of the file of an optimizer's states; errors of `values_text`."""
    sections = {"class": tree.class_text(type(optimizer)), "state": tree.state(optimizer).to_json()}
    return saving.write_document("optimizer", sections, None, models, _path_of)


# -- reading -----------------------------------------------------------------------------------------------------------


def load_checkpoint(
    prefix: str | os.PathLike[str],
    epoch: int | None,
    optimizer: bool,
    program: modules.Module | None,
    strict: bool,
    **options: Any,
) -> tuple[modules.Module, Values, tuple[str, ...], Stored | None]:
    """Return a program, the values of an epoch for it, the paths that do not fit, and what `read_optimizer` returns.

    Args:
        prefix: As in `write_checkpoint`.
        epoch: None for the last one.
        optimizer: Whether the states of the optimizer are read, too.
        program: For which the values are, in place of that of the file; it is built as that one was.
        strict: Whether `program` must have the same structure; else values that do not fit are left out.
        **options: Those of `sm.load`.

    Raises:
        LoadError: Files are missing (names all of them, and the epochs that exist), or one cannot be read.
        StateError: The structure differs, and it is `strict`; lists the paths.
    """
    epochs = list_checkpoints(prefix)
    number = (epochs[-1] if epochs else 0) if epoch is None else epoch
    files = _files(prefix, number)
    missing = [str(file) for file in files[: 3 if optimizer else 2] if not file.is_file()]
    if missing:
        raise errors.LoadError(
            f"There is no {', no '.join(missing)}. Epochs saved under {os.fspath(prefix)!r}: "
            f"{', '.join(map(str, epochs)) or 'none'}."
        )
    values, stored = read_params(files[1]), read_optimizer(files[2]) if optimizer else None
    loaded = _program_of(files[0], program, strict, **options)
    schemas = {path: variable.schema for path, variable in tree.variables(loaded).items()}
    unmatched = [
        path for path, value in values.items() if path not in schemas or not data.is_valid(schemas[path], value)
    ]
    values = {path: value for path, value in values.items() if strict or path not in unmatched}
    return loaded, values, tuple(unmatched), stored


def read_params(path: str | os.PathLike[str]) -> Values:
    """Return the values of params, of the rest, and of states, by path text.

    Raises:
        FileNotFoundError: The file does not exist.
        LoadError: It is not the file of an epoch (contains 'Invalid param file').
    """
    try:
        sections = _read(path, "checkpoint", "params", "aux", "states")
    except errors.LoadError as error:
        error.args = (f"Invalid param file {error}",)
        raise
    return {**sections["params"], **sections["aux"], **sections.get("states", {})}


def read_optimizer(path: str | os.PathLike[str]) -> Stored:
    """Return the class of an optimizer, and its values by path text.

    Raises:
        FileNotFoundError: The file does not exist.
        LoadError: It is not the file of an optimizer's states.
    """
    sections = _read(path, "optimizer", "state")
    return str(sections["class"]), sections["state"]


def _read(path: str | os.PathLike[str], kind: str, *of_values: str) -> dict[str, Any]:
    """Return the sections of a file, those of values by path being objects (LoadError)."""
    with saving.in_file(path):
        sections = saving.read_document(path, None, kind)
        for section in of_values:
            if not isinstance(sections.get(section, {}), dict):
                raise errors.LoadError(f"{section!r} is not an object of values by path.")
    return sections


def _program_of(file: Path, program: modules.Module | None, strict: bool, **options: Any) -> modules.Module:
    """Return the program of a file, or the one that is given, built as that one was; errors of `load_checkpoint`."""
    if program is not None and program.built and not strict:
        return program
    if program is not None and not options.get("language_models"):
        options = {**options, "language_models": _models_by_name(file, program)}
    saved: modules.Module = saving.load(file, **options)
    if program is None:
        return saved
    _build_as(program, saved)
    differences = [
        leaves.path_str(path) or "the program itself" for path in tree.graphdef(saved).diff(tree.graphdef(program))
    ]
    if differences and strict:
        raise errors.StateError(
            f"The program is not the one that {file} holds; it differs at: {', '.join(differences)}. "
            "strict=False takes the values that fit."
        )
    return program


def _models_by_name(file: Path, program: modules.Module) -> dict[str, lm.SharedModel]:
    """Return the models of a program that a file only names, since their classes are not registered: doubles."""
    names: Any = saving.read_document(file, None, "program")["language_models"]
    models = [model for _, model in tree.iter_graph(program, lm.SharedModel)]
    unknown = [model for model in models if registry.id_of(type(cast("object", model))) is None]
    return {model.name: model for model in unknown if model.name in names}


def _build_as(program: modules.Module, saved: modules.Module) -> None:
    """Build modules on what those at the same paths of a saved program were built on."""
    configs = {path: module.get_build_config() for path, module in tree.iter_graph(saved, modules.Module)}
    while True:
        pairs = tree.iter_graph(program, modules.Module)
        waiting = [(path, module) for path, module in pairs if configs.get(path) and not module.built]
        if not waiting:
            return
        path, module = waiting[-1]
        module.build_from_config(configs.pop(path))


def put_states(optimizer: Optimizer, stored: Stored) -> None:
    """Put what `read_optimizer` returned into an optimizer.

    Raises:
        StateError: It is of another class, or has other Variables; nothing changed.
    """
    saved, present = stored[0], tree.class_text(type(optimizer))
    if saved != present:
        raise errors.StateError(f"These are states of {saved}, and the optimizer is a {present}.")
    tree.update(optimizer, stored[1])
