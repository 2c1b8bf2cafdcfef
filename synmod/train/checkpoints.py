"""Checkpoints: what a Trainer writes, as JSON files that are read and compared by eye.

Three files of one prefix: the program, the values of an epoch, and the states of the optimizer. Each is put in place
whole, and the values last, so a failure at any moment leaves the checkpoint before it whole.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from synmod.errors import LoadError, StateError, TrainerError
from synmod.leaves import Json, path_str
from synmod.lm import SharedModel
from synmod.module import Module
from synmod.saving import in_file, load, read_document, save, write_atomic, write_document
from synmod.tree import State, class_text, graphdef, iter_graph, state, update

from .optimizer import Optimizer

Values = Mapping[str, Json]
"""Values by path text."""

_EPOCH: Final = "%04d"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the files of one epoch hold.

    Attributes:
        epoch: Its number.
        program: The file of the program.
        params: Values of params and fixed Variables, by path text.
        aux: Values of the rest.
        states: Values of state Variables; empty where they were not saved.
        optimizer: What `read_optimizer` returned; None where it was not asked for.
    """

    epoch: int
    program: Path
    params: Values
    aux: Values
    states: Values
    optimizer: tuple[str, Values] | None = None


def _file(prefix: str | os.PathLike[str], ending: str) -> Path:
    """Return the path of one file of a prefix."""
    return Path(f"{os.fspath(prefix)}-{ending}.json")


def list_checkpoints(prefix: str | os.PathLike[str]) -> list[int]:
    """Return the epochs whose values were saved under a prefix, in order.

    Args:
        prefix: As in `Trainer.save_checkpoint`.

    Example:
        >>> list_checkpoints("no/such/folder/agent")
        []

    Source: MXNet's `prefix-0001.params`; differs: one looks instead of guessing.
    """
    folder, name = os.path.split(str(prefix))
    pattern = re.compile(re.escape(name) + r"-(\d{4,})\.json")
    try:
        names = os.listdir(folder or ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(found[1]) for each in names if (found := pattern.fullmatch(each)))


def latest_checkpoint(prefix: str | os.PathLike[str]) -> int | None:
    """Return the last epoch that was saved under a prefix; None where there is none.

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
    program: Module,
    params: State,
    aux: State,
    *,
    states: State | None = None,
    optimizer: Optimizer | None = None,
    keep: int | None = None,
) -> None:
    """Write the files of an epoch, the values last; then remove older epochs.

    Args:
        prefix: What the names of the files begin with.
        epoch: Its number.
        program: Its structure and config.
        params: Values of params and fixed Variables.
        aux: Values of the rest.
        states: Values of state Variables; None leaves them out.
        optimizer: Whose states are saved; None for none.
        keep: How many epochs stay, with this one; None for all.

    Raises:
        TrainerError: A number that is none.
        SaveError: Something cannot be saved, or a file cannot be written. The checkpoints before it are whole.
    """
    if type(epoch) is not int or epoch < 0:
        raise TrainerError(f"save_checkpoint: epoch is {epoch!r:.100}; give a whole number of at least 0.")
    if keep is not None and (type(keep) is not int or keep < 1):
        raise TrainerError(f"save_checkpoint: keep is {keep!r:.100}; give a whole number of at least 1, or None.")
    save(program, _file(prefix, "program"))
    of_optimizer = _file(prefix, f"{_EPOCH % epoch}.states")
    if optimizer is not None:
        write_optimizer(of_optimizer, optimizer)
    write_params(_file(prefix, _EPOCH % epoch), program, params, aux, states)
    if optimizer is None:
        of_optimizer.unlink(missing_ok=True)  # of an earlier run: it does not belong to these values
    if keep is not None:
        older = [each for each in list_checkpoints(prefix) if each < epoch]
        for each in older[: max(0, len(older) - keep + 1)]:
            _file(prefix, _EPOCH % each).unlink()
            _file(prefix, f"{_EPOCH % each}.states").unlink(missing_ok=True)


def write_params(
    path: str | os.PathLike[str], program: Module, params: State, aux: State, states: State | None = None
) -> None:
    """Write the file of an epoch's values.

    Raises:
        SaveError: It holds a key, is too large, or cannot be written; the file before it is whole.
    """
    sections: dict[str, Json] = {"params": params.to_json(), "aux": aux.to_json()}
    if states is not None:
        sections["states"] = states.to_json()
    write_atomic(path, write_document("checkpoint", sections, None, _models_of(program)))


def write_optimizer(path: str | os.PathLike[str], optimizer: Optimizer) -> None:
    """Write the file of an optimizer's states; errors of `write_params`."""
    sections = {"class": class_text(type(optimizer)), "state": state(optimizer).to_json()}
    write_atomic(path, write_document("optimizer", sections, None, _models_of(optimizer)))


def _models_of(module: Module) -> list[SharedModel]:
    """Return the language models whose keys must not stand in a file."""
    return [model for _, model in iter_graph(module, SharedModel)]


# -- reading -----------------------------------------------------------------------------------------------------------


def read_checkpoint(prefix: str | os.PathLike[str], epoch: int | None = None, *, optimizer: bool = False) -> Checkpoint:
    """Read the values of an epoch.

    Args:
        prefix: As in `write_checkpoint`.
        epoch: None for the last one.
        optimizer: Whether the states of the optimizer are read, too.

    Raises:
        LoadError: Files are missing, all of them named, with the epochs that there are; or one cannot be read.
    """
    known = list_checkpoints(prefix)
    wanted = (known[-1] if known else 0) if epoch is None else epoch
    program, values = _file(prefix, "program"), _file(prefix, _EPOCH % wanted)
    of_optimizer = _file(prefix, f"{_EPOCH % wanted}.states")
    missing = [each for each in (program, values, *([of_optimizer] if optimizer else [])) if not each.is_file()]
    if missing:
        raise LoadError(
            f"There is no {', no '.join(map(str, missing))}. Epochs saved under {os.fspath(prefix)!r}: "
            f"{', '.join(map(str, known)) or 'none'}."
        )
    params, aux, states = read_params(values)
    return Checkpoint(wanted, program, params, aux, states, read_optimizer(of_optimizer) if optimizer else None)


def read_params(path: str | os.PathLike[str]) -> tuple[Values, Values, Values]:
    """Return the values of params, of the rest, and of states, by path text.

    Raises:
        FileNotFoundError: There is no such file.
        LoadError: It is not the file of an epoch (contains 'Invalid param file').
    """
    try:
        with in_file(os.fspath(path)):
            found = read_document(path, None, "checkpoint")
            params, aux, states = (_values(found, section) for section in ("params", "aux", "states"))
    except LoadError as error:
        error.args = (f"Invalid param file {error}",)
        raise
    return params, aux, states


def read_optimizer(path: str | os.PathLike[str]) -> tuple[str, Values]:
    """Return the class of an optimizer, and its values by path text.

    Raises:
        FileNotFoundError: There is no such file.
        LoadError: It is not the file of an optimizer's states.
    """
    with in_file(os.fspath(path)):
        found = read_document(path, None, "optimizer")
        return str(found["class"]), _values(found, "state")


def _values(document: Mapping[str, Json], section: str) -> Values:
    """Return the values of a section, none where the file does not have it.

    Raises:
        LoadError: They are not an object.
    """
    found = document.get(section, {})
    if not isinstance(found, dict):
        raise LoadError(f"{section!r} is not an object of values by path.")
    return cast("dict[str, Any]", found)


def program_of(found: Checkpoint, program: Module | None, strict: bool, **options: Any) -> Module:
    """Return the program of a checkpoint: that of the file, or the one that is given, built as it was.

    Args:
        found: What `read_checkpoint` returned.
        program: Stands in for that of the file.
        strict: Whether it must have the same structure.
        **options: Those of `sm.load`.

    Raises:
        LoadError: The file of the program cannot be read.
        StateError: The structure differs; lists the paths.
    """
    if program is not None and program.built and not strict:
        return program
    saved: Module = load(found.program, **options)
    if program is None:
        return saved
    _build_as(program, saved)
    before, here = graphdef(saved), graphdef(program)
    differences = [path_str(path) or "the program itself" for path in before.diff(here)]
    if differences and strict:
        raise StateError(
            f"The program is not the one that {found.program} holds; it differs at: {', '.join(differences)}. "
            "strict=False takes the values that fit."
        )
    return program


def _build_as(program: Module, saved: Module) -> None:
    """Build modules on what those at the same paths of a saved program were built on."""
    configs = {path: module.get_build_config() for path, module in iter_graph(saved, Module)}
    while True:
        waiting = [(path, each) for path, each in iter_graph(program, Module) if configs.get(path) and not each.built]
        if not waiting:
            return
        path, module = waiting[-1]
        module.build_from_config(configs.pop(path))


def apply_values(program: Module, found: Checkpoint, strict: bool) -> tuple[str, ...]:
    """Write the values of a checkpoint into a program.

    Returns:
        The paths that do not fit; none if `strict`.

    Raises:
        StateError: A path or value does not fit, and it is `strict`.
    """
    values = {**found.params, **found.aux, **found.states}
    if strict:
        update(program, values)
        return ()
    unmatched: list[str] = []
    for path, value in values.items():
        try:
            update(program, {path: value})
        except StateError:
            unmatched.append(path)
    return tuple(unmatched)


def put_states(optimizer: Optimizer, stored: tuple[str, Values]) -> None:
    """Put what `read_optimizer` returned into an optimizer.

    Raises:
        StateError: It is of another class, or has other Variables; nothing changed.
    """
    saved, present = stored[0], class_text(type(optimizer))
    if saved != present:
        raise StateError(f"These are states of {saved}, and the optimizer is a {present}.")
    update(optimizer, stored[1])
