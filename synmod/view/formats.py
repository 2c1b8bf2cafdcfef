"""`plot`: a picture of a program as Mermaid, which GitHub draws in place, as SVG, as a page, or as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from synmod.data import dump_json
from synmod.errors import ArgumentError
from synmod.leaves.files import write_atomic
from synmod.leaves.names import did_you_mean
from synmod.module import Module

from .drawing import escaped, svg
from .edges import picture_of
from .picture import Node, Picture
from .summary import summary
from .tables import printable

FORMATS: Final[dict[str, Callable[[Module], str]]] = {
    "mermaid": lambda module: mermaid(picture_of(module)),
    "svg": lambda module: svg(picture_of(module)),
    "html": lambda module: html(picture_of(module), summary(module, None, None)),
    "json": lambda module: dump_json(picture_of(module).to_json(), indent=2) + "\n",
}
"""The formats of `plot` by name."""


def plot(module: Module, path: Any, format: Any) -> str:  # noqa: A002  # the word of the contract
    """Return the picture of a module, and write it where a path is given; see `Module.plot`."""
    if not isinstance(format, str) or format not in FORMATS:
        near = did_you_mean(format, FORMATS) if isinstance(format, str) else ""
        raise ArgumentError(f"plot: format={format!r:.100} is unknown; there are {', '.join(FORMATS)}.{near}")
    if path is not None and not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"plot: path={path!r:.100} is not a path; write a file name, or None for the text alone.")
    text = FORMATS[format](module)
    if path is not None:
        write_atomic(cast("str | os.PathLike[str]", path), text)
    return text


_ARROWS: Final = {"data": "-->", "skip": "-.->", "shared": "-.-"}
_LOOKS: Final = (
    "classDef module fill:#eaf1fd,stroke:#4a72b0,color:#1c2430",
    "classDef port fill:#ffffff,stroke:#6b7480,color:#1c2430",
    "classDef holder fill:#f8f9fb,stroke:#b9c1cc,color:#1c2430",
)


def mermaid(picture: Picture) -> str:
    """Return a flowchart; nodes are numbered, so that no name can be taken for syntax."""
    names = {node.id: f"n{number}" for number, node in enumerate(picture.nodes)}
    edges = picture.lines()
    ends = [end for edge in edges for end in ((edge.source, edge.target), (edge.target, edge.source))]
    inward = {one.id: f"{names[one.id]}_itself" for one, other in ends if _goes_inward(one, other)}
    lines = ["flowchart LR", *_boxes(picture, names, inward)]
    dotted: list[int] = []
    for number, edge in enumerate(edges):
        label = f"|{_quoted(edge.label)}|" if edge.label and edge.kind != "data" else ""
        source = (inward if _goes_inward(edge.source, edge.target) else names)[edge.source.id]
        target = (inward if _goes_inward(edge.target, edge.source) else names)[edge.target.id]
        lines.append(f"  {source} {_ARROWS[edge.kind]}{label} {target}")
        if edge.kind == "shared":
            dotted.append(number)
    if dotted:
        lines.append(f"  linkStyle {','.join(map(str, dotted))} stroke-dasharray:1 4")
    holders = [names[node.id] for node in picture.nodes if node.members]
    if holders:
        lines.append(f"  class {','.join(holders)} holder")
    return "\n".join([*lines, *(f"  {look}" for look in _LOOKS)]) + "\n"


def _goes_inward(one: Node, other: Node) -> bool:
    """Whether a line from one node ends in it: Mermaid draws none from a subgraph to what is in it."""
    return bool(one.members) and one.holds(other)


def _boxes(picture: Picture, names: dict[str, str], inward: dict[str, str]) -> Iterator[str]:
    """Return the nodes: what holds others as a subgraph around them, and as a node in it where a line goes inward."""
    waiting: list[tuple[Node | None, int]] = [(node, 1) for node in reversed(picture.nodes) if node.parent is None]
    while waiting:
        node, depth = waiting.pop()
        indent = "  " * min(depth, 20)
        if node is None:
            yield f"{indent}end"
        elif node.members:
            yield f"{indent}subgraph {names[node.id]}[{_quoted(_title(node))}]"
            if node.id in inward:
                yield f"{indent}  {inward[node.id]}([{_quoted(node.label)}]):::port"
            waiting.append((None, depth))
            waiting += [(member, depth + 1) for member in reversed(node.members)]
        else:
            yield f"{indent}{names[node.id]}{_box(node)}"


def _title(node: Node) -> str:
    """What stands above the members of a node."""
    return f"{node.label}: {node.detail}" if node.detail else node.label


def _box(node: Node) -> str:
    """One node: a box with name and class, or a rounded one for what goes in or out."""
    if node.kind in ("input", "output"):
        return f"([{_quoted(node.label)}]):::port"
    return f'["{_escaped(node.label)}<br/>{_escaped(node.detail)}"]:::{node.kind}'


def _quoted(text: str) -> str:
    """Return a text between quotes."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Return what could be syntax by its number."""
    return "".join(c if c.isalnum() or c in " _.,:/=+?!" else f"#{ord(c)};" for c in printable(text))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 2rem; font-family: system-ui, sans-serif; line-height: 1.5; }}
  h1 {{ font-size: 1.3rem; font-weight: 600; }}
  .picture {{ overflow-x: auto; }}
  .picture svg {{ display: block; max-width: 100%; height: auto; }}
  pre {{ overflow-x: auto; font-size: 0.8rem; line-height: 1.35; padding: 1rem 0; }}
</style>
</head>
<body>
<h1>{title}</h1>
<div class="picture">
{picture}</div>
<pre>{summary}</pre>
</body>
</html>
"""


def html(picture: Picture, summary: str) -> str:
    """Return the page."""
    lines = "\n".join(map(escaped, summary.split("\n")))
    return _PAGE.format(title=escaped(picture.name), picture=svg(picture), summary=lines)
