"""The outline of a program: its modules in definition order, what each holds, skips, and the last recorded call.

One fold over the walk, read by summaries and pictures alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from synmod.data import schema_of
from synmod.errors import SynmodError
from synmod.flow import MAPPING, Declared, FlowGraph, FlowStep, SymbolRef, kind_of, leaves, map_leaves
from synmod.leaves.names import KeyPath, escape_step
from synmod.lm import LanguageModel
from synmod.module import Child, Execution, Module, declared_outputs, execution_of, input_spec_of, is_built_here
from synmod.scope import TraceNode, Usage
from synmod.tree import Variable, Visit, is_trainable, walk

# -- schemas -----------------------------------------------------------------------------------------------------------

_LONGEST: Final = 72
"""Characters of one schema; the rest of its fields are left out."""

_DEEPEST: Final = 4
_MOST_CHOICES: Final = 3
_TYPES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict",
    "array": "list",
}


def schema_text(schema: Any) -> str:
    """Return a schema with its title and fields; one that is not an object by its type."""
    if not isinstance(schema, Mapping):
        return _type(schema, {}, 0)
    known = cast("Mapping[str, Any]", schema)
    fields: Any = known.get("properties")
    if not isinstance(fields, Mapping):
        return _type(known, known, 0)
    shown: list[str] = []
    room = _LONGEST - len(title_text(known))
    for name, schema_below in cast("Mapping[str, Any]", fields).items():
        text = f"{name}: {_type(schema_below, known, 0)}"
        room -= len(text) + 2
        if room < 0 and shown:
            shown.append("...")
            break
        shown.append(text)
    return f"{title_text(known)}({', '.join(shown)})"


def title_text(schema: Any) -> str:
    """The title of a schema; without one, what it is."""
    title: Any = cast("Mapping[str, Any]", schema).get("title") if isinstance(schema, Mapping) else None
    return title if isinstance(title, str) and title else _type(schema, {}, 0)


def nest_text(nest: Any) -> str:
    """Return the schemas of a nest; several in the brackets of their container."""
    if not kind_of(nest):
        return schema_text(nest)
    parts = [schema_text(leaf) for leaf in leaves(nest)]
    if kind_of(nest) == MAPPING and len(nest) == len(parts):
        return f"{{{', '.join(f'{key}: {part}' for key, part in zip(nest, parts, strict=True))}}}"
    return f"({', '.join(parts)})"


def _type(schema: Any, root: Mapping[str, Any], depth: int) -> str:
    """Return the type that a schema describes, in the words of Python."""
    if not isinstance(schema, Mapping):
        return "never" if schema is False else "any"
    known = cast("Mapping[str, Any]", schema)
    if depth > _DEEPEST:
        return "..."
    if "$ref" in known:
        return _referred(str(known["$ref"]), root)
    for word in ("enum", "const"):
        if word in known:
            return _choices(known[word] if word == "enum" else [known[word]])
    for word in ("anyOf", "oneOf"):
        if word in known:
            return " | ".join(dict.fromkeys(_type(part, root, depth + 1) for part in known[word]))
    kind: Any = known.get("type")
    if isinstance(kind, str):
        return _of_kind(kind, known, root, depth)
    if isinstance(kind, Sequence):
        return " | ".join(_of_kind(str(one), known, root, depth) for one in cast("Sequence[Any]", kind))
    return "any"


def _of_kind(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """Return one type, with what is in a list or a dict."""
    if kind == "array" and "items" in schema:
        return f"list[{_type(schema['items'], root, depth + 1)}]"
    if kind == "object":
        if isinstance(schema.get("title"), str) and "properties" in schema:
            return str(schema["title"])
        if isinstance(schema.get("additionalProperties"), Mapping):
            return f"dict[str, {_type(schema['additionalProperties'], root, depth + 1)}]"
    return _TYPES.get(kind, kind)


def _referred(reference: str, root: Mapping[str, Any]) -> str:
    """Return the name of what a reference leads to: its last step, which is how models are referred to."""
    name = reference.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    found: Any = root.get("$defs", {}).get(name)
    if isinstance(found, Mapping) and "properties" not in found and "$ref" not in found:
        return _type(found, root, 1)
    return name if name not in ("", "#") else title_text(root)


def _choices(values: Sequence[Any]) -> str:
    """Return the values there are to choose from."""
    shown = [repr(value) for value in values[:_MOST_CHOICES]]
    return " | ".join([shown[0], "..."] if len(values) > _MOST_CHOICES else shown)


class Contract(NamedTuple):
    """The schemas of a module: nests, by name where there are names; empty and None where nothing is known."""

    inputs: tuple[tuple[str, Any], ...] = ()
    outputs: Any = None

    def __str__(self) -> str:
        if not self.inputs and self.outputs is None:
            return ""
        given = ", ".join(nest_text(nest) for _, nest in self.inputs) or "?"
        return f"{given} -> {'?' if self.outputs is None else nest_text(self.outputs)}"

    def or_else(self, other: Contract) -> Contract:
        """This one, with what it lacks taken from another."""
        return Contract(self.inputs or other.inputs, other.outputs if self.outputs is None else self.outputs)


_UNKNOWN = Contract()
_NOT_YET = (AttributeError, SynmodError)
"""What a spec that is a property of the class raises while `build` has yet to make what it reads."""


def contracts_in(outline: Outline) -> dict[int, Contract]:
    """The contract of each module of a program, by the id of the module."""
    around, recorded = _around(outline), _recorded(outline)
    contracts: dict[int, Contract] = {}
    for member in below_first(outline.members[0]):
        key = id(member.module)
        if member.stands_for is None:
            known = _own(member.module).or_else(around.get(key, _UNKNOWN))
            known = known.or_else(_of_row(member.module, known, contracts))
            contracts[key] = known.or_else(recorded.get(key, _UNKNOWN))
    return contracts


def _around(outline: Outline) -> dict[int, Contract]:
    """What the graphs of functional programs know of the modules that they run."""
    around: dict[int, Contract] = {}
    for member in outline.members:
        flow: FlowGraph | None = member.module._record.flow
        if flow is not None and member.stands_for is None:
            attributes = vars(member.module)
            for step in flow.steps:
                if step.node is not None and step.node in attributes:
                    around.setdefault(id(attributes[step.node]), _of_step(flow, step))
    return around


def _of_row(module: Module, known: Contract, contracts: dict[int, Contract]) -> Contract:
    """What goes into the first member of a row, and comes out of the last; in between each takes what the last gave."""
    parts = row_of(module) or ()
    row = [part.module if isinstance(part, Child) else None for part in parts]  # None: a function, or alternatives
    if not row:
        return _UNKNOWN
    given = known.inputs
    for member in row:
        contract = contracts.get(id(member), _UNKNOWN).or_else(Contract(given))
        if member is not None and id(member) in contracts:
            contracts[id(member)] = contract
        given = () if contract.outputs is None else (("", contract.outputs),)
    first, last = contracts.get(id(row[0]), _UNKNOWN), contracts.get(id(row[-1]), _UNKNOWN)
    return Contract(first.inputs, last.outputs)


def _recorded(outline: Outline) -> dict[int, Contract]:
    """What the last recorded call gave to each module and got from it, the first time."""
    call = recorded_call(outline.members[0].module)
    if call is None:
        return {}
    keys = {path: key for key, path in outline.paths().items()}
    recorded: dict[int, Contract] = {}
    for each in calls_below(call):
        key = keys.get(each.path)
        if key is not None and key not in recorded and each.inputs is not None and each.outputs is not None:
            inputs = tuple(("", _schemas_in(nest)) for nest in each.inputs)
            recorded[key] = Contract(inputs, _schemas_in(each.outputs))
    return recorded


def _own(module: Module) -> Contract:
    """What a module declares: the graph of a functional program, else what is declared."""
    flow: FlowGraph | None = module._record.flow
    if flow is not None:
        declared: list[Declared] = [flow.symbols[ref.index] for ref in leaves(flow.inputs)]
        named = [(str(each.name), each.schema) for each in declared]
        return Contract(tuple(named), _schemas(flow, flow.outputs))
    return Contract(_declared_inputs(module), _declared_outputs(module))


def _declared_inputs(module: Module) -> tuple[tuple[str, Any], ...]:
    """What a module demands: `input_spec`, also what it was built on; else what all of `call` is annotated with."""
    call = module._record.declaration.call
    try:
        spec = input_spec_of(module)
    except _NOT_YET:
        return ()
    if spec is not None:
        return ((call.positional[0].name if call.positional else "inputs", _schemas_in(spec)),)
    models = [(parameter.name, parameter.model) for parameter in call.positional]
    if not all(model for _, model in models):
        return ()
    return tuple((name, schema_of(model)) for name, model in models if model is not None)


def _declared_outputs(module: Module) -> Any:
    """What a module declares to give; None where it declares nothing."""
    try:
        outputs = declared_outputs(module)
    except _NOT_YET:
        return None
    return None if outputs.nothing else _schemas_in(outputs.nest)


def _schemas_in(nest: Any) -> Any:
    """The schemas of a nest of symbols, or of values."""
    return map_leaves(lambda leaf: getattr(leaf, "_schema", None), nest)


def _of_step(flow: FlowGraph, step: FlowStep) -> Contract:
    """What a module is given and gives in a step of the graph around it."""
    return Contract(tuple(("", _schemas(flow, arg)) for arg in step.args), _schemas(flow, step.gives))


def _schemas(flow: FlowGraph, nest: Any) -> Any:
    """The schemas of a nest of references; values have schemas of their own."""

    def schema(leaf: Any) -> Any:
        return flow.symbols[leaf.index].schema if isinstance(leaf, SymbolRef) else getattr(leaf, "_schema", None)

    return map_leaves(schema, nest)


# -- outline -----------------------------------------------------------------------------------------------------------

Part = Child | Execution | None


@dataclass(frozen=True, slots=True)
class Held:
    """Variables: how many are trainable and how many frozen, their JSON in bytes and in characters."""

    trainable: int = 0
    frozen: int = 0
    size: int = 0
    characters: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(
            self.trainable + other.trainable,
            self.frozen + other.frozen,
            self.size + other.size,
            self.characters + other.characters,
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls: how many, what their own model calls used, and wall seconds, those of the calls below included."""

    invocations: int = 0
    usage: Usage = field(default_factory=Usage)
    elapsed_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.invocations + other.invocations, self.usage + other.usage, self.elapsed_s + other.elapsed_s)


class Member:
    """A module at its place, or one more name of a module that has its place elsewhere.

    Attributes:
        module: The module.
        above: The member that holds it; None for the root.
        steps: The steps that lead to it from there.
        level: How many members stand above.
        stands_for: The member whose module this is a further name of; None at the module's own place.
        below: The members that this one holds, aliases among them, in definition order.
        variables: The Variables that it holds itself: steps from here, Variable, whether it counts as trainable.
        models: The language models that it holds itself.
    """

    __slots__ = ("above", "below", "level", "models", "module", "stands_for", "steps", "variables")

    def __init__(self, module: Module, above: Member | None, steps: KeyPath, stands_for: Member | None) -> None:
        self.module = module
        self.above = above
        self.steps = steps
        self.level = 0 if above is None else above.level + 1
        self.stands_for = stands_for
        self.below: list[Member] = []
        self.variables: list[tuple[KeyPath, Variable, bool]] = []
        self.models: list[LanguageModel] = []

    def model_names(self) -> list[str]:
        """The language models it asks; "(default)" where its class takes one and none was given."""
        if self.stands_for is not None:
            return []
        names = list(dict.fromkeys(lm.settings.model for lm in self.models))
        return names or (["(default)"] if hasattr(type(self.module), "language_model") else [])

    def tail(self, longest: int) -> str:
        """The path, or its end where it is longer; as quick for a deep member as for any other."""
        parts: list[str] = []
        length = 0
        member: Member | None = self
        while member is not None and length <= longest:
            steps = [escape_step(step) for step in reversed(member.steps)]
            parts += steps
            length += sum(map(len, steps)) + len(steps)
            member = member.above
        text = "/".join(reversed(parts))
        return text if len(text) <= longest else f"…{text[1 - longest :]}"


class Outline:
    """The members of a program in definition order, the root first, and who shares Variables with whom.

    Attributes:
        members: All members, aliases among them.
        places: The member at a module's own place, by the id of the module.
        holders: For each Variable held at several places, the members and last steps in order, the canonical first.
    """

    def __init__(self, root: Module) -> None:
        self.members: list[Member] = []
        self.places: dict[int, Member] = {}
        edges: dict[int, list[tuple[Member, Any]]] = {}
        for visit in walk(root):
            holder = _holder(visit)
            if visit.kind == "variable":
                assert holder is not None  # the root of an outline is a module
                if visit.first:
                    holder.variables.append((_steps_to(visit), visit.value, is_trainable(visit)))
                edges.setdefault(cast("int", visit.index), []).append((holder, visit.step))
            elif isinstance(visit.value, Module):
                holder = self._add(visit, holder)
            elif isinstance(visit.value, LanguageModel) and holder is not None:
                holder.models.append(visit.value)
            if visit.kind in ("node", "container"):  # something may be below
                visit.parts = {_HOLDER: holder}
        self.holders = [found for found in edges.values() if len(found) > 1]

    def _add(self, visit: Visit, above: Member | None) -> Member:
        """Take a module in, at its own place or as an alias."""
        module: Module = visit.value
        member = Member(module, above, _steps_to(visit), self.places.get(id(module)))
        self.members.append(member)
        if above is not None:
            above.below.append(member)
        return self.places.setdefault(id(module), member)

    def paths(self) -> dict[int, str]:
        """The path of each module by its id: its own place; as long as the paths are."""
        paths: dict[int, str] = {}
        for member in self.members:
            if member.stands_for is None:
                above = "" if member.above is None else paths[id(member.above.module)]
                own = "/".join(map(escape_step, member.steps))
                paths[id(member.module)] = f"{above}/{own}" if above else own
        return paths

    def aliases(self) -> dict[str, str]:
        """The path of the module for each further name of one."""
        paths = self.paths()
        aliases: dict[str, str] = {}
        for member in self.members:
            if member.above is not None and member.stands_for is not None:
                above = paths[id(member.above.module)]
                own = "/".join(map(escape_step, member.steps))
                aliases[f"{above}/{own}" if above else own] = paths[id(member.module)]
        return aliases


def below_first(root: Member) -> Iterator[Member]:
    """Go through a member and those below it, each after what it holds; without recursion."""
    waiting: list[tuple[Member, Iterator[Member]]] = [(root, iter(root.below))]
    while waiting:
        member, rest = waiting[-1]
        deeper = next(rest, None)
        if deeper is None:
            waiting.pop()
            yield member
        else:
            waiting.append((deeper, iter(deeper.below)))


_HOLDER = "holder"


def _holder(visit: Visit) -> Member | None:
    """The member that holds what is visited; each visit above carries the one for what is below it."""
    return None if visit.above is None else visit.above.parts[_HOLDER]


def _steps_to(visit: Visit) -> KeyPath:
    """The steps from the member above, through containers and other nodes."""
    steps: list[Any] = []
    at = visit
    while at.above is not None:
        steps.append(at.step)
        at = at.above
        if isinstance(at.value, Module):
            break
    return tuple(reversed(steps))


def unbuilt_in(outline: Outline) -> set[int]:
    """The ids of the modules that are not built, as each would answer for itself.

    A class with an answer of its own asks what is below it; asked from above, again and again, that would cost the
    square of the depth.
    """
    unbuilt: set[int] = set()
    for member in below_first(outline.members[0]):
        if member.stands_for is None and not _is_built(member, unbuilt):
            unbuilt.add(id(member.module))
    return unbuilt


def _is_built(member: Member, unbuilt: set[int]) -> bool:
    """Whether a module is built, given those below it that are not."""
    module, record = member.module, member.module._record
    if type(module).built is Module.built:
        return is_built_here(record)
    if record.sealed:
        return is_built_here(record) and not any(id(part.module) in unbuilt for part in member.below)
    return module.built


class Way(NamedTuple):
    """A value carried past the modules in between: its name, and the paths of who makes and who takes it."""

    name: str
    producer: str
    consumer: str


def declared_skips(module: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a module stashes, and those that it pops or peeks at, with their Namespaces."""
    skips = module._record.declaration.skips
    if skips is None:
        return (), ()
    peeked = [module.namespaced(name) for name in sorted(skips.peek)]
    return _names(module.stashable()), (*_names(module.poppable()), *(f"{name} (peek)" for name in _names(peeked)))


def skip_routes(outline: Outline) -> list[Way]:
    """The static routes of all skips of a program; the room that knows them is loaded where there are some."""
    if all(member.module._record.declaration.skips is None for member in outline.members):
        return []
    from synmod.skip import skip_layout

    routes = skip_layout(outline.members[0].module).routes
    return [Way(_name(route.key), route.producer, route.consumer) for route in routes]


def _names(keys: Iterable[tuple[Any, str]]) -> tuple[str, ...]:
    return tuple(map(_name, keys))


def _name(key: tuple[Any, str]) -> str:
    """A name, after that of its Namespace where it has one."""
    namespace, name = key
    return name if namespace is None or namespace.name is None else f"{namespace.name}/{name}"


def recorded_call(module: Module) -> TraceNode | None:
    """The last entry call of a module that a trace has recorded; None where there was none."""
    return module._record.recorded


def calls_below(root: TraceNode) -> Iterator[TraceNode]:
    """Go through a call and those below it, each before those it made, by their start; without recursion."""
    waiting = [root]
    while waiting:
        call = waiting.pop()
        yield call
        waiting += reversed(call.children)


def spent_by_path(root: TraceNode, known: set[str]) -> dict[str, Spent]:
    """Return the calls and what their own model calls used, by the path of the module.

    Args:
        root: The entry call.
        known: The paths that are shown; what was called elsewhere, on a module made inside a call, counts for its
            caller.
    """
    by_path: dict[str, Spent] = {}
    place: dict[int, str] = {}
    for call in calls_below(root):
        is_known = call.path in known
        path = call.path if is_known or call.parent is None else place[id(call.parent)]
        place[id(call)] = path
        used = sum((lm_call.usage for lm_call in call.lm_calls), Usage())
        spent = Spent(int(is_known), used, (call.elapsed_s or 0.0) if is_known else 0.0)
        by_path[path] = by_path[path] + spent if path in by_path else spent
    return by_path


def row_of(module: Module) -> Sequence[Part] | None:
    """The parts of a row; None where a module runs otherwise, or does not say how."""
    execution = execution_of(module)
    return execution.parts if execution is not None and execution.order == "in order" else None
