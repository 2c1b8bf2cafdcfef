"""Putting a module back: recorded attributes in recorded order, labels, graph; last what it was built on."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.errors import BuildError, LoadError
from synmod.leaves.aio import Suspended, drive
from synmod.lm import LanguageModel
from synmod.module import Module, read_build_config, seal
from synmod.saving.making.flow_restore import restored_flow
from synmod.saving.making.guarded import guarded
from synmod.saving.text.faults import load_fault
from synmod.tree import STATIC, Static, kind_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.saving.checking.plan import NodeEntry
    from synmod.saving.making.decode import Decoder

__all__ = ["PendingBuild", "finish", "finish_waiting", "restore_module"]


class PendingBuild(NamedTuple):
    """A module that is to be told what it was built on."""

    module: Module
    config: Any
    where: tuple[str | int, ...]


def restore_module(entry: NodeEntry, module: Module, decoder: Decoder) -> Iterator[PendingBuild]:
    """Give a module everything that its record holds beside the arguments.

    Yields:
        The build to come, if it was built.

    Raises:
        LoadError: The constructor makes a Variable that the record neither has nor names as removed.
    """
    where = ("graph", "nodes", entry.index)
    record, bookkeeping = entry.record, module._record
    removed: list[str] = record.get("removed", [])
    values = {key: decoder.decode(term, (*where, "attributes", key)) for key, term in entry.live_pairs()}
    present = dict(entry.impl.pairs(module))
    _check_no_more(entry, present, values, removed)
    for name in removed:
        _take_out(module, name)
    changed = [(key, value) for key, value in values.items() if key not in present or present[key] is not value]
    assert entry.impl.init is not None
    entry.impl.init(module, changed)
    _put_in_order(module, list(values))
    bookkeeping.removed = dict.fromkeys(removed)
    for label in ("name", "description", "trainable"):
        if label in record:
            setattr(bookkeeping, label, record[label])
    bookkeeping.isolated = {name: decoder.decode(term) for name, term in record.get("isolated", ())}
    if "flow" in record:
        bookkeeping.flow = restored_flow(entry, module, decoder)
        seal(module)
    if record["build"] is not None:
        yield PendingBuild(module, decoder.schema_json(record["build"], (*where, "build")), (*where, "build"))


def finish(builds: list[PendingBuild]) -> None:
    """Tell each module what it was built on.

    Raises:
        LoadError: Its class refuses, or waits for something (`await sm.aload(...)`).
    """
    for build in builds:
        waiting = _begun(build)
        if waiting is None:
            continue
        try:
            guarded(lambda: drive(waiting), build.where, type(build.module))  # noqa: B023  (called at once)
        except LoadError as error:
            if isinstance(error.__cause__, Suspended):
                raise _waits(build) from None
            raise
        _mark_built(build)


async def finish_waiting(builds: list[PendingBuild]) -> None:
    """Tell each module what it was built on, and wait where its class must."""
    for build in builds:
        waiting = _begun(build)
        if waiting is None:
            continue
        try:
            await waiting
        except Exception as error:
            raise load_fault(build.where, f"{type(error).__name__}: {error}") from error
        _mark_built(build)


def _begun(build: PendingBuild) -> Any:
    """Call `build_from_config`; gives the coroutine of an async one."""
    module, config, where = build
    module._record.restored = True
    try:
        result = guarded(lambda: module.build_from_config(config), where, type(module))
    except LoadError as error:
        if isinstance(error.__cause__, BuildError) and "aload" in str(error.__cause__):
            raise _waits(build) from error.__cause__
        raise
    if inspect.iscoroutine(result):
        return result
    _mark_built(build)
    return None


def _mark_built(build: PendingBuild) -> None:
    """Mark a module as built whose own `build_from_config` has not."""
    module, config, where = build
    record = module._record
    record.restored = False
    if record.built:
        return
    if type(module).get_build_config is Module.get_build_config:
        record.build_config = guarded(lambda: read_build_config(module, config), where, type(module))
        record.contract = None
    record.built = True
    seal(module)


def _waits(build: PendingBuild) -> LoadError:
    """The error for a class that must wait, in a plain load."""
    return load_fault(
        build.where,
        f"build_from_config of {type(build.module).__qualname__} waits for something, which plain code cannot: "
        "write `await sm.aload(path)` (or `await sm.aloads(text)`).",
    )


def _check_no_more(entry: NodeEntry, present: dict[Any, Any], values: dict[Any, Any], removed: list[str]) -> None:
    """Refuse a Variable that the constructor makes and that the record does not know: nobody has a value for it."""
    for key, value in present.items():
        if key in values or key in removed or isinstance(value, Static | LanguageModel):
            continue
        if kind_of(value) == STATIC:
            continue
        if any(visit.kind == "variable" for visit in walk(value)):
            raise load_fault(
                ("graph", "nodes", entry.index, "attributes"),
                f"{entry.cls.__qualname__} makes a Variable at {key!r} that the file does not have: the class has "
                "changed. Override from_config, which sees the old arguments.",
            )


def _take_out(module: Module, name: str) -> None:
    """Take out an attribute that was removed before saving, where the constructor has made it again."""
    module._record.forget(name)
    if name in vars(module):
        del vars(module)[name]
    elif name in dict(module._record.declaration.slots):
        try:
            object.__delattr__(module, name)
        except AttributeError:
            return


def _put_in_order(module: Module, recorded: list[Any]) -> None:
    """Bring the recorded attributes into recorded order, after what else there is."""
    attributes = vars(module)
    wanted = [key for key in recorded if key in attributes]
    known = set(wanted)
    if [key for key in attributes if key in known] == wanted:
        return
    items = [item for item in attributes.items() if item[0] not in known]
    items += [(key, attributes[key]) for key in wanted]
    attributes.clear()
    attributes.update(items)
