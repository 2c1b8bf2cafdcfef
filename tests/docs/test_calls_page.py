"""The page on calls names every method of a hook, with the fields of its record."""

import dataclasses
import re
from pathlib import Path

import synmod as sm

PAGE = (Path(__file__).parents[2] / "docs" / "pages" / "ideas" / "calls.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `?(on_\w+|all)`? \| (.+) \|$", PAGE, re.MULTILINE))
EVENTS = {event.method: event for event in sm.scope.Event.__subclasses__()}


def test_every_method_has_a_row():
    """Each method of a hook has one."""
    assert set(ROWS) == {"all", *(name for name in vars(sm.Hook) if name.startswith("on_"))}


def test_every_field_is_named():
    """Each record is shown with the fields that it has."""
    common = [field.name for field in dataclasses.fields(sm.scope.Event)]
    assert [name for name in common if f"`{name}`" not in ROWS["all"]] == []
    for method, event in EVENTS.items():
        own = [field.name for field in dataclasses.fields(event) if field.name not in common]
        assert [name for name in own if f"`{name}`" not in ROWS[method]] == [], method
    assert [field.name for field in dataclasses.fields(sm.scope.Usage) if f"`{field.name}`" not in PAGE] == []
