"""One call of a module that declares skips: entry, body, completeness; how it ends is the matter of layers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.data import SymbolicDataModel
from synmod.errors import SkipError
from synmod.flow import leaves
from synmod.module import paths_below
from synmod.skip.generators import played
from synmod.skip.layers import Layer
from synmod.skip.namespace import Key
from synmod.skip.opening import layer_of
from synmod.skip.routes import routes_of
from synmod.skip.slots import LOCK, Slot
from synmod.skip.symbols import UNKNOWN, as_stashed, assumed, from_history, untyped
from synmod.skip.waiting import never_stashed, producing, wait_for

if TYPE_CHECKING:
    from synmod.module import DeclaredSkips, Module
    from synmod.scope import CallFrame


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
        skips = layer.skips
        assert skips is not None
        if frame.symbolic:
            _found_on_symbols(layer, skips, (args, dict(kwargs)))
        elif skips.asks and (lacking := _reserved(layer, skips)):
            await _entered(layer, skips, lacking)
        output = module.call(*args, **kwargs)
        if inspect.iscoroutine(output):  # nearly always, and asked at less cost than the rest
            output = await output
        elif inspect.isasyncgen(output):
            output = await played(output, layer)
        elif inspect.isawaitable(output):
            output = await output
        if len(layer.stashes_done) < len(skips.stash) or not layer.pops_done.issuperset(skips.required):
            raise _incomplete(layer, skips)
        return output

    def note(self, frame: CallFrame) -> None:
        """Let what runs in it be waited for."""
        _is_under_way(layer_of(frame))

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

    def note(self, frame: CallFrame) -> None:
        """Let what runs in it be waited for."""
        _is_under_way(layer_of(frame))

    def run(self, module: Module, frame: CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `call`, known as under way to those who wait for what is stashed in it."""
        self.note(frame)
        return module.call(*args, **kwargs)

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
    """The layer of a call that begins, of a module that declares skips."""
    layer = layer_of(frame)
    if layer.skips is not None:  # `call` is followed once more, on symbols
        layer.restart()
    _is_under_way(layer)
    record = module._record
    layer.skips = record.declaration.skips
    layer.isolated = record.isolated
    return layer


def _is_under_way(layer: Layer) -> None:
    """Let a call be known to those who wait for what is stashed in it."""
    layer.followed = True
    layer.run.running[layer] = None
    if layer.below is None and layer.base.is_given:  # it may have been read from JSON
        layer.base.adopt(routes_of(layer.frame.root).numbers)


async def _entered(layer: Layer, skips: DeclaredSkips, lacking: list[Key]) -> None:
    """Find what is not there yet, once a call that stashes it, and is under way, has ended.

    Raises:
        SkipError: It has not been stashed.
    """
    while lacking:
        with LOCK:
            lacking = _reserved(layer, skips)  # once more: what is awaited may have ended just now
            call = producing(layer, lacking) if lacking else None
            signal = None if call is None else wait_for(layer, call, lacking)
        if signal is not None:
            try:
                await signal.wait()
            finally:
                layer.run.waits.pop(layer, None)
        elif lacking:
            raise never_stashed(layer, lacking)


def _reserved(layer: Layer, skips: DeclaredSkips) -> list[Key]:
    """Reserve what is there; give what is not, and may not be absent."""
    isolated = layer.isolated
    lacking: list[Key] = []
    with LOCK:
        for name in skips.required:
            key = isolated.get(name), name
            if key not in layer.held and not layer.reserve(key):
                lacking.append(key)
        for name in skips.peeks:
            key = isolated.get(name), name
            slot = layer.find(key)
            if slot is not None:
                layer.peeked = {**layer.peeked, key: slot}
            elif name not in skips.optional:
                lacking.append(key)
    return lacking


def _found_on_symbols(layer: Layer, skips: DeclaredSkips, arguments: Any) -> None:
    """On symbols: what the lane has not is looked for in the history of the inputs, then taken as declared.

    Raises:
        SkipError: It is not declared, and may not be absent.
    """
    lacking = _reserved(layer, skips)
    lacking += [key for key in _keys(layer, skips.optional) if layer.find(key) is None and not layer.has_popped(key)]
    if not lacking:
        return
    inputs = [leaf for leaf in leaves(list(arguments)) if isinstance(leaf, SymbolicDataModel)]
    for key in lacking:
        name = key[1]
        may_be_absent = name in skips.optional
        slot = from_history(key, inputs, taken_too=not may_be_absent)
        if slot is None and not may_be_absent:
            slot = assumed(key, skips.schemas.get(name), skips.models.get(name))
            if slot is None:
                raise untyped(layer.label, name, "it has not been stashed before")
        if slot is not None and name in skips.pop:
            layer.hold(key, slot)
        if slot is not None and name in skips.peek:
            layer.peeked = {**layer.peeked, key: slot}


def _incomplete(layer: Layer, skips: DeclaredSkips) -> SkipError:
    """The error of a call that has not done all that it declares: first of what is not stashed."""
    word, left = "stash", sorted(skips.stash - layer.stashes_done)
    if not left:
        word, left = "pop", [name for name in skips.required if name not in layer.pops_done]
    done = "stashed" if word == "stash" else "popped"
    value = ", ..." if word == "stash" else ""
    return SkipError(
        f"{layer.label}: {', '.join(map(repr, left))} must be {done} but have not been, in this call. "
        f"Each call must await, or yield, every declared command: `{word}({left[0]!r}{value})`."
    )


def _assume(layer: Layer, pops: list[Key], stashes: Mapping[Key, Any]) -> None:
    """Do to the lane what a call that is not followed would do."""
    for key in pops:
        slot = layer.find(key)
        if slot is not None:
            layer.take(key, slot, [])
    for key, value in stashes.items():
        layer.put(key, Slot(value, layer.frame.path or layer.frame.name, replaces=True), [])


def _declared_value(skips: DeclaredSkips, key: Key) -> Any:
    """What a producer that is not followed leaves in the lane."""
    return as_stashed(UNKNOWN, skips.schemas.get(key[1]), skips.models.get(key[1]))


def _keys(layer: Layer, names: frozenset[str]) -> list[Key]:
    return [(layer.isolated.get(name), name) for name in sorted(names)]
