"""Documents that no program of ours wrote."""

import copy
import json

HEADER = {"synmod": "0.1.0", "format": 1, "kind": "program"}


def document(sections, header=None):
    """The text of a document with these sections."""
    return json.dumps({"header": {**HEADER, **(header or {})}, **sections}, ensure_ascii=False)


def sections_of(text):
    """The sections of a text of ours."""
    document = json.loads(text)
    del document["header"]
    return document


def edited(text, edit):
    """A text after `edit(sections)`, written anew."""
    sections = copy.deepcopy(sections_of(text))
    edit(sections)
    return document(sections)


def minimal(**changes):
    """The smallest document: one Keep without arguments."""
    record = {"type": "tests_saving>Keep", "config": {}, "attributes": {}, "build": None}
    sections = {
        "graph": {"root": {"node": 0}, "nodes": [record], "variables": []},
        "data_models": [],
        "language_models": {},
        "state": {},
    }
    for place, value in changes.items():
        *way, last = place.split("__")
        here = sections
        for step in way:
            here = here[int(step) if step.isdecimal() else step]
        here[int(last) if last.isdecimal() else last] = value
    return sections


def places(value, where=()):
    """Every place in a JSON value, the value itself included."""
    yield where
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*where, key))


def at(value, where):
    """What stands at a place."""
    for step in where:
        value = value[step]
    return value
