"""`summary`: a program as a table of its modules, with totals; tables of plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast
from unicodedata import combining, east_asian_width

from synmod.data import dump_json
from synmod.errors import ArgumentError
from synmod.leaves.names import KeyPath, did_you_mean, path_str
from synmod.lm import estimate_text
from synmod.module import Module
from synmod.tree import Variable, VariableState

from .outline import (
    Contract,
    Held,
    Member,
    Outline,
    Spent,
    contracts_in,
    declared_skips,
    recorded_call,
    schema_text,
    spent_by_path,
    unbuilt_in,
)

# -- plain tables ------------------------------------------------------------------------------------------------------

_GAP: Final = "  "
_LINE_BREAKS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Return what is no printable character as an escape: no control character reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _LINE_BREAKS.get(c) or c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """How many columns a text takes: wide characters two, accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return the lines of a table.

    Args:
        headings: One for each column.
        rows: The cells.
        right: Which columns are set to the right, as numbers are.

    Returns:
        The lines: headings, a rule, a line a row; without blanks at their ends.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([width(heading), *(width(row[i]) for row in cells)]) for i, heading in enumerate(headings)]
    lines = [_line(headings, widths, right), _GAP.join("─" * wide for wide in widths)]
    return lines + [_line(row, widths, right) for row in cells]


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Return one line."""
    padded = [
        " " * (wide - width(cell)) + cell if is_right else cell + " " * (wide - width(cell))
        for cell, wide, is_right in zip(cells, widths, right, strict=True)
    ]
    return _GAP.join(padded).rstrip()


_KILO: Final = 1000


def size_text(size: int) -> str:
    """Return a number of bytes."""
    if size < _KILO:
        return f"{size} B"
    return f"{size / _KILO:.1f} kB" if size < _KILO**2 else f"{size / _KILO**2:.1f} MB"


def count_text(count: int) -> str:
    """Return a count, thousands set apart."""
    return f"{count:,}"


def seconds_text(seconds: float) -> str:
    """Return a time, in the unit that needs no zeros."""
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


def dollars_text(cost_usd: float | None) -> str:
    """Return a cost; nothing where no price is known."""
    if cost_usd is None:
        return "?"
    if not cost_usd:
        return "$0"
    return f"${cost_usd:.6f}" if cost_usd < 0.01 else f"${cost_usd:,.4f}"


def plural(count: int, word: str) -> str:
    """Return a count with its word."""
    return f"{count_text(count)} {word}{'' if count == 1 else 's'}"


_HEADINGS = ("Variable", "type", "trainable", "size", "tokens", "schema", "value")
_RIGHT = (False, False, False, True, True, False, False)
_VALUE_SHOWN = 48


def format_variables(variables: Any) -> str:
    """Return Variables as a table: a line each, totals last.

    Args:
        variables: Variables in a list or tuple, by path in a mapping, or a State: what `module.variables`,
            `sm.variables(module)` and `sm.state(module)` return.

    Returns:
        The text; a Variable without a path is shown by its name.

    Raises:
        ArgumentError: It is not such a thing, or something in it is not a Variable.

    Example:
        >>> import synmod as sm
        >>> print(sm.format_variables([sm.Param("Be brief.", name="tone")]))
        Variable  type   trainable  size  tokens  schema  value
        ────────  ─────  ─────────  ────  ──────  ──────  ───────────
        tone      Param  yes        11 B      ~4  str     "Be brief."
        1 Variable (1 trainable, 0 frozen), 11 B, about 4 tokens

    Source: Sonnet `format_variables`.
    """
    rows: list[list[str]] = []
    trainable = size = characters = 0
    for label, variable in _labelled(variables):
        text = dump_json(variable.value)
        wide = len(text.encode(errors="replace"))
        rows.append(
            [
                label,
                (variable.type if isinstance(variable, VariableState) else type(variable)).__name__,
                "yes" if variable.trainable else "no",
                size_text(wide),
                f"~{count_text(estimate_text(len(text)))}",
                schema_text(variable.schema),
                text if len(text) <= _VALUE_SHOWN else f"{text[: _VALUE_SHOWN - 1]}…",
            ]
        )
        trainable, size, characters = trainable + variable.trainable, size + wide, characters + len(text)
    kinds = f"{count_text(trainable)} trainable, {count_text(len(rows) - trainable)} frozen"
    tokens = count_text(estimate_text(characters))
    total = f"{plural(len(rows), 'Variable')} ({kinds}), {size_text(size)}, about {tokens} tokens"
    return "\n".join([*table(_HEADINGS, rows, _RIGHT), total])


def _labelled(variables: Any) -> list[tuple[str, Variable | VariableState]]:
    """Return each Variable with its path, or its name where no path is given."""
    if isinstance(variables, Mapping):
        named = cast("Mapping[Any, Any]", variables)
        pairs = [(path if isinstance(path, str) else path_str(path), variable) for path, variable in named.items()]
    elif isinstance(variables, Iterable) and not isinstance(variables, str):
        pairs = [("", variable) for variable in cast("Iterable[Any]", variables)]
    else:
        raise ArgumentError(
            f"format_variables takes Variables, got {variables!r:.100}: pass `module.variables` or "
            "`sm.variables(module)`."
        )
    for path, variable in pairs:
        if not isinstance(variable, Variable | VariableState):
            at = f" at {path!r}" if path else ""
            raise ArgumentError(f"format_variables takes Variables, got a {type(variable).__name__}{at}.")
    return [(path or _name(variable), variable) for path, variable in pairs]


def _name(variable: Any) -> str:
    """The label of a Variable without a path."""
    name: str | None = variable.name if isinstance(variable, Variable) else None
    return name or "-"


# -- summary -----------------------------------------------------------------------------------------------------------

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
        shown: The rows down to the depth.
        modules: How many modules there are, each counted once.
        unbuilt: How many of them are not built.
        held: All Variables.
        spent: All of the recorded call; None without one.
        elapsed_s: Its wall seconds.
    """

    __slots__ = ("elapsed_s", "held", "modules", "shown", "spent", "unbuilt")

    def __init__(self, root: Module, depth: int | None) -> None:
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
        if depth is not None:
            _fold(outline.members, rows, depth)
        shown = [member for member in outline.members if depth is None or member.level <= depth]
        self.shown = [_alias(member) if member.stands_for else rows[id(member.module)] for member in shown]


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
    """Return the size of Variables."""
    trainable = size = characters = 0
    for _, variable, counts in variables:
        text = dump_json(variable.value)
        trainable += counts
        characters += len(text)
        size += len(text.encode(errors="replace"))
    return Held(trainable, len(variables) - trainable, size, characters)


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        heading: What stands above it.
        cell: The text for a row; empty where there is nothing.
        right: Whether it is set to the right.
        always: Whether it is shown although every row is empty.
    """

    heading: str
    cell: Callable[[Row], str]
    right: bool = False
    always: bool = False


def _class(row: Row) -> str:
    """The class, with a mark where it is not built; of a further name the place where the module stands."""
    if row.member.stands_for is not None:
        return f"= {row.member.stands_for.tail(_LONGEST) or '(root)'}"
    return f"{type(row.member.module).__name__}{'' if row.built else ' (unbuilt)'}"


def _variables(row: Row) -> str:
    """How many Variables, trainable and frozen."""
    held = row.held
    kinds = ((held.trainable, "trainable"), (held.frozen, "frozen"))
    return ", ".join(f"{count_text(count)} {kind}" for count, kind in kinds if count)


def _used(row: Row) -> str:
    """The tokens that a recorded call used."""
    if row.spent is None or not row.spent.usage.calls:
        return ""
    return count_text(row.spent.usage.prompt_tokens + row.spent.usage.completion_tokens)


_LONGEST: Final = 80

COLUMNS: Final[dict[str, Column]] = {
    "path": Column("path", lambda row: row.path, always=True),
    "class": Column("class", _class, always=True),
    "variables": Column("Variables", _variables),
    "size": Column("size", lambda row: size_text(row.held.size) if _has_any(row) else "", right=True),
    "tokens": Column(
        "tokens", lambda row: f"~{count_text(estimate_text(row.held.characters))}" if _has_any(row) else "", right=True
    ),
    "language_model": Column("language model", lambda row: ", ".join(row.models)),
    "stash": Column("stash", lambda row: ", ".join(row.stash)),
    "pop": Column("pop", lambda row: ", ".join(row.pop)),
    "invocations": Column(
        "invocations", lambda row: count_text(row.spent.invocations) if row.spent is not None else "", right=True
    ),
    "used": Column("tokens used", _used, right=True),
    "cost": Column(
        "cost",
        lambda row: dollars_text(row.spent.usage.cost_usd) if row.spent is not None and row.spent.usage.calls else "",
        right=True,
    ),
    "latency": Column("latency", lambda row: "" if row.latency_s is None else seconds_text(row.latency_s), right=True),
    "schemas": Column("schemas", lambda row: str(row.contract)),
}
"""The columns of a summary by name, in their usual order: the widest at the end."""


def _has_any(row: Row) -> bool:
    """Whether a row counts any Variable."""
    return bool(row.held.trainable or row.held.frozen)


def summary(module: Module, depth: Any, columns: Any) -> str:
    """Return a summary; see `Module.summary`."""
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 0):
        raise ArgumentError(
            f"summary: depth={depth!r:.100} is not a number of levels: write 0 for this module alone, 1 for its direct "
            "children too, None for all."
        )
    wanted = None if columns is None else _columns(columns)
    rows = Rows(module, depth)
    shown = list(COLUMNS.values()) if wanted is None else wanted
    cells = [[column.cell(row) for row in rows.shown] for column in shown]
    if wanted is None:
        kept = [i for i, column in enumerate(shown) if column.always or any(cells[i])]
        shown, cells = [shown[i] for i in kept], [cells[i] for i in kept]
    lines = table([column.heading for column in shown], list(zip(*cells, strict=True)), [c.right for c in shown])
    return "\n".join([*lines, *_totals(rows)])


def _totals(rows: Rows) -> list[str]:
    """The last lines: what there is, and what the last recorded call was."""
    held = rows.held
    modules = plural(rows.modules, "module") + (f", {count_text(rows.unbuilt)} unbuilt" if rows.unbuilt else "")
    count = held.trainable + held.frozen
    if count:
        kinds = f"{count_text(held.trainable)} trainable, {count_text(held.frozen)} frozen"
        tokens = count_text(estimate_text(held.characters))
        lines = [f"{modules}; {plural(count, 'Variable')} ({kinds}), {size_text(held.size)}, about {tokens} tokens"]
    else:
        lines = [f"{modules}; no Variables"]
    if rows.spent is not None:
        usage = rows.spent.usage
        parts = [plural(rows.spent.invocations, "invocation"), plural(usage.calls, "model call")]
        parts.append(f"{count_text(usage.prompt_tokens + usage.completion_tokens)} tokens")
        parts.append("cost unknown" if usage.cost_usd is None else dollars_text(usage.cost_usd))
        parts.append("running" if rows.elapsed_s is None else seconds_text(rows.elapsed_s))
        lines.append(f"last recorded call: {', '.join(parts)}")
    return lines


def _columns(columns: Any) -> list[Column]:
    """The columns of these names."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ArgumentError(
            f"summary: columns={columns!r:.100} is not a list of names; write columns=[...] with some of "
            f"{', '.join(COLUMNS)}."
        )
    names = list(cast("Iterable[Any]", columns))
    unknown = [name for name in names if not isinstance(name, str) or name not in COLUMNS]
    if unknown or not names:
        what = f"the column {unknown[0]!r:.100} is unknown" if unknown else "no column is named"
        near = did_you_mean(unknown[0], COLUMNS) if unknown else ""
        raise ArgumentError(f"summary: {what}; there are {', '.join(COLUMNS)}.{near}")
    return [COLUMNS[name] for name in names]
