"""Random programs cross a boundary, as they are or with surgery inside, and come back in the same objects."""

import pytest

import synmod as sm
from tests.saving.programs import Store
from tests.saving.test_random_programs import Maker, text_of


def objects(root):
    """Nodes and Variables with a path, aliases too."""
    return {visit.path: visit.value for visit in sm.tree.walk(root) if visit.index is not None}


@pytest.mark.parametrize("seed", range(30))
def test_what_nobody_edits_comes_back_as_it_was(seed):
    """Every object, the graph, the state, the text."""
    program = Maker(seed).program()
    before, text = objects(program), text_of(program)
    graphdef, state = sm.split(program)
    with sm.update_context("t") as ctx:
        inner = ctx.merge(*ctx.split(program))
        outside = ctx.merge(*ctx.split(inner))
    after = objects(outside)
    assert after.keys() == before.keys()
    assert all(after[path] is x for path, x in before.items())
    assert sm.split(outside) == (graphdef, state)
    assert text_of(outside) == text


def operate(maker, inner):
    """Surgery on what is inside."""
    maker.nodes = [x for _, x in sm.iter_graph(inner, (sm.Module, Store))]
    maker.variables = [x for _, x in sm.iter_graph(inner, sm.Variable)] or [sm.Param("new")]
    for _ in range(8):
        node = maker.chance.choice(maker.nodes)
        if isinstance(node, sm.Module):
            maker.operate(node)
    for variable in maker.variables:
        if maker.chance.random() < 0.3 and variable.schema == {"type": "string"}:
            variable.assign("crossed")


@pytest.mark.parametrize("seed", range(30))
def test_what_is_edited_inside_is_so_outside(seed):
    """Each object inside that came from outside is that object again, wherever the surgery has put it."""
    maker = Maker(seed)
    program = maker.program()
    before = objects(program)
    with sm.update_context("t") as ctx:
        inner = ctx.merge(*ctx.split(program))
        whose = {id(x): before[path] for path, x in objects(inner).items()}
        operate(maker, inner)
        outside = ctx.merge(*ctx.split(inner))
    copies, after = objects(inner), objects(outside)
    assert after.keys() == copies.keys()
    for path, copy in copies.items():
        assert after[path] is whose.get(id(copy), after[path])
        assert after[path] is not copy or isinstance(copy, sm.LanguageModel)
    assert sm.state(outside) == sm.state(inner)
    assert sm.graphdef(outside) == sm.graphdef(inner)
