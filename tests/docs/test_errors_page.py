"""The page of errors names every public class of errors, with the builtin that it also is."""

import builtins
import re
from pathlib import Path

import pytest

from synmod import errors

PAGE = (Path(__file__).parents[2] / "docs" / "pages" / "errors.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)`(?: \[([\w, ]+)\])? \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
PUBLIC = [getattr(errors, name) for name in errors.__all__]
CLASSES = {each for each in PUBLIC if issubclass(each, errors.SynmodError)}


def test_every_class_has_one_row():
    """Every public class of errors has exactly one row, and every row names such a class."""
    assert sorted(row[0] for row in ROWS) == sorted(each.__name__ for each in CLASSES)


def test_what_is_not_an_error_is_named_too():
    """The page also names the warning and the records of faults."""
    assert [each.__name__ for each in PUBLIC if f"`{each.__name__}`" not in PAGE] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_brackets_are_its_other_bases(row):
    """The brackets name the builtin bases of a class, unless its parent already has them."""
    name, brackets, *_ = row
    direct = {base.__name__ for base in getattr(errors, name).__bases__}
    known = {base for base in direct if hasattr(builtins, base) and base != "Exception"}
    said = set(filter(None, brackets.split(", ")))
    assert known <= said <= direct
