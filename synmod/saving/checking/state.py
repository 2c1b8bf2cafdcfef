"""The check of the state against the graph: each Variable that has a path has one value there, and nothing else."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from synmod.leaves.frozen import Json
from synmod.leaves.names import did_you_mean, escape_step
from synmod.saving.checking.doc_walk import UNKNOWN, DocumentWalk, Link, leads_to
from synmod.saving.checking.plan import NO_VALUE
from synmod.saving.text.faults import load_fault, malformed, shown

if TYPE_CHECKING:
    from synmod.errors import LoadError
    from synmod.saving.checking.plan import Plan

__all__ = ["check_reached", "path_text", "state_places"]

_SHOWN = 5
_SOUGHT = 500
_LONGEST = 200


def check_reached(plan: Plan) -> DocumentWalk:
    """Check that everything in the tables belongs to the program.

    Returns:
        The walk from the root: what has a path.

    Raises:
        FormatError: Nothing leads to a node or Variable, or a value stands in the wrong place.
    """
    walk = DocumentWalk(plan.nodes, plan.resolver)
    walk.walk(plan.root)
    plan.unsure = walk.unsure
    from_arguments = DocumentWalk(plan.nodes, plan.resolver)
    from_arguments.nodes = dict(walk.nodes)
    from_arguments.variables = dict(walk.variables)
    reached = list(walk.nodes)
    for index in reached:  # grows while arguments lead to further nodes
        node = plan.nodes[index]
        if node.needs or node.constants or node.given or node.namespaces:
            known = len(from_arguments.nodes)
            for needed in (*node.needs, *node.constants, *(index for index, _ in node.namespaces)):
                from_arguments.walk({"node": needed})
            for given in node.given:
                from_arguments.variables.setdefault(given, None)
            reached += list(from_arguments.nodes)[known:]
    for table, found, size in (
        ("nodes", from_arguments.nodes, len(plan.nodes)),
        ("variables", from_arguments.variables, len(plan.variables)),
    ):
        if len(found) < size:
            lost = next(number for number in range(size) if number not in found)
            raise malformed(("graph", table, lost), "nothing in the graph leads here.")
    for number, entry in enumerate(plan.variables):
        if (entry.value is NO_VALUE) != (number in walk.variables):
            where = ("graph", "variables", number)
            if number in walk.variables:
                raise malformed((*where, "value"), "this Variable has a path: its value stands in `state`.")
            raise malformed(where, "the field 'value' is missing, and no path leads to this Variable.")
    return walk


def state_places(state: dict[str, Json], walk: DocumentWalk) -> dict[str, int]:
    """Tell which Variable each path of a state means.

    Raises:
        LoadError: The paths are not those of the graph's Variables.
    """
    links = walk.variables
    if len(state) == len(links) and all(map(leads_to, state, links.values())):
        return dict(zip(state, links, strict=True))
    found = _by_hash(state, links)
    unknown = list(islice((path for path in state if path not in found), _SHOWN))
    if unknown or len(found) < len(links):
        raise _misfit(unknown, set(found.values()), links)
    return found


def _by_hash(state: dict[str, Json], links: dict[int, Link]) -> dict[str, int]:
    """Look paths up whatever their order is, without writing out a path of the graph."""
    hashes: dict[int, tuple[int, int]] = {}  # of a link, by identity: hash and depth
    by_hash: dict[int, int] = {}
    others: dict[int, list[int]] = {}  # of the same hash
    deepest = 0
    for number, link in links.items():
        code, depth = _hash_of(link, hashes)
        if by_hash.setdefault(code, number) != number:
            others.setdefault(code, []).append(number)
        deepest = max(deepest, depth)
    hashes.clear()
    found: dict[str, int] = {}
    for path in state:
        if path.count("/") >= max(deepest, 1):
            continue
        code = _hash_of_text(path)
        if code in by_hash:
            for number in (by_hash[code], *others.get(code, ())):
                if leads_to(path, links[number]):
                    found[path] = number
    return found


def _hash_of(link: Link, hashes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Hash a path from the root on, each link above it once; what stands at its end has no path below it."""
    if link is None:
        return 0, 0
    code, depth = _hash_above(link[0], hashes)
    return _hash_step(code, link[1]), depth + 1


def _hash_step(code: int, step: Any) -> int:
    """Hash one step more."""
    return hash((code, "" if step is UNKNOWN else escape_step(step)))


def _hash_above(link: Link, hashes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Hash a path that others begin with, and remember it."""
    way: list[tuple[Link, Any]] = []
    while link is not None and id(link) not in hashes:
        way.append(link)
        link = link[0]
    code, depth = (0, 0) if link is None else hashes[id(link)]
    for each in reversed(way):
        code, depth = _hash_step(code, each[1]), depth + 1  # pyright: ignore[reportOptionalSubscript]
        hashes[id(each)] = code, depth
    return code, depth


def _hash_of_text(path: str) -> int:
    """Hash a path text alike."""
    code, start = 0, 0
    if not path:
        return code
    while True:
        end = path.find("/", start)
        if end < 0:
            return hash((code, path[start:]))
        code = hash((code, path[start:end]))
        start = end + 1


def _misfit(unknown: list[str], found: set[int], links: dict[int, Link]) -> LoadError:
    """Say which paths are too many and which are missing."""
    lost = (link for number, link in links.items() if number not in found)
    missing = [path_text(link) for link in islice(lost, _SOUGHT)]
    parts: list[str] = []
    if missing:
        parts.append(f"missing: {', '.join(map(shown, missing[:_SHOWN]))}")
    if unknown:
        parts.append(f"unknown: {', '.join(map(shown, unknown[:_SHOWN]))}")
    hint = did_you_mean(unknown[0], missing) if unknown else ""
    where = ("state", unknown[0]) if unknown else ("state",)
    return load_fault(
        where, f"the paths of the state are not those of the graph's Variables; {'; '.join(parts)}.{hint}"
    )


def path_text(link: Link) -> str:
    """Write a path; of a long one only the end."""
    steps: list[str] = []
    length = 0
    while link is not None and length < _LONGEST:
        steps.append("?" if link[1] is UNKNOWN else escape_step(link[1])[:_LONGEST])
        length += len(steps[-1])
        link = link[0]
    return "/".join(["...", *reversed(steps)] if link is not None else reversed(steps))
