"""The outline of a program: its modules in definition order, their contents and schemas, and the last recorded call.

It is one fold over the walk; summaries and pictures both read it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from synmod import data, errors, leaves, scope, tree
from synmod.flow import FlowGraph, SymbolRef
from synmod.lm import SharedModel
from synmod.module import ChildAt, Execution, Module, execution_of, input_spec_of, output_declaration
from synmod.skip.wiring import parent_of

from .tables import cut

# -- schemas -----------------------------------------------------------------------------------------------------------

_LONGEST: Final = 60
"""Maximum characters of the fields of one schema."""

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
    """Return the title and fields of an object schema as text; for any other schema, its type."""
    fields: Any = schema.get("properties") if leaves.is_object(schema) else None
    if not leaves.is_object(fields):
        return _type(schema, schema, 0)
    text = ", ".join(f"{name}: {_type(field, schema, 0)}" for name, field in fields.items())
    return f"{title_text(schema)}({cut(text, _LONGEST)})"


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
    if depth > _DEEPEST:
        return "..."
    if "$ref" in schema:
        return _reference_text(str(schema["$ref"]), root)
    if "enum" in schema or "const" in schema:
        values: Sequence[Any] = schema["enum"] if "enum" in schema else [schema["const"]]
        texts = [repr(value) for value in values[:_MOST_CHOICES]]
        return " | ".join([texts[0], "..."] if len(values) > _MOST_CHOICES else texts)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(_type(part, root, depth + 1) for part in schema[word]))
    kinds = schema.get("type", ())
    texts = [_kind_text(kind, schema, root, depth) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " | ".join(texts) or "any"


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
    target: Any = root.get("$defs", {}).get(name)
    if leaves.is_object(target) and "properties" not in target and "$ref" not in target:
        return _type(target, root, 1)
    return name if name not in ("", "#") else title_text(root)


class CallSchemas(NamedTuple):
    """The input schemas of a module, as pairs of name and nest, and its output schemas; empty or None if unknown."""

    inputs: tuple[tuple[str, Any], ...] = ()
    outputs: Any = None

    def __str__(self) -> str:
        if not self.inputs and self.outputs is None:
            return ""
        inputs = ", ".join(nest_text(nest) for _, nest in self.inputs) or "?"
        return f"{inputs} -> {'?' if self.outputs is None else nest_text(self.outputs)}"

    def complete_with(self, more: "CallSchemas | None") -> "CallSchemas":
        """Return these schemas, with the unknown ones taken from others."""
        if more is None:
            return self
        return CallSchemas(self.inputs or more.inputs, more.outputs if self.outputs is None else self.outputs)


def _read_declaration(module: Module) -> CallSchemas:
    """Return the schemas that a module declares: by its graph, specs, build inputs, or the annotations of `call`."""
    flow: FlowGraph | None = module._record.flow
    if flow is not None:
        symbols = [flow.symbols[int(ref.index)] for ref in leaves.leaves(flow.inputs)]
        return CallSchemas(tuple((str(x.name), x.schema) for x in symbols), _schemas(flow.outputs, flow))
    inputs: tuple[tuple[str, Any], ...] = ()
    outputs: Any = None
    positional = module._record.declaration.call.positional
    models = [(parameter.name, parameter.model) for parameter in positional]
    with suppress(AttributeError, errors.SynmodError):  # a spec may be a property that reads what `build` will make
        spec = input_spec_of(module)
        if spec is not None:
            inputs = ((positional[0].name if positional else "inputs", _schemas(spec)),)
        elif all(model for _, model in models):
            inputs = tuple((name, data.schema_of(model)) for name, model in models)
    with suppress(AttributeError, errors.SynmodError):
        outputs = _schemas(output_declaration(module).nest)
    return CallSchemas(inputs, outputs)


def _schemas(nest: Any, flow: FlowGraph | None = None) -> Any:
    """Return the schemas of a nest of symbols and values, or of references to the symbols of a graph."""

    def schema(leaf: Any) -> Any:
        if flow is not None and isinstance(leaf, SymbolRef):
            return flow.symbols[leaf.index].schema
        return getattr(leaf, "_schema", None)

    return leaves.map_leaves(schema, nest)


# -- outline -----------------------------------------------------------------------------------------------------------

Part = ChildAt | Execution | None


class Member:
    """A module at its canonical path, or an alias: a further path to the same module.

    Attributes:
        module: The module.
        parent: The member that holds it; None for the root.
        path: Its path from the root.
        level: Its depth; 0 for the root.
        alias_of: For an alias, the member at the canonical path; otherwise None.
        variables: The visits of the Variables that it holds directly.
        models: The language models that it holds directly.
        built: Whether the module is built; always True for an alias.
        schemas: Those of the module, as far as they are known; empty for an alias.
    """

    def __init__(self, visit: tree.Visit, parent: "Member | None", alias_of: "Member | None") -> None:
        self.module: Module = visit.value
        self.parent = parent
        self.path = "" if parent is None else "/".join(filter(None, (parent.path, steps_to(visit))))
        self.level: int = 0 if parent is None else parent.level + 1
        self.alias_of = alias_of
        self.variables: list[tree.Visit] = []
        self.models: list[SharedModel] = []
        self.built = alias_of is not None or self.module.built
        self.schemas = CallSchemas() if alias_of else _read_declaration(self.module)

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
        call: The last entry call of the program that a trace has recorded, or None.
    """

    def __init__(self, root: Module) -> None:
        self.members: list[Member] = []
        self.places: dict[int, Member] = {}
        self.call: scope.TraceNode | None = root._record.recorded
        holders: dict[int, list[tuple[Member, Any]]] = {}
        for visit in tree.walk(root):
            holder: Any = None if visit.parent is None else visit.parent.parts[_HOLDER]
            if visit.kind == "variable":
                if visit.first:
                    holder.variables.append(visit)
                holders.setdefault(visit.index or 0, []).append((holder, visit.step))
            elif isinstance(visit.value, Module):
                place = self.places.get(id(visit.value))
                self.members.append(Member(visit, holder, place))
                holder = self.places.setdefault(id(visit.value), self.members[-1])
            elif isinstance(visit.value, SharedModel) and holder is not None:
                holder.models.append(visit.value)
            if visit.kind in ("node", "container"):  # it may have children
                visit.parts = {_HOLDER: holder}
        self.holders = [pairs for pairs in holders.values() if len(pairs) > 1]
        self._complete_schemas()

    def _complete_schemas(self) -> None:
        """Complete the schemas from the graphs and rows around each module, and from the last recorded call."""
        for member in self.places.values():
            flow: FlowGraph | None = member.module._record.flow
            for step in () if flow is None else flow.steps:
                part = self.places.get(id(vars(member.module).get(step.node or "")))
                if part is not None:
                    inputs = tuple(("", _schemas(arg, flow)) for arg in step.args)
                    part.schemas = part.schemas.complete_with(CallSchemas(inputs, _schemas(step.outputs, flow)))
        recorded: dict[str, CallSchemas] = {}
        for call in calls_below(self.call):
            if call.inputs is not None and call.outputs is not None:
                schemas = CallSchemas(tuple(("", _schemas(nest)) for nest in call.inputs), _schemas(call.outputs))
                recorded.setdefault(call.path, schemas)
        for member in reversed(self.places.values()):  # children first
            schemas = member.schemas.complete_with(self._complete_row(member))
            member.schemas = schemas.complete_with(recorded.get(member.path))

    def _complete_row(self, row: Member) -> CallSchemas | None:
        """Return the schemas of a row, and complete those of its parts: each takes the output of the one before it."""
        inputs = row.schemas.inputs
        parts: list[CallSchemas] = []
        for part in row_of(row.module) or ():
            member = self.places.get(id(part.module)) if isinstance(part, ChildAt) else None  # otherwise alternatives
            schemas = CallSchemas(inputs) if member is None else member.schemas.complete_with(CallSchemas(inputs))
            if member is not None:
                member.schemas = schemas
            parts.append(schemas)
            inputs = () if schemas.outputs is None else (("", schemas.outputs),)
        return CallSchemas(parts[0].inputs, parts[-1].outputs) if parts else None


_HOLDER = "holder"
"""Key in `Visit.parts` of the member that holds the visit's children."""


def steps_to(visit: tree.Visit) -> str:
    """Return the path from the parent module, through containers and other nodes."""
    return leaves.path_str(parent_of(visit)[1])


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
