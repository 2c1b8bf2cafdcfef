"""Programs taken apart and put together, beside Flax NNX on the same shape (extra `benchmark`).

Skipped with a reason where flax is not installed.
"""

from itertools import cycle

import synmod as sm
from tests.benchmarks.measure import paired
from tests.benchmarks.walks import Holder, other_values

SIZES = (200, 1_000, 10_000)


def flax_holder():
    """The same class in NNX; None where flax is not there."""
    try:
        import jax.numpy as jnp
        from flax import nnx
    except ImportError:
        return None

    class FlaxHolder(nnx.Module):
        def __init__(self, children):
            self.first = nnx.Param(jnp.zeros(()))
            self.second = nnx.Param(jnp.zeros(()))
            self.children = nnx.List(children)

    return nnx, FlaxHolder


def rows(scale=1.0):
    """Measure: ours may take half of the time."""
    found = flax_holder()
    if found is None:
        print("flax_graphs: skipped, flax is not installed (pip install synmod-lm[benchmark])")
        return
    nnx, theirs = found
    for size in SIZES:
        count = max(int(size * scale), 4) // 2 - 1
        ours, other = Holder([Holder([]) for _ in range(count)]), theirs([theirs([]) for _ in range(count)])
        parts, other_parts = sm.split(ours), nnx.split(other)
        pairs = {
            "split": (lambda x=ours: sm.split(x), lambda x=other: nnx.split(x)),
            "merge": (lambda x=parts: sm.merge(*x), lambda x=other_parts: nnx.merge(*x)),
            "clone": (lambda x=ours: sm.clone(x), lambda x=other: nnx.clone(x)),
            "state": (lambda x=ours: sm.state(x), lambda x=other: nnx.state(x)),
        }
        for name, (mine, floor) in pairs.items():
            yield paired(f"{name} of {size:,} Variables, beside NNX", mine, floor, budget=1 / 2, per=size, rounds=5)
        states, other_state = cycle(other_values(ours)), nnx.state(other)
        yield paired(
            f"update of {size:,} Variables, beside NNX",
            lambda x=ours, states=states: sm.update(x, next(states)),
            lambda x=other, state=other_state: nnx.update(x, state),
            budget=0.9,
            per=size,
            rounds=5,
        )
