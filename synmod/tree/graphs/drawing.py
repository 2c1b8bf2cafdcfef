"""A graph definition as a compact tree of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.graphs.defs import ContainerDef, NodeDef, StaticDef, VariableDef

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.tree.graphs.defs import Definition, Term

_MAX_LINES = 200
_MAX_DEPTH = 30


def drawn(root: Term, definitions: Mapping[int, Definition]) -> str:
    """Draw one line for each place; what was drawn before is only named, what is too deep or too long is cut."""
    lines: list[str] = ["GraphDef"]
    seen: set[int] = set()
    pending: list[tuple[int, Any, Term]] = [(1, None, root)]
    while pending:
        if len(lines) >= _MAX_LINES:
            lines.append("  ...")
            break
        depth, step, term = pending.pop()
        label = "" if step is None else f"{step}: "
        text, below = _line(term, definitions, seen)
        if below and depth >= _MAX_DEPTH:
            text, below = f"{text} ...", []
        lines.append(f"{'  ' * depth}{label}{text}")
        pending.extend((depth + 1, key, child) for key, child in reversed(below))
    return "\n".join(lines)


def _line(term: Term, definitions: Mapping[int, Definition], seen: set[int]) -> tuple[str, list[tuple[Any, Term]]]:
    """Describe one place, and list what is below it."""
    if isinstance(term, StaticDef):
        return _static_line(term.value), []
    if isinstance(term, ContainerDef):
        return term.type.__name__, list(zip(term.steps, term.children, strict=True))
    definition = definitions.get(term.index)
    if definition is None or term.index in seen:
        return f"= {term.type.__name__} #{term.index}", []
    seen.add(term.index)
    if isinstance(definition, VariableDef):
        return f"{term.type.__name__} #{term.index} {definition.schema.get('type', 'any')}", []
    assert isinstance(definition, NodeDef)
    return f"{term.type.__name__} #{term.index}", list(definition.attributes)


def _static_line(value: Any) -> str:
    """Show a scalar by its content, anything else by its class: no foreign code runs, no address is shown."""
    if type(value) in (str, int, float, bool, type(None)):
        return f"{value!r:.60}"
    return f"<class {value.__qualname__}>" if isinstance(value, type) else f"<{type(value).__name__}>"
