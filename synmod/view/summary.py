"""`summary`: a program as a table of its modules, with totals; tables of plain text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Final, NamedTuple, cast
from unicodedata import combining, east_asian_width

from synmod import data, errors, leaves, lm, scope, tree
from synmod.module import Module

from .outline import Member, Outline, calls_below, schema_text

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
    return f"{count:,} {word}{'' if count == 1 else 's'}"


class Figures(NamedTuple):
    """What Variables measure, and what calls used.

    Attributes:
        trainable: How many Variables are trainable.
        frozen: How many are not.
        size: Their JSON in bytes.
        characters: Their JSON in characters.
        invocations: How many calls were made.
        usage: What their own model calls used.
        elapsed_s: Their wall seconds, those of the calls below included.
    """

    trainable: int = 0
    frozen: int = 0
    size: int = 0
    characters: int = 0
    invocations: int = 0
    usage: scope.Usage = scope.Usage()
    elapsed_s: float = 0.0

    @property
    def variables(self) -> int:
        """How many Variables there are."""
        return self.trainable + self.frozen

    @property
    def tokens(self) -> str:
        """About how many tokens they are."""
        return f"{lm.estimate_text(self.characters):,}"

    @property
    def used(self) -> str:
        """The tokens that the model calls used."""
        return f"{self.usage.prompt_tokens + self.usage.completion_tokens:,}"

    @property
    def total(self) -> str:
        """What the last line of a table has on Variables."""
        kinds = f"{self.trainable:,} trainable, {self.frozen:,} frozen"
        return f"{plural(self.variables, 'Variable')} ({kinds}), {size_text(self.size)}, about {self.tokens} tokens"


_NOTHING: Final = Figures()


def _sum(figures: Iterable[Figures]) -> Figures:
    columns: Iterable[Iterable[Any]] = zip(_NOTHING, *figures, strict=True)
    return Figures(*(reduce(add, column) for column in columns))


def _held(texts: Iterable[tuple[str, bool]]) -> Figures:
    """Return the figures of Variables, given the JSON of each and whether it is trainable."""
    known = list(texts)
    trainable = sum(counts for _, counts in known)
    size = sum(len(text.encode(errors="replace")) for text, _ in known)
    return Figures(trainable, len(known) - trainable, size, sum(len(text) for text, _ in known))


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
    total = _NOTHING
    for label, variable in _labelled(variables):
        text = data.dump_json(variable.value)
        figures = _held([(text, variable.trainable)])
        total = _sum((total, figures))
        rows.append(
            [
                label,
                (variable.type if isinstance(variable, tree.VariableState) else type(variable)).__name__,
                "yes" if variable.trainable else "no",
                size_text(figures.size),
                f"~{figures.tokens}",
                schema_text(variable.schema),
                text if len(text) <= _VALUE_SHOWN else f"{text[: _VALUE_SHOWN - 1]}…",
            ]
        )
    return "\n".join([*table(_HEADINGS, rows, _RIGHT), total.total])


def _labelled(variables: Any) -> list[tuple[str, tree.Variable | tree.VariableState]]:
    """Return each Variable with its path, or its name where no path is given."""
    if isinstance(variables, Mapping):
        named = cast("Mapping[Any, Any]", variables)
        pairs = [
            (path if isinstance(path, str) else leaves.path_str(path), variable) for path, variable in named.items()
        ]
    elif isinstance(variables, Iterable) and not isinstance(variables, str):
        pairs = [("", variable) for variable in cast("Iterable[Any]", variables)]
    else:
        raise errors.ArgumentError(
            f"format_variables takes Variables, got {variables!r:.100}: pass `module.variables` or "
            "`sm.variables(module)`."
        )
    for path, variable in pairs:
        if not isinstance(variable, tree.Variable | tree.VariableState):
            at = f" at {path!r}" if path else ""
            raise errors.ArgumentError(f"format_variables takes Variables, got a {type(variable).__name__}{at}.")
    return [(path or getattr(variable, "name", None) or "-", variable) for path, variable in pairs]


# -- summary -----------------------------------------------------------------------------------------------------------

_LONGEST_PATH: Final = 80


@dataclass(slots=True)
class Row:
    """One line of a summary; that of a further name of a module counts nothing again.

    Attributes:
        member: Whose line it is.
        figures: Of the member, and of what is folded into it.
        models: The language models that it and what is folded into it call, as keys.
        stash, pop: The skips that it declares, likewise.
        recorded: Whether there is a recorded call of the program.
        latency_s: Mean wall seconds of its own calls; None where it was not called.
    """

    member: Member
    figures: Figures = _NOTHING
    models: dict[str, None] = field(default_factory=dict[str, None])
    stash: dict[str, None] = field(default_factory=dict[str, None])
    pop: dict[str, None] = field(default_factory=dict[str, None])
    recorded: bool = False
    latency_s: float | None = None


def _row(member: Member) -> Row:
    """Return the line of a module at its own place."""
    held = _held((data.dump_json(visit.value.value), tree.is_trainable(visit)) for visit in member.variables)
    row = Row(member, held, dict.fromkeys(member.model_names()))
    module, skips = member.module, member.module._record.declaration.skips
    if skips is not None:
        peeked = [f"{skip_name(module.namespaced(name))} (peek)" for name in skips.peeks]
        row.stash = dict.fromkeys(map(skip_name, module.stashable()))
        row.pop = dict.fromkeys([*map(skip_name, module.poppable()), *peeked])
    return row


def skip_name(key: tuple[Any, str]) -> str:
    """Return the name of a skip, after that of its Namespace where it has one."""
    namespace, name = key
    return name if namespace is None or namespace.name is None else f"{namespace.name}/{name}"


def _add_calls(rows: Mapping[str, Row], root: scope.TraceNode) -> None:
    """Add what each call of a trace used to the row of its module; of one made inside a call, to that of the caller."""
    places: dict[int, Row] = {}
    for call in calls_below(root):
        known = rows.get(call.path)
        row = places[id(call)] = known or places[id(call.parent)]
        usage = sum((lm_call.usage for lm_call in call.lm_calls), scope.Usage())
        mine = Figures(usage=usage) if known is None else Figures(0, 0, 0, 0, 1, usage, call.elapsed_s or 0.0)
        row.figures = _sum((row.figures, mine))
    for row in rows.values():
        row.recorded = True
        if row.figures.invocations:
            row.latency_s = row.figures.elapsed_s / row.figures.invocations


def _fold(members: Iterable[Member], rows: dict[str, Row], depth: int) -> None:
    """Add each row below the depth to that of its ancestor there."""
    for member in members:
        if member.above is not None and member.level > depth and member.stands_for is None:
            row, above = rows[member.path], rows[member.above.path]
            rows[member.path] = above
            above.figures = _sum((above.figures, row.figures))
            above.models |= row.models
            above.stash |= row.stash
            above.pop |= row.pop


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        heading: What stands above it.
        cell: The text for a row; empty where there is nothing.
        right: Whether it is set to the right.
    """

    heading: str
    cell: Callable[[Row], str]
    right: bool = False


def _path(member: Member) -> str:
    """Return the path with the label that the module was given, its end where it is very long."""
    path = leaves.with_label(member.path, member.module._record.label) if member.path else "(root)"
    return path if len(path) <= _LONGEST_PATH else f"…{path[1 - _LONGEST_PATH :]}"


def _class(row: Row) -> str:
    """Return the class, with a mark where it is not built; of a further name the place where the module stands."""
    if row.member.stands_for is not None:
        return f"= {_path(row.member.stands_for)}"
    return f"{type(row.member.module).__name__}{'' if row.member.built else ' (unbuilt)'}"


def _variables(row: Row) -> str:
    """Return how many Variables there are, trainable and frozen."""
    kinds = ((row.figures.trainable, "trainable"), (row.figures.frozen, "frozen"))
    return ", ".join(f"{count:,} {kind}" for count, kind in kinds if count)


COLUMNS: Final[dict[str, Column]] = {
    "path": Column("path", lambda row: _path(row.member)),
    "class": Column("class", _class),
    "variables": Column("Variables", _variables),
    "size": Column("size", lambda row: size_text(row.figures.size) if row.figures.variables else "", right=True),
    "tokens": Column("tokens", lambda row: f"~{row.figures.tokens}" if row.figures.variables else "", right=True),
    "language_model": Column("language model", lambda row: ", ".join(row.models)),
    "stash": Column("stash", lambda row: ", ".join(row.stash)),
    "pop": Column("pop", lambda row: ", ".join(row.pop)),
    "invocations": Column(
        "invocations", lambda row: f"{row.figures.invocations:,}" if row.recorded else "", right=True
    ),
    "used": Column("tokens used", lambda row: row.figures.used if row.figures.usage.calls else "", right=True),
    "cost": Column(
        "cost", lambda row: dollars_text(row.figures.usage.cost_usd) if row.figures.usage.calls else "", right=True
    ),
    "latency": Column("latency", lambda row: "" if row.latency_s is None else seconds_text(row.latency_s), right=True),
    "schemas": Column("schemas", lambda row: str(row.member.contract)),
}
"""The columns of a summary by name, in their usual order: the widest at the end."""


def summary(module: Module, depth: Any, columns: Any) -> str:
    """Return a summary; see `Module.summary`."""
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 0):
        raise errors.ArgumentError(
            f"summary: depth={depth!r:.100} is not a number of levels: write 0 for this module alone, 1 for its direct "
            "children too, None for all."
        )
    shown = list(COLUMNS.values()) if columns is None else _columns(columns)
    outline = Outline(module)
    rows = {member.path: _row(member) for member in outline.places.values()}
    if outline.call is not None:
        _add_calls(rows, outline.call)
    totals = _totals(outline, _sum(row.figures for row in rows.values()))
    if depth is not None:
        _fold(outline.members, rows, depth)
    levels = [member for member in outline.members if depth is None or member.level <= depth]
    lines = [Row(member) if member.stands_for else rows[member.path] for member in levels]
    cells = {column: [column.cell(row) for row in lines] for column in shown}
    if columns is None:
        shown = [column for column in shown if any(cells[column])]
    texts = zip(*(cells[column] for column in shown), strict=True)
    return "\n".join(
        [*table([column.heading for column in shown], [*texts], [column.right for column in shown]), *totals]
    )


def _totals(outline: Outline, figures: Figures) -> list[str]:
    """Return the last lines: what there is, and what the last recorded call was."""
    unbuilt = sum(not member.built for member in outline.members)
    modules = plural(len(outline.places), "module") + (f", {unbuilt:,} unbuilt" if unbuilt else "")
    lines = [f"{modules}; {figures.total if figures.variables else 'no Variables'}"]
    if outline.call is not None:
        parts = [
            plural(figures.invocations, "invocation"),
            plural(figures.usage.calls, "model call"),
            f"{figures.used} tokens",
            "cost unknown" if figures.usage.cost_usd is None else dollars_text(figures.usage.cost_usd),
            "running" if outline.call.elapsed_s is None else seconds_text(outline.call.elapsed_s),
        ]
        lines.append(f"last recorded call: {', '.join(parts)}")
    return lines


def _columns(columns: Any) -> list[Column]:
    """Return the columns of these names."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise errors.ArgumentError(
            f"summary: columns={columns!r:.100} is not a list of names; write columns=[...] with some of "
            f"{', '.join(COLUMNS)}."
        )
    names = list(cast("Iterable[Any]", columns))
    unknown = [name for name in names if not isinstance(name, str) or name not in COLUMNS]
    if unknown or not names:
        what = f"the column {unknown[0]!r:.100} is unknown" if unknown else "no column is named"
        near = leaves.did_you_mean(unknown[0], COLUMNS) if unknown else ""
        raise errors.ArgumentError(f"summary: {what}; there are {', '.join(COLUMNS)}.{near}")
    return [COLUMNS[name] for name in names]
