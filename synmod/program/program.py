"""`Program`: the face users hold, made of a graph or with a module of its own; and `Sequential`, a program in a row."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import copy_context
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, overload, runtime_checkable

from pydantic import BaseModel
from typing_extensions import TypeVar

from synmod import saving, train
from synmod.blocks import Lambda
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel
from synmod.errors import ConfigError, GraphError, LoadError
from synmod.flow import Step, copied, map_leaves, run_plan, symbol_of
from synmod.leaves.aio import Suspended, drive
from synmod.leaves.names import did_you_mean, path_str
from synmod.module import (
    AsyncCallee,
    Child,
    Execution,
    Module,
    build,
    declaration_of,
    execution_of,
    from_config,
    kind_text,
    no_call,
    own_inputs_of,
    passes_none,
    refuse_if_sealed,
    seal,
    unknown_keyword,
    verify_first_call,
    verify_wiring,
    where,
)
from synmod.registry import register_own
from synmod.saving import LoadReport
from synmod.scope import FRAME, Hook, current_call, nearest_live
from synmod.train import Evaluation
from synmod.tree import walk

from .graph import Input, check_place, graph_execution, take_graph, wiring_of

# -- programs ----------------------------------------------------------------------------------------------------------


@runtime_checkable
class Composite(Protocol):
    """A module whose being built includes that of the modules that it runs."""

    def _is_built_itself(self) -> bool: ...

    def _run_modules(self) -> Iterable[Module]: ...


def all_built(root: Module) -> bool:
    """Whether `root` is built, and with it every module that it, or a composite below it, runs."""
    pending, seen = [root], {id(root)}
    while pending:
        module = pending.pop()
        if not isinstance(module, Composite):
            if not module.built:
                return False
            continue
        if not module._is_built_itself():
            return False
        new = [each for each in module._run_modules() if id(each) not in seen]
        seen.update(map(id, new))
        pending.extend(new)
    return True


M = TypeVar("M", bound=BaseModel, default=Any)
R = TypeVar("R")


@register_own()
class Program(Module, Generic[M]):
    """A program: a graph of modules between inputs and outputs, or a subclass with `call`.

    Args:
        inputs: A symbol or a nest of symbols (`sm.Input`), which cut the graph.
        outputs: A symbol or a nest of symbols that came of calling modules and operators.
        name: Label; default is the class name in snake case.
        description: Label; default is the first paragraph of the class's own docstring.
        trainable: Whether the Variables below may be trained.
        hooks: Listeners.

    Raises:
        GraphError: Lists every fault of the wiring; inputs without outputs, or the reverse, among them.
        SkipVerifyError: The skip connections do not match.
        BuildError: A class of one's own takes its graph elsewhere than in its `build`, or twice.
        ConfigError: An unknown keyword; or a class with a `call` of its own is given a graph.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> x = sm.Input(Query)
        >>> program = sm.Program(inputs=x, outputs=x.prefix("my"))
        >>> sm.run(program, Query(question="Who?")).get_json()
        {'my_question': 'Who?'}

    Source: Keras functional models, Synalinks `Program`; differs: made without waiting, a step starts as soon as its
    inputs are there.
    """

    __slots__ = ("_wiring",)
    _is_module_base: ClassVar[bool] = True

    if TYPE_CHECKING:
        call: Callable[..., object]  # a method of any signature may override it, and only one of the user's is awaited

        @overload
        def __call__(
            self, inputs: SymbolicDataModel, /, *more: SymbolicDataModel | None, training: bool | None = None
        ) -> Coroutine[Any, Any, SymbolicDataModel]: ...
        @overload
        def __call__(
            self: AsyncCallee[R], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, R]: ...
        @overload
        def __call__(
            self, /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, JsonDataModel[M]]: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    else:

        async def call(self, *inputs: Any, **named: Any) -> Any:
            """Run the graph; one argument of the structure of the inputs, one each, or all by keyword."""
            values = self._through_the_door(inputs, named)
            if any(isinstance(value, SymbolicDataModel) for value in values):
                return self._output_symbols()
            wiring = wiring_of(self)
            if not wiring.door.takes_none and all(value is None for value in values):
                return map_leaves(lambda _: None, self._record.flow.outputs)
            return await run_plan(wiring.plan(self), values)

    def __init__(
        self,
        inputs: Any = None,
        outputs: Any = None,
        *,
        name: str | None = None,
        description: str | None = None,
        trainable: bool | None = None,
        hooks: Sequence[Hook] | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise unknown_keyword(type(self).__name__, next(iter(unknown)), declaration_of(type(self)).keywords)
        if self._record.constructed:  # the mixed form: labels that are not given stay what they were
            check_place(self, Program)
            self._set_labels(name, description, trainable, hooks)
            take_graph(self, inputs, outputs)
            return
        super().__init__(
            name=name, description=description, trainable=True if trainable is None else trainable, hooks=hooks
        )
        if inputs is None and outputs is None:
            return
        check_place(self, Program)
        take_graph(self, inputs, outputs)
        self._forget_graph_arguments()
        seal(self)

    def _set_labels(
        self, name: str | None, description: str | None, trainable: bool | None, hooks: Sequence[Hook] | None
    ) -> None:
        """Set those labels that are given."""
        if name is not None:
            self.name = name
        if description is not None:
            self.description = description
        if trainable is not None:
            self.trainable = trainable
        for hook in hooks or ():
            self.add_hook(hook)

    def _forget_graph_arguments(self) -> None:
        """Keep the graph once, as a flow, and not again as constructor arguments."""
        arguments = self._record.arguments
        if arguments is not None:
            self._record.arguments = {key: arguments[key] for key in arguments if key not in ("inputs", "outputs")}

    # -- the graph ----------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> Any:
        """The nest of input symbols; None where the program is not functional."""
        return None if self._record.flow is None else copied(wiring_of(self).live(self)[0])

    @property
    def outputs(self) -> Any:
        """The nest of output symbols; None where the program is not functional."""
        return None if self._record.flow is None else copied(wiring_of(self).live(self)[1])

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order: depth first from the outputs, producers before consumers."""
        return () if self._record.flow is None else wiring_of(self).live(self)[2]

    @property
    def built(self) -> bool:
        """Whether this program, and where it has a graph all its modules, are built."""
        return all_built(self)

    def _is_built_itself(self) -> bool:
        """Whether its own build is done."""
        return super().built

    def _run_modules(self) -> list[Module]:
        """The modules of its steps."""
        return [step.module for step in self.steps if step.module is not None]

    def get_module(self, path: str | Sequence[str | int]) -> Module:
        """Return a module below by its path.

        Args:
            path: A path text (`agent/write`) or its steps; every path of a shared module serves.

        Returns:
            The module.

        Raises:
            GraphError: No module stands there; with 'Did you mean'.

        Example:
            >>> program.get_module("generator")  # doctest: +SKIP

        Source: Keras `get_layer`; differs: paths, not names.
        """
        wanted = path if isinstance(path, str) else path_str(path)
        known: list[str] = []
        for visit in walk(self):
            if visit.kind == "node" and isinstance(visit.value, Module):
                known.append(path_str(visit.path))
                if known[-1] == wanted:
                    return visit.value
        shown = ", ".join(known[1:20]) or "none"
        raise GraphError(f"{where(self)} has no module at {wanted!r}.{did_you_mean(wanted, known)} It has: {shown}.")

    # -- running ------------------------------------------------------------------------------------------------------

    async def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return the schemas of the graph's outputs; nothing is run."""
        if self._record.flow is None or type(self).call is not Program.call:
            return await super().compute_output_spec(*args, **kwargs)
        self._through_the_door(args, kwargs)
        return self._output_symbols()

    async def evaluate(self, data: Any, **options: Any) -> Evaluation:
        """Return the scores of the program on a data set; keywords and errors of `sm.evaluate`."""
        return await train.evaluate(self, data, **options)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the whole program as one JSON file; see `sm.save` for errors."""
        return saving.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Load a program from its file; takes the keywords of `sm.load`.

        Raises:
            LoadError: The file holds something that is not a `cls`; names the class found. Else as `sm.load`.
        """
        loaded = saving.load(path, **options)
        if isinstance(loaded, cls):
            return loaded
        file = os.fsdecode(path)
        raise LoadError(
            f"{file}: /graph/root: the file holds a {type(loaded).__name__}, which is not a {cls.__name__}: load it "
            "with sm.load.",
            where="/graph/root",
            file=file,
        )

    def save_variables(self, path: str | os.PathLike[str]) -> Path:
        """Save the values of the Variables alone; see `sm.save_variables` for errors."""
        return saving.save_variables(self, path)

    def load_variables(
        self, path: str | os.PathLike[str], strict: bool = True, allow_missing: bool = False, allow_extra: bool = False
    ) -> LoadReport:
        """Take the values of a file by path, all or nothing; see `sm.load_variables` for errors."""
        return saving.load_variables(self, path, strict=strict, allow_missing=allow_missing, allow_extra=allow_extra)

    def _through_the_door(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the values for the Inputs."""
        if self._record.flow is None:
            raise no_call(self)
        frame = current_call()
        entry = frame is not None and frame.parent is None and not frame.symbolic
        return wiring_of(self).door.values(self, args, named, entry=entry)

    def _output_symbols(self) -> Any:
        """Return new symbols for the outputs."""
        flow = self._record.flow
        return map_leaves(lambda ref: symbol_of(flow.symbols[ref.index]), flow.outputs)

    def get_config(self) -> dict[str, Any]:
        """The constructor arguments as live values; a functional program's inputs and outputs among them."""
        config = super().get_config()
        if self._record.flow is None or type(self).__init__ is not Program.__init__:
            return config
        return {"inputs": self.inputs, "outputs": self.outputs, **config}


@passes_none.register(Program)
def program_passes_none(program: Program[Any]) -> bool:
    """Whether a None passes: below another call, not into an entry call that must have data."""
    if program._record.flow is None:
        return True
    return nearest_live(FRAME.get()) is not None and not wiring_of(program).door.takes_none


@execution_of.register(Program)
def execution_of_program(program: Program[Any]) -> Execution | None:
    """Return the graph of a functional program; a `call` of one's own has no static order."""
    flow = program._record.flow
    return None if flow is None or type(program).call is not Program.call else graph_execution(program)


@own_inputs_of.register(Program)
def own_inputs_of_program(program: Program[Any]) -> tuple[Any, ...]:
    """Return what `sm.build` builds a functional program on."""
    return () if program._record.flow is None else (program.inputs,)


# -- Sequential: modules and functions in a row ------------------------------------------------------------------------

Member = Module | Callable[..., Any] | SymbolicDataModel


@register_own()
class Sequential(Program[M]):
    """Members in a row: each gets the output of the one before, whole.

    Args:
        members: Modules, or plain callables, sync or async, that take and return data. An `sm.Input` (or a data-model
            class) may stand first: it is the contract, and the constructor builds at once.
        name: Label.
        description: Label.
        trainable: Whether the members may be trained.
        hooks: Listeners.

    Raises:
        GraphError: An Input elsewhere than first.
        ConfigError: A member that is neither; an unknown keyword.
        Exception: With an Input first, what a build raises.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> both = sm.Sequential([sm.Input(Query), sm.Identity(), lambda x: x.prefix("my")])
        >>> sm.run(both, Query(question="Who?")).get_json()
        {'my_question': 'Who?'}

    Source: Keras `Sequential`; differs: an Input builds at once, functions are members too.
    """

    _is_module_base: ClassVar[bool] = True

    def __init__(
        self,
        members: Iterable[Member] = (),
        name: str | None = None,
        *,
        description: str | None = None,
        trainable: bool = True,
        hooks: Sequence[Hook] | None = None,
    ) -> None:
        super().__init__(name=name, description=description, trainable=trainable, hooks=hooks)
        if isinstance(members, Module) or not isinstance(members, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{self.name!r}: members is {kind_text(members)}; give a list: sm.Sequential([...]).")
        index = 0
        for member in members:
            index += self._append(member, index)
        if self.input_spec is not None:
            self._build_now()

    @property
    def members(self) -> tuple[Module, ...]:
        """The members in order, a plain callable as a `Lambda`; an Input is not among them."""
        attributes = self._attributes()
        return tuple(attributes[index] for index in range(self._count()))

    @property
    def built(self) -> bool:
        """Whether it was built: at its first call, by `sm.build`, or by its constructor where an Input stands first."""
        return all_built(self)

    def _is_built_itself(self) -> bool:
        return self._record.sealed

    def _run_modules(self) -> list[Module]:
        return list(self.members)

    def add(self, member: Member) -> None:
        """Append a member; possible until it is built.

        Raises:
            SealedError: It is built.
            GraphError: An Input elsewhere than first.
            ConfigError: It is neither a module nor a callable.
        """
        index = self._count()
        refuse_if_sealed(self, str(index), "a member was to be added")
        self._append(member, index)
        self._record_members([*self._recorded_members(), member])

    def pop(self) -> Module:
        """Take the last member out and return it; possible until it is built.

        Raises:
            SealedError: It is built.
            GraphError: There is no member.
        """
        last = self._count() - 1
        refuse_if_sealed(self, str(last), "the last member was to be taken out")
        if last < 0:
            raise GraphError(f"{self.name!r}: there is no member to take out.")
        self._record_members(self._recorded_members()[:-1])
        return self._attributes().pop(last)

    async def call(self, *inputs: Any, **named: Any) -> Any:
        """Run the members; further arguments go to the first one. Empty, it returns its input."""
        if not self._count():
            return inputs[0] if len(inputs) == 1 else inputs or None
        value: Any = None
        for index, member in enumerate(self.members):
            value = await (member(value) if index else member(*inputs, **named))
        return value

    async def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return what a trace of the members returns."""
        return await Module.compute_output_spec(self, *args, **kwargs)

    @classmethod
    def from_config(cls, config_: Mapping[str, Any]) -> Self:
        """Make one of what `get_config` returned; members are built when they are reached, not here."""
        members = list(config_.get("members", ()))
        if not members or not _is_input(members[0]):
            return from_config(cls, config_)
        made = from_config(cls, {**config_, "members": members[1:]})
        made.input_spec = _as_input(members[0])
        made._record_members(members)
        return made

    def get_build_config(self) -> dict[str, Any] | None:
        """Return what tells a file that it was built; the members have their own schemas."""
        return {"schemas": {}} if self._record.sealed else None

    def build_from_config(self, config: Mapping[str, Any] | None) -> None:
        """Seal a row that was built; its members have configs of their own."""
        if config is not None:
            seal(self)

    def _attributes(self) -> dict[Any, Any]:
        """The attributes of this module; its members stand there under 0, 1, and so on, as paths have them."""
        return vars(self)

    def _count(self) -> int:
        """How many members there are."""
        count = 0
        attributes = self._attributes()
        while count in attributes:
            count += 1
        return count

    def _append(self, member: Any, index: int) -> bool:
        """Take a member in behind `index` others; False for the Input, which stands before all and is not a member."""
        if _is_input(member):
            if index or self.input_spec is not None:
                raise GraphError(f"{self.name!r}: member {index} is an Input; an Input may only stand first.")
            self.input_spec = _as_input(member)
            return False
        if not isinstance(member, Module) and (isinstance(member, type) or not callable(member)):
            shown = f"the class {member.__name__}" if isinstance(member, type) else f"a {type(member).__name__}"
            raise ConfigError(
                f"{self.name!r}: member {index} is {shown}; members are modules (instances) or plain callables."
            )
        self._attributes()[index] = member if isinstance(member, Module) else Lambda(member, name=_label(member))
        return True

    def _recorded_members(self) -> list[Any]:
        """The members in the constructor's record, an Input among them."""
        return list((self._record.arguments or {}).get("members", ()))

    def _record_members(self, members: list[Any]) -> None:
        """Keep the constructor's record in step, where it has the members."""
        if self._record.arguments is not None and type(self).__init__ is Sequential.__init__:
            self._record.arguments = {**self._record.arguments, "members": members}

    def _build_now(self) -> None:
        """Build on the Input, if no build waits; otherwise the first call builds."""
        try:
            copy_context().run(drive, build(self))
        except Suspended:
            return

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if isinstance(name, str)]  # pyright: ignore[reportUnnecessaryIsInstance]


@own_inputs_of.register(Sequential)
def own_inputs_of_row(row: Sequential[Any]) -> tuple[Any, ...]:
    """Return what `sm.build` builds a row on: its Input."""
    spec = row.input_spec
    return () if spec is None else (spec,)


@passes_none.register(Sequential)
def row_passes_none(_: Sequential[Any]) -> bool:
    """Whether a None passes, as in any module."""
    return True


@verify_first_call.register(Sequential)
def verify_first_call_of_row(row: Sequential[Any]) -> None:
    """Check the whole row where this is the first entry call; a row inside another program is checked with it."""
    frame = current_call()
    if frame is not None and frame.parent is None and not frame.symbolic:
        verify_wiring(row, is_whole=False)


@execution_of.register(Sequential)
def execution_of_row(row: Sequential[Any]) -> Execution | None:
    """Return one member after the other; a `call` of one's own has no static order."""
    if type(row).call is not Sequential.call:
        return None
    return Execution("in order", tuple(Child((index,), member) for index, member in enumerate(row.members)))


def _label(function: Callable[..., Any]) -> str | None:
    """Return the name of a function, None for one without a name that a module may have."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() and not iskeyword(name) else None


def _is_input(member: Any) -> bool:
    """Whether something stands for data, not for work."""
    return isinstance(member, SymbolicDataModel) or (inspect.isclass(member) and issubclass(member, DataModel))


def _as_input(member: Any) -> SymbolicDataModel:
    """Return an Input of a class; a symbol as it is."""
    return member if isinstance(member, SymbolicDataModel) else Input(member)
