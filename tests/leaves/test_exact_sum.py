"""Exact sums of floats."""

import math

from hypothesis import given
from hypothesis import strategies as st

from synmod.leaves.exact_sum import added, total

COSTS = st.lists(st.floats(min_value=0, max_value=1e6, allow_nan=False), max_size=30)


@given(COSTS, st.randoms(use_true_random=False))
def test_a_sum_is_exact_in_any_order(costs, draw):
    """Rounded once, as `math.fsum` does."""
    shuffled = list(costs)
    draw.shuffle(shuffled)
    parts = ()
    for cost in shuffled:
        parts = added(parts, cost)
    assert total(parts) == math.fsum(costs)


def test_nothing_is_zero():
    """The sum of no terms."""
    assert total(()) == 0.0
