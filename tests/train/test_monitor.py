"""The Monitor: which values it notes, when, and in which order."""

import asyncio
import logging

import pytest

import synmod as sm

from .test_trainer import Answer, Query, Three, Upper, asking, ready


async def test_it_is_active_at_every_nth_step():
    """The first included; an inactive toc is empty."""
    trainer = await ready()
    monitor = sm.Monitor(2)
    trainer.install_monitor(monitor)
    await trainer.forward(asking("a"))
    assert monitor.toc() == []
    steps = []
    for _ in range(5):
        monitor.tic()
        await trainer.forward(asking("a"))
        steps.append(sorted({record.step for record in monitor.toc()}))
        assert monitor.toc() == []
    assert steps == [[0], [], [2], [], [4]]


async def test_names_rows_and_stats():
    """Inputs and outputs of every call by row, whatever is faster; Variables last, without a row."""

    class Slow(sm.Module):
        async def call(self, inputs: Query) -> Answer:
            await asyncio.sleep(0.01 / (1 + int(inputs.question)))
            return Answer(answer="x" * int(inputs.question))

    class Outer(sm.Module):
        def __init__(self):
            super().__init__()
            self.slow = Slow()
            self.style = self.add_variable("plain", schema={"type": "string"}, name="style")

        async def call(self, inputs: Query) -> Answer:
            return await self.slow(inputs)

    trainer = await ready(Outer())
    monitor = sm.Monitor(1)
    trainer.install_monitor(monitor)
    trainer.install_monitor(monitor)
    monitor.tic()
    await trainer.forward(asking("1", "2", "3"))
    records = monitor.toc()
    names = [":input", "slow:input", "slow:output", ":output"]
    assert [(record.name, record.row) for record in records] == [
        *((name, row) for row in range(3) for name in names), ("style", None)
    ]  # fmt: skip
    assert records[-1].stat == {"characters": 5, "tokens": 2}
    assert records[0].stat["characters"] == len('{"question": "1"}')


async def test_pattern_stat_and_sort():
    """`re.match` chooses; any function of JSON; by name on request."""
    trainer = await ready(Three())
    monitor = sm.Monitor(1, stat_func=lambda json: json, pattern=r"parts/[02].*(input|style)$", sort=True)
    trainer.install_monitor(monitor)
    monitor.tic()
    await trainer.forward(asking("a"))
    assert [(record.name, record.stat) for record in monitor.toc()] == [
        ("parts/0/style", "plain"), ("parts/0:input", {"question": "a"}), ("parts/2/style", "plain"),
        ("parts/2:input", {"question": "a"}),
    ]  # fmt: skip
    broken = sm.Monitor(1, stat_func=lambda json: 1 / 0)
    trainer.install_monitor(broken)
    broken.tic()
    with pytest.raises(ZeroDivisionError):
        broken.toc()
    with pytest.raises(sm.TrainerError, match="interval"):
        sm.Monitor(0)
    with pytest.raises(sm.TrainerError, match="regular expression"):
        sm.Monitor(1, pattern="(")


async def test_it_is_a_hook():
    """By itself, without a trainer: rows are unknown."""
    monitor, program = sm.Monitor(1), Three()
    monitor.tic()
    with sm.hooks(monitor):
        await program(Query(question="a"))
    records = monitor.toc()
    assert {record.row for record in records} == {None}
    assert len(records) == 8


async def test_fit_runs_it(caplog):
    """tic before and toc_print after each batch: a line per record, with the number of its row."""
    trainer = sm.Trainer(Three(), reward=lambda outputs: 0.5)
    data = [sm.Batch([Query(question="a")])]

    class Running(Upper):
        learns_from_batches = True

    monitor, rows = sm.Monitor(1, pattern=":output", stat_func=lambda json: json["answer"]), []
    monitor.toc_print = lambda: rows.extend((record.row, record.stat) for record in monitor.toc())
    several = [sm.Batch([Query(question=text) for text in "abc"])]
    await sm.Trainer(Three(), reward=lambda outputs: 0.5).fit(
        several, eval_data=several, optimizer=Running(), num_epoch=1, monitor=monitor
    )
    assert rows == [(number, f"plain: {text} (1)") for number, text in enumerate("abc")]
    caplog.set_level(logging.INFO, logger="synmod.train")
    await trainer.fit(
        data, eval_data=data, optimizer=Running(), num_epoch=2, monitor=sm.Monitor(1, pattern=".*style|:output")
    )  # fmt: skip
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Batch")]
    assert "Batch 0: parts/0/style {'characters': 5, 'tokens': 2}" in lines
    assert any(line.startswith("Batch 0 row 0: :output") for line in lines)
    assert any(line.startswith("Batch 1") for line in lines)


async def test_rows_are_numbered_wherever_they_run():
    """By hand, in predict and in score, which a monitor did not watch."""
    trainer = await ready(reward=lambda outputs: 1.0)
    monitor = sm.Monitor(1, pattern=":output")
    trainer.install_monitor(monitor)
    for run in (trainer.forward, trainer.predict, trainer.score):
        monitor.tic()
        await run(asking("a", "b"))
        assert [(record.name, record.row) for record in monitor.toc()] == [(":output", 0), (":output", 1)]
