"""From outputs back to inputs: the wiring of a program, found once, from what symbols remember.

The search is depth first from the outputs, arguments left to right, producers before consumers; it depends on the
graph alone, uses no recursion and is linear in the number of edges.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from synmod.data import SymbolicDataModel
from synmod.errors import GraphError
from synmod.flow.steps import Origin, Step
from synmod.leaves.nests import NestPath, leaves, leaves_with_path

_WAY_SHOWN = 12  # steps of a way that an error shows; the middle of a longer one is left out

Key = tuple[int, int]
"""Identity of a symbol: its step and output number, or itself where it has none."""


def key_of(symbol: SymbolicDataModel) -> Key:
    """Give the identity of a symbol; it holds as long as the symbol lives."""
    origin: Origin | None = symbol._origin
    if origin is None or origin.step is None:
        return id(symbol), -1
    return id(origin.step), origin.index


def step_of(symbol: SymbolicDataModel) -> Step | None:
    """Give the step that made a symbol, None for one that starts a graph."""
    origin: Origin | None = symbol._origin
    return None if origin is None else origin.step


def steps_between(inputs: Any, outputs: Any) -> tuple[Step, ...]:
    """Find the steps that lead from inputs to outputs.

    Args:
        inputs: A nest of symbols, which cut the graph: what made them is left out.
        outputs: A nest of symbols.

    Returns:
        The steps, depth first from the outputs, arguments left to right, producers before consumers.

    Raises:
        GraphError: Lists every fault: an input or output that is no symbol, the same symbol twice in `inputs`, a
            source that the outputs need but `inputs` lack.

    Example:
        >>> steps_between(x, x + y)  # doctest: +SKIP
        GraphError: the source 'y' is not among the inputs; the way from it: 'y' -> concat -> the output

    Source: Keras functional models; differs: iterative, all faults at once.
    """
    faults = _not_symbols("input", inputs) + _not_symbols("output", outputs)
    cuts: set[Key] = set()
    for symbol in leaves(inputs):
        if isinstance(symbol, SymbolicDataModel):
            if key_of(symbol) in cuts:
                faults.append(f"the symbol {symbol._label!r} is twice in `inputs`: name each Input once.")
            cuts.add(key_of(symbol))
    search = _Search(cuts)
    for path, symbol in leaves_with_path(outputs):
        if isinstance(symbol, SymbolicDataModel):
            search.visit(symbol, "the output" if not path else f"output {_place(path)}")
    faults += search.missing
    if faults:
        heading = "A program cannot be made of these inputs and outputs"
        raise GraphError(f"{heading}: {faults[0]}" if len(faults) == 1 else "\n- ".join([f"{heading}:", *faults]))
    return tuple(search.order)


class _Search:
    """The depth-first search: what has been seen, what came out, what is missing."""

    def __init__(self, cuts: set[Key]) -> None:
        self.cuts = cuts
        self.order: list[Step] = []
        self.missing: list[str] = []
        self.seen: set[int] = set()
        self.sources: set[Key] = set()

    def visit(self, symbol: SymbolicDataModel, goal: str) -> None:
        """Add all steps that `symbol` needs and that are not there yet."""
        open_steps: list[tuple[Step, Iterator[SymbolicDataModel]]] = []
        step = self._enter(symbol, open_steps, goal)
        while step is not None or open_steps:
            if step is not None:
                open_steps.append((step, iter(step.inputs)))
            current, rest = open_steps[-1]
            for needed in rest:
                step = self._enter(needed, open_steps, goal)
                if step is not None:
                    break
            else:
                step = None
                open_steps.pop()
                self.order.append(current)

    def _enter(self, symbol: SymbolicDataModel, open_steps: list[Any], goal: str) -> Step | None:
        """Give the step behind a symbol if it must still be searched; note a source that nobody gives."""
        key = key_of(symbol)
        if key in self.cuts:
            return None
        step = step_of(symbol)
        if step is None:
            if key not in self.sources:
                self.sources.add(key)
                self.missing.append(_missing(symbol, [open_step.name for open_step, _ in reversed(open_steps)], goal))
            return None
        if id(step) in self.seen:
            return None
        self.seen.add(id(step))
        return step


def _missing(symbol: SymbolicDataModel, way: list[str], goal: str) -> str:
    """Say which source lacks, and how the outputs come to need it."""
    if len(way) > _WAY_SHOWN:
        left_out = len(way) - _WAY_SHOWN
        way = [*way[: _WAY_SHOWN // 2], f"... {left_out} more ...", *way[-_WAY_SHOWN // 2 :]]
    shown = " -> ".join([repr(symbol._label), *way, goal])
    return f"the source {symbol._label!r} is not among the inputs; the way from it: {shown}. Add it to `inputs`."


def _not_symbols(kind: str, nest: Any) -> list[str]:
    """Say which leaves are no symbols, and what to write instead."""
    found = leaves_with_path(nest)
    if not found:
        return [f"there is no {kind}: give a symbol or a nest of symbols."]
    return [
        f"{kind}{' ' + _place(path) if path else ''} is {_described(leaf)}"
        for path, leaf in found
        if not isinstance(leaf, SymbolicDataModel)
    ]


def _described(leaf: Any) -> str:
    """Describe what is no symbol, with the remedy; a coroutine is closed, since nobody will await it."""
    if inspect.iscoroutine(leaf):
        leaf.close()
        return "a coroutine, no symbol: await the call first, as in `y = await module(x)`."
    if inspect.isawaitable(leaf):
        return f"{type(leaf).__name__}, no symbol: await it first."
    if isinstance(leaf, type):
        return f"the class {leaf.__name__}, no symbol: write sm.Input(data_model={leaf.__name__})."
    if leaf is None:
        return "None, no symbol: nothing was given there, or the call that made it was skipped."
    return f"{type(leaf).__name__}, no symbol: start from sm.Input(...) and pass on what modules return."


def _place(path: NestPath) -> str:
    """Write the place of a leaf in a nest."""
    return "/".join(map(str, path))
