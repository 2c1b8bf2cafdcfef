"""A law over the conformance catalogue: every public module can be looked at, at every moment of its life."""

import json
import xml.etree.ElementTree as ET

import pytest

import synmod as sm
from synmod.leaves import leaves, map_leaves
from synmod.leaves.names import path_str
from synmod.view import FORMATS
from tests.conformance.catalogue import CATALOGUE, CodingLM


@pytest.fixture(autouse=True)
def _default_model():
    with sm.default_language_model(CodingLM(seed=3)):
        yield


def check_shown(module):
    """Summary and pictures name every child, and hang together."""
    text = module.summary()
    for path, _ in sm.iter_graph(module, sm.Module):
        assert (path_str(path) or "(root)") in text
    assert len(text.split("\n")) >= 3
    found = json.loads(module.plot(format="json"))
    ids = {node["id"] for node in found["nodes"]}
    assert {path_str(path) for path, _ in sm.iter_graph(module, sm.Module)} <= ids
    assert {node["parent"] for node in found["nodes"]} <= {None, *ids}
    assert {end for edge in found["edges"] for end in (edge["source"], edge["target"])} <= ids
    for format in FORMATS:
        assert module.plot(format=format)
    ET.fromstring(module.plot(format="svg"))


@pytest.mark.parametrize("name", sorted(CATALOGUE))
async def test_every_public_module_is_shown(name):
    """Before a call, after it, after a recorded one, and as a copy."""
    make, inputs = CATALOGUE[name]
    module = make()
    check_shown(module)
    await module(*inputs)
    check_shown(module)
    with sm.trace():
        await module(*inputs)
    assert "last recorded call: " in module.summary()
    check_shown(module)
    check_shown(module.clone())


@pytest.mark.parametrize("name", sorted(CATALOGUE))
async def test_every_public_module_is_shown_inside_a_program(name):
    """As the only step of one, called by another."""
    make, inputs = CATALOGUE[name]
    module = make()
    symbols = map_leaves(lambda leaf: leaf and sm.Input(schema=leaf.get_schema()), list(inputs))
    program = sm.Program(inputs=[leaf for leaf in leaves(symbols) if leaf is not None], outputs=await module(*symbols))
    check_shown(program)
    assert module.name in program.plot()
