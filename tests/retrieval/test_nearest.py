"""Nearest: which examples a call shows, and that training fills the pool without giving answers away."""

import json
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.testing import FunctionLM

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
WORDS = "red green blue car tree sea".split()


class Ticket(sm.DataModel):
    """What a customer wrote."""

    text: str


class Desk(sm.DataModel):
    """Who answers."""

    desk: str


def example(text, desk="a"):
    """One example."""
    return {"inputs": {"text": text}, "outputs": {"desk": desk}}


def nearest(pool, k=2, **options):
    """A block whose model records what it is sent."""
    lm = FunctionLM(lambda request: '{"desk": "a"}')
    return sm.Nearest(sm.Generator(Desk, language_model=lm), k, pool=pool, **options), lm


def shown(request):
    """The texts of the examples in a request, in order."""
    return [message.content for message in request.messages if message.role == "user"][:-1]


async def test_the_nearest_examples_are_shown_the_nearest_last():
    """And no others; the member is as before."""
    block, lm = nearest([example("the parcel is late"), example("an invoice"), example("the parcel is here, late")])
    await block(Ticket(text="the parcel is late"))
    assert shown(lm.requests[0]) == ["the parcel is here, late", "the parcel is late"]
    assert block.generator.examples.value == []


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), unique=True, min_size=1),
    st.randoms(),
)
def test_the_order_of_the_pool_has_no_effect(texts, random):
    """The same examples in the same order."""
    shuffled = random.sample(texts, len(texts))
    sent = []
    for order in (texts, shuffled):
        block, lm = nearest([example(text) for text in order], 3)
        sm.run(block, Ticket(text="red car"))
        sent.append(shown(lm.requests[0]))
    assert sent[0] == sent[1]


async def test_without_a_pool_the_member_shows_its_own():
    """Which training does not change."""
    lm = FunctionLM(lambda request: '{"desk": "a"}')
    block = sm.Nearest(sm.Generator(Desk, examples=[example("own")], language_model=lm))
    await block(Ticket(text="x"))
    assert shown(lm.requests[0]) == ["own"]
    assert [path for path, variable in sm.variables(block).items() if variable.trainable] == [
        "pool",
        "generator/instructions",
    ]


async def test_calls_at_once_embed_the_pool_once():
    """New texts of the pool are sent once, however many calls want them."""
    sent = []

    class Adapter:
        name, version = "a", 1

        async def send(self, request):
            sent.extend(request.texts)
            return sm.EmbeddingReply(tuple((1.0, float(len(text))) for text in request.texts))

    model = sm.EmbeddingModel("testing/x", adapter=Adapter())
    block, _ = nearest([example(str(number)) for number in range(50)], embedding_model=model)
    async with sm.map_concurrently(block, [Ticket(text="q")] * 30) as results:
        assert len([result async for result in results]) == 30
    assert sorted(sent) == sorted([*map(str, range(50)), *["q"] * 30])


async def test_a_field_is_compared():
    """Or it is named as missing."""
    block, lm = nearest([example("a b"), example("c d")], 1, field="text")
    await block(Ticket(text="c"))
    assert shown(lm.requests[0]) == ["c d"]
    wrong, _ = nearest([example("a")], 1, field="txt")
    with pytest.raises(sm.SchemaError, match="no field 'txt' to compare; there are text"):
        await wrong(Ticket(text="c"))


def test_wrong_arguments_are_named():
    """A module without examples, no count, no model."""
    generator = sm.Generator(Desk)
    for make, words in (
        (lambda: sm.Nearest(sm.Identity()), "must be a Generator"),
        (lambda: sm.Nearest(generator, 0), "k must be"),
        (lambda: sm.Nearest(generator, embedding_model=5), "embedding_model"),
    ):
        with pytest.raises(sm.ConfigError, match=words):
            make()


async def test_a_saved_block_keeps_its_pool():
    """In the state of the program, marked as a pool."""
    block, _ = nearest([example("a")])
    loaded = sm.loads(sm.dumps(block), language_models=FunctionLM(lambda request: '{"desk": "b"}'))
    assert loaded.pool.value == block.pool.value
    assert dict(loaded.pool.metadata)["is_pool"] is True


def rows(name, kind):
    """Rows of the study."""
    lines = (BENCHMARKS / f"banking8_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(Ticket(text=row["text"]), kind(intent=row["intent"])) for row in map(json.loads, lines)]


@pytest.mark.slow
async def test_it_beats_fixed_examples_on_the_study():
    """The pool is every train row; eight of them, chosen per call, beat eight that are fixed."""
    lines = (BENCHMARKS / "banking8_train.jsonl").read_text(encoding="utf-8").splitlines()
    intents = tuple(sorted({json.loads(line)["intent"] for line in lines}))

    class Intent(sm.DataModel):
        intent: Literal[intents]

    train, test, scores = rows("train", Intent), rows("test", Intent), {}
    for kind in ("fixed", "nearest"):
        generator = sm.Generator(Intent, language_model="embedded/nearest")
        block = generator if kind == "fixed" else sm.Nearest(generator, 8)
        program = sm.Sequential([Ticket, block])
        optimizer = sm.optimizers.RandomFewShot(max_examples=8, sets=6)
        program.compile(reward=sm.rewards.ExactMatch(), optimizer=optimizer)
        await program.fit(train, validation_data=test[:40], epochs=1)
        scores[kind] = (await sm.evaluate(program, test, reward=sm.rewards.ExactMatch())).score
    assert len(block.pool.value) == len(train)
    assert scores["nearest"] > scores["fixed"] + 0.1


@pytest.mark.slow
async def test_a_train_row_is_never_shown_its_own_example():
    """While training runs on train rows with a full pool."""

    def reply(request):
        return json.dumps({"desk": request.messages[-1].content[-1] if shown(request) else "a"})

    lm = FunctionLM(reply)
    train = [(Ticket(text=f"ticket {number} {'ab'[number % 2]}"), Desk(desk="ab"[number % 2])) for number in range(20)]
    valid = [(Ticket(text=f"other {number} {'ab'[number % 2]}"), Desk(desk="ab"[number % 2])) for number in range(4)]
    block = sm.Nearest(sm.Generator(Desk, language_model=lm), 4)
    program = sm.Sequential([Ticket, block])
    program.compile(reward=sm.rewards.ExactMatch(), optimizer=sm.optimizers.BootstrapFewShot(max_examples=4))
    await program.fit(train, validation_data=valid, epochs=2)
    texts = {inputs.text for inputs, _ in train}
    with_examples = [request for request in lm.requests if shown(request)]
    assert block.pool.value and with_examples
    assert not [r for r in with_examples if r.messages[-1].content in texts and r.messages[-1].content in shown(r)]


async def test_a_pool_is_pruned_like_other_examples():
    """What no row needs is left out, and what gives a wrong answer; the rest stays."""

    def reply(request):
        return json.dumps(
            {"desk": json.loads(request.messages[-2].content)["desk"]} if shown(request) else {"desk": "c"}
        )

    pool = [example("red car", "a"), example("red cars", "a"), example("blue sea", "b"), example("a blue sea", "a")]
    block = sm.Nearest(sm.Generator(Desk, language_model=FunctionLM(reply)), 1, pool=pool)
    program = sm.Sequential([Ticket, block])
    rows = [(Ticket(text="red car"), Desk(desk="a")), (Ticket(text="a blue sea"), Desk(desk="b"))]
    train = [(Ticket(text=f"{inputs.text}!"), target) for inputs, target in rows]
    program.compile(reward="exact_match", optimizer=sm.optimizers.Prune(only="*/pool"))
    history = await program.fit(train, validation_data=rows, budget=99)
    assert block.pool.value == [example("red car", "a"), example("blue sea", "b")]
    assert (history.best.score, block.generator.examples.value) == (1.0, [])
