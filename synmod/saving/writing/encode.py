"""From a graph to JSON: one walk numbers nodes and Variables, one pass writes their records.

The graph is read alike from live objects and from a `GraphDef`. What cannot be written is noted, and the pass goes on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.errors import DataError
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.names import path_str
from synmod.lm import LanguageModel, UnboundLanguageModel
from synmod.module import Module
from synmod.registry import id_of
from synmod.saving.vocabulary.attribute_names import AttributeNames
from synmod.saving.vocabulary.problems import Problems, unregistered
from synmod.saving.writing.circles import Needs
from synmod.saving.writing.module_record import module_record
from synmod.saving.writing.tables import DataModelTable, LanguageModelTable
from synmod.saving.writing.terms import Place, TermWriter
from synmod.saving.writing.views import MISSING, Definitions, NodeView, variable_view
from synmod.tree import KNOWN, NODE, VARIABLE, DefReader, Kinds, NodeRef, RefMap, VariableRef, Visit, class_of, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from synmod.tree import GraphDef

__all__ = ["Encoded", "encoded_definition", "encoded_graph"]


class Encoded(NamedTuple):
    """A graph as JSON, what stands in its way, its Variables by path, and the language models in it."""

    json: dict[str, Json]
    problems: Problems
    state: dict[str, Json]
    language_models: list[LanguageModel]


def encoded_graph(root: Any) -> Encoded:
    """Write what is live below a root, with the values that the open overlay shows."""
    return _written(None, root)


def encoded_definition(graphdef: GraphDef[Any]) -> Encoded:
    """Write a graph definition, which has no values."""
    return _written(graphdef, graphdef.root)


def _written(graphdef: GraphDef[Any] | None, root: Any) -> Encoded:
    """Write a graph; once more without the arguments that turn out to need one another."""
    taken_back: set[tuple[int, str]] = set()
    while True:
        writer = _GraphWriter(graphdef, taken_back)
        encoded = writer.write(root)
        more = writer.needs.to_take_back(writer.problems)
        if not more:
            return encoded
        taken_back |= more


class _GraphWriter:
    """Writes one graph; what the term writer asks for the numbers and names of the document."""

    def __init__(self, graphdef: GraphDef[Any] | None, taken_back: set[tuple[int, str]]) -> None:
        self.problems = Problems()
        self.taken_back = taken_back
        self.attribute_names = AttributeNames()
        self.kinds = Kinds({**KNOWN, NodeRef: NODE, VariableRef: VARIABLE})
        self.terms = TermWriter(self)
        self.needs = Needs()
        self.data_models = DataModelTable()
        self.language_models = LanguageModelTable(self.problems, self._config_of_model)
        self._definitions = Definitions(graphdef)
        self._reader = None if graphdef is None else DefReader(graphdef.definitions)
        self._seen = RefMap[int]()
        self._numbers: dict[int, int] = {}
        self._nodes: list[Visit] = []
        self._variables: list[Visit] = []

    def write(self, root: Any) -> Encoded:
        """Write everything below a root: a node, a Variable, a container of them, or the root term of a definition."""
        self._meet(walk(root, seen=self._seen, reader=self._reader))
        walked = len(self._variables)
        root_term = self.terms.term(self._definitions.plain(root), Place("", "the root"))
        nodes: list[Json] = []
        while len(nodes) < len(self._nodes):  # constructor arguments bring further nodes
            nodes += [self._node_record(visit) for visit in self._nodes[len(nodes) :]]
        state: dict[str, Json] = {}
        variables: list[Json] = []
        for number, visit in enumerate(self._variables):
            variables.append(self._variable_record(visit, state if number < walked else None))
        graph = {"root": root_term, "nodes": nodes, "variables": variables}
        models = {"data_models": self.data_models.entries, "language_models": self.language_models.records}
        return Encoded({"graph": graph, **models}, self.problems, state, self.language_models.models)

    # -- what the term writer asks ------------------------------------------------------------------------------------

    def model_of(self, node: Any) -> LanguageModel | None:
        """The language model that a node, or the definition of one, or a reference to one is."""
        found = self._definitions.kept(node)
        return found if isinstance(found, LanguageModel) else None

    def node(self, node: Any) -> int:
        """The index of a node."""
        return self._number(node)

    def variable(self, variable: Any) -> int:
        """The index of a Variable."""
        return self._number(variable)

    def data_model(self, declared: Any) -> int:
        """The index of a data model."""
        return self.data_models.index(declared)

    def language_model(self, model: LanguageModel, where: Callable[[], str]) -> str:
        """The name of a language model."""
        return self.language_models.name(model, where)

    def _number(self, x: Any) -> int:
        """The index of a node or Variable; what only an argument reaches is walked now, and gets the next ones."""
        entity = self._definitions.entity(x)
        number = self._numbers.get(id(entity))
        if number is None:
            is_defined = isinstance(x, NodeRef)  # a token, which only metadata mentions
            self._meet(walk(x if is_defined else entity, seen=self._seen, reader=self._reader if is_defined else None))
            number = self._numbers[id(entity)]
        return number

    def _meet(self, visits: Iterator[Visit]) -> None:
        """Number what a walk finds; language models stand in a table of their own."""
        numbers, nodes, variables = self._numbers, self._nodes, self._variables
        for visit in visits:
            if not visit.first:
                continue
            if visit.kind == "variable":
                numbers[id(visit.value)] = len(variables)
                variables.append(visit)
            elif visit.kind == "node":
                model = self.model_of(visit.value)
                if model is not None:
                    self.language_models.name(model, partial(_path_of, visit))
                else:
                    numbers[id(visit.value)] = len(nodes)
                    nodes.append(visit)

    # -- records ------------------------------------------------------------------------------------------------------

    def _node_record(self, visit: Visit) -> dict[str, Json]:
        """Write the record of a module or of another registered node."""
        view = self._definitions.node_view(visit.value)
        public_id = id_of(view.cls)
        if public_id is None:
            self.problems.note(path_str(visit.path), *unregistered(view.cls, "a node"))
        if issubclass(view.cls, Module):
            return {"type": public_id, **module_record(view, visit, self)}
        return {"type": public_id, **self._plain_node(view, visit)}

    def _plain_node(self, view: NodeView, visit: Visit) -> dict[str, Json]:
        """Write what a user's own node type flattens to."""
        try:
            metadata = frozen(view.metadata)
        except DataError as error:
            metadata = None
            self.problems.note(path_str(visit.path), f"metadata of {view.cls.__qualname__}: {error}", "flatten to JSON")
        children = [[key, self.terms.term(child, Place(visit, f"child {key!r}"))] for key, child in view.pairs]
        return {"metadata": metadata, "children": children}

    def _variable_record(self, visit: Visit, state: dict[str, Json] | None) -> dict[str, Json]:
        """Write the record of a Variable; its value goes to the state, or with it where it has no path."""
        cls, schema, about, value = variable_view(visit.value)
        public_id = id_of(cls)
        if public_id is None:
            self.problems.note(path_str(visit.path), *unregistered(cls, "a Variable"))
        free = {key: each for key, each in about.items() if key not in _OWN}
        record: dict[str, Json] = {"type": public_id, "schema": schema, "trainable": about["trainable"]}
        record |= {key: about[key] for key in ("name", "description") if key in about}
        if free:
            record["metadata"] = free
        if value is MISSING:
            return record
        if state is None:
            record["value"] = value
        else:
            state[path_str(visit.path)] = value
        return record

    def _config_of_model(self, model: Any) -> Json:
        """Write the config of a registered class of language models, as the class itself tells it."""
        get_config: Any = getattr(class_of(model), "get_config", None)
        if isinstance(model, UnboundLanguageModel):
            config = model.record()["config"]
        elif get_config is None:
            return None
        else:
            config = get_config(model)
        place = Place("", f"language model {model.name!r}")
        return {key: self.terms.term(value, place) for key, value in config.items()}


def _path_of(visit: Visit) -> str:
    """The path of a visit, as text."""
    return path_str(visit.path)


_OWN = frozenset({"trainable", "name", "description"})
