"""The wiring of a program: all modules that declare skips, in execution order; which of them match, and which do not.

Two modules are ordered by their routes from the root. The container where the routes part decides: a Sequential orders
its members, a router makes them alternatives, a graph orders by its edges, and a user-defined call has no known order.
"""

import heapq
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, cast

from synmod import data, errors, leaves, tree
from synmod.flow import fields_text
from synmod.module import ChildAt, DeclaredSkips, Execution, Module, execution_of, where

from . import commands, lane


class Fork(NamedTuple):
    """A container on a route, the index of the part that the route takes, and the path of that part."""

    execution: Execution
    part: int
    path: leaves.KeyPath


class Site(NamedTuple):
    """A module that declares skips, at one path, with the route to it from the root."""

    path: str
    module: Module
    skips: DeclaredSkips
    way: tuple[Fork, ...]

    def keys(self, word: str) -> list[lane.Key]:
        """Return the keys declared for a command, sorted by name, without names that are both stashed and read."""
        both = self.skips.stash & (self.skips.pop | self.skips.peek)
        return [self.module.namespaced(name) for name in sorted(getattr(self.skips, word) - both)]


class SkipRoute(NamedTuple):
    """A connection from a module that stashes a value to one that pops it or peeks at it."""

    key: lane.Key
    producer: str
    consumer: str
    takes: bool


class SkipWiring:
    """The skips of a program.

    Args:
        root: The program.

    Attributes:
        problems: Every problem, in execution order.
        routes: The pairs that match.
        edges: For each graph, the program's first: by part, the parts that skips make it wait for, beyond its needs.

    Raises:
        ArgumentError: The root is not a module.
    """

    def __init__(self, root: Module) -> None:
        leaves.check_type("the root of skips", root, Module, "a module")
        self.routes: list[SkipRoute] = []
        self.edges: list[dict[int, list[int]]] = []
        self._faults: list[tuple[Site, errors.SkipProblem]] = []
        self._ranks: dict[int, list[int]] = {}
        self._sites = list(_sites(root))
        graphs = {id(fork.execution): fork.execution for site in self._sites for fork in site.way}.values()
        for graph in graphs:
            if graph.order == "graph":
                self._schedule(graph)
        self._sites.sort(key=self._place)
        self._check()
        self.problems = [problem for _, problem in sorted(self._faults, key=lambda fault: self._place(fault[0]))]

    # -- order --------------------------------------------------------------------------------------------------------

    def _rank(self, fork: Fork) -> int:
        """Return the place of a part in the order of its container."""
        ranks = self._ranks.get(id(fork.execution))
        return fork.part if ranks is None else ranks[fork.part]

    def _place(self, site: Site) -> list[int]:
        """Return the place of a site in execution order."""
        return [self._rank(fork) for fork in site.way]

    def _relation(self, site: Site, another: Site) -> Literal["before", "after", "apart", "unknown"]:
        """Return when a site runs relative to another."""
        for first, second in zip(site.way, another.way, strict=False):
            if first.execution is not second.execution or first.part != second.part:
                order = first.execution.order
                if order in ("one of", "together"):
                    return "apart" if order == "one of" else "unknown"
                return "before" if self._rank(first) < self._rank(second) else "after"
        return "before" if len(site.way) <= len(another.way) else "after"  # a container before its parts

    def _schedule(self, graph: Execution) -> None:
        """Order the parts of a graph by data flow and skips; report each skip that closes a cycle."""
        before = [set(needs) for needs in graph.needs]
        stashes, pops, peeks, reads = (
            self._ends(graph, *words) for words in (["stash"], ["pop"], ["peek"], ["pop", "peek"])
        )
        pairs = [
            (producer, consumer, key)
            for key in reads
            for consumer in reads[key]
            for producer in stashes.get(key, ())
            if consumer not in stashes[key]
        ]
        # Data flows forward, so forward edges cannot close a cycle: they come first, without a search.
        for producer, consumer, key in sorted(pairs, key=lambda pair: pair[0] > pair[1]):
            site, path = reads[key][consumer]
            if not add_edge(before, producer, consumer) and key[1] not in site.skips.optional:  # else it is absent
                stasher = stashes[key][producer][1]
                text = (
                    f"{path!r} pops {key[1]!r}, which {stasher!r} stashes, but {stasher!r} needs the output of {path!r}"
                )
                self._faults.append((site, errors.SkipProblem("cycle", path, *key, stasher, f"{text}: a cycle")))
        for key in pops:
            for peeker, popper in product(peeks.get(key, ()), pops[key]):
                if peeker != popper:
                    add_edge(before, peeker, popper)
        more = {index: sorted(before[index].difference(needs)) for index, needs in enumerate(graph.needs)}
        self.edges.append({index: added for index, added in more.items() if added})
        self._ranks[id(graph)] = _ranks(before)

    def _ends(self, graph: Execution, *words: str) -> dict[lane.Key, dict[int, tuple[Site, str]]]:
        """Return the parts of a graph that declare a command, by key; for each, its first site and its path."""
        ends: dict[lane.Key, dict[int, tuple[Site, str]]] = {}
        for site in self._sites:
            for fork in site.way:
                if fork.execution is graph:
                    for key in (key for word in words for key in site.keys(word)):
                        ends.setdefault(key, {}).setdefault(fork.part, (site, leaves.path_str(fork.path)))
        return ends

    # -- rules --------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Check that each key is stashed once, then popped once, and that the schemas of both ends match."""
        used = {(cycle.namespace, cycle.name) for _, cycle in self._faults}
        stashes: dict[lane.Key, list[Site]] = {}
        for site in self._sites:
            for name in sorted(site.skips.stash & (site.skips.pop | site.skips.peek)):
                text = f"{site.path!r} declared {name!r} both as stashable and as poppable"
                self._report(site, "both", site.module.namespaced(name), None, text)
            for key in site.keys("stash"):
                before = [earlier for earlier in stashes.get(key, ()) if self._relation(earlier, site) != "apart"]
                if before:
                    text = f"{site.path!r} redeclared {key[1]!r} as stashable but not isolated by namespace"
                    self._report(site, "restashed", key, before[0], text)
                else:
                    stashes.setdefault(key, []).append(site)
        pops: dict[lane.Key, list[Site]] = {}
        for site in self._sites:
            for word, key in ((command, key) for command in ("peek", "pop") for key in site.keys(command)):
                popped = {self._relation(earlier, site): earlier for earlier in reversed(pops.get(key, ()))}
                stashed = {self._relation(earlier, site): earlier for earlier in reversed(stashes.get(key, ()))}
                again = popped.get("before") or popped.get("unknown")
                producer = stashed.get("before") or stashed.get("unknown")
                if word == "pop" and again is not None:
                    text = f"{site.path!r} redeclared {key[1]!r} as poppable but not isolated by namespace"
                    self._report(site, "repopped", key, again, text)
                elif producer is not None and "before" not in popped:
                    self._pair(key, producer, site, takes=word == "pop")
                    if word == "pop":
                        pops.setdefault(key, []).append(site)
                elif key[1] not in site.skips.optional and key not in used:
                    text = f"{site.path!r} declared {key[1]!r} as {commands.ADJECTIVES[word]} but it was not stashed"
                    self._report(site, "unstashed", key, None, text)
        used |= {route.key for route in self.routes}
        for key, producers in stashes.items():
            for site in () if key in used else producers:
                self._report(site, "unpopped", key, None, f"no module declared {key[1]!r} as poppable but stashed")

    def _pair(self, key: lane.Key, producer: Site, consumer: Site, *, takes: bool) -> None:
        """Add a route, and check the schemas of its ends."""
        self.routes.append(SkipRoute(key, producer.path, consumer.path, takes))
        stashed, expected = producer.skips.schemas.get(key[1]), consumer.skips.schemas.get(key[1])
        misfit = None if expected is None or stashed is None else _misfit(stashed, expected)
        if misfit is not None:
            text = f"{consumer.path!r} needs {misfit} of {key[1]!r}, which {producer.path!r} does not stash"
            self._report(consumer, "schema", key, producer, text)

    def _report(self, site: Site, kind: str, key: lane.Key, partner: Site | None, text: str) -> None:
        self._faults.append((site, errors.SkipProblem(kind, site.path, *key, partner and partner.path, text)))


# -- sites -------------------------------------------------------------------------------------------------------------


def _sites(root: Module) -> Iterator[Site]:
    """Yield the modules of a program that declare skips, once per route to them, in definition order."""
    visits = [visit for visit in tree.walk(root) if isinstance(visit.value, Module)]
    below: dict[int, dict[int, ChildAt]] = {}
    above: dict[int, list[Module]] = {}
    for visit in visits:
        parent, steps = parent_of(visit)
        if parent is not None:
            below.setdefault(id(parent), {}).setdefault(id(visit.value), ChildAt(steps, visit.value))
            above.setdefault(id(visit.value), []).append(parent)
    carrying: set[int] = set()
    pending = [visit.value for visit in visits if visit.value._record.declaration.skips is not None]
    while pending:
        module = pending.pop()
        if id(module) not in carrying:
            carrying.add(id(module))
            pending += above.get(id(module), ())

    parts: list[tuple[ChildAt | Execution | None, leaves.KeyPath, tuple[Fork, ...], frozenset[int]]]
    parts = [(ChildAt((), root), (), (), frozenset())]
    while parts:
        part, path, way, around = parts.pop()
        if isinstance(part, ChildAt):
            module = part.module
            if id(module) in around or id(module) not in carrying:
                continue
            skips = module._record.declaration.skips
            if skips is not None:
                yield Site(leaves.path_str(path), module, skips, way)
            around |= {id(module)}
            part = execution_of(module) or Execution("together", tuple(below.get(id(module), {}).values()))
        if part is not None:
            for index, child in reversed([*enumerate(part.parts)]):
                at = (*path, *child.steps) if isinstance(child, ChildAt) else path
                parts.append((child, at, (*way, Fork(part, index, at)), around))


def parent_of(visit: tree.Visit) -> tuple[Module | None, leaves.KeyPath]:
    """Return the nearest module above a visit, and the steps from it to the visit."""
    steps: list[Any] = [visit.step]
    parent = visit.parent
    while parent is not None and not isinstance(parent.value, Module):
        steps.append(parent.step)
        parent = parent.parent
    return (None if parent is None else parent.value), tuple(reversed(steps))


# -- graphs ------------------------------------------------------------------------------------------------------------


def add_edge(before: list[set[int]], first: int, then: int) -> bool:
    """Add an edge unless it would close a cycle; return whether it was added."""
    if first > then:
        pending, visited = [first], {first}
        while pending:
            new = before[pending.pop()] - visited
            visited |= new
            pending += new
        if then in visited:
            return False
    before[then].add(first)
    return True


def _ranks(before: Sequence[set[int]]) -> list[int]:
    """Return the rank of each part in topological order; ties are broken by index."""
    from graphlib import TopologicalSorter

    sorter = TopologicalSorter(dict(enumerate(before)))
    sorter.prepare()
    ranks, ready = [0] * len(before), list[int]()
    for rank in range(len(before)):
        for part in sorter.get_ready():
            heapq.heappush(ready, part)
        done = heapq.heappop(ready)
        ranks[done] = rank
        sorter.done(done)
    return ranks


# -- schemas -----------------------------------------------------------------------------------------------------------


def _misfit(stashed: data.Schema, expected: data.Schema) -> str | None:
    """Return the fields, or the schema, that a consumer needs and a producer does not stash, as text; None if none."""
    are_objects = all(schema.get("type") == "object" or "properties" in schema for schema in (stashed, expected))
    if data.is_subschema(stashed, expected) or (are_objects and data.includes(stashed, expected)):
        return None
    stashable, needed = stashed.get("properties", {}), expected.get("properties", {})
    lacking = commands.missing_fields(stashed, expected)
    lacking = lacking or [repr(name) for name in needed if name in stashable and stashable[name] != needed[name]]
    return f"the field {', '.join(lacking)}" if lacking else fields_text(expected)


# -- entry points ------------------------------------------------------------------------------------------------------


def verify_skippables(module: Module) -> None:
    """Raise one error for all stashes and pops of a program that do not match, in execution order.

    Args:
        module: The program, or any module.

    Raises:
        SkipVerifyError: Stashes and pops do not match; `problems` lists all mismatches, in execution order.
        ArgumentError: `module` is not a module.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(pop=["doc"])
        ... class Cite(sm.Module):
        ...     pass
        >>> verify_skippables(sm.Sequential([Cite()]))
        Traceback (most recent call last):
        synmod.errors.SkipVerifyError: ...'0' declared 'doc' as poppable but it was not stashed...

    Source: torchgpipe's `verify_skippables`; differs: containers at any depth, graphs, schemas.
    """
    _raise_if_any(module, SkipWiring(module).problems)


def verify_root(root: Module, is_whole: bool = True) -> None:
    """Check the root of a program, unless it declares skips itself and so must be a part of another program.

    Missing partners are not reported as long as a later build may make them. On a skip frame that a user owns, the
    program is one stage of several: it may pop the values of the frame, and stash for the next stage.
    """
    if root._record.declaration.skips is not None:
        return
    problems = SkipWiring(root).problems
    block = lane.open_block() if problems else None
    if block is not None and block.lane.is_user_owned:
        names = {name for _, name in block.lane.contents()}
        problems = [p for p in problems if p.kind != "unpopped" and (p.kind != "unstashed" or p.name not in names)]
    if problems and not is_whole:
        modules = (visit.value for visit in tree.walk(root) if isinstance(visit.value, Module))
        if not all(module._record.built for module in modules):
            problems = [problem for problem in problems if problem.kind not in ("unstashed", "unpopped")]
    _raise_if_any(root, problems)


def steps_before(program: Module) -> Mapping[int, Sequence[int]]:
    """Return the scheduling edges that skips add to the graph of a functional program."""
    return [*SkipWiring(program).edges, dict[int, list[int]]()][0]  # its own graph comes first


def _raise_if_any(module: Module, problems: Sequence[errors.SkipProblem]) -> None:
    if problems:
        lines = "".join(f"\n* {problem.message}" for problem in problems)
        raise errors.SkipVerifyError(
            f"{where(module)}: one or more pairs of stash and pop do not match:\n{lines}\n\nAdd the missing ones, or "
            "put pairs with the same name into Namespaces: module.isolate(Namespace()).",
            list(problems),
        )


# -- the layout: static routes from producers to consumers, and copies between partitions ------------------------------


class SkipLayout(dict[lane.Key, tuple[str, str]]):
    """The static routes of a program: `(namespace, name)` to `(producer path, consumer path)`.

    The consumer is the module that pops, else the first that peeks.

    Attributes:
        routes: Every route, from each module that stashes a key to each that pops it or peeks at it.
        partitions: The paths of the children in each partition.
    """

    def __init__(self, routes: Sequence[SkipRoute], partitions: Sequence[Sequence[str]]) -> None:
        for route in sorted(routes, key=lambda route: not route.takes):
            self.setdefault(route.key, (route.producer, route.consumer))
        self.routes = routes
        self.partitions = partitions

    def copy_policy(self, partition: int) -> list[tuple[int, lane.Namespace | None, str]]:
        """Return the values that a partition must receive from others, each once, directly from its producer.

        Args:
            partition: The index of the partition.

        Returns:
            `(source partition, namespace, name)`, sorted by source.
        """
        copies: set[tuple[int, lane.Namespace | None, str]] = set()
        for route in self.routes:
            source, target = self._partition_of(route.producer), self._partition_of(route.consumer)
            if source is not None and target == partition and source != target:
                copies.add((source, *route.key))
        return sorted(copies, key=lambda copy: (copy[0], lane.order_of(copy[1]), copy[2]))

    def requires_copy(self, ns: lane.Namespace | None, name: str) -> bool:
        """Whether a value goes from one partition to another; False for an unknown route."""
        numbers = range(len(self.partitions))
        return any(copy[1:] == (ns, name) for number in numbers for copy in self.copy_policy(number))

    def _partition_of(self, path: str) -> int | None:
        """Return the index of the partition that a module is in; None if it is in none."""
        for number, children in enumerate(self.partitions):
            if any(path == child or not child or path.startswith(f"{child}/") for child in children):
                return number
        return None


def skip_layout(module: Module, partitions: Sequence[Sequence[Any]] | None = None) -> SkipLayout:
    """Return the static routes of the skips of a program.

    Args:
        module: The program.
        partitions: Lists of children (modules or paths), one list for each worker, process or context.

    Returns:
        A mapping from `(namespace, name)` to `(producer path, consumer path)`.

    Raises:
        ArgumentError: `module` is not a module, or a partition has an object that is not part of the program.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(stash=["doc"])
        ... class Retrieve(sm.Module):
        ...     pass
        >>> @skippable(pop=["doc"])
        ... class Cite(sm.Module):
        ...     pass
        >>> dict(skip_layout(sm.Sequential([Retrieve(), sm.Identity(), Cite()])))
        {(None, 'doc'): ('0', '2')}

    Source: torchgpipe's `inspect_skip_layout`; differs: paths, at any depth.
    """
    wiring = SkipWiring(module)
    all_paths = {leaves.path_str(visit.path) for visit in tree.walk(module)} if partitions else set[str]()
    parts = [[path for child in children for path in _paths(module, child, all_paths)] for children in partitions or ()]
    return SkipLayout(wiring.routes, parts)


def _paths(root: Module, child: Any, all_paths: Container[str]) -> list[str]:
    """Return the paths of a child of a partition, given as a module, a path (text or steps) or an index."""
    if isinstance(child, str | int | tuple):
        path = leaves.path_str(cast("leaves.KeyPath", child)) if isinstance(child, tuple) else str(child)
        paths = [path] if path in all_paths else []
    else:
        paths = [leaves.path_str(path) for path in tree.paths_of(root, child)]
    if not paths:
        raise errors.ArgumentError(f"skip_layout: {child!r:.100} in a partition is not part of the program.")
    return paths
