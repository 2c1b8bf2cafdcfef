"""One call of a module that declares skips: entry, body, completeness; how it ends is the matter of layers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.data import SymbolicDataModel
from synmod.errors import SkipError
from synmod.flow.nest import leaves
from synmod.module.paths import paths_below
from synmod.skip.generators import played
from synmod.skip.layers import Layer, layer_of
from synmod.skip.namespace import Key
from synmod.skip.routes import routes_of
from synmod.skip.skip_frame import SkipFrame
from synmod.skip.slots import LOCK, Slot
from synmod.skip.symbols import UNKNOWN, as_stashed, assumed, from_history, untyped
from synmod.skip.waiting import never_stashed, producing, wait_for

if TYPE_CHECKING:
    from synmod.module import Module
    from synmod.module.skips import DeclaredSkips
    from synmod.scope.frame import CallFrame


class Skippable:
    """Runs the calls of modules that declare skips."""

    __slots__ = ()

    async def run(self, module: Module, frame: CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Reserve what is to be popped, run `call`, and hold it to its declaration.

        Raises:
            SkipError: A value has not been stashed; `call` has not done what it declares.
            ArgumentError: An async generator yields what it must not.
        """
        layer = _begun(module, frame)
        skips = module._record.declaration.skips
        if skips is not None and (skips.required or skips.peeks):
            await _entered(layer, args, kwargs)
        output = module.call(*args, **kwargs)
        if inspect.isasyncgen(output):
            output = await played(output, layer)
        elif inspect.isawaitable(output):
            output = await output
        _check_complete(layer)
        return output

    def assume(self, module: Module, frame: CallFrame) -> None:
        """Stash and pop what is declared."""
        layer = _begun(module, frame)
        assert layer.skips is not None
        skips = layer.skips
        stashes = {key: _declared_value(skips, key) for key in _keys(layer, skips.stash)}
        _assume(layer, _keys(layer, skips.pop), stashes)


class Carrier:
    """Runs the calls of modules that declare nothing themselves, and have modules below them that do."""

    __slots__ = ()

    async def run(self, module: Module, frame: CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `call`, known as under way to those who wait for what is stashed in it."""
        layer = layer_of(frame)
        layer.followed = True
        _learn(layer)
        layer.run.running[layer] = None
        output = module.call(*args, **kwargs)
        return await output if inspect.isawaitable(output) else output

    def assume(self, module: Module, frame: CallFrame) -> None:
        """Stash what is stashed below and not popped there; pop what is popped below and not stashed there."""
        below = list(paths_below(module).carried.values())
        popped = [key for each in below for key in each.keys(each.skips.pop)]
        stashed = {key: _declared_value(each.skips, key) for each in below for key in each.keys(each.skips.stash)}
        layer = layer_of(frame)
        layer.followed = True
        known = layer.handed
        left = {
            key: known[key].value if value is UNKNOWN and key in known else value
            for key, value in stashed.items()
            if key not in popped
        }
        _assume(layer, [key for key in popped if key not in stashed], left)


SKIPPABLE = Skippable()
CARRIER = Carrier()


def _begun(module: Module, frame: CallFrame) -> Layer:
    """The layer of a call that begins."""
    layer = layer_of(frame)
    if layer.skips is not None:  # `call` is followed once more, on symbols
        layer.drop()
        layer.stashes_done = layer.pops_done = frozenset()
    _learn(layer)
    layer.followed = True
    layer.skips = module._record.declaration.skips
    layer.isolated = module._record.isolated
    layer.run.running[layer] = None
    return layer


def _learn(layer: Layer) -> None:
    """Let a frame that was read from JSON find the Namespaces of the program that runs on it."""
    below = layer.below
    if type(below) is SkipFrame and below.is_given:
        below.adopt(routes_of(layer.frame.root).numbers)


async def _entered(layer: Layer, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Reserve every declared pop and look up every peek; wait where a call that stashes one is under way."""
    assert layer.skips is not None
    while True:
        with LOCK:
            lacking = _reserved(layer, layer.skips)
            call = None if not lacking or layer.frame._symbolic else producing(layer, lacking)
            signal = None if call is None else wait_for(layer, call, lacking)
        if not lacking:
            return
        if layer.frame._symbolic:
            _find_elsewhere(layer, layer.skips, lacking, (args, dict(kwargs)))
            return
        if signal is None:
            raise never_stashed(layer, lacking)
        try:
            await signal.wait()
        finally:
            layer.run.waits.pop(layer, None)


def _reserved(layer: Layer, skips: DeclaredSkips) -> list[Key]:
    """Reserve what is there; give what is not, and may not be absent."""
    isolated = layer.isolated
    lacking: list[Key] = []
    for name in skips.required:
        key = isolated.get(name), name
        if key not in layer.held and not layer.reserve(key):
            lacking.append(key)
    for name in skips.peeks:
        key = isolated.get(name), name
        slot = layer.find(key)
        if slot is not None:
            layer.peeked = {**layer.peeked, key: slot}
        elif key[1] not in skips.optional:
            lacking.append(key)
    return lacking


def _find_elsewhere(layer: Layer, skips: DeclaredSkips, lacking: list[Key], arguments: Any) -> None:
    """On symbols: look in the history of the inputs, then take what is declared."""
    inputs = [leaf for leaf in leaves(list(arguments)) if isinstance(leaf, SymbolicDataModel)]
    for key in lacking:
        name = key[1]
        slot = from_history(key, inputs) or assumed(key, skips.schemas.get(name), skips.models.get(name))
        if slot is None:
            raise untyped(layer.label, name, "it has not been stashed before")
        if name in skips.pop:
            layer.held = {**layer.held, key: slot}
        else:
            layer.peeked = {**layer.peeked, key: slot}


def _check_complete(layer: Layer) -> None:
    """Hold a call to its declaration.

    Raises:
        SkipError: Something was not stashed, or not popped.
    """
    assert layer.skips is not None
    skips = layer.skips
    if len(layer.stashes_done) == len(skips.stash) and layer.pops_done.issuperset(skips.required):
        return
    for names, done, word in (
        (skips.stash, layer.stashes_done, "stashed"),
        (skips.required, layer.pops_done, "popped"),
    ):
        left = sorted(set(names) - done)
        if left:
            raise SkipError(
                f"{layer.label}: {', '.join(map(repr, left))} must be {word} but have not been, in this call. "
                f"Each call must await, or yield, every declared command: `{word[:-3]}({left[0]!r}"
                f"{', ...' if word == 'stashed' else ''})`."
            )


def _assume(layer: Layer, pops: list[Key], stashes: Mapping[Key, Any]) -> None:
    """Do to the lane what a call that is not followed would do."""
    for key in pops:
        slot = layer.find(key)
        if slot is not None:
            layer.take(key, slot, [])
    for key, value in stashes.items():
        layer.stashed[key] = Slot(value, layer.frame.path or layer.frame.name, replaces=True)


def _declared_value(skips: DeclaredSkips, key: Key) -> Any:
    """What a producer that is not followed leaves in the lane."""
    return as_stashed(UNKNOWN, skips.schemas.get(key[1]), skips.models.get(key[1]))


def _keys(layer: Layer, names: frozenset[str]) -> list[Key]:
    return [(layer.isolated.get(name), name) for name in sorted(names)]
