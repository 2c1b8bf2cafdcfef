"""recursive_map: a copy of a program with some of its parts replaced, from the leaves up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from synmod.errors import GraphError
from synmod.leaves.names import path_str
from synmod.tree.functional.clone import editable_copy
from synmod.tree.graphs.defs import NodeDef
from synmod.tree.graphs.record import record
from synmod.tree.variable.containers import class_of, put_together
from synmod.tree.walking.node_types import Impls
from synmod.tree.walking.refmap import RefMap
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.names import KeyPath
    from synmod.tree.walking.walk import Visit

M = TypeVar("M")


def recursive_map(fn: Callable[[KeyPath, Any], Any], node: M) -> M:
    """Copy a program, and let a function replace its parts, from the leaves up.

    The copy shares Variables and by-reference nodes (language models) with the program. A shared object is seen once,
    and replaced everywhere by the same result. New parts that are unbuilt build at the first call.

    Args:
        fn: `fn(path, x)` sees every node, container and Variable, what is below it done already, and gives it back or
            a replacement.
        node: A program without cycles.

    Returns:
        What `fn` gave for the root.

    Raises:
        GraphError: A cycle; names the path. Or a replacement inside a by-reference node.
        ArgumentError: `node` holds no graph.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Stat(1), "b": [sm.Stat(2)]}
        >>> frozen = sm.recursive_map(lambda _, x: x.value if isinstance(x, sm.Stat) else x, program)
        >>> frozen
        {'a': 1, 'b': [2]}

    Source: Flax NNX `recursive_map`; differs: iterative, shared objects once.
    """
    taken = record(node)
    _refuse_cycles(node)
    kept = taken.graphdef.kept
    shared = {visit.index: visit.value for visit in taken.leaves if visit.index is not None}
    objects: dict[int, Any] = {**kept, **shared}
    copy = editable_copy(taken, objects)
    results = _Results(fn)
    visits = list(walk(copy, order="post"))
    root: Any = copy
    for visit in visits:
        root = results.of(visit)
    copies = [objects[index] for index, each in taken.graphdef.definitions.items() if isinstance(each, NodeDef)]
    _follow(copies, results.by_object)
    return root


class _Results:
    """What a function made of the parts so far."""

    __slots__ = ("_fn", "_impls", "by_object")

    def __init__(self, fn: Callable[[KeyPath, Any], Any]) -> None:
        self._fn = fn
        self._impls = Impls()
        self.by_object: RefMap[Any] = RefMap()

    def of(self, visit: Visit) -> Any:
        """Give the result for what is visited, and leave it for its holder."""
        x = visit.value
        if visit.kind != "container" and not visit.first:
            result = self.by_object[x]
        else:
            result = self._fn(visit.path, self._with_results(visit))
            if visit.kind != "container":
                self.by_object[x] = result
        if visit.above is not None:
            if not visit.above.parts:
                visit.above.parts = {}
            visit.above.parts[visit.step] = result
        return result

    def _with_results(self, visit: Visit) -> Any:
        """Give what is visited with the results of its parts in their place."""
        x, parts = visit.value, visit.parts
        changed = [(step, parts[step]) for step, child in visit.children if step in parts and parts[step] is not child]
        if not changed:
            return x
        if visit.kind == "container":
            children = [parts.get(step, child) for step, child in visit.children]
            return put_together(class_of(x), [step for step, _ in visit.children], children, visit.aux)
        impl = self._impls[class_of(x)]
        if impl.by_reference:
            raise GraphError(
                f"At {path_str(visit.path)!r}: a {type(x).__name__} is kept by copies as it is, so nothing inside can "
                "be replaced: replace it as a whole."
            )
        for step, result in changed:
            impl.set_key(x, step, result)
        return x


def _follow(copies: list[Any], results: RefMap[Any]) -> None:
    """Let constructor arguments follow what was replaced, and close the copies."""
    impls = Impls()

    def result(x: Any) -> Any:
        return results.get(x, x)

    for x in copies:
        impl = impls[class_of(x)]
        if impl.by_reference:
            continue
        if impl.map_refs is not None and impl.rewrite is not None:
            before = impl.metadata_of(x)
            metadata = impl.map_refs(before, result)
            if metadata is not before:
                impl.rewrite(x, metadata, impl.pairs(x))
        if impl.reseal is not None:
            impl.reseal(x)


def _refuse_cycles(node: Any) -> None:
    """Raise where a node is below itself."""
    done: RefMap[bool] = RefMap()
    for visit in walk(node, order="post"):
        if visit.kind != "node":
            continue
        if not visit.first and visit.value not in done:
            raise GraphError(
                f"recursive_map: at {path_str(visit.path)!r} is a {type(visit.value).__name__} that holds itself: the "
                "parts of a cycle have no order."
            )
        done[visit.value] = True
