"""A picture in the language of Graphviz, for who has its programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from synmod.view.plain import printable

if TYPE_CHECKING:
    from synmod.view.picture import Edge, Node, Picture

_LOOKS: Final = {
    "module": 'shape=box, style="rounded,filled", fillcolor="#eaf1fd", color="#4a72b0"',
    "function": 'shape=box, style="rounded,filled", fillcolor="#f2f3f5", color="#6b7480"',
    "input": 'shape=box, style="rounded,filled", fillcolor="#ffffff", color="#6b7480"',
    "output": 'shape=box, style="rounded,filled", fillcolor="#ffffff", color="#6b7480"',
}
_STYLES: Final = {"data": "style=solid", "skip": "style=dashed", "shared": "style=dotted, dir=none, constraint=false"}


def dot(picture: Picture) -> str:
    """Write a digraph; a cluster around what a node holds, with an anchor in it for the edges of the node itself."""
    names = {node.id: f"n{number}" for number, node in enumerate(picture.nodes)}
    lines = [
        f"digraph {_quoted(picture.name)} {{",
        "  rankdir=LR; compound=true; bgcolor=white;",
        '  node [fontname="Helvetica,Arial,sans-serif", fontsize=12];',
        '  edge [fontname="Helvetica,Arial,sans-serif", fontsize=10, color="#5b6472"];',
        *_boxes(picture, names),
        *(f"  {_line(edge, names)}" for edge in picture.lines()),
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _boxes(picture: Picture, names: dict[str, str]) -> Iterator[str]:
    """Write the nodes, clusters around what others hold."""
    waiting: list[tuple[Node | None, int]] = [(node, 1) for node in reversed(picture.nodes) if node.parent is None]
    while waiting:
        node, depth = waiting.pop()
        indent = "  " * min(depth, 20)
        if node is None:
            yield f"{indent}}}"
        elif node.members:
            title = f"{node.label}: {node.detail}" if node.detail else node.label
            yield f"{indent}subgraph cluster_{names[node.id]} {{"
            yield f'{indent}  label={_quoted(title)}; style="rounded,filled"; fillcolor="#f8f9fb"; color="#b9c1cc";'
            yield f'{indent}  {names[node.id]} [shape=point, style=invis, label=""];'
            waiting.append((None, depth))
            waiting += [(member, depth + 1) for member in reversed(node.members)]
        else:
            text = f"{node.label}\n{node.detail}" if node.detail else node.label
            yield f"{indent}{names[node.id]} [label={_quoted(text)}, {_LOOKS[node.kind]}];"


def _line(edge: Edge, names: dict[str, str]) -> str:
    """Write one edge."""
    parts = [_STYLES[edge.kind]]
    if edge.label and edge.kind != "data":
        parts.append(f"label={_quoted(edge.label)}")
    if edge.source.members:
        parts.append(f"ltail=cluster_{names[edge.source.id]}")
    if edge.target.members:
        parts.append(f"lhead=cluster_{names[edge.target.id]}")
    return f"{names[edge.source.id]} -> {names[edge.target.id]} [{', '.join(parts)}];"


def _quoted(text: str) -> str:
    """Write a text between quotes; a line break in it stays one."""
    lines = [printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    joined = "\\n".join(lines)
    return f'"{joined}"'
