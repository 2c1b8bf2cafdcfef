"""`summary`: a table of the modules of a program, with totals; `format_variables`: a table of Variables."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Final, NamedTuple, cast

from synmod import data, errors, leaves, lm, scope, tree
from synmod.module import Module
from synmod.scope import seconds_text

from .outline import Member, Outline, calls_below, schema_text
from .tables import cut, dollars_text, plural, size_text, table


class Figures(NamedTuple):
    """Sizes of Variables, and usage of calls.

    Attributes:
        trainable: How many Variables are trainable.
        frozen: How many are not.
        size: Bytes of their JSON.
        characters: Characters of their JSON.
        invocations: How many calls were made.
        usage: Usage of the model calls that they made directly.
        elapsed_s: Wall seconds of the calls, including nested calls.
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
        """The estimated tokens of the Variables."""
        return f"{lm.estimate_text(self.characters):,}"

    @property
    def used(self) -> str:
        """The tokens that the model calls used."""
        return f"{self.usage.prompt_tokens + self.usage.completion_tokens:,}"

    @property
    def total(self) -> str:
        """The text on Variables in the last line of a table."""
        kinds = f"{self.trainable:,} trainable, {self.frozen:,} frozen"
        return f"{plural(self.variables, 'Variable')} ({kinds}), {size_text(self.size)}, about {self.tokens} tokens"


_NOTHING: Final = Figures()


def _sum(figures: Iterable[Figures]) -> Figures:
    columns: Iterable[Iterable[Any]] = zip(_NOTHING, *figures, strict=True)
    return Figures(*(reduce(add, column) for column in columns))


def _figures_of(texts: Iterable[tuple[str, bool]]) -> Figures:
    """Return the figures of Variables, given the JSON of each and whether it is trainable."""
    pairs = list(texts)
    trainable = sum(is_trainable for _, is_trainable in pairs)
    size = sum(len(text.encode(errors="replace")) for text, _ in pairs)
    return Figures(trainable, len(pairs) - trainable, size, sum(len(text) for text, _ in pairs))


_HEADINGS = ("Variable", "type", "trainable", "size", "tokens", "schema", "value")
_RIGHT = (False, False, False, True, True, False, False)
_VALUE_SHOWN = 48


def format_variables(variables: Any) -> str:
    """Return Variables as a table: one line each, totals last.

    Args:
        variables: A list or tuple of Variables, a mapping from paths to Variables, or a State, as returned by
            `module.variables`, `sm.variables(module)` and `sm.state(module)`.

    Returns:
        The text; a Variable without a path is shown by its name.

    Raises:
        ArgumentError: `variables` is none of these, or an item is not a Variable.

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
    for label, variable in _label_variables(variables):
        text = data.dump_json(variable.value)
        figures = _figures_of([(text, variable.trainable)])
        total = _sum((total, figures))
        kind = variable.type if isinstance(variable, tree.VariableState) else type(variable)
        trainable, size = "yes" if variable.trainable else "no", size_text(figures.size)
        schema, value = schema_text(variable.schema), cut(text, _VALUE_SHOWN)
        rows.append([label, kind.__name__, trainable, size, f"~{figures.tokens}", schema, value])
    return "\n".join([*table(_HEADINGS, rows, _RIGHT), total.total])


def _label_variables(variables: Any) -> list[tuple[str, tree.Variable | tree.VariableState]]:
    """Return each Variable with its path, or its name where no path is given."""
    if leaves.is_mapping(variables):
        items = variables.items()
        pairs = [(path if isinstance(path, str) else leaves.path_str(path), variable) for path, variable in items]
    elif isinstance(variables, Iterable) and not isinstance(variables, str):
        pairs = [("", variable) for variable in cast("Iterable[Any]", variables)]
    else:
        expected = "Variables, such as `module.variables` or `sm.variables(module)`"
        raise errors.ArgumentError(leaves.must_be("format_variables: variables", expected, variables))
    for path, variable in pairs:
        if not isinstance(variable, tree.Variable | tree.VariableState):
            at = f" at {path!r}" if path else ""
            raise errors.ArgumentError(f"format_variables takes Variables, got a {type(variable).__name__}{at}.")
    return [(path or getattr(variable, "name", None) or "-", variable) for path, variable in pairs]


# -- summary -----------------------------------------------------------------------------------------------------------

_LONGEST_PATH: Final = 80


@dataclass(slots=True)
class SummaryRow:
    """One line of a summary; the line of an alias has no figures of its own.

    Attributes:
        member: The member that the line describes.
        figures: Figures of the member and of the members folded into it.
        models: The language models that these members call, as keys.
        stash, pop: The skips that these members declare, as keys.
        recorded: Whether a call of the program is recorded.
        latency_s: Mean wall seconds of the member's own calls; None if it was not called.
    """

    member: Member
    figures: Figures = _NOTHING
    models: dict[str, None] = field(default_factory=dict[str, None])
    stash: dict[str, None] = field(default_factory=dict[str, None])
    pop: dict[str, None] = field(default_factory=dict[str, None])
    recorded: bool = False
    latency_s: float | None = None


def _row(member: Member) -> SummaryRow:
    """Return the line of a module at its canonical path."""
    figures = _figures_of((data.dump_json(visit.value.value), tree.is_trainable(visit)) for visit in member.variables)
    row = SummaryRow(member, figures, dict.fromkeys(member.model_names()))
    module, skips = member.module, member.module._record.declaration.skips
    if skips is not None:
        peeked = [f"{skip_name(module.namespaced(name))} (peek)" for name in skips.peeks]
        row.stash = dict.fromkeys(map(skip_name, module.stashable()))
        row.pop = dict.fromkeys([*map(skip_name, module.poppable()), *peeked])
    return row


def skip_name(key: tuple[Any, str]) -> str:
    """Return the name of a skip, prefixed with the name of its Namespace if it has one."""
    namespace, name = key
    return name if namespace is None or namespace.name is None else f"{namespace.name}/{name}"


def _add_calls(rows: Mapping[str, SummaryRow], root: scope.TraceNode) -> None:
    """Add the usage of each call of a trace to the row of its module, or of the nearest caller that has a row."""
    places: dict[int, SummaryRow] = {}
    for call in calls_below(root):
        own_row = rows.get(call.path)
        row = places[id(call)] = own_row or places[id(call.parent)]
        usage = sum((lm_call.usage for lm_call in call.lm_calls), scope.Usage())
        figures = Figures(usage=usage) if own_row is None else Figures(0, 0, 0, 0, 1, usage, call.elapsed_s or 0.0)
        row.figures = _sum((row.figures, figures))
    for row in rows.values():
        row.recorded = True
        if row.figures.invocations:
            row.latency_s = row.figures.elapsed_s / row.figures.invocations


def _fold(members: Iterable[Member], rows: dict[str, SummaryRow], depth: int) -> None:
    """Add each row below `depth` to the row of its ancestor at that depth."""
    for member in members:
        if member.parent is not None and member.level > depth and member.alias_of is None:
            row, parent = rows[member.path], rows[member.parent.path]
            rows[member.path] = parent
            parent.figures = _sum((parent.figures, row.figures))
            parent.models |= row.models
            parent.stash |= row.stash
            parent.pop |= row.pop


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a summary.

    Attributes:
        heading: The text above it.
        cell: Returns the text for a row, which may be empty.
        right: Whether it is right-aligned.
    """

    heading: str
    cell: Callable[[SummaryRow], str]
    right: bool = False


def _path(member: Member) -> str:
    """Return the path with the label of the module; of a very long one, the end."""
    path = leaves.with_label(member.path, member.module._record.label) if member.path else "(root)"
    return path if len(path) <= _LONGEST_PATH else f"…{path[1 - _LONGEST_PATH :]}"


def _class(row: SummaryRow) -> str:
    """Return the class, marked if the module is unbuilt; for an alias, the canonical path."""
    if row.member.alias_of is not None:
        return f"= {_path(row.member.alias_of)}"
    return f"{type(row.member.module).__name__}{'' if row.member.built else ' (unbuilt)'}"


def _variables(row: SummaryRow) -> str:
    """Return the numbers of trainable and frozen Variables as text."""
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
    "schemas": Column("schemas", lambda row: str(row.member.schemas)),
}
"""The columns of a summary by name, in their usual order: the widest at the end."""


class Summary(str):
    """A summary that was printed: a prompt does not show it again."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show the number of lines."""
        return f"<summary of {len(self.splitlines())} lines, printed above>"


def summary(module: Module, depth: Any, columns: Any) -> Summary:
    """Print a summary, and return it; see `Module.summary`."""
    text = summary_text(module, depth, columns)
    try:
        print(text)  # noqa: T201  # as Keras does
    except UnicodeEncodeError:  # a terminal without lines and dots
        print(text.encode("ascii", "replace").decode())  # noqa: T201
    return Summary(text)


def summary_text(module: Module, depth: Any = None, columns: Any = None) -> str:
    """Return a summary."""
    if depth is not None:
        leaves.check_int("summary: depth", depth, 0)
    selected = list(COLUMNS.values()) if columns is None else _columns(columns)
    outline = Outline(module)
    rows = {member.path: _row(member) for member in outline.places.values()}
    if outline.call is not None:
        _add_calls(rows, outline.call)
    totals = _totals(outline, _sum(row.figures for row in rows.values()))
    if depth is not None:
        _fold(outline.members, rows, depth)
    levels = [member for member in outline.members if depth is None or member.level <= depth]
    lines = [SummaryRow(member) if member.alias_of else rows[member.path] for member in levels]
    cells = {column: [column.cell(row) for row in lines] for column in selected}
    if columns is None:
        selected = [column for column in selected if any(cells[column])]
    texts = [*zip(*(cells[column] for column in selected), strict=True)]
    headings, right = [column.heading for column in selected], [column.right for column in selected]
    return "\n".join([*table(headings, texts, right), *totals])


def _totals(outline: Outline, figures: Figures) -> list[str]:
    """Return the last lines: totals of the program, and of the last recorded call."""
    unbuilt = sum(not member.built for member in outline.members)
    modules = plural(len(outline.places), "module") + (f", {unbuilt:,} unbuilt" if unbuilt else "")
    lines = [f"{modules}; {figures.total if figures.variables else 'no Variables'}"]
    if outline.call is not None:
        cost = "cost unknown" if figures.usage.cost_usd is None else dollars_text(figures.usage.cost_usd)
        counts = plural(figures.invocations, "invocation"), plural(figures.usage.calls, "model call")
        parts = [*counts, f"{figures.used} tokens", cost, seconds_text(outline.call.elapsed_s)]
        lines.append(f"last recorded call: {', '.join(parts)}")
    return lines


def _columns(columns: Any) -> list[Column]:
    """Return the columns with these names."""
    names = [] if isinstance(columns, str) or not isinstance(columns, Iterable) else [*cast("Iterable[Any]", columns)]
    if not names:
        expected = f"a list with some of {', '.join(COLUMNS)}"
        raise errors.ArgumentError(leaves.must_be("summary: columns", expected, cast("object", columns)))
    return [COLUMNS[leaves.check_choice("summary: a column", name, [*COLUMNS])] for name in names]
