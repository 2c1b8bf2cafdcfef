"""fit reads its data once: what counts as a row, a batch and a validation row, and which run answers for them."""

import asyncio

import pytest

import synmod as sm
from synmod.train import Batch, Batches, Trainer

from .test_fit import Ticket, instructions, program

pytestmark = pytest.mark.filterwarnings("ignore:There are no validation rows")


class Noted(sm.optimizers.Optimizer):
    """Learns from batches: notes how many rows each has, and for which paths there is feedback."""

    learns_from_batches = True

    def __init__(self, seen=None, **options):
        super().__init__(**options)
        self.seen = sm.static([] if seen is None else seen)

    async def update(self, state, feedback, bench):
        self.note(accepted=False)
        self.seen.append((len(bench.batch), {path: len(items) for path, items in feedback.items()}))
        return state.replace({"0/instructions": " ".join(bench.batch)[:60]})


def batches(*texts, **options):
    """Batches of rows of these texts."""
    return Batches([{"text": text} for text in texts], **options)


def longer_text(outputs):
    """A reward."""
    return min(1.0, len(outputs["text"]) / 100)


async def noted(train, optimizer, *, bind=None, reward=longer_text, **options):
    """Train on batches; return `(History, instructions)`."""
    made = program()
    trainer = Trainer(made, reward=reward)
    await trainer.bind(Ticket, **(bind or {}))
    history = await trainer.fit(train, optimizer=optimizer, num_epoch=2, **options)
    return history.to_json(), instructions(made)


def test_equal_rows_fill_their_batches():
    """Also where each epoch draws an order of its own, which made batches without a row."""
    for shuffle in (False, True):
        seen = []
        asyncio.run(noted(batches("a", "a", "a", "a", "b", batch_size=2, shuffle=shuffle), Noted(seen)))
        assert [size for size, _ in seen] == [2, 2, 1] * 2


@pytest.mark.parametrize(
    ("first", "other"), [({}, {"batch_size": 3}), ({"shuffle": True}, {"shuffle": True, "seed": 1})]
)
def test_a_finished_run_answers_its_own_batches_alone(tmp_path, first, other):
    """Other sizes or another order get a result of their own, from the same folder."""
    for options in (first, other, first):
        kept, alone = (
            asyncio.run(noted(batches(*"abcdef", **{"batch_size": 2, **options}), Noted(), run=run))
            for run in (tmp_path, None)
        )
        assert kept == alone


def test_other_validation_metrics_are_another_run(tmp_path):
    """They stand in the History; the difference is named."""
    asyncio.run(noted(batches(*"ab"), Noted(), run=tmp_path, validation_metric=[sm.metrics.MeanReward()]))
    with pytest.raises(sm.RunError, match="validation metrics: was"):
        asyncio.run(noted(batches(*"ab"), Noted(), run=tmp_path, validation_metric=[sm.metrics.Latency()]))


def test_a_param_without_a_request_gets_no_feedback():
    """As by hand: `grad_req="null"` takes none."""
    seen = []
    asyncio.run(noted(batches("a", "b"), Noted(seen), bind={"grad_req": {"0/instructions": "null"}}))
    assert {path: count for _, given in seen for path, count in given.items()}["0/instructions"] == 0


def test_rows_that_fill_a_batch_are_no_validation_rows():
    """And no validation rows at all are a warning, however that is written."""
    held_out = [Batch([{"text": "v"}, {"text": "filling"}], pad=1)]
    history, _ = asyncio.run(noted(batches("a"), Noted(), eval_data=held_out))
    assert len(history["candidates"][0]["scores"]["validation"]) == 1
    with pytest.warns(sm.SynmodWarning, match="no validation rows"):
        asyncio.run(noted(batches("a"), Noted(), eval_data=[]))


@pytest.mark.parametrize("given", [5, "rows", {"text": ["a"]}, Ticket(text="a")])
def test_what_is_neither_batches_nor_rows_is_named(given):
    """A TrainerError, before anything is bound."""
    with pytest.raises(sm.TrainerError, match="The data are a .*give batches"):
        asyncio.run(noted(given, Noted()))


@pytest.mark.parametrize("made", [
    lambda: Batch("hello").size, lambda: Batch({"text": "hello"}).size, lambda: Batch([{"text": "a"}] * 2, "xy").size,
    lambda: Batches("hello"), lambda: Batches({"text": "hello"}), lambda: Batches("rows.csv"),
    lambda: Batch(b"hello").size, lambda: Batch(Ticket(text="a")).size, lambda: Batch({"text": {"text": "a"}}).size,
    lambda: Batch({"text": Ticket(text="a").to_json_data_model()}).size, lambda: Batch(iter([{"text": "a"}])).size,
    lambda: Batches([{"text": "a"}], label="x"), lambda: Batches([{"text": "a"}], label=5), lambda: Batch(None).size,
])  # fmt: skip
def test_what_is_not_a_list_of_rows_is_named(made):
    """A text is not a list of its characters, and a single row not a list of its fields."""
    with pytest.raises(sm.TrainerError, match=r"(data|text|label) is a .*; give a list .*\[x\] for a single one"):
        made()
