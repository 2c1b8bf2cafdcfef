"""The class `Module`, whose methods are short calls into the other files of this room."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar, overload

from pydantic import BaseModel

from synmod import data, errors, leaves, tree
from synmod.scope import CallCounters, Feedback, Hook, add_reward, check_hook, rewards_of

from . import building, constructing, contract, structure, transactions
from .building import build_nothing, default_output_spec
from .calling import call_module
from .constructing import ModuleMeta, construct, declaration_of, with_name_scope
from .declaring import Callee, RoomsAbove, Unspecified
from .structure import ModuleRecord, current_path, sow

R = TypeVar("R")
Answer = TypeVar("Answer", bound=BaseModel)
Data: TypeAlias = Answer | data.JsonDataModel[Answer]
"""The types that a call may return for a declared data model: an instance or a value."""


class Module(metaclass=ModuleMeta):
    """A part of a program: `__init__` makes its parts, `build` makes schema-dependent state, `call` does the work.

    Args:
        name: Label; by default the class name in snake case.
        description: Label; by default the first paragraph of the class's own docstring.
        trainable: Whether the Variables below may be trained.
        hooks: Listeners to the calls and builds of this module, and to events inside its calls.

    Raises:
        ConfigError: A keyword is unknown.
        BadNameError: The name is not an identifier.
        ArgumentError: A hook is invalid.

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
    graph_ignored: ClassVar[frozenset[str]] = frozenset()
    """The attributes that a class, with those derived from it, keeps out of the graph: caches, handles, clients."""
    _role: ClassVar[Literal["part", "metric", "optimizer"]] = "part"  # only Variables of parts belong to the program
    accepts_none: ClassVar[bool] = False
    """Whether `call` gets None instead of being skipped."""
    stashable_names: ClassVar[frozenset[str]] = frozenset()
    """The names declared with `skippable(stash=...)`."""
    poppable_names: ClassVar[frozenset[str]] = frozenset()
    """The names declared with `skippable(pop=...)`."""
    skip_schemas: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The schemas of the typed skip names."""
    _record: ModuleRecord

    if TYPE_CHECKING:
        # attributes of a wide type, so that a method of any signature may override them
        call: Callable[..., Any]
        """The work of the module, defined by you: takes data models, returns data; may have a parameter `training`.

        `await module(x)` checks the inputs, runs it, and checks the result against its annotation.
        """
        build: Callable[..., Any]
        """Makes schema-dependent state once, before the first call; takes a symbol for each input. Optional."""
        compute_output_spec: Callable[..., Any]
        """Runs in place of `call` on symbols; by default returns the declared outputs, else those of `call`."""

        def __init__(
            self,
            *,
            name: str | None = None,
            description: str | None = None,
            trainable: bool = True,
            hooks: Sequence[Hook] | None = None,
        ) -> None: ...

        # the return type of `call`, with `JsonDataModel[Answer]` for `Answer`
        @overload
        def __call__(
            self: Callee[Unspecified], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, Any]: ...
        @overload
        def __call__(
            self: Callee[Data[Answer]], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, data.JsonDataModel[Answer]]: ...
        @overload
        def __call__(
            self: Callee[Data[Answer] | None], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, data.JsonDataModel[Answer] | None]: ...
        @overload
        def __call__(
            self: Callee[R], /, *args: Any, training: bool | None = None, **kwargs: Any
        ) -> Coroutine[Any, Any, R]: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    else:
        __init__ = construct
        __call__ = call_module
        # shown in the warning for a forgotten await
        __call__.__name__, __call__.__qualname__ = "module", "Module.__call__"
        build = build_nothing
        compute_output_spec = default_output_spec

    def __new__(cls, /, *_args: Any, **_kwargs: Any) -> Self:
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
        """The label of this module; it is not used to save, match or trace."""
        return self._record.name

    @name.setter
    def name(self, name: str) -> None:
        self._record.name = leaves.check_name(name)

    @property
    def description(self) -> str:
        """The purpose of this module, in a sentence."""
        return self._record.description

    @description.setter
    def description(self, description: str) -> None:
        leaves.check_type(f"{self.name!r}: description", description, str, "a str", error=errors.ConfigError)
        self._record.description = description

    @property
    def path(self) -> str:
        """The path of this module below the entry module; "" for a root."""
        return current_path(self)

    with_name_scope = staticmethod(with_name_scope)

    @property
    def trainable(self) -> bool:
        """Whether the subtree may be trained; masks the Variables below without changing them."""
        return self._record.trainable

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        leaves.check_type(f"{self.name!r}: trainable", trainable, bool, "True or False", error=errors.ConfigError)
        self._record.trainable = trainable

    # -- state --------------------------------------------------------------------------------------------------------

    @leaves.checks_keywords
    def add_variable(
        self,
        initializer: Any = None,
        data_model: Any = None,
        schema: Any = None,
        trainable: bool | None = None,
        name: str | None = None,
        description: str | None = None,
        type: type[tree.Variable] = tree.Param,  # noqa: A002  # the public name
    ) -> tree.Variable:
        """Make a Variable and store it as the attribute of its name.

        Args:
            initializer: Initial value: JSON, a data model, or a callable that takes the schema.
            data_model: Data model class, symbol, or an instance, whose JSON is then the initial value.
            schema: JSON schema of the value; must agree with `data_model`.
            trainable: Whether training may change the Variable; None for the default of its type.
            name: Label and attribute name; by default the schema's title in snake case, else `variable`.
            description: Label.
            type: Class of the Variable.

        Returns:
            The Variable.

        Raises:
            SealedError: The module is built.
            ArgumentError: `data_model` and `schema` disagree, or `type` is not a Variable type.
            SchemaError: The initial value is not valid.
            BadNameError: The name is not an identifier.

        Example:
            >>> import synmod as sm
            >>> sm.Module().add_variable("Be brief.", name="instructions").value
            'Be brief.'

        Source: Keras `add_weight`.
        """
        options = {"initializer": initializer, "data_model": data_model, "schema": schema, "trainable": trainable}
        return structure.add_variable(self, type, **options, name=name, description=description)

    def get_variable(self, name: str | None = None, index: int | None = None) -> tree.Variable:
        """Return one Variable by its name or by its index in `variables`.

        Raises:
            ArgumentError: Both or neither of `name` and `index` are given.
            GraphError: No Variable or several have the name, or the index is out of range.
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
        """The Variables that are trainable themselves and not below a frozen module."""
        return tree.variables_of(self, is_apart, trainable=True)

    @property
    def non_trainable_variables(self) -> tuple[tree.Variable, ...]:
        """The Variables that are not in `trainable_variables`."""
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
        """The Variables of the metrics below, in definition order."""
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
        """Iterate over the modules, other nodes and Variables below, lazily, in definition order.

        Args:
            predicate: A filter, or a function of the value; None takes everything.
            recursive: Whether to descend into the child nodes; they are yielded in any case.
            with_path: Yield `(path, value)` once for every acyclic path, instead of each object once.
            key: Sort key for the attribute names of each node; the sort is stable.
            statics: Yield statics too.

        Raises:
            ArgumentError: The predicate is neither a filter nor a function.

        Example:
            >>> import synmod as sm
            >>> module = sm.Module()
            >>> module.prompt = sm.Param("x")
            >>> list(module.flatten(sm.Param, with_path=True))
            [(('prompt',), Param('x'))]

        Source: tf.Module `_flatten`; differs: lazy, any filter, statics on request.
        """
        return tree.iter_below(self, predicate, recursive=recursive, with_path=with_path, key=key, statics=statics)

    def set_attributes(self, filter: Any = ..., *, raise_if_not_found: bool = True, **attrs: Any) -> None:  # noqa: A002
        """Set plain attributes on this module and all nodes below that match and have them; see `sm.set_attributes`.

        Raises:
            GraphError: No matching node has an attribute, or the attribute holds a node or Variable.
        """
        tree.set_attributes(self, filter, raise_if_not_found=raise_if_not_found, **attrs)

    # -- building -----------------------------------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """Whether this module's own `build` is done; True from the start if its class has none."""
        return transactions.is_built_here(self._record)

    @property
    def version(self) -> int:
        """The number of structural edits of this module since it was sealed."""
        return self._record.version

    if TYPE_CHECKING:
        input_spec: Any  # attributes for a type checker: a class may set them too
        output_spec: Any

    else:

        @property
        def input_spec(self) -> Any:
            """The required inputs, beyond annotations, as a nest of symbols; None if nothing is required."""
            return contract.input_spec_of(self)

        @input_spec.setter
        def input_spec(self, spec: Any) -> None:
            contract.symbols_of(spec, f"{self.name}: input_spec")  # raises here for a bad spec, not at the first call
            vars(self)["input_spec"] = spec
            self._record.contract = None

        @property
        def output_spec(self) -> Any:
            """The declared outputs as a nest of symbols; None if nothing is declared."""
            return contract.output_declaration(self).nest

        @output_spec.setter
        def output_spec(self, spec: Any) -> None:
            contract.symbols_of(spec, f"{self.name}: output_spec")
            vars(self)["output_spec"] = spec
            self._record.declared = None

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the schemas this module was built on; None before the build, and for a class without `build`."""
        return building.write_build_config(self, lambda symbol: symbol.get_schema())

    def build_from_config(self, config: Mapping[str, Any] | None) -> Any:
        """Build an unbuilt module on the schemas that `get_build_config` returned.

        Raises:
            BuildError: Its `build` must wait; use `await sm.build(...)`.
        """
        return building.build_from_config(self, config)

    # -- skip connections ---------------------------------------------------------------------------------------------

    def stashable(self) -> Iterator[tuple[Any, str]]:
        """Return the `(namespace, name)` pairs that this module stashes by name; the default namespace is None."""
        return structure.pair_with_namespaces(self, self.stashable_names)

    def poppable(self) -> Iterator[tuple[Any, str]]:
        """Return the `(namespace, name)` pairs that this module pops, by name."""
        return structure.pair_with_namespaces(self, self.poppable_names)

    def namespaced(self, name: str) -> tuple[Any, str]:
        """Return the `(namespace, name)` pair of one name."""
        return next(structure.pair_with_namespaces(self, [name]))

    def isolate(self, ns: Any) -> Self:
        """Put the declared skip names into a Namespace; replaces an earlier one.

        Returns:
            This module, so that calls can be chained.

        Raises:
            ArgumentError: `ns` is not a `synmod.skip.Namespace`.
            SkipNameError: The class declares no skip names.
            SealedError: The module is built.
        """
        structure.isolate(self, ns)
        return self

    # -- config and copies --------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Return the given constructor arguments as live values; for attributes assigned since, the present value.

        Raises:
            ConfigError: The arguments are not known.
        """
        return constructing.get_config(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a module from a config that `get_config` returned.

        Raises:
            ConfigError: A key is unknown.
        """
        return constructing.from_config(cls, config)

    def clone(self, name: str | None = None) -> Self:
        """Return a copy: new structure, the same values and language models, counters at zero, no hooks.

        Raises:
            BadNameError: The new name is not an identifier.
        """
        if name is not None:
            leaves.check_name(name)  # before anything is copied
        copy = tree.clone(self)
        if name is not None:
            copy.name = name
        return copy

    __deepcopy__ = tree.deepcopy_node

    def __reduce_ex__(self, protocol: Any) -> Any:
        return constructing.reduce(self)

    def __repr__(self) -> str:
        return constructing.constructor_call(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise constructing.no_attribute(self, name)

    # -- views --------------------------------------------------------------------------------------------------------

    @leaves.checks_keywords
    def summary(self, depth: int | None = None, columns: Sequence[str] | None = None) -> str:
        """Print a table of the modules: Variables, schemas, models and, after a recorded call, costs.

        Args:
            depth: Number of levels to show below this module; deeper modules are summed into their ancestors. None for
                all.
            columns: Names from `synmod.view.COLUMNS`, in the order to show; None for all that are not empty.

        Returns:
            What was printed: the table, then the totals, as text without control characters.

        Raises:
            ArgumentError: A column is unknown ('Did you mean'), or `depth` is not a number of levels.
            GraphError: The program cannot be walked; names the path.

        Example:
            >>> import synmod as sm
            >>> text = sm.Sequential([sm.Identity()]).summary(columns=["path", "class"])
            path    class
            ──────  ────────────────────
            (root)  Sequential (unbuilt)
            0       Identity
            2 modules, 1 unbuilt; no Variables

        Source: Keras `summary`, Flax `tabulate`; differs: from one walk, also before the build, and returned as well.
        """
        return RoomsAbove.instance.summary(self, depth, columns)

    @leaves.checks_keywords
    def plot(self, path: str | os.PathLike[str] | None = None, format: str = "auto") -> str:  # noqa: A002
        """Draw this module: boxes are modules; solid edges data flow, dashed skips, dotted shared Variables.

        The data flow is that of a functional program; below modules with a `call`, that of the last call of this module
        recorded by `sm.trace`.

        Args:
            path: A file to write the picture to as well.
            format: "mermaid", "svg", "html" or "json"; "auto" for the suffix of `path`, without one "mermaid".

        Returns:
            The picture as text.

        Raises:
            ArgumentError: The format is unknown ('Did you mean'), or differs from the suffix of `path`.
            GraphError: The program cannot be walked; names the path.
            SaveError: The file cannot be written.

        Example:
            >>> import json
            >>> import synmod as sm
            >>> [edge["target"] for edge in json.loads(sm.Sequential([sm.Identity()]).plot(format="json"))["edges"]]
            ['0', '#outputs/output']

        Source: Keras `plot_model`; differs: needs no external program, and the JSON format is stable.
        """
        return RoomsAbove.instance.plot(self, path, format)

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows."""
        return self.plot(format="svg")

    # -- modes, hooks, counters ---------------------------------------------------------------------------------------

    def train(self) -> Self:
        """Set `training` here, and on all nodes below that have it, to True, and `deterministic` to False."""
        return constructing.set_mode(self, training=True)

    def eval(self) -> Self:
        """Set `training` here, and on all nodes below that have it, to False, and `deterministic` to True."""
        return constructing.set_mode(self, training=False)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """This module's own hooks, in the order added."""
        return self._record.hooks

    def add_hook(self, hook: Hook) -> None:
        """Add a hook, which receives the calls and builds of this module, and the events inside its calls.

        Raises:
            ArgumentError: `hook` is not a hook, or overrides a synchronous event with an async method.
        """
        check_hook(hook)
        structure.remember(self)
        self._record.hooks = (*self._record.hooks, hook)

    def remove_hook(self, hook: Hook) -> None:
        """Remove a hook.

        Raises:
            ArgumentError: The module does not have this hook.
        """
        remaining = tuple(own for own in self.hooks if own is not hook)
        if len(remaining) == len(self.hooks):
            raise errors.ArgumentError(f"{self.name!r} has no such hook {hook!r}; it has {len(remaining)}.")
        structure.remember(self)
        self._record.hooks = remaining

    @property
    def counters(self) -> CallCounters:
        """The counters of the entry calls of this module."""
        return self._record.counters

    @property
    def cumulated_invocations(self) -> int:
        """The number of entry calls that returned or failed."""
        return self._record.counters.invocations

    @property
    def cumulated_invocation_elapsed_s(self) -> float:
        """The wall-clock seconds of those entry calls."""
        return self._record.counters.elapsed_s

    def add_reward(self, value: float, name: str | None = None) -> None:
        """Add a reward to the running entry call, under this module's path.

        Raises:
            CallError: No call is running, or `value` is not a finite number.
        """
        add_reward(self._record, value, name)

    def route_feedback(self, inputs: Any, outputs: Any, feedback: Feedback) -> Any:  # noqa: ARG002  # for overrides
        """Return the feedback for the calls inside one call of this module, after a reward has scored it; may be async.

        Args:
            inputs: The inputs of the call, as JSON.
            outputs: The outputs of the call, as JSON.
            feedback: The feedback for the call.

        Returns:
            The Feedback for the calls inside; by default the same.

        Source: backward hooks of PyTorch; TextGrad.
        """
        return feedback

    @property
    def rewards(self) -> tuple[float, ...]:
        """The rewards under this module so far in the running entry call; () outside a call."""
        return rewards_of(self._record)

    def sow(self, type: type[tree.Variable], name: str, value: Any) -> bool:  # noqa: A002  # the public name
        """Record an intermediate value of the running call, for the open `sm.capture(type)` blocks.

        Nothing is written into the module, so concurrent samples never mix; a trace records nothing.

        Args:
            type: Variable type, such as `sm.Intermediate`.
            name: The key below this module's path.
            value: JSON or a data model.

        Returns:
            Whether the value was recorded: False without an open capture of that type.

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

        Source: Flax NNX `sow`; differs: stored by call, not on the module.
        """
        return sow(self, type, name, value)

    # -- attributes ---------------------------------------------------------------------------------------------------

    __setattr__ = structure.set_attribute
    __delattr__ = structure.delete_attribute


def is_apart(node: Any) -> bool:
    """Whether a node is a metric or an optimizer, whose Variables do not belong to the program."""
    return isinstance(node, Module) and node._role != "part"
