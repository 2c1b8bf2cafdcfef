"""Saving: from a live program to the text of a file.

One walk numbers nodes and Variables, one pass writes their records.
"""

import os
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

from synmod import errors, leaves, lm, tree
from synmod.module import kind_text

from .document import FileLimits, Problems, Where, id_and_schema, short_text, write_document
from .language_models import lm_faults, lm_record
from .records import find_cycle, write_node, write_variable
from .terms import Term, TermWriter, ValuePlace


@leaves.checks_keywords
def dumps(program: Any, *, limits: FileLimits | None = None) -> str:
    """Return the text of a program's file.

    Args:
        program: A Module or another registered node, or a list or dict of them: one file, sharing kept.
        limits: The limits of the text; what saves within the default limits loads within them.

    Returns:
        The text: UTF-8 JSON, one key per line; the same program gives the same text.

    Raises:
        SaveError: Something cannot be saved; `.problems` lists every place with what it is and the remedy.
        GraphError: The program cannot be walked.
        SealedError: A container in a built module was changed in place.

    Example:
        >>> import synmod as sm
        >>> text = sm.dumps(sm.Sequential([]))
        >>> sm.dumps(sm.loads(text)) == text
        True

    Source: Keras' config round trip, Flax NNX's graph and state; differs: data and structure are kept apart by form.
    """
    holds_nodes = type(program) in (list, dict) and any(visit.kind == "node" for visit in tree.walk(program))
    if not holds_nodes and tree.kind_of(program) != tree.NODE:
        remedy = "pass a Module, another registered node, or a list or dict of them"
        what = f"{kind_text(program)}: there is nothing to save in it"
        Problems([errors.SaveProblem("", what, remedy)]).raise_if_any()
    written = _GraphWriter(program)
    written.problems.raise_if_any()
    sections = {**written.graph, "state": written.state}
    return write_document("program", sections, limits, written.models, written.place)


@leaves.checks_keywords
def save(program: Any, path: str | os.PathLike[str], *, limits: FileLimits | None = None) -> Path:
    """Save a program as one JSON file, atomically.

    Inside `using(program, state)` the overlaid values are saved.

    Args:
        program: As in `dumps`.
        path: The file; missing folders are made, with a warning in the log: the path may be mistyped.
        limits: As in `dumps`.

    Returns:
        The path.

    Raises:
        SaveError: Something cannot be saved, or a file operation failed; a file that was there before is untouched.

    Example:
        >>> import synmod as sm, tempfile
        >>> path = sm.save(sm.Sequential([]), tempfile.mkdtemp() + "/empty.json")
        >>> sm.load(path)
        Sequential(members=[])

    Source: safetensors and SQLite (promises about files).
    """
    return leaves.write_atomic(path, dumps(program, limits=limits))


def encode_graphdef(graphdef: tree.GraphDef[Any]) -> dict[str, leaves.Json]:
    """Return a graph definition as one object of three keys.

    Raises:
        GraphError: Something cannot be written; lists every offender.
    """
    variables = [variable for variable in graphdef.definitions.values() if isinstance(variable, tree.VariableDef)]
    values = {variable.index: (None, variable.metadata) for variable in variables}
    written = _GraphWriter(tree.build_graph(graphdef, values, dict(graphdef.by_reference)))
    written.problems.raise_if_any(as_graph=True)
    return written.graph


class _GraphWriter:
    """Writes everything below a root: a node, a Variable, or a container of them.

    Attributes:
        graph: The sections `graph`, `data_models` and `language_models`.
        state: The values of the Variables by path.
        problems: The values that cannot be saved.
        models: The language models in it.
    """

    def __init__(self, root: Any) -> None:
        self._terms = TermWriter(self._reference, self._data_model)
        self.problems = self._terms.problems
        self.state: dict[str, leaves.Json] = {}
        self.models: list[lm.SharedModel] = []
        self._node_indices = tree.RefMap[int]()
        self._known: dict[int, Term] = {}
        self._nodes: list[tree.Visit] = []
        self._variables: list[tree.Visit] = []
        self._data_models: list[dict[str, leaves.Json]] = []
        self._indices: dict[tuple[str | None, int], int] = {}
        self._records: dict[str, dict[str, leaves.Json]] = {}
        self.graph = self._sections(root)

    def _sections(self, root: Any) -> dict[str, leaves.Json]:
        """Return the sections, and fill the state."""
        self._meet(tree.walk(root, indices=self._node_indices))
        walked = len(self._variables)
        root_term = self._terms.term(root, ValuePlace(str, "the root"))
        nodes = [write_node(visit, self._terms) for visit in self._nodes]  # grows: arguments bring further ones
        cycle = [leaves.path_str(self._nodes[index].path) for index in reversed(find_cycle(nodes))]
        if cycle:
            what = f"arguments that need one another in a cycle: {' -> '.join(map(repr, cycle))}"
            self.problems.note(cycle[0], what, "override get_config")
        variables = [write_variable(visit, self._terms) for visit in self._variables]
        for number, visit in enumerate(self._variables):
            if number < walked:
                self.state[leaves.path_str(visit.path)] = visit.value.value
            else:  # only an argument leads there
                variables[number]["value"] = visit.value.value
        graph: dict[str, leaves.Json] = {"root": root_term, "nodes": nodes, "variables": variables}
        return {"graph": graph, "data_models": self._data_models, "language_models": self._records}

    def place(self, where: Where) -> str:
        """Return the place in the program that a place in the sections belongs to."""
        match where:
            case ("graph", "nodes", int(index), ("config" | "attributes") as field, name, *_):
                what = f"{'argument' if field == 'config' else 'attribute'} {name!r}"
                visit = self._nodes[index]
            case ("graph", "nodes" | "variables" as table, int(index), field, *_):
                what = str(field)
                visit = (self._nodes if table == "nodes" else self._variables)[index]
            case ("state", str(path), *_):
                return path
            case _:
                return "/".join(map(str, where[:2]))
        return ValuePlace(lambda: leaves.path_str(visit.path), what).text()

    # -- the tables, for the term writer

    def _reference(self, x: Any) -> Term:
        """Return the term of a node, Variable or language model; what only an argument reaches is walked now."""
        if id(x) not in self._known:
            self._meet(tree.walk(x, indices=self._node_indices))
        return dict(self._known[id(x)])

    def _meet(self, visits: Iterator[tree.Visit]) -> None:
        """Enter what a walk finds into the tables."""
        for visit in visits:
            if not visit.first:
                continue
            if visit.kind == "variable":
                self._known[id(visit.value)] = {"variable": len(self._variables)}
                self._variables.append(visit)
            elif isinstance(visit.value, lm.SharedModel):
                self._known[id(visit.value)] = {"language_model": self._language_model(visit.value)}
            elif visit.kind == "node":
                self._known[id(visit.value)] = {"node": len(self._nodes)}
                self._nodes.append(visit)

    def _language_model(self, model: lm.SharedModel) -> str:
        """Enter a language model, and return its name; the second of two with one name gets `#2`."""
        numbered = (f"{model.name}#{number}" for number in count(2))
        name = next(name for name in chain([model.name], numbered) if name not in self._records)
        place = ValuePlace(str, f"language model {name!r}")
        self.models.append(model)
        self._records[name] = {}
        self._records[name] = record = lm_record(model, lambda value: self._terms.term(value, place), self._reference)
        for field, expected in lm_faults(record) if "model" in record else ():
            self.problems.note(place.text(), f"a {field} that is {short_text(record[field])}", f"write {expected}")
        return name

    def _data_model(self, declared: Any) -> int:
        """Return the index of a data model: a class by its id and schema, all else by its schema alone."""
        public_id, schema = id_and_schema(declared)
        key = public_id, id(schema)
        if key not in self._indices:
            self._indices[key] = len(self._data_models)
            title = schema.get("title")
            entry: dict[str, leaves.Json] = {} if public_id is None else {"name": public_id}
            entry |= {"title": title} if isinstance(title, str) else {}
            self._data_models.append({**entry, "schema": schema})
        return self._indices[key]
