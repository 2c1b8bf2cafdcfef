"""The rows of a summary: members down to a depth, with the figures of what is deeper summed into their ancestors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.data import dump_json
from synmod.view.built import unbuilt_in
from synmod.view.contracts import Contract, contracts_in
from synmod.view.figures import Held, Spent
from synmod.view.outline import Member, Outline, below_first
from synmod.view.recorded import recorded_call, spent_by_path
from synmod.view.skips import declared_skips

if TYPE_CHECKING:
    from synmod.leaves.names import KeyPath
    from synmod.module import Module
    from synmod.tree import Variable

_LONGEST_PATH = 80


class Row:
    """One line of a summary.

    Attributes:
        member: Whose line it is.
        held: The Variables of the member, and of what is folded into it.
        spent: What the recorded call spent in it, and in what is folded into it; None without one.
        latency_s: Mean wall seconds of its own calls; None where it was not called.
        built: Whether the module is built.
        contract: Its schemas.
        models: The language models that it asks, and those that what is folded into it asks.
        stash, pop: The skips that it declares, likewise.
    """

    __slots__ = ("built", "contract", "held", "latency_s", "member", "models", "pop", "spent", "stash")

    def __init__(self, member: Member, contract: Contract, *, built: bool) -> None:
        self.member = member
        self.contract = contract
        self.built = built
        self.held = _held(member.variables)
        self.spent: Spent | None = None
        self.latency_s: float | None = None
        self.models = tuple(member.model_names())
        self.stash, self.pop = declared_skips(member.module)

    @property
    def path(self) -> str:
        """The path, its end where it is very long."""
        return self.member.tail(_LONGEST_PATH) or "(root)"


class Rows:
    """All rows of a program.

    Attributes:
        shown: The rows down to the depth, in the order asked for.
        modules: How many modules there are, each counted once.
        unbuilt: How many of them are not built.
        held: All Variables.
        spent: All of the recorded call; None without one.
        elapsed_s: Its wall seconds.
    """

    __slots__ = ("elapsed_s", "held", "modules", "shown", "spent", "unbuilt")

    def __init__(self, root: Module, depth: int | None, order: str) -> None:
        outline = Outline(root)
        unbuilt = unbuilt_in(outline)
        contracts = contracts_in(outline)
        rows = {
            id(member.module): Row(member, contracts[id(member.module)], built=id(member.module) not in unbuilt)
            for member in outline.members
            if member.stands_for is None
        }
        self.modules, self.unbuilt = len(rows), len(unbuilt)
        call = recorded_call(root)
        if call is not None:
            paths = outline.paths()
            by_path = spent_by_path(call, set(paths.values()))
            for key, row in rows.items():
                row.spent = by_path.get(paths[key], Spent())
                if row.spent.invocations:
                    row.latency_s = row.spent.elapsed_s / row.spent.invocations
        self.held = sum((row.held for row in rows.values()), Held())
        self.spent = None if call is None else sum((row.spent or Spent() for row in rows.values()), Spent())
        self.elapsed_s = None if call is None else call.elapsed_s
        in_order = outline.members if order == "pre" else list(below_first(outline.members[0]))
        if depth is not None:
            _fold(outline.members, rows, depth)
            in_order = [member for member in in_order if member.level <= depth]
        self.shown = [_alias(member) if member.stands_for else rows[id(member.module)] for member in in_order]


def _fold(members: list[Member], rows: dict[int, Row], depth: int) -> None:
    """Add the figures of what is below the depth to the rows of its ancestors there, in order."""
    shown = dict(rows)
    for member in members:
        if member.level > depth and member.above is not None and member.stands_for is None:
            row = rows[id(member.module)]
            above = shown[id(member.module)] = shown[id(member.above.module)]
            above.held += row.held
            above.models, above.stash, above.pop = (
                tuple(dict.fromkeys((*ours, *theirs)))
                for ours, theirs in ((above.models, row.models), (above.stash, row.stash), (above.pop, row.pop))
            )
            if above.spent is not None and row.spent is not None:
                above.spent += row.spent


def _alias(member: Member) -> Row:
    """The row of one more name of a module, which counts nothing again."""
    row = Row(member, Contract(), built=True)
    row.stash = row.pop = ()
    return row


def _held(variables: list[tuple[KeyPath, Variable, bool]]) -> Held:
    """Measure Variables."""
    trainable = size = characters = 0
    for _, variable, counts in variables:
        text = dump_json(variable.value)
        trainable += counts
        characters += len(text)
        size += len(text.encode(errors="replace"))
    return Held(trainable, len(variables) - trainable, size, characters)
