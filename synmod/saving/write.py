"""From a live program to the sections of its file: one walk numbers nodes and Variables, one pass writes records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from synmod.leaves.frozen import Json
from synmod.leaves.names import path_str
from synmod.lm import LanguageModel
from synmod.registry import id_of
from synmod.tree import RefMap, Visit, class_of, walk

from .modules import write_node
from .names import AttributeNames
from .problems import Problems, unregistered
from .tables import DataModelTable, LanguageModelTable
from .terms import Place, Term, TermWriter, references


class Written(NamedTuple):
    """A program as JSON.

    Attributes:
        graph: The sections `graph`, `data_models` and `language_models`.
        state: The values of its Variables by path.
        problems: What stands in the way.
        language_models: The language models in it.
        nodes: Where each node of the table was met.
        variables: Where each Variable of the table was met.
    """

    graph: dict[str, Json]
    state: dict[str, Json]
    problems: Problems
    language_models: list[LanguageModel]
    nodes: list[Visit]
    variables: list[Visit]

    def place(self, where: tuple[str | int, ...]) -> str:
        """Return the place in the program that a place in the sections belongs to."""
        match where:
            case ("graph", "nodes", int(index), ("config" | "attributes") as field, name, *_):
                what = f"{'argument' if field == 'config' else 'attribute'} {name!r}"
            case ("graph", "nodes", int(index), field, *_):
                what = str(field)
            case ("graph", "variables", int(index), field, *_):
                return f"{path_str(self.variables[index].path)}, {field}"
            case ("state", str(path), *_):
                return path
            case _:
                return "/".join(map(str, where[:2]))
        path = path_str(self.nodes[index].path)
        return f"{path}, {what}" if path else what


def write_graph(root: Any) -> Written:
    """Return everything below a root: a node, a Variable, or a container of them."""
    return _GraphWriter().write(root)


class _GraphWriter:
    """Writes one graph, and names what stands in the tables of the document."""

    def __init__(self) -> None:
        self.problems = Problems()
        self.attribute_names = AttributeNames()
        self.terms = TermWriter(self)
        self.data_models = DataModelTable()
        self.language_models = LanguageModelTable(self.problems, self.terms.term)
        self._seen = RefMap[int]()
        self._numbers: dict[int, int] = {}
        self._nodes: list[Visit] = []
        self._variables: list[Visit] = []

    def write(self, root: Any) -> Written:
        """Return everything below a root."""
        self._meet(walk(root, seen=self._seen))
        walked = len(self._variables)
        root_term = self.terms.term(root, Place(str, "the root"))
        nodes: list[dict[str, Json]] = []
        while len(nodes) < len(self._nodes):  # constructor arguments bring further nodes
            nodes += [write_node(visit, self) for visit in self._nodes[len(nodes) :]]
        self._check_circles(nodes)
        state: dict[str, Json] = {}
        variables = [
            self._variable_record(visit, state if number < walked else None)
            for number, visit in enumerate(self._variables)
        ]
        sections = {
            "graph": {"root": root_term, "nodes": nodes, "variables": variables},
            "data_models": self.data_models.entries,
            "language_models": self.language_models.records,
        }
        models = self.language_models.models
        return Written(sections, state, self.problems, models, self._nodes, self._variables)

    # -- what the term writer asks

    def node(self, node: Any) -> Term:
        """Return the term of a node or language model; what only an argument reaches is walked now."""
        if isinstance(node, LanguageModel):
            return {"language_model": self.language_models.name(node, Place(str, f"language model {node.name!r}"))}
        return {"node": self._number(node)}

    def variable(self, variable: Any) -> int:
        """Return the index of a Variable."""
        return self._number(variable)

    def data_model(self, declared: Any) -> int:
        """Return the index of a data model."""
        return self.data_models.index(declared)

    def _number(self, x: Any) -> int:
        """Return the index of a node or Variable."""
        if id(x) not in self._numbers:
            self._meet(walk(x, seen=self._seen))
        return self._numbers[id(x)]

    def _meet(self, visits: Iterator[Visit]) -> None:
        """Number what a walk finds; language models have a table of their own."""
        for visit in visits:
            if not visit.first:
                continue
            if visit.kind == "variable":
                self._numbers[id(visit.value)] = len(self._variables)
                self._variables.append(visit)
            elif visit.kind == "node":
                if isinstance(visit.value, LanguageModel):
                    self.node(visit.value)
                else:
                    self._numbers[id(visit.value)] = len(self._nodes)
                    self._nodes.append(visit)

    # -- records

    def _variable_record(self, visit: Visit, state: dict[str, Json] | None) -> dict[str, Json]:
        """Return the record of a Variable; its value goes to the state, or into the record where it has no path."""
        variable = visit.value
        cls = class_of(variable)
        public_id = id_of(cls)
        if public_id is None:
            self.problems.note(path_str(visit.path), *unregistered(cls, "a Variable"))
        about: Mapping[str, Json] = variable.full_metadata
        record: dict[str, Json] = {"type": public_id, "schema": variable.schema, "trainable": about["trainable"]}
        record |= {key: about[key] for key in ("name", "description") if key in about}
        metadata = {key: each for key, each in about.items() if key not in ("trainable", "name", "description")}
        if metadata:
            record["metadata"] = metadata
        if state is None:
            record["value"] = variable.value
        else:
            state[path_str(visit.path)] = variable.value
        return record

    def _check_circles(self, nodes: list[dict[str, Json]]) -> None:
        """Note constructor arguments that need one another: a load could make none of them first."""
        needs = {
            number: {index for term in record["config"].values() for kind, index in references(term) if kind == "node"}
            for number, record in enumerate(nodes)
            if record.get("config")
        }
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            numbers: list[int] = error.args[1]
            paths = [path_str(self._nodes[number].path) for number in reversed(numbers)]
            what = f"arguments that need one another in a circle: {' -> '.join(map(repr, paths))}"
            self.problems.note(paths[0], what, "override get_config")
