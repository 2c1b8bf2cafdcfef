"""Every function of the room is linear, and works on deep and wide programs without recursion."""

import pytest

import synmod as sm
from tests.benchmarks.growth import FUNCTIONS, deep, growth, wide

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shape", [deep, wide])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_work_grows_with_the_size(shape, name):
    """Twice the program, twice the calls."""
    small, large = growth(shape, FUNCTIONS[name], (50, 100))
    assert large <= small * 2.2 + 500


QUICK = ("merge", "update", "in place", "variables", "flatten", "find_duplicates", "using", "repr", "equality", "pop")


def test_a_chain_of_5000_works():
    """Nothing recurses, at the depth that is promised."""
    root = deep(5_000)
    parts = *sm.split(root), sm.clone(root)
    assert len(parts[-1].submodules) == 5_000
    for name in QUICK:
        FUNCTIONS[name](root, *parts)
