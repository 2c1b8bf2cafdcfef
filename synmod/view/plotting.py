"""`plot`: a picture of a program as Mermaid, which GitHub renders in place, as SVG, as an HTML page, or as JSON."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from synmod import data, errors, leaves
from synmod.module import Module

from .pages import picture_page, write_text
from .picture import Node, Picture
from .summary import summary_text
from .svg import svg
from .tables import printable

# -- Mermaid -----------------------------------------------------------------------------------------------------------

_ARROWS: Final = {"data": "-->", "skip": "-.->", "shared": "-.-"}
_MERMAID_LOOKS: Final = (
    "classDef module fill:#eaf1fd,stroke:#4a72b0,color:#1c2430",
    "classDef port fill:#ffffff,stroke:#6b7480,color:#1c2430",
    "classDef holder fill:#f8f9fb,stroke:#b9c1cc,color:#1c2430",
)


def mermaid(picture: Picture) -> str:
    """Return a Mermaid flowchart; nodes are numbered, so that no name is parsed as syntax."""
    names = {node.id: f"n{number}" for number, node in enumerate(picture.nodes)}
    edges = picture.lines()
    inward: set[str] = set()
    flows: list[str] = []
    for edge in edges:
        ends = [names[edge.source.id], names[edge.target.id]]
        for index, (end, opposite) in enumerate(((edge.source, edge.target), (edge.target, edge.source))):
            if end.members and end.holds(opposite):  # Mermaid draws no line from a subgraph to its own member
                inward.add(end.id)
                ends[index] += "_itself"
        label = f"|{_quote(edge.label)}|" if edge.label and edge.kind != "data" else ""
        flows.append(f"  {ends[0]} {_ARROWS[edge.kind]}{label} {ends[1]}")
    lines = ["flowchart LR", *_boxes(picture, names, inward), *flows]
    dotted = [str(number) for number, edge in enumerate(edges) if edge.kind == "shared"]
    if dotted:
        lines.append(f"  linkStyle {','.join(dotted)} stroke-dasharray:1 4")
    holders = [names[node.id] for node in picture.nodes if node.members]
    if holders:
        lines.append(f"  class {','.join(holders)} holder")
    return "\n".join([*lines, *(f"  {look}" for look in _MERMAID_LOOKS)]) + "\n"


def _boxes(picture: Picture, names: dict[str, str], inward: set[str]) -> Iterator[str]:
    """Yield the nodes: a holder as a subgraph, with a node of its own inside if a line leads to a member."""
    around: list[Node] = []
    for node in [*picture.nodes, None]:
        while around and (node is None or node.parent is not around[-1]):
            around.pop()
            yield f"{_indent(around)}end"
        if node is not None and node.members:
            title = f"{node.label}: {node.detail}" if node.detail else node.label
            yield f"{_indent(around)}subgraph {names[node.id]}[{_quote(title)}]"
            if node.id in inward:
                yield f"{_indent(around)}  {names[node.id]}_itself([{_quote(node.label)}]):::port"
            around.append(node)
        elif node is not None and node.kind == "module":
            text = f"{_escape(node.label)}<br/>{_escape(node.detail)}"
            yield f'{_indent(around)}{names[node.id]}["{text}"]:::module'
        elif node is not None:
            yield f"{_indent(around)}{names[node.id]}([{_quote(node.label)}]):::port"


def _indent(around: Sequence[Node]) -> str:
    return "  " * min(len(around) + 1, 20)


def _quote(text: str) -> str:
    """Return a text, escaped and in quotes."""
    return f'"{_escape(text)}"'


def _escape(text: str) -> str:
    """Return a text with every possible syntax character as a numeric entity."""
    return "".join(c if c.isalnum() or c in " _.,:/=+?!" else f"#{ord(c)};" for c in printable(text))


# -- formats -----------------------------------------------------------------------------------------------------------

FORMATS: Final[dict[str, Callable[[Module], str]]] = {
    "mermaid": lambda module: mermaid(Picture(module)),
    "svg": lambda module: svg(Picture(module)),
    "html": lambda module: picture_page(module.name, svg(Picture(module)), summary_text(module)),
    "json": lambda module: data.dump_json(Picture(module).to_json(), indent=2) + "\n",
}
"""The formats of `plot` by name."""


def plot(module: Module, path: Any, format: Any) -> str:  # noqa: A002  # the public parameter name
    """Return the picture of a module, and write it where a path is given; see `Module.plot`."""
    ending = str(path).rpartition(".")[2]
    if format == "auto":
        format = ending if ending in FORMATS else "mermaid"  # noqa: A001
    leaves.check_choice("plot: format", format, tuple(FORMATS))
    if ending in ("png", "pdf"):
        raise errors.ArgumentError(f"plot: {str(path)!r:.80}: {ending} is no format; write a path that ends in .svg.")
    if ending != format and ending in FORMATS:
        what = f"the ending of {str(path)!r:.100} does not match format={format!r}"
        raise errors.ArgumentError(f"plot: {what}: write format={ending!r}, or leave it out.")
    return write_text(FORMATS[format](module), path)
