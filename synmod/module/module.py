"""`Module`: a table of contents, whose methods are a line or two that call into the files of this room.

Below it is how the walk sees a module: its attributes without bookkeeping, and the blueprint that makes it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast, overload

from pydantic import BaseModel

from synmod import data, errors, leaves, tree
from synmod.flow import FlowGraph, SymbolRef
from synmod.lm import SAMPLING, SharedModel
from synmod.scope import CallCounters, Feedback, Hook, add_reward, check_hook, rewards_of

from . import constructing, contract, structure
from .calling import call_module, default_output_spec
from .constructing import ModuleMeta, construct, declaration_of, empty_build, with_name_scope
from .declaring import ABOVE, AsyncCallee, PlainCallee, Unspecified
from .record import ModuleRecord, attributes_of, current_path, sow, structural_attributes

R = TypeVar("R")
Answer = TypeVar("Answer", bound=BaseModel)
Data: TypeAlias = Answer | data.JsonDataModel[Answer]
"""What a call may return for what it declares: an instance, or a value."""


class Module(metaclass=ModuleMeta):
    """A part of a program: declares in `__init__`, makes schema-dependent state in `build`, works in `call`.

    Args:
        name: Label; default is the class name in snake case.
        description: Label; default is the first paragraph of the class's own docstring.
        trainable: Whether the Variables below may be trained.
        hooks: Listeners to the calls and builds of this module, and to what happens inside its calls.

    Raises:
        ConfigError: An unknown keyword.
        BadNameError: The name is not an identifier.
        ArgumentError: A hook that cannot be one.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Echo(sm.Module):
        ...     async def call(self, inputs: Query) -> Query:
        ...         return inputs
        >>> sm.run(Echo(), Query(question="Who?"))["question"]
        'Who?'

    Source: Keras `Layer`, Flax `Module`, Synalinks `Module`; differs: no state outside Variables, values are frozen.
    """

    __slots__ = ("__dict__", "__weakref__", "_record")
    _is_module_base: ClassVar[bool] = True
    _graph_ignored: ClassVar[frozenset[str]] = frozenset()
    _role: ClassVar[Literal["part", "metric", "optimizer"]] = "part"  # of a program; only parts own its Variables
    accepts_none: ClassVar[bool] = False
    """Whether `call` gets None instead of being skipped."""
    stashable_names: ClassVar[frozenset[str]] = frozenset()
    """What `skippable(stash=...)` declared."""
    poppable_names: ClassVar[frozenset[str]] = frozenset()
    """What `skippable(pop=...)` declared."""
    skip_schemas: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The schemas of these names, where they have one."""
    _record: ModuleRecord

    if TYPE_CHECKING:
        # attributes of a wide type, so that a method of any signature may override them
        call: Callable[..., Any]
        """What the module does, written by you: gets data models, returns data; may have an argument `training`.

        It runs at `await module(x)`, after checks of the inputs; what it returns is checked against its annotation.
        """
        build: Callable[..., Any]
        """What the module makes once, before its first call: gets a symbol for each input; may be left out."""
        compute_output_spec: Callable[..., Any]
        """Runs in place of `call` on symbols and returns one: by default what is declared, or what `call` returns."""

        def __init__(
            self,
            *,
            name: str | None = None,
            description: str | None = None,
            trainable: bool = True,
            hooks: Sequence[Hook] | None = None,
        ) -> None: ...

        # what `call` returns, with `Answer` become `JsonDataModel[Answer]`; each once async and once plain
        @overload
        def __call__(
            self: AsyncCallee[Unspecified], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, Any]: ...
        @overload
        def __call__(
            self: AsyncCallee[Data[Answer]], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, data.JsonDataModel[Answer]]: ...
        @overload
        def __call__(
            self: AsyncCallee[Data[Answer] | None], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, data.JsonDataModel[Answer] | None]: ...
        @overload
        def __call__(
            self: AsyncCallee[R], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, R]: ...
        @overload
        def __call__(
            self: PlainCallee[Unspecified], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, Any]: ...
        @overload
        def __call__(
            self: PlainCallee[Data[Answer]], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, data.JsonDataModel[Answer]]: ...
        @overload
        def __call__(
            self: PlainCallee[Data[Answer] | None], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, data.JsonDataModel[Answer] | None]: ...
        @overload
        def __call__(
            self: PlainCallee[R], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, R]: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    else:
        __init__ = construct
        __call__ = call_module
        # What the warning of a forgotten await shows.
        __call__.__name__, __call__.__qualname__ = "module", "Module.__call__"
        build = empty_build
        compute_output_spec = default_output_spec

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        module = object.__new__(cls)
        declared = declaration_of(cls)
        record = ModuleRecord(
            declared, declared.default_name, declared.default_description, built=not declared.defines_build
        )
        object.__setattr__(module, "_record", record)
        return module

    # -- labels -------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The label of this module; nothing is saved, matched or traced by it."""
        return self._record.name

    @name.setter
    def name(self, name: str) -> None:
        self._record.name = leaves.check_name(name)

    @property
    def description(self) -> str:
        """What this module is for, in a sentence."""
        return self._record.description

    @description.setter
    def description(self, description: str) -> None:
        if not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
            raise errors.ConfigError(f"{self.name!r}: description is {description!r}; give a text.")
        self._record.description = description

    @property
    def path(self) -> str:
        """Where this module stands below the entry module; "" for a root."""
        return current_path(self)

    with_name_scope = staticmethod(with_name_scope)

    @property
    def trainable(self) -> bool:
        """Whether the subtree may be trained; masks the Variables below and writes nothing into them."""
        return self._record.trainable

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        if not isinstance(trainable, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.ConfigError(f"{self.name!r}: trainable is {trainable!r}; give True or False.")
        self._record.trainable = trainable

    # -- state --------------------------------------------------------------------------------------------------------

    def add_variable(
        self,
        initializer: Any = None,
        data_model: Any = None,
        schema: Any = None,
        trainable: bool | None = None,
        name: str | None = None,
        description: str | None = None,
        type: type[tree.Variable] = tree.Param,  # noqa: A002  # the word of the contract
    ) -> tree.Variable:
        """Make a Variable and hold it under its name until it is assigned to another attribute.

        Args:
            initializer: Initial value: JSON, a data model, or a callable given the schema.
            data_model: Data model class, symbol, or an instance, whose JSON is then the initial value.
            schema: JSON schema of the value; must agree with `data_model`.
            trainable: Own bit of the Variable; None for the default of its type.
            name: Label and first attribute name; default the snake case of the schema's title, else `variable`.
            description: Label.
            type: Class of the Variable.

        Returns:
            The Variable.

        Raises:
            SealedError: The module is built.
            ArgumentError: `data_model` and `schema` disagree, or `type` is no Variable type.
            SchemaError: The initial value is not valid.
            BadNameError: The name is not an identifier.

        Example:
            >>> import synmod as sm
            >>> sm.Module().add_variable("Be brief.", name="instructions").value
            'Be brief.'

        Source: Keras `add_weight`.
        """
        given = {"initializer": initializer, "data_model": data_model, "schema": schema, "trainable": trainable}
        return structure.add_variable(self, type, **given, name=name, description=description)

    def get_variable(self, name: str | None = None, index: int | None = None) -> tree.Variable:
        """Find one Variable by name or by its index in `variables`.

        Raises:
            ArgumentError: Both, or neither, of name and index.
            GraphError: None or several have the name; the index is out of range.
            NotBuiltError: A module below is unbuilt.
        """
        return structure.get_variable(self, name, index)

    @property
    def variables(self) -> tuple[tree.Variable, ...]:
        """All Variables below, in definition order, without those of metrics and optimizers.

        Raises:
            NotBuiltError: A module below is unbuilt.
        """
        return tree.variables_of(self, is_apart)

    @property
    def trainable_variables(self) -> tuple[tree.Variable, ...]:
        """The Variables whose own bit is set and that no frozen module stands above."""
        return tree.variables_of(self, is_apart, trainable=True)

    @property
    def non_trainable_variables(self) -> tuple[tree.Variable, ...]:
        """The other Variables."""
        return tree.variables_of(self, is_apart, trainable=False)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """Every module below, each once, in definition order."""
        return tree.submodules_of(self, Module)

    @property
    def metrics(self) -> tuple[Module, ...]:
        """The metrics below, in definition order."""
        return tuple(module for module in self.submodules if module._role == "metric")

    @property
    def metrics_variables(self) -> tuple[tree.Variable, ...]:
        """What the metrics below count, in their order."""
        return tuple(dict.fromkeys(variable for metric in self.metrics for variable in metric.variables))

    def flatten(
        self,
        predicate: Any = None,
        *,
        recursive: bool = True,
        with_path: bool = False,
        key: Callable[[Any], Any] | None = None,
        statics: bool = False,
    ) -> Iterator[Any]:
        """Go through the modules, other nodes and Variables below, lazily, in definition order.

        Args:
            predicate: A filter, or a function of the value; None takes everything.
            recursive: Whether to go into the child nodes, which are yielded in any case.
            with_path: Yield `(path, value)` once for every acyclic path, instead of each object once.
            key: Sorts the attribute names of each node, stable.
            statics: Yield statics too.

        Raises:
            ArgumentError: The predicate is not a filter.

        Example:
            >>> import synmod as sm
            >>> module = sm.Module()
            >>> module.prompt = sm.Param("x")
            >>> list(module.flatten(sm.Param, with_path=True))
            [(('prompt',), Param('x'))]

        Source: tf.Module `_flatten`; differs: lazy, any filter, statics when asked for.
        """
        return tree.flattened(self, predicate, recursive=recursive, with_path=with_path, key=key, statics=statics)

    def set_attributes(self, filter: Any = ..., *, raise_if_not_found: bool = True, **attrs: Any) -> None:  # noqa: A002
        """Set plain attributes on every node here and below that matches and has them; see `sm.set_attributes`.

        Raises:
            GraphError: Nothing has the attribute, or it holds a node or Variable.
        """
        tree.set_attributes(self, filter, raise_if_not_found=raise_if_not_found, **attrs)

    # -- building -----------------------------------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """Whether this module's own `build` is done; True from the start where its class has none."""
        return structure.is_built_here(self._record)

    @property
    def version(self) -> int:
        """Raised by one with each structural edit of this module after it was sealed."""
        return self._record.version

    if TYPE_CHECKING:
        input_spec: Any  # attributes for a type checker: a class may set them too
        output_spec: Any

    else:

        @property
        def input_spec(self) -> Any:
            """What is demanded of the inputs beyond annotations, as a nest of symbols; None for nothing."""
            return contract.input_spec_of(self)

        @input_spec.setter
        def input_spec(self, spec: Any) -> None:
            contract.symbols_of(
                spec, f"{self.name}: input_spec"
            )  # what declares nothing is found here, not at the first call
            vars(self)["input_spec"] = spec
            self._record.contract = None

        @property
        def output_spec(self) -> Any:
            """The declared outputs as a nest of symbols; None where nothing is declared."""
            return contract.declared_outputs(self).nest

        @output_spec.setter
        def output_spec(self, spec: Any) -> None:
            contract.symbols_of(spec, f"{self.name}: output_spec")
            vars(self)["output_spec"] = spec
            self._record.declared = None

    def get_build_config(self) -> dict[str, Any] | None:
        """The schemas this module was built on; None before, and for a class without `build`."""
        return constructing.build_config_json(self)

    def build_from_config(self, config: Mapping[str, Any] | None) -> Any:
        """Bring an unbuilt module to the state that `get_build_config` described.

        Raises:
            BuildError: Its `build` must wait; use `await sm.build(...)`.
        """
        return constructing.build_from_config(self, config)

    # -- skip connections ---------------------------------------------------------------------------------------------

    def stashable(self) -> Iterator[tuple[Any, str]]:
        """The `(namespace, name)` pairs that this module stashes, by name; the default namespace is None."""
        return structure.namespaced(self, self.stashable_names)

    def poppable(self) -> Iterator[tuple[Any, str]]:
        """The pairs that this module pops, by name."""
        return structure.namespaced(self, self.poppable_names)

    def namespaced(self, name: str) -> tuple[Any, str]:
        """The pair of one name."""
        return next(structure.namespaced(self, [name]))

    def isolate(self, ns: Any) -> Self:
        """Put the declared skip names into a Namespace, instead of one that they were put into before.

        Returns:
            This module, so that calls chain.

        Raises:
            ArgumentError: `ns` is not a `synmod.skip.Namespace`.
            SkipNameError: The class declares no names.
            SealedError: The module is built.
        """
        structure.isolate(self, ns)
        return self

    # -- config and copies --------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The constructor arguments as live values: those given, with present values where assigned anew.

        Raises:
            ConfigError: They are not known.
        """
        return constructing.get_config(self)

    @classmethod
    def from_config(cls, config_: Mapping[str, Any]) -> Self:
        """Make a module from what `get_config` returned.

        Raises:
            ConfigError: An unknown key.
        """
        return constructing.from_config(cls, config_)

    def clone(self, name: str | None = None) -> Self:
        """Copy this module: structure copied, frozen values shared, hooks kept, counters at zero, models shared.

        Raises:
            BadNameError: The new name is not an identifier.
        """
        if name is not None:
            leaves.check_name(name)  # before anything is copied
        copy = tree.clone(self)
        if name is not None:
            copy.name = name
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return tree.deepcopy_node(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return constructing.reduce(self)

    def __repr__(self) -> str:
        return constructing.constructor_call(self)

    # -- looking ------------------------------------------------------------------------------------------------------

    def summary(self, depth: int | None = None, columns: Sequence[str] | None = None) -> str:
        """Return a line per module below, with its Variables, schemas, models and, after a recorded call, its cost.

        Args:
            depth: Show so many levels below this module, deeper ones summed into their ancestors; None for all.
            columns: Names of `synmod.view.COLUMNS`, in the order wanted; None for those that are not empty.

        Returns:
            The text: a table, then the totals. No control characters.

        Raises:
            ArgumentError: An unknown column ('Did you mean'), or a depth that is not a number of levels.
            GraphError: The program cannot be walked; names the path.

        Example:
            >>> import synmod as sm
            >>> print(sm.Sequential([sm.Identity()]).summary(columns=["path", "class"]))
            path    class
            ──────  ────────────────────
            (root)  Sequential (unbuilt)
            0       Identity
            2 modules, 1 unbuilt; no Variables

        Source: Keras `summary`, Flax `tabulate`; differs: plain text from one walk, before the build as after it.
        """
        return ABOVE["summary"](self, depth, columns)

    def plot(self, path: str | os.PathLike[str] | None = None, format: str = "mermaid") -> str:  # noqa: A002
        """Draw this module: boxes are modules, solid edges data flow, dashed ones skips, dotted ones shared Variables.

        Data flow is that of a functional program, and below modules with a `call` that of the last call of this module
        that `sm.trace` has recorded.

        Args:
            path: Where to write the text, too.
            format: "mermaid", "svg", "html" or "json".

        Returns:
            The text.

        Raises:
            ArgumentError: An unknown format ('Did you mean'), or a path that ends in another one.
            GraphError: The program cannot be walked; names the path.
            SaveError: The file cannot be written.

        Example:
            >>> import json
            >>> import synmod as sm
            >>> [edge["target"] for edge in json.loads(sm.Sequential([sm.Identity()]).plot(format="json"))["edges"]]
            ['0', '#outputs/output']

        Source: Keras `plot_model`; differs: no program outside is needed, and the JSON is a contract.
        """
        return ABOVE["plot"](self, path, format)

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows."""
        return self.plot(format="svg")

    # -- modes, hooks, counters ---------------------------------------------------------------------------------------

    def train(self) -> Self:
        """Set `training` (and `deterministic`) wherever a node below has such an attribute, and here."""
        return constructing.set_mode(self, training=True)

    def eval(self) -> Self:
        """The counterpart of `train`."""
        return constructing.set_mode(self, training=False)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """This module's own hooks, in the order added."""
        return self._record.hooks

    def add_hook(self, hook: Hook) -> None:
        """Add a hook, which sees the calls and builds of this module, and what happens inside its calls.

        Raises:
            ArgumentError: It is not a hook, or overrides a synchronous event by an async method.
        """
        check_hook(hook)
        structure.remember(self)
        self._record.hooks = (*self._record.hooks, hook)

    def remove_hook(self, hook: Hook) -> None:
        """Take a hook out; one that is not there is an ArgumentError."""
        others = tuple(one for one in self.hooks if one is not hook)
        if len(others) == len(self.hooks):
            raise errors.ArgumentError(f"{self.name!r} has no such hook {hook!r}; it has {len(others)}.")
        structure.remember(self)
        self._record.hooks = others

    @property
    def counters(self) -> CallCounters:
        """What was counted of the entry calls of this module."""
        return self._record.counters

    @property
    def cumulated_invocations(self) -> int:
        """Entry calls that returned or failed."""
        return self._record.counters.invocations

    @property
    def cumulated_invocation_elapsed_s(self) -> float:
        """Wall seconds of those calls."""
        return self._record.counters.elapsed_s

    def add_reward(self, value: float, name: str | None = None) -> None:
        """Hand a reward to the running entry call, under this module's path.

        Raises:
            CallError: Outside a call, or no finite number.
        """
        add_reward(self._record, value, name)

    def route_feedback(self, inputs: Any, outputs: Any, feedback: Feedback) -> Any:  # noqa: ARG002  # for overrides
        """Return the feedback for the calls inside one call of this module, after a reward has judged it; may be async.

        Args:
            inputs: What the call got, as JSON.
            outputs: What it returned, as JSON.
            feedback: That of this call.

        Returns:
            The Feedback for the calls inside; here the same.

        Source: backward hooks of PyTorch; TextGrad.
        """
        return feedback

    @property
    def rewards(self) -> tuple[float, ...]:
        """The rewards under this module so far in the running entry call; () outside a call."""
        return rewards_of(self._record)

    def sow(self, type: type[tree.Variable], name: str, value: Any) -> bool:  # noqa: A002  # the word of the contract
        """Note an intermediate value of the running call, for the open `sm.capture(type)` blocks.

        Nothing is written into the module, so that concurrent samples never mix; in a trace nothing happens.

        Args:
            type: Variable type, such as `sm.Intermediate`.
            name: The key below this module's path.
            value: JSON or a data model.

        Returns:
            Whether it was noted: False without an open capture of that type.

        Raises:
            DataError: The value is neither JSON nor a data model.
            BadNameError: The name is not an identifier.

        Example:
            >>> import synmod as sm
            >>> class Query(sm.DataModel):
            ...     question: str
            >>> class Think(sm.Module):
            ...     async def call(self, inputs: Query) -> Query:
            ...         self.sow(sm.Intermediate, "thought", "hm")
            ...         return inputs
            >>> with sm.capture(sm.Intermediate) as cap:
            ...     _ = sm.run(Think(), Query(question="Why?"))
            >>> cap.state.to_json()
            {'thought': ['hm']}

        Source: Flax NNX `sow`; differs: by call, not on the module.
        """
        return sow(self, type, name, value)

    # -- attributes ---------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        structure.set_attribute(self, name, value)

    def __delattr__(self, name: str) -> None:
        structure.delete_attribute(self, name)


class Blueprint(NamedTuple):
    """A module without its children; a tuple, because a split makes one for each module, and tuples are cheap.

    The fields from `name` to `isolated` are those of the record, in its order.
    """

    cls: type[Module]
    name: str
    description: str
    trainable: bool
    arguments: Mapping[str, Any] | None
    given: tuple[str, str, bool] | None
    build_config: Mapping[str, Any] | None
    built: bool
    sealed: bool
    made_in_build: frozenset[str]
    flow: Any
    isolated: Mapping[str, Any]
    reassigned: frozenset[str]
    removed: tuple[str, ...]
    ignored: Mapping[str, Any]


_COPIED = Blueprint._fields[1:12]
_copied: Callable[[ModuleRecord], tuple[Any, ...]] = attrgetter(*_COPIED)
_REFERENCES = (tree.NodeRef, tree.VariableRef)


def with_references(fn: Callable[[Any], Any], value: Any) -> Any:
    """Return an argument with `fn(x)` in place of every leaf x; an unchanged container stays the same object."""
    if isinstance(value, _REFERENCES) or leaves.is_leaf(value) or tree.kind_of(value) in (tree.NODE, tree.VARIABLE):
        return fn(value)
    parts = leaves.take_apart(value)
    new = [with_references(fn, part) for part in parts.children]
    return value if all(a is b for a, b in zip(new, parts.children, strict=True)) else parts.rebuild(new)


def children(module: Module) -> list[tuple[Any, Any]]:
    """The attributes of a module in definition order, without those that are ignored."""
    hidden, statics = module._record.declaration.hidden, module._record.statics
    pairs = attributes_of(module)
    if not hidden and not statics:
        return pairs
    return [(name, tree.Static(value) if name in statics else value) for name, value in pairs if name not in hidden]


def _metadata(module: Module) -> Blueprint:
    """Everything but the children, which are looked at for changes behind the back of a sealed module.

    Hot: one for each module of a split.
    """
    record = module._record
    if record.sealed:
        structure.check_layout(module)
    ignored = record.declaration.ignored
    return Blueprint(
        type(module),
        *_copied(record),
        reassigned=frozenset(record.reassigned),
        removed=tuple(record.removed),
        ignored={name: value for name, value in attributes_of(module) if name in ignored} if ignored else _NOTHING,
    )


_NOTHING: Mapping[str, Any] = {}


def _create_empty(made: Blueprint) -> Module:
    """Make a module of a blueprint. Hot: one for each module of a merge."""
    module = _new(made.cls)
    _put_record(module, ModuleRecord(declaration_of(made.cls), *made[1:12], constructed=True))
    if made.reassigned or made.removed or made.ignored:
        _follow_names(module, made)
    return module


_new: Any = object.__new__
_put_record: Any = vars(Module)["_record"].__set__


def _follow_names(module: Module, made: Blueprint) -> None:
    """Copy what a blueprint notes of single attributes."""
    record = module._record
    record.reassigned = dict.fromkeys(made.reassigned)
    record.removed = dict.fromkeys(made.removed)
    vars(module).update(made.ignored)


def _init(module: Module, pairs: list[tuple[Any, Any]]) -> None:
    record = module._record
    attributes: Any = module.__dict__
    for name, value in pairs:
        if type(value) is tree.Static:
            _put(module, name, value)
        else:
            attributes[name] = value
    if record.sealed:  # what is new holds nothing else
        record.layout = structure.layout_of(pairs if record.layout is None else structural_attributes(module))
        record.ready = record.built


def _rewrite(module: Module, made: Blueprint, pairs: list[tuple[Any, Any]]) -> None:
    """Become in place what a blueprint and children say; whoever calls the module meanwhile keeps what it holds."""
    record = module._record
    before, was_sealed = (structure.layout_of(structural_attributes(module)), record.flow), record.sealed
    vars(module).clear()  # with what `cached_property` left, which follows from the rest
    for name, value in zip(_COPIED, made[1:12], strict=True):
        setattr(record, name, value)
    record.statics, record.constructed = {}, True
    _follow_names(module, made)
    record.contract = record.declared = None
    record.layout, record.ready = None, False
    record.sealed = made.sealed or (was_sealed and made.built)
    _init(module, pairs)
    if before != (structure.layout_of(structural_attributes(module)), record.flow):
        structure.note_edit(module)


def _unseal(module: Module) -> None:
    """Open a copy for editing."""
    record = module._record
    record.sealed = record.ready = False
    record.layout = None


def _adopt(module: Module, made: Blueprint) -> None:
    """Take over arguments, flow and Namespaces, when the objects that they lead to are made."""
    record = module._record
    record.arguments, record.flow, record.isolated = made.arguments, made.flow, made.isolated


def _put(module: Module, name: Any, value: Any) -> None:
    if isinstance(value, tree.Static):
        module._record.statics[str(name)] = None
        value = value.value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    vars(module)[name] = value


def _set_key(module: Module, name: Any, value: Any) -> None:
    structure.remember(module)
    _put(module, name, value)
    record = module._record
    record.removed.pop(name, None)
    if record.sealed:
        structure.note_edit(module)


def _pop_key(module: Module, name: Any) -> Any:
    structure.remember(module)
    value = vars(module).pop(name)
    record = module._record
    record.removed[name] = None
    if record.sealed:
        structure.note_edit(module)
    return value


def _map_refs(made: Blueprint, fn: Callable[[Any], Any]) -> Blueprint:
    if made.flow is None and not made.arguments and not made.isolated:
        return made
    given = made.arguments or _NOTHING
    mapped = {name: with_references(fn, value) for name, value in given.items()}
    changed = {name: value for name, value in mapped.items() if value is not given[name]}
    flow = None if made.flow is None else made.flow.map_constants(fn)
    isolated = {name: fn(namespace) for name, namespace in made.isolated.items()}
    if not changed and not isolated and flow is made.flow:
        return made
    arguments = {**given, **changed} if changed else made.arguments
    return made._replace(arguments=arguments, flow=flow, isolated=isolated or made.isolated)


def _compared(definition: tree.NodeDef) -> Any:
    made: Blueprint = definition.metadata
    return {
        "labels": [made.name, made.description, made.trainable],
        "built": made.built,
        "build": {name: _listed(nest) for name, nest in (made.build_config or {}).items()},
        "flow": None if made.flow is None else _flow_compared(made.flow),
        **({"isolated": dict(made.isolated)} if made.isolated else {}),
    }


def is_apart(node: Any) -> bool:
    """Whether a node counts or optimizes: what it keeps is its own, not the program's."""
    return isinstance(node, Module) and node._role != "part"


def _listed(nest: Any) -> Any:
    """A nest with lists for tuples, as a file has them."""
    if isinstance(nest, list | tuple):
        return [_listed(part) for part in cast("list[Any]", nest)]
    if isinstance(nest, dict):
        return {key: _listed(part) for key, part in cast("dict[str, Any]", nest).items()}
    return nest


def _flow_compared(flow: FlowGraph) -> Any:
    """What of a program's graph counts: schemas, labels and wiring, symbols by number."""

    def plain(nest: Any) -> Any:
        return leaves.map_leaves(lambda x: ("symbol", x.index) if isinstance(x, SymbolRef) else x, nest)

    return {
        "symbols": [(symbol.schema, symbol.name, symbol.optional) for symbol in flow.symbols],
        "inputs": plain(flow.inputs),
        "outputs": plain(flow.outputs),
        "steps": [
            (step.node, step.op, plain(step.args), plain(dict(step.kwargs)), plain(step.gives)) for step in flow.steps
        ],
    }


def _model_compared(definition: tree.NodeDef) -> Any:
    """What of a language model and its fallbacks counts: what a file holds of them, no key and no endpoint."""
    return [_settings_compared(lm) for lm in definition.metadata.tried()]


def _settings_compared(lm: SharedModel) -> Any:
    settings = lm.settings
    sampling = {name: value for name, value in settings.defaults.items() if name in SAMPLING}
    numbers = settings.attempts, settings.timeout_s, settings.repairs, settings.limit and settings.limit.numbers()
    lengths = settings.batch_size, settings.dimensions
    # of two models of one name a file marks the second by `#2`
    name, *fallback = [each.name.partition("#")[0] for each in (lm, *lm.fallback)]
    return name, settings.model, settings.structured, numbers, lengths, sampling, fallback


tree.register_impl(
    tree.NodeImpl(
        Module,
        flatten=lambda module: (children(module), _metadata(module)),
        set_key=_set_key,
        pop_key=_pop_key,
        create_empty=_create_empty,
        init=_init,
        children=children,
        metadata=_metadata,
        own_trainable=lambda module: module._record.trainable,
        map_refs=_map_refs,
        adopt=_adopt,
        compared=_compared,
        rewrite=_rewrite,
        record=lambda module: module._record,
        unseal=_unseal,
        unbuilt=lambda module: not module.built,
        is_module=True,
        subclasses=True,
    )
)
tree.register_impl(
    tree.NodeImpl(
        SharedModel, flatten=lambda lm: ((), lm), by_reference=True, compared=_model_compared, subclasses=True
    )
)
