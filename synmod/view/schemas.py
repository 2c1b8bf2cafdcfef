"""Schemas in a line, as a Python signature writes them, and what goes into each module and comes out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from synmod.data import schema_of
from synmod.errors import SynmodError
from synmod.flow import MAPPING, Declared, FlowGraph, FlowStep, SymbolRef, kind_of, leaves, map_leaves
from synmod.module import Child, Module, declared_outputs, input_spec_of

from .outline import Outline, below_first, calls_below, recorded_call, row_of

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
    for name, field in cast("Mapping[str, Any]", fields).items():
        text = f"{name}: {_type(field, known, 0)}"
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
