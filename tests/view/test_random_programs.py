"""Laws over programs of any shape: shared parts, circles, containers in containers."""

import json
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.leaves.names import path_str
from synmod.view import FORMATS
from tests.view.programs import Leaf, Tied


@st.composite
def programs(draw):
    """A module that holds earlier ones and Variables, anywhere, several times, itself among them."""
    made = [Leaf(), sm.Param("shared"), sm.Memory([1, 2])]
    for _ in range(draw(st.integers(1, 8))):
        picks = draw(st.lists(st.sampled_from(range(len(made))), max_size=4))
        held = [made[index] for index in picks]
        shape = draw(st.sampled_from(("list", "dict", "nest")))
        if shape == "dict":
            held = {f"k{index}": part for index, part in enumerate(held)}
        elif shape == "nest":
            held = [held, {"x": tuple(held)}]
        made.append(Tied(held))
        if draw(st.booleans()):
            made[-1].me = draw(st.sampled_from([each for each in made if isinstance(each, sm.Module)]))
    return made[-1]


def paths_in(text):
    """The first column of a summary that has only this one."""
    return text.split("\n")[2:-1]


@settings(max_examples=40)
@given(programs())
def test_a_summary_has_a_row_for_each_way_in(program):
    """One for each module and for each further name of one; the totals are those of the live views."""
    ways_in = [path_str(path) or "(root)" for path, _ in sm.iter_graph(program, sm.Module, repeats=True)]
    text = program.summary(columns=["path"])
    assert paths_in(text) == ways_in
    assert text.split("\n")[-1].startswith(f"{1 + len(program.submodules)} module")
    if program.variables:
        kinds = f"({len(program.trainable_variables)} trainable, {len(program.non_trainable_variables)} frozen)"
        assert kinds in text


def _at(program, path):
    """What stands at a path."""
    found = program
    for step in path:
        found = vars(found)[step] if isinstance(found, sm.Module) else found[step]
    return found


@pytest.mark.slow
@given(programs(), st.integers(0, 4))
def test_depths_agree(program, depth):
    """A depth keeps rows as they are, and the totals."""
    whole = program.summary(columns=["path"])
    part = program.summary(columns=["path"], depth=depth)
    assert [path for path in paths_in(whole) if path in set(paths_in(part))] == paths_in(part)
    assert part.split("\n")[-1] == whole.split("\n")[-1]


@settings(max_examples=40)
@given(programs())
def test_a_picture_hangs_together(program):
    """Every module is one node, every edge leads from node to node; every format is written."""
    found = json.loads(program.plot(format="json"))
    modules = [node["id"] for node in found["nodes"] if node["kind"] == "module"]
    assert sorted(modules) == sorted(path_str(path) for path, _ in sm.iter_graph(program, sm.Module))
    seen = set()
    for node in found["nodes"]:
        assert node["parent"] is None or node["parent"] in seen
        seen.add(node["id"])
    assert {end for edge in found["edges"] for end in (edge["source"], edge["target"])} <= seen
    for format in FORMATS:
        assert program.plot(format=format)
    ET.fromstring(program.plot(format="svg"))


@settings(max_examples=40)
@given(programs())
def test_shared_variables_are_joined(program):
    """Two modules that hold one Variable have a dotted line, and nobody else has."""
    edges = json.loads(program.plot(format="json"))["edges"]
    joined = {(edge["source"], edge["target"]) for edge in edges if edge["kind"] == "shared"}
    holders = {}
    for paths in sm.find_duplicates(program):
        if isinstance(_at(program, paths[0]), sm.Variable):
            names = [_holder(program, path) for path in paths]
            holders.update({(names[0], name): True for name in names if name != names[0]})
    assert set(holders) <= joined
    assert len(joined) <= len(holders) + len(sm.find_duplicates(program)) * 40


def _holder(program, path):
    """The canonical path of the nearest module above a place."""
    canonical = {id(module): path_str(where) for where, module in sm.iter_graph(program, sm.Module)}
    for length in range(len(path) - 1, -1, -1):
        found = _at(program, path[:length])
        if isinstance(found, sm.Module):
            return canonical[id(found)]
    return ""
