"""Registered classes and programs that the tests of saving share."""

import dataclasses
import enum
from typing import NamedTuple

import optree

import synmod as sm

PACKAGE = "tests_saving"


@sm.register(PACKAGE)
class Query(sm.DataModel):
    """What is asked."""

    question: str = sm.Field(description="the question")


@sm.register(PACKAGE)
class Answer(sm.DataModel):
    """What is answered."""

    answer: str = sm.Field(description="a short answer")
    score: float = 0.5


class Unregistered(sm.DataModel):
    """A data model without an id."""

    text: str


@sm.register(PACKAGE)
class Colour(enum.Enum):
    RED = 1
    GREEN = "green"


@sm.register(PACKAGE)
@dataclasses.dataclass
class Pair:
    left: object
    right: object = None


@sm.register(PACKAGE)
@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    x: object


@sm.register(PACKAGE)
class Point(NamedTuple):
    x: object
    y: object


class Bag:
    """A user's container type with steps of its own."""

    def __init__(self, *items):
        self.items = list(items)


optree.register_pytree_node(
    Bag,
    lambda bag: (bag.items, {"size": len(bag.items)}, tuple(f"item_{n}" for n in range(len(bag.items)))),
    lambda rest, children: Bag(*children),
    namespace="synmod",
)
sm.register(PACKAGE)(Bag)


@sm.register(PACKAGE)
def shout(text):
    """A registered function."""
    return text.upper()


@sm.register(PACKAGE)
class Rule(sm.Param):
    """A Variable type of a user."""


@sm.register(PACKAGE)
class Keep(sm.Module):
    """Keeps whatever it is given."""

    def __init__(self, thing=None, other=None, **kwargs):
        super().__init__(**kwargs)
        self.thing = thing
        self.other = other

    async def call(self, inputs):
        return inputs


@sm.register(PACKAGE)
class Box(sm.Module):
    """Takes anything and keeps nothing."""

    def __init__(self, *args, **options):
        super().__init__()

    async def call(self, inputs):
        return inputs


@sm.register(PACKAGE)
class Explain(sm.Module):
    """Makes a child and Variables itself."""

    def __init__(self, style="brief", **kwargs):
        super().__init__(**kwargs)
        self.style = style
        self.write = sm.Generator(Answer, instructions="Explain.")
        self.note = self.add_variable("none yet", name="note", type=sm.Memory)

    async def call(self, inputs: Query) -> Answer:
        return await self.write(inputs)


@sm.register(PACKAGE)
class Built(sm.Module):
    """Makes state that depends on the schema."""

    def __init__(self, size=3):
        self.size = size
        self.inner = Keep(1)

    async def build(self, inputs):
        self.fields = list(inputs.keys())
        self.notes = self.add_variable(initializer={"seen": []}, name="notes")
        self.made = Explain("built")

    async def call(self, inputs: Query) -> Query:
        return inputs


@sm.register(PACKAGE)
class Asks(sm.Module):
    """Answers for its config itself."""

    def __init__(self, words):
        self.words = tuple(words.split())
        self.child = Keep(words)
        self.secret = object()

    def get_config(self):
        return {"words": " ".join(self.words)}

    async def call(self, inputs):
        return inputs


class Store:
    """A user's own node type."""

    def __init__(self, label=""):
        self.label = label
        self.entries = {}


sm.register_graph_node_type(
    Store,
    flatten=lambda store: (list(store.entries.items()), {"label": store.label}),
    set_key=lambda store, key, value: store.entries.__setitem__(key, value),
    pop_key=lambda store, key: store.entries.pop(key),
    create_empty=lambda metadata: Store(metadata["label"]),
)
sm.register(PACKAGE)(Store)
