"""The check of node records: class, constructor arguments by name, attributes by name, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import BadNameError
from synmod.leaves.frozen import Json, is_array, is_object
from synmod.leaves.names import check_name, did_you_mean
from synmod.lm import LanguageModel
from synmod.module import Module
from synmod.saving.checking.flow import check_flow
from synmod.saving.checking.plan import NodeEntry
from synmod.saving.checking.terms import check_array, check_bool, check_object, check_text
from synmod.saving.text.document import check_fields
from synmod.saving.text.faults import load_fault, malformed, shown
from synmod.saving.vocabulary.overrides import is_overridden
from synmod.tree import NodeImpl, own_impl

if TYPE_CHECKING:
    from synmod.saving.checking.terms import TermChecker
    from synmod.saving.vocabulary.attribute_names import AttributeNames

__all__ = ["NodeChecker", "check_arguments", "check_namespaces", "checked_name"]

Where = tuple[str | int, ...]
_LABELS = ("name", "description", "trainable")


class NodeChecker:
    """Checks the records of `nodes`; what depends on the class alone is found out once for each class."""

    def __init__(self, terms: TermChecker, names: AttributeNames) -> None:
        self.terms = terms
        self.names = names
        self._classes: dict[str, tuple[type, NodeImpl, frozenset[str] | None]] = {}

    def check(self, index: int, entry: Json) -> NodeEntry:
        """Check one record.

        Raises:
            FormatError: A field is unknown or missing, or a term in it is none.
            LoadError: Its class is not known here, or it names what the class does not have.
        """
        where = ("graph", "nodes", index)
        record = check_object(entry, where)
        public_id = record.get("type")
        known = self._classes.get(public_id) if type(public_id) is str else None
        if known is None:
            known = self._class(record, where)
        cls, impl, parameters = known
        node = NodeEntry(index, cls, impl, record)
        if impl.is_module:
            self._module(node, where, parameters)
        else:
            self._plain(node, where)
        return node

    def _class(self, record: dict[str, Json], where: Where) -> tuple[type, NodeImpl, frozenset[str] | None]:
        """Find the class of a record, and the parameters of its constructor; None where it answers for them itself."""
        if "type" not in record:
            raise malformed(where, "the field 'type' is missing.")
        cls = self.terms.resolver.find_class(record["type"], (*where, "type"), _is_node, "a class of modules or nodes")
        impl = own_impl(cls)
        assert impl is not None
        known = self._classes[record["type"]] = cls, impl, _parameters(cls) if impl.is_module else None
        return known

    def _module(self, node: NodeEntry, where: Where, parameters: frozenset[str] | None) -> None:
        """Check the record of a module."""
        record, terms = node.record, self.terms
        check_fields(
            record, where, ("type", "config", "attributes", "build"), (*_LABELS, "removed", "isolated", "flow")
        )
        needs: list[int] = []
        given: list[int] = []
        for name, term in _entries(record, "config", where).items():
            here = (*where, "config", name)
            if parameters is not None and name not in parameters:
                raise load_fault(
                    here,
                    f"{node.cls.__qualname__} takes no argument {shown(name)}.{did_you_mean(name, parameters)} "
                    "Where the class has changed, override from_config: it sees the old arguments.",
                )
            terms.check(term, here)
            needs += terms.nodes_met
            given += terms.variables_met
        if needs or given:
            node.needs, node.given = tuple(needs), tuple(given)
        for name, term in _entries(record, "attributes", where).items():
            here = (*where, "attributes", name)
            fault = self.names[node.cls, name]
            if fault is not None:
                raise load_fault(here, f"{fault} cannot come from a file.")
            terms.check(term, here)
        if record["build"] is not None:
            terms.check(record["build"], (*where, "build"))
            if terms.nodes_met or terms.variables_met:
                raise load_fault((*where, "build"), "a build config holds schemas, no nodes or Variables.")
        if len(record) > len(_ALWAYS):
            self._labels(node, where)

    def _labels(self, node: NodeEntry, where: Where) -> None:
        """Check what a record holds only where it differs from what the constructor gives."""
        record = node.record
        if "name" in record:
            checked_name(record["name"], (*where, "name"), "module")
        if "description" in record:
            check_text(record["description"], (*where, "description"))
        if "trainable" in record:
            check_bool(record["trainable"], (*where, "trainable"))
        for number, name in enumerate(check_array(record.get("removed", []), (*where, "removed"))):
            here = (*where, "removed", number)
            if self.names[node.cls, check_text(name, here)] is not None or name in record["attributes"]:
                raise load_fault(here, f"{shown(name)} cannot be the name of a removed attribute.")
        if "isolated" in record:
            self._isolated(node, where)
        if "flow" in record:
            check_flow(node, self.terms, (*where, "flow"))

    def _isolated(self, node: NodeEntry, where: Where) -> None:
        """Check which skip names are put into which Namespaces."""
        skips: Any = node.cls._declaration.skips
        declared: list[str] = [] if skips is None else skips.names
        known: set[str] = set()
        found: list[tuple[int, Where]] = []
        pairs = check_array(node.record["isolated"], (*where, "isolated"))
        if not pairs:
            raise malformed(
                (*where, "isolated"), "wanted at least one pair: the field is left out where there is none."
            )
        for number, pair in enumerate(pairs):
            here = (*where, "isolated", number)
            if not is_array(pair) or len(pair) != 2 or not is_object(pair[1]) or list(pair[1]) != ["node"]:
                raise malformed(here, "wanted a pair of a name and a node.")
            name = check_text(pair[0], (*here, 0))
            if name in known:
                raise malformed((*here, 0), f"{shown(name)} is there twice.")
            if name not in declared:
                raise load_fault(
                    (*here, 0),
                    f"{node.cls.__qualname__} declares no skip {shown(name)}.{did_you_mean(name, declared)} Declare it "
                    "with @skippable, or load with the class it was saved with.",
                )
            known.add(name)
            self.terms.check(pair[1], (*here, 1))
            found.append((pair[1]["node"], (*here, 1)))
        node.namespaces = tuple(found)

    def _plain(self, node: NodeEntry, where: Where) -> None:
        """Check the record of a user's own node type."""
        check_fields(node.record, where, ("type", "metadata", "children"))
        keys: set[Any] = set()
        for number, pair in enumerate(check_array(node.record["children"], (*where, "children"))):
            here = (*where, "children", number)
            if not is_array(pair) or len(pair) != 2 or type(pair[0]) not in (str, int) or str(pair[0]) in keys:
                raise malformed(here, "wanted a pair of a key (a text or an int, each once) and a term.")
            keys.add(str(pair[0]))
            self.terms.check(pair[1], (*here, 1))


def check_namespaces(nodes: list[NodeEntry]) -> None:
    """Check that skip names are put into Namespaces, and into nothing else.

    Raises:
        LoadError: They are put into another node.
    """
    for node in nodes:
        for index, where in node.namespaces:
            if not nodes[index].impl.is_token:
                raise load_fault(where, f"a {nodes[index].cls.__qualname__} is no Namespace.")


_ALWAYS = ("type", "config", "attributes", "build")


def check_arguments(nodes: list[NodeEntry]) -> None:
    """Check that no constructor waits for itself.

    Raises:
        LoadError: Arguments refer to one another in a circle.
    """
    done = [False] * len(nodes)
    for start in nodes:
        if not start.needs or done[start.index]:
            continue
        on_way: dict[int, int] = {start.index: 0}  # node -> how many of its needs have been followed
        way = [start.index]
        while way:
            node = nodes[way[-1]]
            number = on_way[node.index]
            if number == len(node.needs):
                way.pop()
                del on_way[node.index]
                done[node.index] = True
                continue
            on_way[node.index] = number + 1
            needed = node.needs[number]
            if needed in on_way:
                circle = [*way[way.index(needed) :], needed]
                shown_circle = " -> ".join(map(str, circle[:20]))
                raise load_fault(
                    ("graph", "nodes", needed, "config"), f"the arguments of nodes need one another: {shown_circle}."
                )
            if not done[needed]:
                on_way[needed] = 0
                way.append(needed)


def checked_name(name: Json, where: Where, kind: str) -> str:
    """Check the name of a module or Variable.

    Raises:
        LoadError: It is no valid name; the cause is a BadNameError.
    """
    try:
        return check_name(check_text(name, where), kind)
    except BadNameError as error:
        raise load_fault(where, str(error)) from error


def _entries(record: dict[str, Json], name: str, where: Where) -> dict[str, Json]:
    """A field that is an object."""
    return record[name] if type(record[name]) is dict else check_object(record[name], (*where, name))


def _is_node(cls: type) -> bool:
    """Whether a node record may name the class; language models have a table of their own."""
    return own_impl(cls) is not None and not issubclass(cls, LanguageModel)


def _parameters(cls: type) -> frozenset[str] | None:
    """The names that a config of the class may hold; None for a class whose own `from_config` says."""
    if is_overridden(cls, "from_config"):
        return None
    assert issubclass(cls, Module)
    signature = cls._declaration.init
    if signature is None:
        return frozenset()
    rest = [each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
    if rest and rest[0] != _REFUSED:
        return _AllBut(_NEVER)
    return frozenset(signature.parameters) - _NEVER - {_REFUSED}


_NEVER = frozenset({"hooks"})
_REFUSED = "unknown"
"""What the constructors of synmod call the keywords that they only take to refuse them with 'Did you mean'."""


class _AllBut(frozenset[str]):
    """Every name but these: what a constructor with `**kwargs` takes."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return not super().__contains__(name)
