"""The binding of a Trainer: the steps done, the names and schemas of its data, and the class of each Variable."""

import inspect
import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar, cast

from synmod import data, errors, leaves, tree
from synmod.leaves import did_you_mean, path_str
from synmod.module import Module, input_declaration, input_spec_of, own_inputs_of

from .candidates import Target, kind_of
from .credit import Routing, matches
from .optimizer import Optimizer
from .rows import Columns, Example, PositionalInputs, defaults_of, input_names, input_symbols
from .targets import names_of

Schemas: TypeAlias = list[tuple[str, data.SymbolicDataModel]]
F = TypeVar("F", bound=Callable[..., Any])
Role: TypeAlias = Literal["state", "fixed", "param", "aux"]
"""The class of a Variable: reset for each row, fixed, trained, or none of these."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The schemas, classes and requests that a Trainer has fixed; empty before `bind`.

    Attributes:
        program: The program.
        inputs: The name and schema of each input that rows have.
        labels: The schema of a target; None where none was given.
        outputs: The name and schema of each output.
        roles: The class of each Variable, by path text.
        requests: The word of `grad_req` for each param.
        routing: Routes feedback to the params; None before `bind`.
        columns: Reads rows by the inputs, and by the outputs of the program.
    """

    program: Module
    inputs: Schemas = field(default_factory=list[tuple[str, data.SymbolicDataModel]])
    labels: data.Schema | None = None
    outputs: list[tuple[str, data.Schema]] = field(default_factory=list[tuple[str, data.Schema]])
    roles: Mapping[str, Role] = field(default_factory=dict[str, Role])
    requests: Mapping[str, str] = field(default_factory=dict[str, str])
    routing: Routing | None = None
    columns: Columns = field(default_factory=partial(Columns, None))

    @property
    def has_params(self) -> bool:
        """Whether there is a Variable to train."""
        return "param" in self.roles.values()

    def values(self, *roles: Role) -> tree.State:
        """Return the State of the Variables of some classes, as they are."""
        everything = tree.state(self.program).items()
        return tree.State.of_leaves({path: leaf for path, leaf in everything if self.roles[path_str(path)] in roles})

    def targets_for(self, optimizer: Optimizer | None = None) -> dict[str, Target]:
        """Return the Variables that an optimizer may change, by path text; None for all that are trained.

        Raises:
            ConfigError: It changes examples that no model would see, since a template lacks `{examples}`.
            TrainerError: There is none; lists the Variables and why none fits.
        """
        owners = dict(tree.iter_graph(self.program, Module))
        name, targets = type(optimizer).__name__, dict[str, Target]()
        only = None if optimizer is None or optimizer.only is None else optimizer.only
        paths = self.roles if only is None else _match_paths(self.program, only, f"{name}: only")
        for path, variable in tree.iter_graph(self.program, tree.Variable):
            text, kind = path_str(path), kind_of(variable.schema)
            if self.roles[text] == "param" and text in paths and (optimizer is None or kind in optimizer.kinds):
                owner = next(path[:depth] for depth in range(len(path) - 1, -1, -1) if path[:depth] in owners)
                targets[text] = Target(text, path_str(owner), variable.schema, variable.description or "", kind)
                check: Any = getattr(owners[owner], "check_examples", None)
                if optimizer and kind == "examples" and check and getattr(optimizer, "max_examples", None) != 0:
                    check(text)
        if optimizer and not targets:
            variables = ", ".join(f"{path} ({role})" for path, role in self.roles.items()) or "none"
            raise errors.TrainerError(
                f"{name} has nothing to optimise: it changes {', '.join(optimizer.kinds)} of trained Variables that "
                f"its `only` takes. There are: {variables}."
            )
        return targets

    def check_presented(self, params: Any, aux: Any, allow_missing: bool) -> set[str]:
        """Return the paths of given values, as texts, once it is clear that none of their kind is missing.

        Args:
            params: Values of params and fixed Variables, a State or a dict by path; None where none are given.
            aux: Values of the rest; states among them may always be left out.
            allow_missing: Whether others may be left out, too.

        Raises:
            StateError: Paths are missing; lists all.
        """
        presented: set[str] = set()
        missing: list[str] = []
        for values, kinds in ((params, ("param", "fixed")), (aux, ("aux",))):
            if isinstance(values, Mapping):
                paths = {path if isinstance(path, str) else path_str(path) for path in cast("Iterable[Any]", values)}
                missing += [path for path, role in self.roles.items() if role in kinds and path not in paths]
                presented |= paths
        if missing and not allow_missing:
            raise errors.StateError(
                f"Values by path: not presented: {', '.join(missing)}. allow_missing=True, or strict=False of a load, "
                "lets them keep what they have."
            )
        return presented

    async def first_values(
        self, initializer: Any, initial_values: tree.State, presented: Container[str]
    ) -> dict[str, Any]:
        """Return the values with which Variables begin: from `init` metadata, the initializer, or as they were made.

        Fixed ones are left alone, and states begin as they were made.

        Args:
            initializer: A State, a dict by path, a function `(path, schema)`, one of `sm.initializers`, or None.
            initial_values: The values at the first bind.
            presented: Paths with a value of their own.

        Raises:
            ArgumentError: The initializer is none of these.
            StateError: It has a path that is not in the program.
        """
        make: Any = initializer if callable(initializer) else None
        begin = initial_values if initializer is None or make else initial_values.replace(initializer)
        is_ours = isinstance(initializer, tree.initializers.Constant | tree.initializers.Empty)
        values: dict[str, Any] = {}
        for path, variable in tree.variables(self.program).items():
            if path in presented or self.roles[path] == "fixed":
                continue
            if "init" in variable.metadata:
                values[path] = variable.metadata["init"]
            elif make is None or self.roles[path] == "state":
                values[path] = begin[path].value
            else:
                value = make(variable.schema) if is_ours else make(path, variable.schema)
                values[path] = await value if inspect.isawaitable(value) else value
        return values

    def wrap_row(self, example: Example, number: int) -> Example:
        """Return a row whose inputs and target are data models: plain JSON is wrapped by the schemas that were bound.

        Args:
            example: The row.
            number: Names it where it has no id.

        Raises:
            SchemaError: A value misses its schema; names the row.
            DataError: An input is missing or unknown, or no output can have its target; names the row.
        """
        place = f"row {number if example.id is None else example.id}"
        try:
            target = self.columns.targets.read(example.target)
            return replace(example, inputs=self.columns.wrap(example.inputs), target=target)
        except errors.SchemaError as error:
            raise errors.SchemaError(f"{place}: {error}", error.errors) from None
        except errors.DataError as error:
            raise errors.DataError("\n".join([f"{place}: {error}", *errors.notes_of(error)])) from None

    def reshape(self, inputs: Schemas, labels: data.Schema | None) -> Self:
        """Return a binding with compatible schemas, which all rows of the former ones satisfy, and the program takes.

        Raises:
            SchemaError: They are not; names the input.
        """
        before, declared = dict(self.inputs), symbols_by_name(self.program)
        is_whole = own_inputs_of(self.program) or input_spec_of(self.program) is not None
        fits = data.is_subschema if is_whole else data.contains  # an annotation lets further fields pass
        for name, symbol in inputs:
            bound, schema = data.schema_of(before[name]), data.schema_of(symbol)
            declared_schema = data.schema_of(before[name] if declared.get(name) is None else declared[name])
            if not data.is_subschema(bound, schema) or not fits(schema, declared_schema):
                raise errors.SchemaError(
                    f"reshape: {name!r} is not compatible with what is bound, or not with what the program takes: "
                    f"{schema!r:.200} against {bound!r:.200} and {declared_schema!r:.200}."
                )
        columns = Columns(self.program, self.columns.targets.outputs, symbols=dict(inputs))
        return replace(self, inputs=inputs, labels=self.labels if labels is None else labels, columns=columns)


# -- names and schemas of data -----------------------------------------------------------------------------------------


def check_data_names(program: Module, data_names: str | Sequence[str] | None) -> list[str]:
    """Return the names of a program's inputs, in its order: all of them, or those that were given.

    Raises:
        TrainerError: The program has no such input, or needs one that is left out.
    """
    inputs, defaults = input_names(program), defaults_of(program)
    names = inputs if data_names is None else as_list(data_names)
    for name in names:
        if name not in inputs:
            raise errors.TrainerError(
                f"data_names: {name!r} is not found in {program.name!r}.{did_you_mean(name, inputs)} "
                f"It takes: {', '.join(inputs)}."
            )
    missing = [name for name in inputs if name not in {*names, *defaults}]
    if missing:
        raise errors.TrainerError(f"data_names: {', '.join(missing)} of {program.name!r} cannot be left out.")
    return [name for name in inputs if name in names]


def schemas_by_name(schemas: Any, names: Sequence[str]) -> Schemas:
    """Return symbols by the names of the inputs.

    Args:
        schemas: A data model, a JSON schema, or a list of `(name, schema)`.
        names: The names of the inputs.

    Raises:
        TrainerError: Other names.
        SchemaError: Something is not a schema.
    """
    is_list = isinstance(schemas, list)
    schema_by_name = dict(
        cast("list[tuple[str, Any]]", schemas) if is_list else [(names[0] if names else "data", schemas)]
    )
    if sorted(schema_by_name) != sorted(names):
        raise errors.TrainerError(f"Data provided by {list(schema_by_name)} do not match the inputs {list(names)}.")
    return [(name, _symbol(schema_by_name[name])) for name in names]


def _symbol(schema: Any) -> data.SymbolicDataModel:
    """Return a declaration as a symbol, with its class where it has one."""
    return data.symbol(data.declare(schema), None if isinstance(schema, Mapping) else data.model_of(schema))


def output_schemas(outputs: Any) -> list[tuple[str, data.Schema]]:
    """Return the schemas of what a program returns, by name."""
    pairs = zip(names_of(outputs), leaves.leaves(outputs), strict=True)
    return [(name or "outputs", data.schema_of(leaf)) for name, leaf in pairs if leaf is not None]


def symbols_by_name(program: Module) -> dict[str, data.SymbolicDataModel | None]:
    """Return what a program declares of each input, by name; None where it declares nothing."""
    return dict(zip(input_names(program), leaves.leaves(input_symbols(program)), strict=False))


def arguments(program: Module, inputs: Mapping[str, Any]) -> PositionalInputs:
    """Return values by name as the positional arguments of a program: one dict where its Inputs are a dict."""
    defaults = defaults_of(program)
    values = {name: inputs[name] if name in inputs else defaults.get(name) for name in input_names(program)}
    is_dict = own_inputs_of(program) and leaves.is_object(input_declaration(program))
    return PositionalInputs((values,)) if is_dict else PositionalInputs(values.values())


def as_list(value: Any) -> list[Any]:
    """Return one thing or several as a list; None is nothing."""
    several = isinstance(value, list | tuple | set)
    return [] if value is None else list(cast("Iterable[Any]", value)) if several else [value]


# -- classes of Variables ----------------------------------------------------------------------------------------------


def roles_of(program: Module, fixed: Iterable[Any], states: Iterable[Any]) -> dict[str, Role]:
    """Return the class of each Variable, by path text: the first one that applies.

    Args:
        program: A built program.
        fixed: Paths, globs or filters of the fixed Variables.
        states: The same for Variables that are reset for each row; a `Memory` always is.

    Raises:
        TrainerError: An entry matches nothing.
    """
    reset = _match_paths(program, states, "state_names") | {*tree.variables(program, tree.Memory)}
    stays = _match_paths(program, fixed, "fixed_param_names")
    trained = tree.variables(program, tree.Trainable())
    return {
        path: "state" if path in reset else "fixed" if path in stays else "param" if path in trained else "aux"
        for path in tree.variables(program)
    }


def _match_paths(program: Module, entries: Any, what: str) -> set[str]:
    """Return the paths that paths, globs or filters take.

    Raises:
        TrainerError: One of them takes nothing.
    """
    paths: set[str] = set()
    for entry in as_list(entries):
        variables = tree.variables(program, tree.Path(entry) if isinstance(entry, str) else entry)
        if not variables:
            all_paths = [*tree.variables(program)]
            raise errors.TrainerError(
                f"{what}: {entry!r} matches no Variable.{did_you_mean(entry, all_paths)} There are: "
                f"{', '.join(all_paths)}."
            )
        paths.update(variables)
    return paths


def warn_of_unasked(label_names: Sequence[str], labels: Any, needs_target: bool) -> None:
    """Warn of target fields that are not used: the target has none of that name, or no target is needed."""
    fields = set(label_names) if labels is None else set(data.symbol(labels).keys())
    for name in sorted(set(label_names) - (fields if needs_target else set())):
        warnings.warn(
            f"label_names: {name!r} is not used; it is no field of the target, or no reward takes a target.",
            errors.SynmodWarning,
            stacklevel=6,
        )


def requests_of(grad_req: str | Sequence[str] | Mapping[str, str], params: Sequence[str]) -> dict[str, str]:
    """Return the word of `grad_req` for each param, by path text.

    Raises:
        TrainerError: An unknown word, a path that matches none, or a list of another length than the params.
    """
    requests = dict.fromkeys(params, "write")
    if not isinstance(grad_req, Mapping):
        words = [grad_req] * len(params) if isinstance(grad_req, str) else list(grad_req)
        if len(words) != len(params):
            raise errors.TrainerError(f"grad_req: {len(words)} entries for {len(params)} params: {', '.join(params)}.")
        grad_req = dict(zip(params, words, strict=True))
    for key, word in grad_req.items():
        paths = [path for path in params if matches(key, path)]
        if not paths:
            raise errors.TrainerError(f"grad_req: {key!r} matches no param.{did_you_mean(key, params)}")
        leaves.check_choice(f"grad_req of {key!r}", word, ("write", "add", "null"), error=errors.TrainerError)
        requests.update(dict.fromkeys(paths, word))
    return requests


def check_shared(program: Module, lender: Module) -> None:
    """Raise unless the Variables of another program can replace those of this one, by path.

    Raises:
        StateError: Paths that one side lacks, or with another schema; lists all of them.
    """
    own, shared = tree.variables(program), tree.variables(lender)
    faults = [f"{path!r} is missing in {lender.name!r}" for path in own if path not in shared]
    faults += [f"{path!r} is missing in {program.name!r}" for path in shared if path not in own]
    faults += [
        f"{path!r} has another schema in {lender.name!r}"
        for path, variable in own.items()
        if path in shared and not leaves.json_equal(variable.schema, shared[path].schema)
    ]
    if faults:
        raise errors.StateError(f"shared_module: {'; '.join(faults)}. Programs that share have the same Variables.")


# -- the steps of a Trainer --------------------------------------------------------------------------------------------

PARAMETERS: Final = ("bind", "init_params")

_METHODS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("bind",), "reshape data_schemas label_schemas output_schemas install_monitor get_states set_states set_params"),
    (("bind",), "load_params init_params shared_module"),
    ((), "bind"),
    (("init_params",), "get_params save_params save_checkpoint"),
    (PARAMETERS, "init_optimizer borrow_optimizer forward score predict iter_predict"),
    ((*PARAMETERS, "bind for training"), "forward_backward"),
    ((*PARAMETERS, "forward"), "get_outputs update_metric"),
    ((*PARAMETERS, "bind for training", "forward"), "backward"),
    ((*PARAMETERS, "inputs_need_grad", "forward", "backward"), "get_input_grads"),
    ((*PARAMETERS, "init_optimizer", "forward", "backward"), "update"),
    ((*PARAMETERS, "init_optimizer"), "save_optimizer_states load_optimizer_states"),
)
NEEDS: Final = {method: steps for steps, methods in _METHODS for method in methods.split()}
"""The steps that each method needs, in order."""

_HOW: Final = {
    "bind": "await trainer.bind(schemas)",
    "bind for training": "await trainer.bind(..., for_training=True, force_rebind=True)",
    "inputs_need_grad": "await trainer.bind(..., inputs_need_grad=True, force_rebind=True)",
    "init_params": "await trainer.init_params()",
    "init_optimizer": "trainer.init_optimizer(...)",
    "forward": "await trainer.forward(batch)",
    "backward": "await trainer.backward()",
}


_MODES: Final = ("bind for training", "inputs_need_grad")
"""Modes of `bind`, which are not steps of their own."""


class Lifecycle(dict[str, None]):
    """The steps that a Trainer has done, in order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The steps done, without the modes of `bind`."""
        return tuple(step for step in self if step not in _MODES)

    def add(self, *steps: str) -> None:
        """Note that steps have wholly succeeded."""
        self.drop(*steps)
        self.update(dict.fromkeys(steps))

    def drop(self, *steps: str) -> None:
        """Forget steps that no longer hold."""
        for step in steps:
            self.pop(step, None)

    def check(self, call: str) -> None:
        """Raise for a method that is called before the steps that it needs.

        Raises:
            LifecycleError: Names the call, the next missing step, those after it, and the steps done so far.
        """
        steps = (needed for step in NEEDS[call] if step not in self for needed in (*NEEDS.get(step, ()), step))
        missing = [*dict.fromkeys(needed for needed in steps if needed not in self)]
        if missing:
            later = ", ".join(step for step in missing[1:] if step not in _MODES)
            raise errors.LifecycleError(
                f"{call} needs {missing[0]!r} first: {_HOW[missing[0]]}{later and f'; then {later}'}. "
                f"Done so far: {', '.join(self.names) or 'nothing'}."
            )


def needs_its_steps(method: F) -> F:
    """Let a method of a Trainer run only after the steps that the table names for it."""

    def check(args: tuple[Any, ...]) -> AbstractContextManager[None]:
        args[0].steps.check(method.__name__)
        return nullcontext()

    return leaves.aio.in_block(method, check)


def done(step: str, doc: str) -> Any:
    """Return a property of a Trainer: whether a step was done."""

    def is_done(self: Any) -> bool:
        return step in self.steps

    return property(is_done, doc=doc)
