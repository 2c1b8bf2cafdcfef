"""Stage one of a load: every claim of the document is looked at, in the order of its sections, and nothing is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.data import DataModel, schema_of_class
from synmod.leaves.frozen import Json, frozen_dict, json_equal
from synmod.lm import LanguageModel
from synmod.saving.checking.nodes import NodeChecker, check_arguments, check_namespaces, checked_name
from synmod.saving.checking.plan import ModelEntry, Plan, VariableEntry
from synmod.saving.checking.schema_differences import differing_pointers
from synmod.saving.checking.state import check_reached, state_places
from synmod.saving.checking.terms import TermChecker, check_array, check_bool, check_object, check_text
from synmod.saving.checking.values import ValueChecker
from synmod.saving.text.document import check_fields
from synmod.saving.text.faults import load_fault, malformed
from synmod.saving.text.limits import DEFAULT_LIMITS
from synmod.saving.text.schema_check import SchemaChecker
from synmod.saving.vocabulary.attribute_names import AttributeNames
from synmod.saving.vocabulary.model_records import check_record
from synmod.tree import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.saving.checking.doc_walk import DocumentWalk
    from synmod.saving.checking.resolver import Resolver
    from synmod.saving.text.limits import FileLimits

__all__ = ["checked"]

Where = tuple[str | int, ...]
_OWN = ("trainable", "name", "description")
_LEAST = 3
_SAYS = {trainable: frozen_dict({"trainable": trainable}) for trainable in (True, False)}
"""What a Variable says of itself whose record holds only the least; one for all."""


def checked(
    sections: dict[str, Json],
    depth: int,
    values: int,
    resolver: Resolver,
    supplied: Mapping[str, LanguageModel],
    limits: FileLimits = DEFAULT_LIMITS,
) -> Plan:
    """Check the sections of a program.

    Args:
        sections: `graph`, `data_models`, `language_models`, and `state` where values are to be loaded too.
        depth: How deep the document nests.
        values: How many JSON values it has.
        resolver: Finds the objects behind ids.
        supplied: The caller's language models by saved name.
        limits: What the caller allows.

    Raises:
        FormatError: A field is unknown or missing, a term or index cannot be.
        LoadError: It names or holds what cannot be loaded here.
    """
    return _Check(sections, ValueChecker(values), SchemaChecker(depth, limits), resolver, supplied).run()


class _Check:
    """One check, section by section."""

    def __init__(
        self,
        sections: dict[str, Json],
        values: ValueChecker,
        schemas: SchemaChecker,
        resolver: Resolver,
        supplied: Mapping[str, LanguageModel],
    ) -> None:
        self.sections = sections
        self.resolver = resolver
        self.values = values
        self.names = AttributeNames()
        self.schemas = schemas
        self.supplied = dict(supplied)

    def run(self) -> Plan:
        """Check everything."""
        graph = check_object(self.sections["graph"], ("graph",))
        check_fields(graph, ("graph",), ("root", "nodes", "variables"))
        node_records = check_array(graph["nodes"], ("graph", "nodes"))
        variable_records = check_array(graph["variables"], ("graph", "variables"))
        models = [
            self.data_model(entry, ("data_models", number))
            for number, entry in enumerate(check_array(self.sections["data_models"], ("data_models",)))
        ]
        language_models = check_object(self.sections["language_models"], ("language_models",))
        sizes = len(node_records), len(variable_records)
        terms = TermChecker(sizes, models, language_models, self.resolver, self.values, self.names)
        for name, record in language_models.items():
            self.language_model(name, record, terms)
        variables = [
            self.variable(record, ("graph", "variables", number)) for number, record in enumerate(variable_records)
        ]
        node_checker = NodeChecker(terms, self.names)
        nodes = [node_checker.check(number, record) for number, record in enumerate(node_records)]
        terms.check(graph["root"], ("graph", "root"))
        check_arguments(nodes)
        check_namespaces(nodes)
        plan = Plan(graph["root"], nodes, variables, models, language_models, self.supplied, self.resolver, {}, {})
        walk = check_reached(plan)
        plan.places = walk.nodes
        if "state" in self.sections:
            self.state(plan, walk)
        return plan

    def data_model(self, entry: Json, where: Where) -> ModelEntry:
        """Check an entry of `data_models`, and that a class that is known here has the stored schema."""
        record = check_object(entry, where)
        check_fields(record, where, ("schema",), ("name", "title"))
        if "title" in record:
            check_text(record["title"], (*where, "title"))
        schema = self.schemas.check(record["schema"], (*where, "schema"), "object")
        if "name" not in record:
            return ModelEntry(None, None, schema)
        name = record["name"]
        cls = self.resolver.find_or_none(name, (*where, "name"))
        if cls is None:
            return ModelEntry(name, None, schema)
        if not isinstance(cls, type) or not issubclass(cls, DataModel):
            raise load_fault((*where, "name"), f"{name!r} is registered, but is no DataModel.")
        known = schema_of_class(cls)
        if known is not schema and not json_equal(known, schema):
            raise load_fault(
                where,
                f"the schema of {name!r} differs from that of the class here, at "
                f"{', '.join(differing_pointers(schema, known))}. To take the schema of the file, pass "
                f"custom_objects={{{name!r}: None}}; else save the program with the class it was made with.",
            )
        return ModelEntry(name, cls, schema)

    def language_model(self, name: str, record: Json, terms: TermChecker) -> None:
        """Check a record of `language_models`."""
        where = ("language_models", name)
        if not name:
            raise malformed(where, "a language model needs a name.")
        check_record(record, where)
        if record["type"] is None:
            return
        cls = self.resolver.find_or_none(record["type"], (*where, "type"))
        if cls is not None and not (isinstance(cls, type) and issubclass(cls, LanguageModel)):
            raise load_fault((*where, "type"), f"{record['type']!r} is no class of language models.")
        if cls is LanguageModel and "config" in record:
            raise malformed((*where, "config"), "only a class of one's own has a config.")
        config = record.get("config")
        if config is not None:
            for argument, term in check_object(config, (*where, "config")).items():
                terms.check(term, (*where, "config", argument))
                if terms.nodes_met or terms.variables_met:
                    raise load_fault((*where, "config", argument), "a language model cannot be given a node.")

    def variable(self, entry: Json, where: Where) -> VariableEntry:
        """Check the record of a Variable."""
        record = check_object(entry, where)
        check_fields(record, where, ("type", "schema", "trainable"), ("name", "description", "metadata", "value"))
        cls = self.resolver.find_class(
            record["type"], (*where, "type"), lambda found: issubclass(found, Variable), "a Variable type"
        )
        schema = self.schemas.check(record["schema"], (*where, "schema"), "any")
        trainable = check_bool(record["trainable"], (*where, "trainable"))
        if len(record) == _LEAST:
            return VariableEntry(cls, schema, _SAYS[trainable])
        says: dict[str, Json] = {"trainable": trainable}
        if "name" in record:
            says["name"] = checked_name(record["name"], (*where, "name"), "variable")
        if "description" in record:
            says["description"] = check_text(record["description"], (*where, "description"))
        if "metadata" in record:
            free = self.values.freeze(check_object(record["metadata"], (*where, "metadata")), (*where, "metadata"))
            for name in _OWN:
                if name in free:
                    raise malformed((*where, "metadata", name), "this has a field of its own.")
            says |= free
        entry = VariableEntry(cls, schema, frozen_dict(says))
        if "value" in record:
            entry.value = self.values.check(schema, record["value"], (*where, "value"))
        return entry

    def state(self, plan: Plan, walk: DocumentWalk) -> None:
        """Check that the state has a valid value for each Variable that has a path, and nothing else."""
        state = check_object(self.sections["state"], ("state",))
        plan.paths = state_places(state, walk)
        for path, number in plan.paths.items():
            entry = plan.variables[number]
            entry.value = self.values.check(entry.schema, state[path], ("state", path))
