"""What a Trainer fixes of a program: the names and schemas of its data, and the class of each Variable."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from synmod.data import Schema, SymbolicDataModel, declare, is_subschema, label, model_of, schema_of, symbol
from synmod.errors import ArgumentError, SchemaError, StateError, SynmodWarning, TrainerError
from synmod.flow import leaves_with_path
from synmod.leaves import KeyPath, did_you_mean, is_object, json_equal, parse_path, path_str, thaw
from synmod.module import Module, build, declared_inputs, own_inputs_of
from synmod.tree import Memory, Path, State, Trainable, Variable, initializers, iter_graph, share_variables, state

from .examples import Example, Several, fitted, input_names
from .optimizer import Optimizer, Routing, Target
from .rewards import Reward

Schemas: TypeAlias = list[tuple[str, SymbolicDataModel]]
Role: TypeAlias = Literal["state", "fixed", "param", "aux"]
"""What becomes of a Variable: it is reset for each row, stays, is trained, or is none of these."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a Trainer has fixed of a program; nothing before `bind`.

    Attributes:
        program: The program.
        inputs: The name and schema of each input.
        labels: The schema of a target; None where none was given.
        outputs: The name and schema of each output.
        roles: The class of each Variable.
        requests: What becomes of the feedback of each param.
        routing: Takes feedback to the params; None before `bind`.
    """

    program: Module
    inputs: Schemas = field(default_factory=list[tuple[str, SymbolicDataModel]])
    labels: Schema | None = None
    outputs: list[tuple[str, Schema]] = field(default_factory=list[tuple[str, Schema]])
    roles: Mapping[KeyPath, Role] = field(default_factory=dict[KeyPath, Role])
    requests: Mapping[str, str] = field(default_factory=dict[str, str])
    routing: Routing | None = None

    @property
    def has_params(self) -> bool:
        """Whether there is a Variable to train."""
        return "param" in self.roles.values()

    def values(self, *roles: Role) -> State:
        """Return the State of the Variables of some classes, as they are."""
        everything = state(self.program)
        return State.of_leaves({path: everything[path] for path, role in self.roles.items() if role in roles})

    def wrapped(self, example: Example) -> Example:
        """Return a row whose inputs are data models: plain JSON is wrapped by the schemas of the inputs.

        Raises:
            TrainerError: The program takes several inputs, and it has others.
            SchemaError: A value misses its schema; names the row.
        """
        schemas, row = dict(self.inputs), example.inputs
        if len(schemas) > 1 and not (isinstance(row, Mapping) and set(cast("Any", row)) == set(schemas)):
            raise TrainerError(f"row {example.id}: its inputs are {row!r:.100}; give a dict of {', '.join(schemas)}.")
        try:
            if len(schemas) == 1:
                return replace(example, inputs=fitted(self.inputs[0][1], row))
            given = ((name, fitted(schema, row[name])) for name, schema in self.inputs)
            return replace(example, inputs=arguments(self.program, given))
        except SchemaError as error:
            raise SchemaError(f"row {example.id}: {error}", error.errors) from None

    def reshaped(self, data: Schemas, labels: Schema | None) -> Binding:
        """Return a binding with compatible schemas, which have at most further optional fields.

        Raises:
            SchemaError: They are not; names the input.
        """
        before = dict(self.inputs)
        for name, found in data:
            bound, schema = schema_of(before[name]), schema_of(found)
            known = bound.get("properties", {})
            kept = {field: each for field, each in schema.get("properties", {}).items() if field in known}
            same = declare({**thaw(schema), "properties": thaw(kept)})
            if kept.keys() != known.keys() or not is_subschema(same, bound):
                raise SchemaError(
                    f"reshape: {name!r} is not compatible with what is bound: {schema!r:.200} against {bound!r:.200}. "
                    "Bind anew with force_rebind=True."
                )
        return replace(self, inputs=data, labels=self.labels if labels is None else labels)


async def bind(
    program: Module,
    data: Schemas,
    labels: Schema | None,
    *,
    reward: Reward | None,
    label_names: Sequence[str],
    fixed: Any,
    states: Any,
    grad_req: str | Sequence[str] | Mapping[str, str],
    shared: Module | None,
) -> Binding:
    """Build a program on symbols, and fix what is trained.

    Args:
        program: The program.
        data: The name and schema of each input.
        labels: The schema of a target.
        reward: What will judge rows.
        label_names: The fields of the target that it needs.
        fixed: Paths, globs or filters of Variables that are not trained.
        states: The same of Variables that each row begins with anew.
        grad_req: What becomes of feedback.
        shared: Whose Variables become this program's.

    Raises:
        TrainerError: A name, mask or request that names nothing.
        SchemaError: Schemas that do not fit.
        StateError: `shared` has other paths or schemas.
    """
    outputs = output_schemas(await build(program, *arguments(program, data)))
    if reward is not None:
        if len(outputs) == 1:
            reward.check(outputs[0][1], labels)
        warn_of_unasked(label_names, labels, reward.needs_target)
    own = dict(iter_graph(program, Variable))
    if shared is not None:
        check_shared(program, shared)
        share_variables(program, dict(iter_graph(shared, Variable)))
    try:
        roles = roles_of(program, fixed, states)
        requests = requests_of(grad_req, [path_str(path) for path, role in roles.items() if role == "param"])
        routing = Routing(program, targets_of(program, roles).values())
    except BaseException:
        if shared is not None:
            share_variables(program, own)
        raise
    return Binding(program, data, labels, outputs, roles, requests, routing)


# -- names and schemas of data -----------------------------------------------------------------------------------------


def check_data_names(program: Module, given: Sequence[str] | None) -> list[str]:
    """Return the names of a program's inputs, in its order: all of them, or those that were given.

    Raises:
        TrainerError: The program has no such input.
    """
    known = input_names(program)
    for name in given or ():
        if name not in known:
            raise TrainerError(
                f"data_names: {name!r} is not found in {program.name!r}.{did_you_mean(name, known)} "
                f"It takes: {', '.join(known)}."
            )
    return known if given is None else [name for name in known if name in given]


def named_schemas(given: Any, names: Sequence[str]) -> Schemas:
    """Return symbols by the names of the inputs.

    Args:
        given: A data model, a JSON schema, or a list of `(name, schema)`.
        names: The names of the inputs.

    Raises:
        TrainerError: Other names.
        SchemaError: Something is not a schema.
    """
    pairs: Schemas = (
        [(str(name), _symbol(schema)) for name, schema in cast("list[tuple[str, Any]]", given)]
        if isinstance(given, list)
        else [(names[0] if names else "data", _symbol(given))]
    )
    if sorted(name for name, _ in pairs) != sorted(names):
        raise TrainerError(f"Data provided by {[name for name, _ in pairs]} do not match the inputs {list(names)}.")
    order = {name: number for number, name in enumerate(names)}
    return sorted(pairs, key=lambda pair: order[pair[0]])


def _symbol(given: Any) -> SymbolicDataModel:
    """Return a declaration as a symbol, with its class where it has one."""
    return symbol(declare(given), None if isinstance(given, Mapping) else model_of(given))


def output_schemas(outputs: Any) -> list[tuple[str, Schema]]:
    """Return the schemas of what a program returns, by name."""
    found: list[tuple[str, Schema]] = []
    for path, leaf in leaves_with_path(outputs):
        if leaf is not None:
            found.append((path_str(path) or label(leaf) or "outputs", schema_of(leaf)))
    return found


def arguments(program: Module, values: Iterable[tuple[str, Any]]) -> Several:
    """Return values by name as the positional arguments of a program: one dict where its Inputs are a dict."""
    if own_inputs_of(program) and is_object(declared_inputs(program)):
        return Several((dict(values),))
    return Several(value for _, value in values)


# -- classes of Variables ----------------------------------------------------------------------------------------------


def roles_of(program: Module, fixed: Iterable[Any], states: Iterable[Any]) -> dict[KeyPath, Role]:
    """Return what becomes of each Variable: the first class that applies.

    Args:
        program: A built program.
        fixed: Paths, globs or filters of Variables that stay.
        states: The same of Variables that are reset for each row; a `Memory` is in any case.

    Raises:
        TrainerError: An entry matches nothing.
    """
    everything = state(program)
    reset = _matching(everything, states, "state_names")
    stays = _matching(everything, fixed, "fixed_param_names")
    trained = set(state(program, Trainable()))
    roles: dict[KeyPath, Role] = {}
    for path, leaf in everything.items():
        is_state = path in reset or issubclass(leaf.type, Memory)
        roles[path] = "state" if is_state else "fixed" if path in stays else "param" if path in trained else "aux"
    return roles


def _matching(everything: State, entries: Any, what: str) -> set[KeyPath]:
    """Return the paths that paths, globs or filters take.

    Raises:
        TrainerError: One of them takes nothing.
    """
    given = list(cast("Iterable[Any]", entries)) if isinstance(entries, list | tuple | set) else [entries]
    found: set[KeyPath] = set()
    for entry in given:
        taken = set(everything.filter(Path(entry) if isinstance(entry, str) else entry))
        if not taken:
            known = [path_str(path) for path in everything]
            raise TrainerError(
                f"{what}: {entry!r} matches no Variable.{did_you_mean(entry, known)} There are: {', '.join(known)}."
            )
        found |= taken
    return found


def warn_of_unasked(label_names: Sequence[str], labels: Any, needs_target: bool) -> None:
    """Warn of target fields that nobody asks for: the target has none of that name, or no target is needed."""
    fields = set(label_names) if labels is None else set(symbol(labels).keys())
    for name in sorted(set(label_names) - (fields if needs_target else set())):
        warnings.warn(f"label_names: nobody asks for {name!r}.", SynmodWarning, stacklevel=5)


def targets_of(program: Module, roles: Mapping[KeyPath, Role]) -> dict[str, Target]:
    """Return the Variables of a program that are trained, by path text."""
    owners = {path for path, _ in iter_graph(program, Module)}
    found: dict[str, Target] = {}
    for path, variable in iter_graph(program, Variable):
        if roles.get(path) == "param":
            owner = next(path[:depth] for depth in range(len(path) - 1, -1, -1) if path[:depth] in owners)
            found[path_str(path)] = Target.of(path, path_str(owner), variable)
    return found


def targets_for(optimizer: Optimizer, program: Module, roles: Mapping[KeyPath, Role]) -> dict[str, Target]:
    """Return the Variables that an optimizer may change, by path text.

    Raises:
        TrainerError: There is none; lists the Variables and why none fits.
    """
    found = targets_of(program, roles)
    if optimizer.only is not None:
        wanted = {path_str(path) for path in state(program, optimizer.only)}
        found = {path: target for path, target in found.items() if path in wanted}
    found = {path: target for path, target in found.items() if target.kind in optimizer.kinds}
    if not found:
        shown = [f"{path_str(path)} ({role})" for path, role in roles.items()]
        raise TrainerError(
            f"{type(optimizer).__name__} has nothing to optimise: it changes {', '.join(optimizer.kinds)} of "
            f"trained Variables that its `only` takes. There are: {', '.join(shown) or 'none'}."
        )
    return found


_REQUESTS = ("write", "add", "null")


def requests_of(given: str | Sequence[str] | Mapping[str, str], params: Sequence[str]) -> dict[str, str]:
    """Return what becomes of the feedback of each param, by path text.

    Raises:
        TrainerError: An unknown word, another number of words than params, a path that matches none.
    """
    if isinstance(given, str):
        found = dict.fromkeys(params, given)
    elif isinstance(given, Mapping):
        found = dict.fromkeys(params, "write")
        for key, word in given.items():
            taken = [path for path in params if key == path or Path(key).matches(parse_path(path), None, False)]
            if not taken:
                raise TrainerError(f"grad_req: {key!r} matches no param.{did_you_mean(key, params)}")
            found.update(dict.fromkeys(taken, word))
    else:
        if len(given) != len(params):
            raise TrainerError(f"grad_req has {len(given)} entries for {len(params)} params: {', '.join(params)}.")
        found = dict(zip(params, given, strict=True))
    for path, word in found.items():
        if word not in _REQUESTS:
            raise TrainerError(f"grad_req of {path!r} is {word!r}; write one of {', '.join(_REQUESTS)}.")
    return found


def by_text(values: Any) -> dict[str, Any]:
    """Return values by path text: those of a State, or of a dict by path.

    Raises:
        ArgumentError: It is neither.
    """
    if not isinstance(values, Mapping):
        raise ArgumentError(f"{values!r:.100} has no values by path; give a State, or a dict from path to value.")
    pairs = cast("Mapping[str | KeyPath, Any]", values).items()
    return {path_str(path) if isinstance(path, tuple) else path: value for path, value in pairs}


def given_values(
    roles: Mapping[KeyPath, Role], params: Any, aux: Any, allow_missing: bool, allow_extra: bool
) -> dict[str, Any]:
    """Return given values by path text, checked for paths that are missing or unknown.

    Args:
        roles: The classes of the Variables.
        params: Values of params and fixed Variables; None for none.
        aux: Values of the rest, states among them; these may always be left out.
        allow_missing: Whether others may be left out.
        allow_extra: Whether unknown paths are skipped.

    Raises:
        StateError: Lists every path.
    """
    known = {path_str(path): role for path, role in roles.items()}
    values: dict[str, Any] = {}
    missing: list[str] = []
    for given, wanted in ((params, ("param", "fixed")), (aux, ("aux",))):
        if given is not None:
            named = by_text(given)
            values |= named
            missing += [path for path, role in known.items() if role in wanted and path not in named]
    unknown = [path for path in values if path not in known]
    faults: list[str] = []
    if missing and not allow_missing:
        faults.append(f"not presented: {', '.join(missing)}; allow_missing=True lets them keep what they have.")
    if unknown and not allow_extra:
        near = did_you_mean(unknown[0], known)
        faults.append(f"unknown: {', '.join(unknown)}; allow_extra=True skips them.{near}")
    if faults:
        raise StateError(f"Values by path: {' '.join(faults)}")
    return {path: value for path, value in values.items() if path in known}


async def first_values(
    program: Module, roles: Mapping[KeyPath, Role], initializer: Any, made: State, *, given: Container[str]
) -> dict[str, Any]:
    """Return the values with which Variables begin: `init` in their metadata, the initializer's, else those made.

    Args:
        program: A built program.
        roles: The classes of its Variables; fixed ones are left alone, and states begin as they were made.
        initializer: A State, a dict by path, a function `(path, schema)`, one of `sm.initializers`, or None.
        made: The values at the first bind.
        given: Paths with a value of their own.

    Raises:
        ArgumentError: The initializer is none of these.
    """
    make: Any = initializer if callable(initializer) else None
    named = by_text({} if initializer is None else initializer) if make is None else {}
    is_ours = isinstance(initializer, initializers.Constant | initializers.Empty)
    found: dict[str, Any] = {}
    for path, variable in iter_graph(program, Variable):
        text = path_str(path)
        if text in given or roles[path] == "fixed":
            continue
        if "init" in variable.metadata:
            found[text] = variable.metadata["init"]
        elif make is None or roles[path] == "state":
            found[text] = named.get(text, made[path].value)
        else:
            value = make(variable.schema) if is_ours else make(text, variable.schema)
            found[text] = await value if inspect.isawaitable(value) else value
    return found


def check_shared(program: Module, other: Module) -> None:
    """Raise unless the Variables of another program can stand in the places of this one's, by path.

    Raises:
        StateError: Paths that one side lacks, or with another schema; lists all of them.
    """
    mine, theirs = state(program), state(other)
    faults = [f"{path_str(path)!r} is missing in {other.name!r}" for path in mine if path not in theirs]
    faults += [f"{path_str(path)!r} is missing in {program.name!r}" for path in theirs if path not in mine]
    faults += [
        f"{path_str(path)!r} has another schema in {other.name!r}"
        for path, leaf in mine.items()
        if path in theirs and not json_equal(leaf.schema, theirs[path].schema)
    ]
    if faults:
        raise StateError(f"shared_module: {'; '.join(faults)}. Programs that share have the same Variables.")
