"""Waiting for a producer that runs at the same time: nowhere else does a skip wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synmod.errors import SkipError
from synmod.leaves.aio import Signal
from synmod.scope import nearest_live
from synmod.skip.namespace import Key, shown
from synmod.skip.routes import routes_of

if TYPE_CHECKING:
    from synmod.scope import CallFrame
    from synmod.skip.layers import Layer


def producing(layer: Layer, lacking: Sequence[Key]) -> Layer | None:
    """The call under way that is to stash a missing value: the outermost one that does not contain the consumer."""
    stashed_at = routes_of(layer.frame.root).stashed_at
    around = _around(layer.frame)
    for call in layer.run.running:
        above = nearest_live(call.frame.parent)
        if call.frame in around or above is None or above not in around:
            continue
        keys = stashed_at.get(id(call.frame.owner), ())
        if any(key in keys for key in lacking):
            return call
    return None


def wait_for(layer: Layer, call: Layer, lacking: Sequence[Key]) -> Signal:
    """Note that a consumer waits for the end of a call, and give the signal of that.

    Raises:
        SkipError: What runs inside that call waits, in the end, for the consumer.
    """
    circle = _circle(layer, call)
    if circle is not None:
        names = ", ".join(each.label for each in (layer, *circle))
        raise SkipError(
            f"{layer.label}: {', '.join(map(shown, lacking))} cannot come: the consumers {names} wait for each other. "
            "Let one of the producers run first."
        )
    signal = Signal()
    call.watchers += (signal,)
    layer.run.waits[layer] = call
    return signal


def never_stashed(layer: Layer, lacking: Sequence[Key]) -> SkipError:
    """The error of a consumer whose values are not there."""
    producers = routes_of(layer.frame.root).producers
    said: list[str] = []
    for key in lacking:
        slot = layer.find(key)
        known = [path for path in producers.get(key, ()) if path != layer.frame.path]
        elsewhere = layer.base.unplaced(key[1])
        if slot is not None and slot.taker is not None:
            said.append(f"{shown(key)} is being popped by {slot.taker.label}.")
        elif known:
            said.append(f"{', '.join(map(repr, known))} stashes {shown(key)}: it must have run before.")
        elif elsewhere:
            said.append(f"The frame has {', '.join(elsewhere)}, and this program no Namespace of that name and number.")
        else:
            said.append(f"No module of this program stashes {shown(key)}: declare one with @skippable(stash=...).")
    return SkipError(f"{layer.label}: {', '.join(map(shown, lacking))} has not been stashed. {' '.join(said)}")


def _around(frame: CallFrame | None) -> set[CallFrame]:
    """A call and all calls around it."""
    around: set[CallFrame] = set()
    while frame is not None:
        around.add(frame)
        frame = frame.parent
    return around


def _circle(layer: Layer, call: Layer) -> list[Layer] | None:
    """The consumers inside `call` that wait, one for the other, for a call that contains `layer`; None without such."""
    mine = _around(layer.frame)
    pending: list[tuple[Layer, list[Layer]]] = [(call, [])]
    seen: set[Layer] = set()
    while pending:
        awaited, way = pending.pop()
        for consumer, its_call in layer.run.waits.items():
            if consumer in seen or awaited.frame not in _around(consumer.frame):
                continue
            seen.add(consumer)
            if its_call.frame in mine:
                return [*way, consumer]
            pending.append((its_call, [*way, consumer]))
    return None
