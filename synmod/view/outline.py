"""The outline of a program: its modules in definition order, their contents and schemas, and the last recorded call.

It is one fold over the walk; summaries and pictures both read it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from synmod import data, errors, leaves, scope, tree
from synmod.flow import FlowGraph, SymbolRef
from synmod.lm import SharedModel
from synmod.module import Child, Execution, Module, execution_of, input_spec_of, output_declaration

# -- schemas -----------------------------------------------------------------------------------------------------------

_LONGEST: Final = 72
"""Maximum characters of one schema; further fields are left out."""

_DEEPEST: Final = 4
_MOST_CHOICES: Final = 3
_TYPES: Final = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict",
    "array": "list",
}  # fmt: skip


def schema_text(schema: Any) -> str:
    """Return the title and fields of an object schema as text; for any other schema, its type."""
    fields: Any = schema.get("properties") if leaves.is_object(schema) else None
    if not leaves.is_object(fields):
        return _type(schema, schema, 0)
    shown: list[str] = []
    room = _LONGEST - len(title_text(schema))
    for name, below in fields.items():
        text = f"{name}: {_type(below, schema, 0)}"
        room -= len(text) + 2
        if room < 0 and shown:
            shown.append("...")
            break
        shown.append(text)
    return f"{title_text(schema)}({', '.join(shown)})"


def title_text(schema: Any) -> str:
    """Return the title of a schema; without one, its type."""
    title = schema.get("title") if leaves.is_object(schema) else None
    return title if isinstance(title, str) and title else _type(schema, {}, 0)


def nest_text(nest: Any) -> str:
    """Return the schemas of a nest as text; those of a container in brackets."""
    if not leaves.kind_of(nest):
        return schema_text(nest)
    parts = [schema_text(leaf) for leaf in leaves.leaves(nest)]
    if leaves.kind_of(nest) == leaves.MAPPING and len(nest) == len(parts):
        return f"{{{', '.join(f'{key}: {part}' for key, part in zip(nest, parts, strict=True))}}}"
    return f"({', '.join(parts)})"


def _type(schema: Any, root: Any, depth: int) -> str:
    """Return the Python type that a schema describes, as text."""
    if not leaves.is_object(schema):
        return "never" if schema is False else "any"
    known: Mapping[str, Any] = schema
    if depth > _DEEPEST:
        return "..."
    if "$ref" in known:
        return _reference_text(str(known["$ref"]), root)
    if "enum" in known or "const" in known:
        values: Sequence[Any] = known["enum"] if "enum" in known else [known["const"]]
        shown = [repr(value) for value in values[:_MOST_CHOICES]]
        return " | ".join([shown[0], "..."] if len(values) > _MOST_CHOICES else shown)
    for word in ("anyOf", "oneOf"):
        if word in known:
            return " | ".join(dict.fromkeys(_type(part, root, depth + 1) for part in known[word]))
    kinds = known.get("type", ())
    return (
        " | ".join(_kind_text(kind, known, root, depth) for kind in ([kinds] if isinstance(kinds, str) else kinds))
        or "any"
    )


def _kind_text(kind: str, schema: Mapping[str, Any], root: Any, depth: int) -> str:
    """Return one type as text, with the item type of a list or a dict."""
    if kind == "array" and "items" in schema:
        return f"list[{_type(schema['items'], root, depth + 1)}]"
    if kind == "object" and "properties" in schema and isinstance(schema.get("title"), str):
        return str(schema["title"])
    if kind == "object" and leaves.is_object(schema.get("additionalProperties")):
        return f"dict[str, {_type(schema['additionalProperties'], root, depth + 1)}]"
    return _TYPES.get(kind, kind)


def _reference_text(reference: str, root: Any) -> str:
    """Return the last step of a reference, the name of a model; for a target without fields, its type."""
    name = reference.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    found: Any = root.get("$defs", {}).get(name)
    if leaves.is_object(found) and "properties" not in found and "$ref" not in found:
        return _type(found, root, 1)
    return name if name not in ("", "#") else title_text(root)


class Contract(NamedTuple):
    """The input schemas of a module, as pairs of name and nest, and its output schemas; empty or None if unknown."""

    inputs: tuple[tuple[str, Any], ...] = ()
    outputs: Any = None

    def __str__(self) -> str:
        if not self.inputs and self.outputs is None:
            return ""
        given = ", ".join(nest_text(nest) for _, nest in self.inputs) or "?"
        return f"{given} -> {'?' if self.outputs is None else nest_text(self.outputs)}"

    def or_else(self, other: "Contract | None") -> "Contract":
        """Return this contract, with its unknown parts taken from another."""
        if other is None:
            return self
        return Contract(self.inputs or other.inputs, other.outputs if self.outputs is None else self.outputs)


def _declared(module: Module) -> Contract:
    """Return the contract that a module declares: by its graph, specs, build inputs, or the annotations of `call`."""
    flow: FlowGraph | None = module._record.flow
    if flow is not None:
        given = [flow.symbols[int(ref.index)] for ref in leaves.leaves(flow.inputs)]
        return Contract(tuple((str(each.name), each.schema) for each in given), _schemas(flow.outputs, flow))
    inputs: tuple[tuple[str, Any], ...] = ()
    outputs: Any = None
    positional = module._record.declaration.call.positional
    models = [(parameter.name, parameter.model) for parameter in positional]
    with suppress(
        AttributeError, errors.SynmodError
    ):  # a spec that is a property may read what `build` has yet to make
        spec = input_spec_of(module)
        if spec is not None:
            inputs = ((positional[0].name if positional else "inputs", _schemas(spec)),)
        elif all(model for _, model in models):
            inputs = tuple((name, data.schema_of(model)) for name, model in models)
    with suppress(AttributeError, errors.SynmodError):
        outputs = _schemas(output_declaration(module).nest)
    return Contract(inputs, outputs)


def _schemas(nest: Any, flow: FlowGraph | None = None) -> Any:
    """Return the schemas of a nest of symbols and values, or of references to the symbols of a graph."""

    def schema(leaf: Any) -> Any:
        return (
            flow.symbols[leaf.index].schema if flow and isinstance(leaf, SymbolRef) else getattr(leaf, "_schema", None)
        )

    return leaves.map_leaves(schema, nest)


# -- outline -----------------------------------------------------------------------------------------------------------

Part = Child | Execution | None


class Member:
    """A module at its canonical path, or an alias: a further path to the same module.

    Attributes:
        module: The module.
        above: The member that holds it; None for the root.
        path: Its path from the root.
        level: Its depth; 0 for the root.
        stands_for: For an alias, the member at the canonical path; otherwise None.
        variables: The visits of the Variables that it holds directly.
        models: The language models that it holds directly.
        built: Whether the module is built; always True for an alias.
        contract: The schemas of the module, as far as they are known; empty for an alias.
    """

    def __init__(self, visit: tree.Visit, above: "Member | None", stands_for: "Member | None") -> None:
        self.module: Module = visit.value
        self.above = above
        self.path = "" if above is None else "/".join(filter(None, (above.path, steps_to(visit))))
        self.level: int = 0 if above is None else above.level + 1
        self.stands_for = stands_for
        self.variables: list[tree.Visit] = []
        self.models: list[SharedModel] = []
        self.built = stands_for is not None or self.module.built
        self.contract = Contract() if stands_for else _declared(self.module)

    def model_names(self) -> list[str]:
        """Return the language models that it calls; "(default)" where its class takes one and none was given."""
        names = list(dict.fromkeys(lm.settings.model for lm in self.models))
        return names or (["(default)"] if hasattr(type(self.module), "language_model") else [])


class Outline:
    """The members of a program in definition order, the root first, and the Variables that they share.

    Attributes:
        members: All members, including aliases.
        places: The members at canonical paths, by the `id` of their module.
        holders: For each Variable with several paths, the member and last step of each path, the canonical one first.
        call: The last entry call of the program that a trace has recorded; None if there is none.
    """

    def __init__(self, root: Module) -> None:
        self.members: list[Member] = []
        self.places: dict[int, Member] = {}
        self.call: scope.TraceNode | None = root._record.recorded
        held: dict[int, list[tuple[Member, Any]]] = {}
        for visit in tree.walk(root):
            holder: Any = None if visit.above is None else visit.above.parts[_HOLDER]
            if visit.kind == "variable":
                if visit.first:
                    holder.variables.append(visit)
                held.setdefault(visit.index or 0, []).append((holder, visit.step))
            elif isinstance(visit.value, Module):
                place = self.places.get(id(visit.value))
                self.members.append(Member(visit, holder, place))
                holder = self.places.setdefault(id(visit.value), self.members[-1])
            elif isinstance(visit.value, SharedModel) and holder is not None:
                holder.models.append(visit.value)
            if visit.kind in ("node", "container"):  # it may have children
                visit.parts = {_HOLDER: holder}
        self.holders = [found for found in held.values() if len(found) > 1]
        self._complete_contracts()

    def _complete_contracts(self) -> None:
        """Complete the contracts from the graphs and rows around each module, and from the last recorded call."""
        for member in self.places.values():
            flow: FlowGraph | None = member.module._record.flow
            for step in () if flow is None else flow.steps:
                part = self.places.get(id(vars(member.module).get(step.node or "")))
                if part is not None:
                    inputs = tuple(("", _schemas(arg, flow)) for arg in step.args)
                    part.contract = part.contract.or_else(Contract(inputs, _schemas(step.gives, flow)))
        recorded: dict[str, Contract] = {}
        for call in calls_below(self.call):
            if call.inputs is not None and call.outputs is not None:
                shown = Contract(tuple(("", _schemas(nest)) for nest in call.inputs), _schemas(call.outputs))
                recorded.setdefault(call.path, shown)
        for member in reversed(self.places.values()):  # children first
            known = member.contract.or_else(self._complete_row(member))
            member.contract = known.or_else(recorded.get(member.path))

    def _complete_row(self, row: Member) -> Contract | None:
        """Return the contract of a row, and complete those of its parts: each takes the output of the one before it."""
        given = row.contract.inputs
        contracts: list[Contract] = []
        for part in row_of(row.module) or ():
            member = self.places.get(id(part.module)) if isinstance(part, Child) else None  # otherwise alternatives
            contract = Contract(given) if member is None else member.contract.or_else(Contract(given))
            if member is not None:
                member.contract = contract
            contracts.append(contract)
            given = () if contract.outputs is None else (("", contract.outputs),)
        return Contract(contracts[0].inputs, contracts[-1].outputs) if contracts else None


_HOLDER = "holder"
"""Key in `Visit.parts` of the member that holds the visit's children."""


def steps_to(visit: tree.Visit) -> str:
    """Return the path from the parent module, through containers and other nodes."""
    steps: list[Any] = [visit.step]
    above = visit.above
    while above is not None and not isinstance(above.value, Module):
        steps.append(above.step)
        above = above.above
    return leaves.path_str(reversed(steps))


def calls_below(root: scope.TraceNode | None) -> Iterator[scope.TraceNode]:
    """Yield a call and its descendants: parents before children, siblings in order of start; without recursion."""
    waiting = [] if root is None else [root]
    while waiting:
        call = waiting.pop()
        yield call
        waiting += reversed(call.children)


def row_of(module: Module) -> Sequence[Part] | None:
    """Return the parts of a row, a module that runs them in order; None for any other module."""
    execution = execution_of(module)
    return execution.parts if execution is not None and execution.order == "in order" else None
