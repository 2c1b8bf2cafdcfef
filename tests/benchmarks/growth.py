"""How the work of the graph functions grows with a program, deep and wide: `python -m tests.benchmarks.growth`.

Work is counted in calls, so the numbers are the same on every machine; making a path is no call, so what grows with the
length of the paths handed out does not count.
"""

import copy
import sys
from itertools import pairwise

import synmod as sm
from synmod.tree import RefMap, flatten, unflatten

SIZES = (1_000, 2_000, 4_000)


class Link(sm.Module):
    """Holds a Variable, a static and other modules."""

    def __init__(self, below=()):
        super().__init__()
        self.prompt = sm.Param("x")
        self.limit = 1
        self.below = list(below)


def deep(size):
    """A chain of modules, a Variable at its end only, so that no path but one is long."""
    node = Link()
    for _ in range(size):
        outer = Link([node])
        del outer.prompt
        node = outer
    return node


def wide(size):
    """One module with many."""
    return Link([Link() for _ in range(size)])


def _filled(root):
    graphdef, state = sm.split(root)
    return graphdef, state, sm.clone(root)


FUNCTIONS = {
    "walk": lambda root, *_: sum(1 for _ in sm.tree.walk(root)),
    "walk post": lambda root, *_: sum(1 for _ in sm.tree.walk(root, order="post")),
    "variables": lambda root, *_: root.variables,
    "submodules": lambda root, *_: root.submodules,
    "flatten": lambda root, *_: list(root.flatten()),
    "split": lambda root, *_: sm.split(root),
    "split in parts": lambda root, *_: sm.split(root, sm.Memory, sm.Path("**/prompt"), ...),
    "state": lambda root, *_: sm.state(root),
    "graphdef": lambda root, *_: sm.graphdef(root),
    "merge": lambda root, graphdef, state, _: sm.merge(graphdef, state),
    "merge of JSON": lambda root, graphdef, state, _: sm.merge(graphdef, state.to_json()),
    "clone": lambda root, *_: sm.clone(root),
    "deepcopy": lambda root, *_: copy.deepcopy(root),
    "update": lambda root, graphdef, state, other: sm.update(other, state.to_json()),
    "in place": lambda root, graphdef, state, other: _in_place(graphdef, state, other),
    "pop": lambda root, graphdef, state, other: sm.pop(sm.clone(other), sm.Param),
    "set_metadata": lambda root, *_: sm.set_metadata(root, tag="t"),
    "set_attributes": lambda root, *_: sm.set_attributes(root, limit=2),
    "find_duplicates": lambda root, *_: sm.find_duplicates(root),
    "paths_of": lambda root, *_: sm.paths_of(root, root.submodules[-1]),
    "train": lambda root, *_: root.train(),
    "using": lambda root, graphdef, state, _: _using(root, state),
    "call": lambda root, graphdef, state, _: sm.call((graphdef, state)).train(),
    "equality": lambda root, graphdef, state, other: graphdef == sm.graphdef(other),
    "fingerprint": lambda root, *_: sm.graphdef(root).fingerprint,
    "diff of graphs": lambda root, graphdef, state, other: graphdef.diff(sm.graphdef(other)),
    "graph as JSON": lambda root, graphdef, *_: graphdef.to_json(),
    "graph from JSON": lambda root, graphdef, *_: sm.GraphDef.from_json(graphdef.to_json(), custom_objects=CLASSES),
    "state as JSON": lambda root, graphdef, state, _: sm.State.from_json(graphdef, state.to_json()),
    "algebra of states": lambda root, graphdef, state, _: _algebra(state),
    "save and load": lambda root, *_: sm.loads(sm.dumps(root, limits=_LIMITS), custom_objects=CLASSES, limits=_LIMITS),
    "repr": lambda root, graphdef, *_: repr(graphdef),
    "hash": lambda root, graphdef, state, _: (hash(graphdef), hash(state)),
    "update_context": lambda root, *_: _crossed(root),
    "summary": lambda root, *_: root.summary(),
    "plot": lambda root, *_: root.plot(),
    "plot as JSON": lambda root, *_: root.plot(format="json"),
    "verify_skippables": lambda root, *_: sm.skip.verify_skippables(root),
    "skip_layout": lambda root, *_: sm.skip.skip_layout(root),
}

_LIMITS = sm.FileLimits(max_values=10_000_000, max_bytes=2**30)
CLASSES = {f"{Link.__module__}:Link": Link, "tests_growth>Link": Link}
sm.register(package="tests_growth")(Link)


def _in_place(graphdef, state, other):
    numbers = RefMap()
    flatten(other, numbers)
    return unflatten(graphdef, state, index_ref_cache={index: x for x, index in numbers.items()})


def _crossed(root):
    with sm.update_context("worker") as context:
        inner = context.merge(*context.split(root))
        return context.merge(*context.split(inner))


def _using(root, state):
    with sm.using(root, state) as overlay:
        return overlay.state


def _algebra(state):
    other = state.map(lambda path, leaf: leaf.value + "y")
    return state | other, state - other, state.fingerprint, state.diff(other)


def calls(function, *args):
    """How many calls, of Python and C functions, one run makes."""
    counted = 0

    def count(_, event, __):
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return counted


def growth(shape, function, sizes):
    """The calls of a function at each size."""
    found = []
    for size in sizes:
        root = shape(size)
        found.append(calls(function, root, *_filled(root)))
    return found


def main():
    """Print the calls at each size and how they grow."""
    print(f"{'what':<24}{'shape':<7}" + "".join(f"{size:>12,}" for size in SIZES) + f"{'growth':>14}")
    for shape in (deep, wide):
        for name, function in FUNCTIONS.items():
            counts = growth(shape, function, SIZES)
            ratios = " ".join(f"{b / a:.2f}" for a, b in pairwise(counts))
            print(f"{name:<24}{shape.__name__:<7}" + "".join(f"{count:>12,}" for count in counts) + f"{ratios:>14}")


if __name__ == "__main__":
    main()
