"""The table of optimizers has a row for each, and shows their parameters as they are."""

import inspect
import re
from pathlib import Path

import pytest

import synmod as sm

PAGE = (Path(__file__).parents[2] / "docs" / "pages" / "ideas" / "optimizers.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)\((.*?)\)` \|", PAGE, re.MULTILINE))
OPTIMIZERS = {
    name: each
    for name, each in vars(sm.optimizers).items()
    if isinstance(each, type) and issubclass(each, sm.optimizers.Optimizer) and each is not sm.optimizers.Optimizer
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_has_a_row(name):
    """Each optimizer has a row, and the parameters that it shows have these defaults."""
    shown = dict(part.split("=") for part in ROWS[name].split(", "))
    parameters = inspect.signature(OPTIMIZERS[name]).parameters
    assert shown == {key: repr(parameters[key].default) for key in shown}
