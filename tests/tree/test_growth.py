"""Every function of the room is linear, and works on deep and wide programs without recursion."""

import pytest

import synmod as sm
from tests.benchmarks.growth import FUNCTIONS, deep, growth, wide

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shape", [deep, wide])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_work_grows_with_the_size(shape, name):
    """Twice the program, twice the calls."""
    small, large = growth(shape, FUNCTIONS[name], (100, 200))
    assert large <= small * 2.2 + 500


QUICK = ("split", "merge", "clone", "update", "in place", "variables", "flatten", "find_duplicates", "using", "repr")


def test_a_chain_of_5000_and_10000_in_a_row_work():
    """Nothing recurses, at the sizes that are promised."""
    for shape, size, names in ((deep, 5_000, (*QUICK, "equality", "pop")), (wide, 10_000, ("split", "merge"))):
        root = shape(size)
        parts = *sm.split(root), sm.clone(root)
        assert len(parts[-1].submodules) == size
        for name in names:
            FUNCTIONS[name](root, *parts)
