"""Stage two of a load: each node once, arguments first; what constructors made is adopted where it fits the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.leaves.frozen import Json, thaw
from synmod.saving.checking.plan import NO_VALUE
from synmod.saving.checking.state import path_text
from synmod.saving.making.decode import Decoder, parts_of
from synmod.saving.making.guarded import guarded
from synmod.saving.making.matching import Match
from synmod.saving.making.module_restore import PendingBuild, restore_module
from synmod.saving.text.faults import load_fault
from synmod.tree import DICT, NODE, SEQUENCE, TREE, Variable, empty_value, kind_of, take_apart

if TYPE_CHECKING:
    from synmod.saving.checking.plan import NodeEntry, Plan

__all__ = ["Made", "make"]

_SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple}


class Made:
    """What a load made: the root, and the builds that are still to be restored, children before their parents."""

    def __init__(self, root: Any, builds: list[PendingBuild]) -> None:
        self.root = root
        self.builds = builds


def make(plan: Plan) -> Made:
    """Make the objects of a checked document.

    Raises:
        LoadError: A constructor raised, does not take its arguments, or makes a Variable that the record does not have.
            What was made so far is dropped.
    """
    return _Maker(plan).run()


class _Maker:
    """The objects made so far."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes: dict[int, Any] = {}
        self.variables: dict[int, Variable] = {}
        self.used: set[int] = set()
        self.adopted: set[int] = set()
        self.decoder = Decoder(plan, self.nodes.__getitem__, self.variable)

    def run(self) -> Made:
        """Make everything."""
        for entry in self.plan.nodes:
            if entry.index not in self.nodes:
                self._make(entry)
        builds: list[PendingBuild] = []
        for entry in reversed(self.plan.nodes):  # what is below comes later: a node is filled with nodes that are full
            if entry.impl.is_module:
                builds += restore_module(entry, self.nodes[entry.index], self.decoder)
            else:
                self._fill(entry)
        return Made(self.decoder.decode(self.plan.root, ("graph", "root")), builds)

    def variable(self, index: int) -> Variable:
        """The Variable of an index, made where no constructor has made one."""
        variable = self.variables.get(index)
        if variable is None:
            entry = self.plan.variables[index]
            value = empty_value(entry.schema) if entry.value is NO_VALUE else entry.value
            variable = self.variables[index] = entry.cls._made(value, entry.schema, entry.about)
            self.used.add(id(variable))
        return variable

    def _make(self, wanted: NodeEntry) -> None:
        """Make a node after the nodes that its constructor is given."""
        waiting = [wanted]
        while waiting:
            entry = waiting[-1]
            missing = [self.plan.nodes[index] for index in entry.needs if index not in self.nodes]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if entry.index not in self.nodes:
                self._construct(entry)

    def _construct(self, entry: NodeEntry) -> None:
        """Make one node, and take over what its constructor has made."""
        where = ("graph", "nodes", entry.index)
        cls, record, decode = entry.cls, entry.record, self.decoder.decode
        if entry.impl.is_module:
            config = {name: decode(term, (*where, "config", name)) for name, term in record["config"].items()}
            node = guarded(lambda: cls.from_config(config), where, cls, lambda: self._label(entry))
        else:
            metadata = thaw(record["metadata"])
            node = guarded(lambda: entry.impl.create_empty(metadata), where, cls, lambda: self._label(entry))
        if type(node) is not cls:
            raise load_fault(where, f"{cls.__qualname__} made a {type(node).__name__} instead of itself.")
        self.nodes[entry.index] = node
        self.used.add(id(node))
        self._adopt(entry)

    def _label(self, entry: NodeEntry) -> str:
        """Where a node stands in the program, for messages; made only when something has failed."""
        return path_text(self.plan.places[entry.index]) if entry.index in self.plan.places else "an argument"

    def _adopt(self, entry: NodeEntry) -> None:
        """Take over the children and Variables that constructors have made as the records describe them."""
        pending = [entry]
        while pending:
            entry = pending.pop()
            live = dict(entry.impl.pairs(self.nodes[entry.index]))
            places = [(term, live[key]) for key, term in entry.live_pairs() if key in live]
            while places:
                term, value = places.pop()
                if "variable" in term:
                    self._adopt_variable(term["variable"], value)
                elif "node" in term:
                    pending += self._adopt_node(term["node"], value)
                elif "json" not in term:
                    places += _parts(term, value)

    def _adopt_variable(self, index: int, live: Any) -> None:
        """Let a Variable that a constructor made be the one of the record."""
        entry = self.plan.variables[index]
        if type(live) is entry.cls and index not in self.variables and id(live) not in self.used:
            self.used.add(id(live))
            self.variables[index] = live
            live._fill(live._value if entry.value is NO_VALUE else entry.value, entry.schema, entry.about)

    def _adopt_node(self, index: int, live: Any) -> list[NodeEntry]:
        """Let a node that a constructor made be the one of the record; gives the entries that are now there."""
        if index in self.nodes or kind_of(live) != NODE:
            return []
        match = Match(self.plan, self.decoder, self.nodes, self.variables, self.used)
        if not match.fits(index, live):
            return []
        self.nodes.update(match.nodes)
        self.used.update(map(id, match.nodes.values()))
        self.adopted.update(match.nodes)
        self.decoder.language_models.update(match.language_models)
        for number, variable in match.variables.items():
            self._adopt_variable(number, variable)
        return [self.plan.nodes[number] for number in match.nodes]

    def _fill(self, entry: NodeEntry) -> None:
        """Give a user's own node its children."""
        node, impl = self.nodes[entry.index], entry.impl
        where = ("graph", "nodes", entry.index, "children")
        pairs = [(key, self.decoder.decode(term, where)) for key, term in entry.pairs()]

        def fill() -> None:
            if entry.index in self.adopted:
                if impl.clear is not None:
                    impl.clear(node)
                else:
                    for key, _ in impl.pairs(node):
                        impl.pop_key(node, key)
            impl.fill(node, pairs)

        guarded(fill, where, entry.cls)


def _parts(term: dict[str, Json], value: Any) -> list[tuple[dict[str, Json], Any]]:
    """Pair the parts of a container of the record with those of a live one of the same shape."""
    ((kind, payload),) = term.items()
    if kind not in ("list", "tuple", "dict", "tree"):
        return []
    found = kind_of(value)
    terms = parts_of(kind, payload)
    if kind == "dict" and found == DICT:
        return [(part, value[key]) for key, part in payload if key in value]
    if kind in _SEQUENCES and found == SEQUENCE and type(value) is _SEQUENCES[kind]:
        return list(zip(terms, value, strict=False))
    if kind == "tree" and found == TREE:
        return list(zip(terms[:-1], [part for _, part in take_apart(value)[0]], strict=False))
    return []
