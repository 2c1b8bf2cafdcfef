"""`Sequential`: modules and functions in a row, each given what the one before returned."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from keyword import iskeyword
from typing import Any, ClassVar, Self

from synmod.blocks import Lambda
from synmod.data import DataModel, SymbolicDataModel
from synmod.errors import ConfigError, GraphError
from synmod.leaves.aio import Suspended, drive
from synmod.module import (
    Child,
    Execution,
    Module,
    build,
    execution_of,
    from_config,
    own_inputs_of,
    passes_none,
    refuse_if_sealed,
    seal,
    verify_first_call,
    verify_wiring,
)
from synmod.registry import register_own
from synmod.scope import Hook, current_call

from .graph import Input
from .program import M, Program, all_built

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
        refuse_if_sealed(self, str(index), "a member")
        self._append(member, index)
        self._record_members([*self._recorded_members(), member])

    def pop(self) -> Module:
        """Take the last member out and return it; possible until it is built.

        Raises:
            SealedError: It is built.
            GraphError: There is no member.
        """
        last = self._count() - 1
        refuse_if_sealed(self, str(last), "the last member")
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
