"""The picture of a program: its modules as nodes, and every line that is known between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.leaves.names import path_str
from synmod.view.built import unbuilt_in
from synmod.view.call_lines import draw_calls
from synmod.view.contracts import contracts_in
from synmod.view.flow_lines import draw_graph, draw_row, row_of
from synmod.view.outline import Member, Outline, below_first
from synmod.view.recorded import recorded_call
from synmod.view.sketch import Sketch
from synmod.view.skips import skip_routes

if TYPE_CHECKING:
    from synmod.module import Module
    from synmod.view.contracts import Contract
    from synmod.view.picture import Node, Picture


def picture_of(module: Module) -> Picture:
    """Find everything that a picture of a program shows."""
    outline, sketch = Outline(module), Sketch()
    contracts = contracts_in(outline)
    modules = _draw_modules(sketch, outline, contracts)
    known = _draw_static(sketch, modules, contracts)
    call = recorded_call(module)
    if call is not None:
        known |= draw_calls(sketch, call, modules, known)
    if "" not in known:
        _draw_around(sketch, sketch.by_path[""], contracts[id(module)])
    _draw_skips(sketch, outline)
    _draw_shared(sketch, outline, known)
    return sketch.picture(module.name)


def _draw_modules(sketch: Sketch, outline: Outline, contracts: dict[int, Contract]) -> dict[str, Module]:
    """Draw a box for each module; gives the modules by path."""
    unbuilt, paths = unbuilt_in(outline), outline.paths()
    modules: dict[str, Module] = {}
    for member in outline.members:
        if member.stands_for is None:
            part = member.module
            names = [path_str(steps) for steps, _, _ in member.variables]
            facts: dict[str, Any] = {
                "built": id(part) not in unbuilt,
                "schema": str(contracts[id(part)]),
                "variables": names,
                "trainable": [name for name, (_, _, counts) in zip(names, member.variables, strict=True) if counts],
                "language_models": member.model_names(),
            }
            above = None if member.above is None else sketch.node_of(member.above.module)
            sketch.module(part, paths[id(part)], above, facts)
            modules[paths[id(part)]] = part
    return modules


def _draw_static(sketch: Sketch, modules: dict[str, Module], contracts: dict[int, Contract]) -> set[str]:
    """Draw the insides of modules that are known without a call; gives their paths."""
    known: set[str] = set()
    for path, module in modules.items():
        if module._record.flow is not None:
            draw_graph(sketch, sketch.by_path[path], module)
        elif row_of(module) is not None:
            draw_row(sketch, sketch.by_path[path], module, contracts[id(module)])
        else:
            continue
        known.add(path)
    return known


def _draw_around(sketch: Sketch, root: Node, contract: Contract) -> None:
    """Draw what goes into the program and comes out of it, around a box whose inside is not known."""
    for index, (name, nest) in enumerate(contract.inputs):
        port = sketch.port(root, "input", name or f"input_{index}", nest, outside=True)
        sketch.connect(port, root, "data")
    if contract.outputs is not None:
        sketch.connect(root, sketch.port(root, "output", "output", contract.outputs, outside=True), "data")


def _draw_skips(sketch: Sketch, outline: Outline) -> None:
    """Draw a line from each module that stashes a value to each that pops or peeks at it."""
    aliases: dict[str, str] = {}
    for route in skip_routes(outline):
        if not aliases:
            aliases = outline.aliases()
        ends = [sketch.by_path[aliases.get(path, path)] for path in (route.producer, route.consumer)]
        sketch.connect(ends[0], ends[1], "skip", route.name)


def _draw_shared(sketch: Sketch, outline: Outline, known: set[str]) -> None:
    """Draw a line between modules that hold the same Variable, themselves or in a module that both hold."""
    for (first, _), *others in outline.holders:
        source = sketch.node_of(first.module)
        for member, step in others:
            target = sketch.node_of(member.module)
            if source is not None and target is not None and source is not target:
                sketch.connect(source, target, "shared", str(step))
    full = _with_variables(outline)
    for member in outline.members:
        if member.stands_for is None or member.above is None or id(member.module) not in full:
            continue
        source, target = sketch.node_of(member.module), sketch.node_of(member.above.module)
        if source is None or target is None or target.id in known:
            continue
        if not (source.holds(target) or target.holds(source)):
            sketch.connect(source, target, "shared", source.label)


def _with_variables(outline: Outline) -> set[int]:
    """The ids of the modules that hold a Variable, themselves or below, be it one that others hold as well."""
    full = {id(member.module) for holders in outline.holders for member, _ in holders}
    for member in below_first(outline.members[0]):
        if _has_any(member, full):
            full.add(id(member.module))
    return full


def _has_any(member: Member, full: set[int]) -> bool:
    """Tell whether a member holds a Variable, given which of those below do."""
    return bool(member.variables) or any(id(part.module) in full for part in member.below)
