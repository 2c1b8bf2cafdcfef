"""Random programs with sharing, cycles and surgery: the text, the shape, the state and the graph survive."""

import random

import pytest

import synmod as sm
from synmod.saving import dumps, loads
from tests.saving.programs import (
    Answer,
    Bag,
    Box,
    Colour,
    Explain,
    Keep,
    Pair,
    Point,
    Query,
    Rule,
    Store,
    Unregistered,
    shout,
)


@sm.register("tests_saving_random")
def put(node, name, value):
    """Set an attribute; one that holds a Variable goes first, since nothing else is assigned over one."""
    if isinstance(vars(node).get(name), sm.Variable) and not isinstance(value, sm.Variable):
        delattr(node, name)
    setattr(node, name, value)


class Nest(sm.Module):
    """Makes children of children, shares them, takes a node as an argument."""

    def __init__(self, inner=None, n=1, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner
        self.kids = [Explain(str(number)) for number in range(n)]
        self.first = self.kids[0] if self.kids else None
        self.note = self.kids[0].note if self.kids else sm.Param(1)
        self.keep = Keep(self.first, [self.note])
        self.lm = sm.LanguageModel("openai/nest")
        self.gen = sm.Generator(Answer, language_model=self.lm)


LEAVES = [
    1, "s", None, True, 1.5, [1, {"a": []}], {"k": 1}, Answer, Unregistered, shout, Colour.RED, (1, 2), b"x",
    Query(question="q"), {1: 2}, {1, 2}, frozenset("a"), ValueError,
]  # fmt: skip


class Maker:
    """Makes one program from one seed."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.nodes = []
        self.variables = [sm.Param("v0", name="v"), Rule([1], schema={}), sm.Memory({"a": 1})]
        self.models = [sm.LanguageModel("openai/a"), sm.LanguageModel("openai/a", temperature=1)]

    def value(self, depth=0):
        """A leaf, something shared, or a container."""
        chance = self.chance
        share = chance.random()
        if share < 0.25 and self.nodes:
            return chance.choice(self.nodes)
        if share < 0.35:
            return chance.choice(self.variables)
        if share < 0.42:
            return chance.choice(self.models)
        if share < 0.6 or depth > 3:
            return chance.choice(LEAVES)
        items = [self.value(depth + 1) for _ in range(chance.randrange(4))]
        two = items[0] if items else 0, items[-1] if items else None
        return chance.choice(
            [
                items,
                tuple(items),
                {f"k{number}": item for number, item in enumerate(items)},
                dict(enumerate(items)),
                Point(*two),
                Pair(*two),
                Bag(*items),
            ]
        )

    def node(self):
        """A new node."""
        store = Store("s")
        store.entries = {"a": self.value(), 3: self.value()}
        model = self.chance.choice([*self.models, None, "openai/str"])
        return self.chance.choice(
            [
                lambda: Keep(self.value(), self.value()),
                lambda: Explain(self.chance.choice(["a", "b"])),
                lambda: Box(self.value(), self.value(), key=self.value()),
                lambda: store,
                lambda: Nest(self.value(), self.chance.randrange(3)),
                lambda: sm.Generator(Answer, language_model=model),
            ]
        )()

    def operate(self, node):
        """Some surgery."""
        names = [name for name in vars(node) if not name.startswith("_") and name != "output_spec"]
        what = self.chance.random()
        if what < 0.4:
            put(node, self.chance.choice(["thing", "other", "extra", "zz", "style"]), self.value())
        elif what < 0.6 and names:
            delattr(node, self.chance.choice(names))
        elif what < 0.7:
            node.name = "renamed"
        elif what < 0.8:
            node.trainable = not node.trainable
        else:
            other = self.chance.choice(self.nodes)
            shared = [name for name in names if name in vars(other)] if isinstance(other, sm.Module) else []
            if shared:
                name = self.chance.choice(shared)
                ours, theirs = vars(node)[name], vars(other)[name]
                put(other, name, ours)
                put(node, name, theirs)

    def program(self):
        """A root."""
        for _ in range(self.chance.randrange(2, 9)):
            node = self.node()
            self.nodes.append(node)
            self.variables += [x for x in vars(node).values() if isinstance(x, sm.Variable)]
            self.nodes += [x for x in vars(node).values() if isinstance(x, sm.Module)]
        for _ in range(self.chance.randrange(8)):
            node = self.chance.choice(self.nodes)
            if isinstance(node, sm.Module):
                self.operate(node)
        for variable in self.variables:
            if self.chance.random() < 0.3 and variable.schema == {"type": "string"}:
                variable.assign("new")
        return self.chance.choice(
            [self.chance.choice(self.nodes), {"a": self.nodes[0], "b": [self.nodes[-1]]}, self.nodes]
        )


def shape(program):
    """Every path with what stands there, told apart by identity."""
    seen = {}
    return [
        (path, type(x).__name__, seen.setdefault(id(x), len(seen)))
        for path, x in sm.iter_graph(program, (sm.Module, Store, sm.Variable, sm.LanguageModel), repeats=True)
    ]


def text_of(program):
    """The text of its file; None where surgery has closed a circle of constructor arguments."""
    try:
        return dumps(program)
    except sm.SaveError:
        return None


@pytest.mark.parametrize("seed", range(120))
def test_random_programs_survive(seed):
    """S4, and more: shape, state and its order, graph definition and its JSON."""
    program = Maker(seed).program()
    text = text_of(program)
    if text is None:
        return
    again = loads(text)
    assert dumps(again) == text
    assert shape(again) == shape(program)
    assert list(sm.state(again)) == list(sm.state(program))
    assert sm.state(again) == sm.state(program)
    assert sm.graphdef(again) == sm.graphdef(program)
    assert sm.graphdef(again).to_json() == sm.graphdef(program).to_json()


def test_attributes_that_point_at_one_another():
    """A circle of attributes is kept; one of constructor arguments cannot be made again, so it cannot be saved."""

    @sm.register("tests_saving_random")
    class Needs(sm.Module):
        def __init__(self, peer=None):
            self.peer = peer

    one, two = Needs(), Needs()
    one.other, two.other = two, one
    again = loads(dumps(one))
    assert again.other.other is again
    one.peer, two.peer = two, one
    with pytest.raises(sm.SaveError, match="override get_config") as caught:
        dumps(one)
    assert "cycle" in caught.value.problems[0].what
