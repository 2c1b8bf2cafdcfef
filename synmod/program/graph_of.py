"""Giving a program its graph: steps found, modules held as children, structure recorded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from synmod.errors import BuildError, ConfigError
from synmod.flow import FlowGraph, Plan, Step, compile_flow, copied, leaves, live_graph, record_graph, steps_between
from synmod.module import Child, Execution, Module, running_own_build, steps_before, verify_wiring, where
from synmod.program.door import Door
from synmod.program.keys import Keys
from synmod.scope import current_call

if TYPE_CHECKING:
    from synmod.program.program import Program


class Wiring:
    """What follows from a program's graph and modules: the door, the plan, the live symbols. Made when asked for.

    Kept by the program beside its attributes, never copied: a copy makes its own from the same graph.
    """

    __slots__ = ("_live", "_plan", "door", "flow", "version")

    def __init__(self, program: Program, live: tuple[Any, Any, tuple[Step, ...]] | None = None) -> None:
        self.flow: FlowGraph = program._record.flow
        self.version = program._record.version
        self.door = Door(self.flow)
        self._plan: Plan | None = None
        self._live = live

    def plan(self, program: Program) -> Plan:
        """The graph, ready to run with the program's present modules."""
        if self._plan is None:
            self._plan = compile_flow(self.flow, program.__dict__, steps_before(program))
        return self._plan

    def live(self, program: Program) -> tuple[Any, Any, tuple[Step, ...]]:
        """Inputs, outputs and steps as live objects: the user's own where the program was composed here."""
        if self._live is None:
            self._live = live_graph(self.flow, program.__dict__)
        return self._live


def wiring_of(program: Program) -> Wiring:
    """The wiring of a functional program; made anew when its graph or its modules have changed."""
    wiring: Wiring | None = getattr(program, "_wiring", None)
    record = program._record
    if wiring is None or wiring.flow is not record.flow or wiring.version != record.version:
        wiring = Wiring(program)
        object.__setattr__(program, "_wiring", wiring)
    return wiring


def take_graph(program: Program, inputs: Any, outputs: Any) -> None:
    """Make `program` a functional one.

    Args:
        program: A program under construction, or in its own `build`.
        inputs: A nest of symbols.
        outputs: A nest of symbols.

    Raises:
        ConfigError: The class defines `call` as well.
        BuildError: The program has a graph already.
        GraphError: The wiring is faulty.
        SkipVerifyError: The skip connections do not match.
    """
    record = program._record
    if record.flow is not None:
        raise BuildError(f"{where(program)} has a graph already; super().__init__(inputs=..., outputs=...) goes once.")
    steps = steps_between(inputs, outputs)
    _refuse_self(program, steps)
    record.flow = record_graph(inputs, outputs, steps, _Children(program).key)
    record.declared = None
    object.__setattr__(program, "_wiring", Wiring(program, (copied(inputs), copied(outputs), steps)))
    if _is_root(program):
        verify_wiring(program)


def execution_of(program: Program) -> Execution:
    """How the steps of a functional program depend on each other."""
    flow: FlowGraph = program._record.flow
    makers: dict[int, int] = {}
    for index, step in enumerate(flow.steps):
        for ref in leaves(step.gives):
            if ref is not None:
                makers[ref.index] = index
    parts = [None if step.node is None else Child((step.node,), program.__dict__[step.node]) for step in flow.steps]
    needs = [sorted({makers[number] for number in step.needs if number in makers}) for step in flow.steps]
    return Execution("graph", tuple(parts), tuple(needs))


def _is_root(program: Program) -> bool:
    """Tell whether a program is made for itself, and not by the build of one that stands in another."""
    frame = current_call()
    while frame is not None and frame.owner is program._record:
        frame = frame.parent
    return frame is None or not program._record.constructed


def check_place(program: Program, base: type) -> None:
    """Check that a class of one's own takes its graph in its `build`, and has no `call` beside it.

    Raises:
        ConfigError: It defines `call`.
        BuildError: It is not in its own `build`.
    """
    cls = type(program)
    if getattr(cls, "call", None) is not vars(base)["call"]:
        raise ConfigError(
            f"class {cls.__name__} defines call, and {where(program)} was given a graph: a program runs one or the "
            "other. Leave out call, or the inputs and outputs."
        )
    if cls.__init__ is not base.__init__ and running_own_build(program._record) is None:
        raise BuildError(
            f"{where(program)}: super().__init__(inputs=..., outputs=...) of class {cls.__name__} goes at the end of "
            "its build, once: `async def build(self, inputs): ...`."
        )


class _Children:
    """Holds the modules of steps as attributes of the program, each once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[int, str] = {id(child): name for name, child in _held(program)}
        self._keys = Keys(partial(_is_taken, program))

    def key(self, module: Module) -> str:
        """The name under which the program holds a module; taken in at its first use."""
        known = self._known.get(id(module))
        if known is None:
            known = self._known[id(module)] = self._keys.give(module.name)
            setattr(self._program, known, module)
        return known


def _is_taken(program: Program, name: str) -> bool:
    """Tell whether a program has an attribute, method or property of that name."""
    return name in program.__dict__ or hasattr(type(program), name)


def _held(program: Program) -> list[tuple[str, Any]]:
    """The modules that a program holds as attributes already, the first name of each last, so that it wins."""
    return [(name, value) for name, value in reversed(list(vars(program).items())) if isinstance(value, Module)]


def _refuse_self(program: Program, steps: tuple[Step, ...]) -> None:
    """Refuse a graph that runs the program itself."""
    if any(step.module is program for step in steps):
        raise BuildError(f"{where(program)} waits for itself: its graph has a step that calls it.")
