"""History: rows, what was found, and its pictures."""

import asyncio
import csv
from xml.etree import ElementTree as ET

import pytest

import synmod as sm
from synmod.train import Budget, Candidate, History
from tests.train.one_run import train


@pytest.fixture(scope="module")
def history():
    """What a run found."""
    return asyncio.run(train("Gepa"))[0]


def test_a_row_has_the_keys_of_an_epoch(history):
    """Metrics would stand behind them; what this process alone knows comes last."""
    keys = ["epoch", "step", "reward", "val_reward", "val_reward_estimate", "best_val_reward", "candidates", "accepted",
            "rollouts", "lm_calls", "tokens", "cost_usd"]  # fmt: skip
    assert all(list(row) == [*keys, "seconds", "replayed"] for row in history)
    assert all(list(row) == keys for row in history.to_json()["epochs"])
    assert list(history.history) == [*keys, "seconds", "replayed"]
    assert history.history["epoch"] == list(range(len(history)))
    assert history[-1]["accepted"] == sum(line["word"] == "accepted" for line in history.lines)
    assert "seconds" not in history.to_json()["spent"]


def test_numbers_only_grow(history):
    """What was spent, tried and reached."""
    for name in ("rollouts", "lm_calls", "tokens", "candidates", "accepted", "best_val_reward"):
        values = [value for value in history.history[name] if value is not None]
        assert values == sorted(values)
    assert history.spent.rollouts >= history[-1]["rollouts"]


def test_metrics_stand_in_the_rows_by_name():
    """Those of all validation rows with `val_`, and of a part of them, as estimates."""
    found, _ = asyncio.run(train("Gepa", eval_metric=[sm.metrics.MeanReward(), length], budget=120))
    assert {"mean_reward", "val_mean_reward", "val_length"} <= set(found.history)
    for end in ("", "_estimate"):
        for row in found:
            assert row[f"val_mean_reward{end}"] == pytest.approx(row[f"val_reward{end}"])
            assert (row["val_reward"] is None) == (row["val_length"] is None)
            assert (row["val_reward"] is None) != (row["val_reward_estimate"] is None)
    assert any(row["val_reward"] is None for row in found)


def empty():
    """The History of a run that has not begun: it knows its seed alone."""
    return History(candidates=[Candidate("c0", sm.State())])


def length(outputs):
    """A metric that is a function."""
    return len(outputs["missing"])


def test_diff_is_what_the_best_changed(history):
    """Per path, lines of text."""
    text = history.diff()
    assert text.startswith("0/instructions\n")
    assert "\n  +rule a" in text
    assert empty().diff() == ""


def test_lineage_names_who_came_from_whom(history):
    """Mermaid: a node each, an arrow per parent."""
    lines = history.lineage().splitlines()
    assert lines[0] == "graph TD"
    assert lines[1].startswith('  c0["c0 seed')
    assert sum("-->" in line for line in lines) == sum(len(each.parents) for each in history.candidates)
    assert all(each.parents for each in history.candidates[1:])


def test_csv_has_a_line_per_epoch(history, tmp_path):
    """With what stands on the rows alone."""
    with history.to_csv(tmp_path / "history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(history)
    assert float(rows[-1]["seconds"]) >= 0


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_plot_draws_reward_over_rollouts(history, suffix, tmp_path):
    """A picture by the extension, as text and in a file; another one is refused."""
    path = tmp_path / f"plot{suffix}"
    text = history.plot(path)
    assert text == path.read_text("utf-8")
    svg = ET.fromstring(text[text.index("<svg") :])
    assert len(svg.findall("{*}polyline")) == 2
    assert "validation reward" in text
    with pytest.raises(sm.ArgumentError, match="writes .svg or .html"):
        history.plot(tmp_path / "plot.png")
    empty().plot(tmp_path / "empty.svg")


def test_plot_without_a_path_returns_the_picture(history):
    """As `Module.plot` does; a notebook shows it."""
    assert history.plot().startswith("<svg")
    assert history._repr_html_() == history.plot()


def test_a_record_comes_back(history):
    """Everything, also what no other process would find."""
    again = History.of_record(history.record(), history.seed.state)
    assert again.record() == history.record()
    assert again == history
    assert again.best == history.best
    assert repr(again) == repr(history)
    assert "stopped: " in repr(history)


def test_a_budget_is_checked():
    """Numbers, not negative, of limits that there are: `sm.budget(calls=)` is `Budget(lm_calls=)`."""
    for wrong in ({"rollouts": -1}, {"lm_calls": 1.5}, {"seconds": "1"}, {"tokens": True}, {"calls": 3}):
        with pytest.raises(sm.ArgumentError, match="Budget: "):
            Budget(**wrong)


class Number(sm.DataModel):
    n: int


class Adds(sm.Module):
    """Adds what it is trained to."""

    def __init__(self):
        super().__init__()
        self.more = self.add_variable(0, schema={"type": "integer"}, name="more")

    async def call(self, inputs: Number) -> Number:
        return Number(n=inputs["n"] + self.more.value)


class Tries(sm.optimizers.Optimizer):
    """Runs two candidates on the train rows of the batch, and keeps neither."""

    ends = True

    async def update(self, state, feedback, bench):
        for more in (1, 2):
            await bench.evaluate(state.replace({"more": 10 * bench.step + more}), bench.batch, split="train")
        return state


async def test_the_reward_of_an_epoch_is_that_of_all_its_train_rows():
    """Also of candidates that were dropped; the rows of the epoch before do not count."""
    seen = []

    def count(outputs):
        seen.append(outputs["n"])
        return 1.0

    trainer = sm.Trainer(Adds(), reward=sm.rewards.RewardFunction(lambda y_pred: y_pred["n"], range=(0, 100)))
    batches = [sm.Batch([Number(n=0), Number(n=4)])]
    history = await trainer.fit(batches, eval_data=[Number(n=7)], eval_metric=[count], num_epoch=2, optimizer=Tries())
    assert [row["reward"] for row in history] == [(1 + 5 + 2 + 6) / 4, (11 + 15 + 12 + 16) / 4]
    assert seen[:4] == [1, 5, 2, 6]
