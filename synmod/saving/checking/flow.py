"""The check of a functional program's graph: symbols given before they are used, modules that the program holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.data import OPERATIONS
from synmod.leaves.names import did_you_mean
from synmod.saving.checking.terms import check_array, check_bool, check_index, check_object, check_text
from synmod.saving.text.document import check_fields
from synmod.saving.text.faults import load_fault, malformed, shown

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.saving.checking.plan import NodeEntry
    from synmod.saving.checking.terms import TermChecker

__all__ = ["check_flow"]

Where = tuple[str | int, ...]


def check_flow(node: NodeEntry, terms: TermChecker, where: Where) -> None:
    """Check the flow of a node's record.

    Raises:
        FormatError: A field is unknown or missing, or a term in it is none.
        LoadError: The class runs no graph, an operator is unknown, a module is none of the program's, a symbol is used
            before it is given, or given twice.
    """
    if not hasattr(node.cls, "steps"):
        raise load_fault(where, f"{node.cls.__qualname__} is no Program: it runs no graph.")
    flow = check_object(node.record["flow"], where)
    check_fields(flow, where, ("symbols", "inputs", "outputs", "steps"))
    symbols = check_array(flow["symbols"], (*where, "symbols"))
    for number, symbol in enumerate(symbols):
        _check_symbol(symbol, terms, (*where, "symbols", number))
    held = {term["node"] for term in node.record["attributes"].values() if "node" in term}
    given: set[int] = set()
    check = _Uses(terms, len(symbols), given)
    check.gives(flow["inputs"], (*where, "inputs"))
    for number, step in enumerate(check_array(flow["steps"], (*where, "steps"))):
        _check_step(step, check, held, (*where, "steps", number))
    check.takes(flow["outputs"], (*where, "outputs"))
    node.constants = tuple(check.constants)
    node.given += tuple(check.variables)


class _Uses:
    """Which symbols have been given so far, and which nodes and Variables were used beside them."""

    def __init__(self, terms: TermChecker, symbols: int, given: set[int]) -> None:
        self.constants: list[int] = []
        self.variables: list[int] = []
        self.terms = terms
        self.symbols = symbols
        self.given = given

    def takes(self, term: Json, where: Where) -> None:
        """Check an argument: whatever it refers to is there."""
        self.terms.check(term, where, self.symbols)
        for symbol in self.terms.symbols_met:
            if symbol not in self.given:
                raise load_fault(where, f"symbol {symbol} is used before a step gives it.")
        self.constants += self.terms.nodes_met
        self.variables += self.terms.variables_met

    def gives(self, term: Json, where: Where) -> None:
        """Check an output: each symbol comes into being once."""
        self.terms.check(term, where, self.symbols)
        for symbol in self.terms.symbols_met:
            if symbol in self.given:
                raise load_fault(where, f"symbol {symbol} is given twice.")
            self.given.add(symbol)
        if self.terms.nodes_met or self.terms.variables_met:
            raise load_fault(where, "only symbols can be given here.")


def _check_symbol(entry: Json, terms: TermChecker, where: Where) -> None:
    """Check what the table says of one symbol."""
    record = check_object(entry, where)
    check_fields(record, where, ("data_model", "name", "optional"))
    check_index(record["data_model"], len(terms.models), (*where, "data_model"), "data_models")
    check_text(record["name"], (*where, "name"))
    check_bool(record["optional"], (*where, "optional"))


def _check_step(entry: Json, check: _Uses, held: set[int], where: Where) -> None:
    """Check one step."""
    step = check_object(entry, where)
    head = "op" if "op" in step else "node"
    check_fields(step, where, (head, "args", "kwargs", "gives"))
    if head == "op":
        name = check_text(step["op"], (*where, "op"))
        if name not in OPERATIONS:
            raise malformed((*where, "op"), f"{shown(name)} is no operator.{did_you_mean(name, OPERATIONS)}")
    elif check_index(step["node"], check.terms.nodes, (*where, "node"), "nodes") not in held:
        raise load_fault((*where, "node"), f"node {step['node']} is no attribute of the program.")
    for number, term in enumerate(check_array(step["args"], (*where, "args"))):
        check.takes(term, (*where, "args", number))
    for name, term in check_object(step["kwargs"], (*where, "kwargs")).items():
        check.takes(term, (*where, "kwargs", name))
    check.gives(step["gives"], (*where, "gives"))
