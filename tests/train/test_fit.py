"""fit: budgets, failures, callbacks, epochs, and what it leaves behind."""

import asyncio
import csv
import json
import random
from types import SimpleNamespace

import pytest

import synmod as sm
from synmod.lm.prompt import instructions_in
from synmod.testing import FunctionLM, RuleTask
from synmod.train import Batch, Batches, Budget, Trainer
from tests.train.one_run import OPTIMIZERS, Pace, Team, Ticket, Waiting, result, task, tickets, train

ROWS = [sm.Example(str(i), {"text": f"row {i}"}, {"team": "billing"}) for i in range(12)]


class Try(sm.optimizers.Optimizer):
    """Evaluates values of the instructions on all validation rows, one a step, and holds the last."""

    kinds = ("instruction",)
    ends = True

    def __init__(self, *values, **options):
        super().__init__(**options)
        self.values = list(values)
        self.taken = self.add_variable(0, schema={"type": "integer"}, name="taken", type=sm.OptState)

    async def update(self, state, feedback, bench):
        new = state.replace({"0/instructions": self.values[self.taken.value]})
        self.taken.assign(self.taken.value + 1)
        await bench.evaluate(new, bench.validation)
        return new

    @property
    def done(self):
        return self.taken.value >= len(self.values)


class Judge(sm.rewards.Reward):
    """What a function of the output and the row's id returns."""

    needs_target = False

    def __init__(self, fn, **options):
        super().__init__(**options)
        self.fn = fn

    async def call(self, y_pred, example_id):
        return self.fn(y_pred, example_id)


def echo(request):
    """Answer with the instructions."""
    return {"text": instructions_in(str(request.messages[0]["content"])).strip()}


def program(reply=echo):
    """A program of one Generator."""
    return sm.Sequential(
        [sm.Input(Ticket), sm.Generator(Ticket, instructions="seed", language_model=FunctionLM(reply))]
    )


def longer(outputs, _):
    """The longer the instructions, the better."""
    return min(1.0, len(outputs["text"]) / 100)


async def fit(optimizer, judge=longer, *, made=None, rows=ROWS, held_out=ROWS, **options):
    """Train; return `(History, program)`."""
    made = made or program()
    trainer = Trainer(made, reward=None if judge is None else Judge(judge), seed=options.pop("seed", 0))
    history = await trainer.fit([Batch(list(rows))], eval_data=list(held_out), optimizer=optimizer, **options)
    return history, made


def instructions(made):
    """What the program holds."""
    return sm.state(made)["0/instructions"].value


# -- what fit leaves behind --------------------------------------------------------------------------------------------


def test_the_best_on_all_validation_rows_is_left():
    """Not the last one; and the History says which."""
    history, made = asyncio.run(fit(Try("x" * 50, "x" * 90, "x" * 20)))
    assert instructions(made) == "x" * 90
    assert history.best.state["0/instructions"].value == "x" * 90
    assert history.stopped == "done"
    assert [round(row["val_reward"], 2) for row in history] == [0.5, 0.9, 0.2]
    assert [round(row["best_val_reward"], 2) for row in history] == [0.5, 0.9, 0.9]


def test_what_is_no_better_than_the_seed_goes_back():
    """Training never makes a program worse."""
    history, made = asyncio.run(fit(Try("x", "ab"), lambda outputs, _: 1.0 if outputs["text"] == "seed" else 0.5))
    assert instructions(made) == "seed"
    assert history.best.id == "c0"


def test_a_state_that_nobody_ran_is_completed_at_the_end():
    """An optimizer that commits without proof is judged at the end."""

    class Blind(Try):
        async def update(self, state, feedback, bench):
            self.taken.assign(self.taken.value + 1)
            return state.replace({"0/instructions": self.values[self.taken.value - 1]})

    _, made = asyncio.run(fit(Blind("x" * 80)))
    assert instructions(made) == "x" * 80


def test_without_a_reward_the_last_state_stands():
    """There is nothing to compare by."""

    class Blind(Try):
        needs_reward = False

        async def update(self, state, feedback, bench):
            self.taken.assign(self.taken.value + 1)
            return state.replace({"0/instructions": "other"})

    history, made = asyncio.run(fit(Blind("x"), None))
    assert instructions(made) == "other"
    assert history[0]["val_reward"] is None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_never_worse_than_the_seed_on_validation(name):
    """Also where the reward is a coin."""
    for seed in range(2):
        made, _, rows, held_out, optimizer = task(name, seed)

        def coin(outputs, example_id, seed=seed):
            return float(random.Random(f"{seed}{example_id}{json.dumps(dict(outputs))}").random() < 0.5)

        trainer = Trainer(made, reward=Judge(coin), seed=seed)
        history = asyncio.run(trainer.fit(rows, eval_data=held_out, optimizer=optimizer, budget=200))
        assert history.best.score >= history.seed.score


@pytest.mark.filterwarnings("ignore:fit. the reward")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_constant_reward_ends_by_patience(name):
    """Without a budget, and with the seed's values."""
    for constant in (0.0, 1.0):
        made, _, rows, held_out, optimizer = task(name)
        before = sm.state(made)
        trainer = Trainer(made, reward=Judge(lambda *_, constant=constant: constant))
        history = asyncio.run(asyncio.wait_for(trainer.fit(rows, eval_data=held_out, optimizer=optimizer), 60))
        assert history.stopped == "done"
        assert name == "Prune" or sm.state(made) == before  # which finds that nothing is needed


# -- budgets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_budget_of_rollouts_is_never_overshot(name, tmp_path):
    """Whatever the number: what was really run is at most that."""
    for budget in (70, 101, 150):
        path = tmp_path / str(budget)
        try:
            history, _ = asyncio.run(train(name, path=path, budget=budget))
        except sm.TrainerError as error:
            assert f"budget of {budget} rollouts is too small" in str(error)  # noqa: PT017
            assert not path.exists()
            continue
        assert path.stat().st_size <= budget
        assert history.spent.rollouts == path.stat().st_size


def test_an_optimizer_that_asks_for_too_much_gets_nothing(tmp_path):
    """What does not fit is refused whole; the step ends, finish follows, and all of it is a normal end."""

    class Greedy(Try):
        async def update(self, state, feedback, bench):
            new = state.replace({"0/instructions": self.values[self.taken.value]})
            self.taken.assign(self.taken.value + 1)
            await bench.gather(*(bench.evaluate(new, bench.validation, samples=n) for n in (1, 2, 40)))
            return new

    class Stubborn(Try):
        async def update(self, state, feedback, bench):
            for number in range(40):
                try:
                    await bench.evaluate(state.replace({"0/instructions": "x" * (number + 1)}), bench.validation)
                except sm.BudgetExceeded:
                    assert bench.room < 12
            self.taken.assign(self.taken.value + 1)
            return state

    for optimizer, budget in ((Greedy("x" * 50, "y"), 60), (Stubborn("x"), 50), (Try(*map(str, range(50))), 100)):
        ran = []

        def judge(outputs, example_id, ran=ran):
            ran.append(example_id)
            return longer(outputs, example_id)

        history, _ = asyncio.run(fit(optimizer, judge, budget=budget))
        assert len(ran) == history.spent.rollouts <= budget
        assert history.stopped in ("budget", "done")


def test_a_budget_that_cannot_pay_one_step_is_refused():
    """With both numbers, before the first call."""
    with pytest.raises(sm.TrainerError, match=r"a step takes up to 12 and the end 12, 24 together"):

        class Costly(Try):
            def step_cost(self, bench):
                return 12

        asyncio.run(fit(Costly("x"), budget=20))


@pytest.mark.parametrize("limit", [{"lm_calls": 30}, {"tokens": 1200}, {"lm_calls": 0}])
def test_calls_and_tokens_are_hard_limits(limit, tmp_path):
    """The step ends, finish decides on what is known; what was spent before a restart counts."""
    calls = []

    def answer(request):
        calls.append(request)
        return echo(request)

    made = program(answer)

    async def main(run, budget):
        history, _ = await fit(Try("seed", "x" * 50, "x" * 60, "x" * 70), made=made, budget=budget, run=run)
        return history

    history = asyncio.run(main(tmp_path, Budget(**limit)))
    assert history.stopped == "budget"
    spent = {"lm_calls": history.spent.lm_calls, "tokens": history.spent.tokens}
    assert all(spent[name] <= limit[name] for name in limit)
    if limit != {"lm_calls": 0}:
        assert instructions(made).startswith("x" * 50)
    count = len(calls)
    again = asyncio.run(main(tmp_path, Budget(**limit)))
    assert again.to_json() == history.to_json()
    assert len(calls) == count
    if limit == {"lm_calls": 30}:
        assert count == 30
        more = asyncio.run(main(tmp_path, Budget(lm_calls=40)))
        assert len(calls) <= 40
        assert more.spent.lm_calls <= 40


@pytest.mark.parametrize("limit", [{"lm_calls": 40}, {"tokens": 4000}])
def test_calls_and_tokens_are_kept_for_the_end(limit):
    """A step is not taken where the proof of the best and of the seed could not be paid after it."""
    made = program()

    class Half(Try):
        async def update(self, state, feedback, bench):
            new = state.replace({"0/instructions": self.values[self.taken.value]})
            self.taken.assign(self.taken.value + 1)
            await bench.gather(*(bench.evaluate(each, bench.validation[:6]) for each in (new, state)))
            return new

        def step_cost(self, bench):
            return 12

    values = ["x" * 50, *("y" * number for number in range(40))]
    history, _ = asyncio.run(fit(Half(*values), made=made, budget=Budget(**limit)))
    assert history.stopped == "budget"
    assert instructions(made) == "x" * 50
    assert len(history.best.scores["validation"]) == len(history.seed.scores["validation"]) == 12


def test_a_budget_of_seconds_ends_the_run(tmp_path):
    """Rows under way are stopped; the time before a restart counts, and what is recorded is found without time."""

    async def slowly(request):
        await asyncio.sleep(0.02)
        return {"text": str(request.messages[0]["content"])}

    async def main():
        values = [f"{'x' * number}" for number in range(2, 90)]
        return await fit(Try(*values), made=program(slowly), budget=Budget(seconds=0.5), run=tmp_path)

    history, _ = asyncio.run(main())
    assert history.stopped == "budget"
    assert 0.4 < history.spent.seconds < 5
    assert 0 < history.spent.rollouts < 88 * 12
    again, _ = asyncio.run(main())
    assert again.to_json() == history.to_json()


def test_the_limits_around_a_fit_are_raised_as_themselves():
    """They are no budget of the run's."""

    async def main(block):
        with block:
            await fit(Try("x" * 50))

    with pytest.raises(sm.BudgetExceeded):
        asyncio.run(main(sm.budget(calls=5)))
    with pytest.raises(sm.DeadlineExceeded):
        asyncio.run(main(sm.deadline(0)))


def test_an_optimizer_that_needs_nothing_and_changes_nothing_is_done():
    """Where no number of epochs ends the run."""

    class Idle(sm.optimizers.Optimizer):
        """Ends by nothing of its own."""

        async def update(self, state, feedback, bench):
            return state

    history, _ = asyncio.run(fit(Idle(), budget=50))
    assert history.stopped == "done"
    assert len(history) == 100


# -- metrics -----------------------------------------------------------------------------------------------------------


class CountingMetric(sm.metrics.Metric):
    """Counts how often it is fed, by row."""

    def __init__(self, fed, **options):
        super().__init__(**options)
        self.fed = fed

    def update_state(self, y_true, y_pred, rollout=None):
        self.fed.append((rollout.candidate, rollout.id, rollout.sample))

    def result(self):
        return 0.0


@pytest.mark.parametrize("callbacks", [[], [sm.callbacks.Callback()] * 3], ids=["alone", "watched"])
def test_a_metric_is_computed_once_per_rollout(callbacks):
    """However many callbacks read the numbers, and whichever splits it measures."""
    called, fed = [], []

    async def measure(outputs, example_id):
        called.append(example_id)
        return 1.0

    history, _ = asyncio.run(
        fit(
            Try("x" * 20, "x" * 30, "x" * 20),
            eval_metric=[measure, CountingMetric(fed)],
            validation_metric=[measure],
            callbacks=callbacks,
        )
    )
    assert len(called) == history.spent.rollouts
    assert len(fed) == len(set(fed))
    assert history[-1]["val_measure"] == 1.0


def test_a_metric_that_calls_a_model_is_part_of_the_budget_and_of_the_journal(tmp_path):
    """Its calls count like those of the program; a resumed run makes none of them again."""
    calls = []

    def agree(request):
        calls.append(request)
        return {"ok": True}

    judge = sm.Generator({"ok": bool}, language_model=FunctionLM(agree))

    async def judged(outputs):
        await judge(Ticket(text=outputs["text"]))
        return 1.0

    def train_once():
        tries, watch = Try(*("x" * n for n in range(20, 40))), sm.callbacks.Callback()
        limit = Budget(lm_calls=150)
        return asyncio.run(fit(tries, eval_metric=[judged], budget=limit, run=tmp_path, callbacks=[watch]))[0]

    history = train_once()
    assert history.stopped == "budget"
    assert history.spent.lm_calls == 2 * history.spent.rollouts <= 150
    count = len(calls)
    assert count <= 75
    assert train_once().to_json() == history.to_json()
    assert len(calls) == count


def test_a_metric_that_raises_ends_the_run_with_its_cause():
    """Its rows have no score: nothing is learned from what cannot be measured."""

    def broken(outputs):
        raise LookupError("no such word")

    with pytest.raises(sm.EvaluationError, match=r"LookupError: no such word \(.*test_fit.py"):
        asyncio.run(fit(Try("x" * 20), eval_metric=[broken]))


# -- failures ----------------------------------------------------------------------------------------------------------


def failing(error, share=1.0):
    """A model that fails on some requests."""

    def reply(request):
        text = str(request.messages)
        if random.Random(text).random() < share:
            raise error
        return {"text": "fine"}

    return reply


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_dead_provider_raises_and_trains_nothing(name):
    """An outage is no score of zero: EvaluationError, and the program as it was."""
    for error in (sm.UnavailableError("gone"), sm.AuthError("no key")):
        made, reward, rows, held_out, optimizer = task(name)
        before = sm.state(made)

        def dead(request, error=error):
            raise error

        async def main(made=made, reward=reward, rows=rows, held_out=held_out, optimizer=optimizer, dead=dead):
            with sm.use_language_models(FunctionLM(dead)):
                await Trainer(made, reward=reward).fit(rows, eval_data=held_out, optimizer=optimizer)

        with pytest.raises(sm.EvaluationError, match=r"[^.]\. Mend the cause and run the same line again"):
            asyncio.run(main())
        assert sm.state(made) == before


def test_a_failure_of_the_program_scores_the_lowest():
    """A bad row is the candidate's fault, and the text of the error is what the model learns from."""
    seen = []

    class Look(Try):
        async def update(self, state, feedback, bench):
            seen.extend(await bench.evaluate(state, bench.validation))
            return await super().update(state, feedback, bench)

    asyncio.run(fit(Look("x"), made=program(failing(ValueError("broken"), 0.5))))
    failed = [rollout for rollout in seen if rollout.error]
    assert failed
    assert all(rollout.score == 0.0 and "broken" in rollout.feedback.critique for rollout in failed)
    assert all(not rollout.void for rollout in seen)


def test_an_outage_of_a_few_rows_leaves_them_out():
    """Void: run once more at the end, not counted, no score; in no pair."""
    tries = []

    def reply(request):
        text = str(request.messages)
        tries.append("row 3" in text)
        if "row 3'" in text:
            raise sm.UnavailableError("gone")
        return {"text": "fine"}

    seen = []

    class Look(Try):
        async def update(self, state, feedback, bench):
            seen.append((await bench.evaluate(state, bench.validation), bench.rollouts))
            return await super().update(state, feedback, bench)

    history, _ = asyncio.run(fit(Look("x"), made=program(reply)))
    rollouts, count = seen[0]
    assert [rollout.id for rollout in rollouts if rollout.void] == ["3"]
    assert count == 11
    assert "3" not in history.seed.scores["validation"]
    assert sum(tries) >= 2


@pytest.mark.parametrize(
    "judge", [lambda *_: 1 / 0, lambda *_: float("nan"), lambda *_: 7.0], ids=["raises", "nan", "out of range"]
)
def test_a_broken_reward_is_never_a_score(judge):
    """It ends the run, with its cause."""
    with pytest.raises(sm.EvaluationError, match="say nothing about the program"):
        asyncio.run(fit(Try("x"), judge))


def test_a_reward_that_breaks_on_a_row_leaves_it_out():
    """An error of that row."""

    def judge(outputs, example_id):
        return 1 / 0 if example_id == "3" else longer(outputs, example_id)

    history, made = asyncio.run(fit(Try("x" * 50), judge))
    assert instructions(made) == "x" * 50
    assert "3" not in history.best.scores["validation"]


def test_an_exception_in_a_step_changes_nothing():
    """Neither the program nor what the optimizer knows."""

    class Breaks(Try):
        async def update(self, state, feedback, bench):
            new = await super().update(state, feedback, bench)
            if self.taken.value == 2:
                raise ValueError("oh")
            return new

    optimizer, made = Breaks("x" * 50, "x" * 60), program()
    with pytest.raises(ValueError, match="oh"):
        asyncio.run(fit(optimizer, made=made))
    assert instructions(made) == "x" * 50
    assert optimizer.taken.value == 1


def test_a_dict_is_an_answer_of_an_optimizer():
    """As wherever a State is expected; a value that misses its schema, or a path that is not one, is an error."""

    class Plain(Try):
        async def update(self, state, feedback, bench):
            return {self.values[0]: self.values[1]}

    _, made = asyncio.run(fit(Plain("0/instructions", "x" * 80)))
    assert instructions(made) == "x" * 80
    for path, value, error in (("0/instructions", 7, sm.StateSchemaError), ("0/instruction", "x", sm.StateError)):
        with pytest.raises(error, match=path):
            asyncio.run(fit(Plain(path, value)))


def test_a_bad_answer_of_an_optimizer_changes_nothing():
    """A path it may not change, a value that misses its schema, or no State."""
    for answer, error in (
        (lambda state: None, sm.TrainerError),
        (lambda state: sm.State({"nowhere": state["0/instructions"]}), sm.StateError),
    ):

        class Bad(Try):
            async def update(self, state, feedback, bench, answer=answer):
                return answer(state)

        made = program()
        with pytest.raises(error):
            asyncio.run(fit(Bad("x"), made=made))
        assert instructions(made) == "seed"


@pytest.mark.slow
def test_candidates_in_flight_leave_the_program_untouched():
    """A thousand overlays at once: no value and no version of the live program moves."""
    made = program()
    versions = []

    class Wide(Try):
        async def update(self, state, feedback, bench):
            before = sm.state(made), [v.version for _, v in sm.iter_graph(made, sm.Variable)]
            states = [state.replace({"0/instructions": f"{number}"}) for number in range(1000)]
            run = asyncio.ensure_future(bench.gather(*(bench.evaluate(each, bench.validation[:2]) for each in states)))
            while not run.done():
                versions.append((sm.state(made), [v.version for _, v in sm.iter_graph(made, sm.Variable)]) == before)
                await asyncio.sleep(0.01)
            await run
            self.taken.assign(1)
            return state

    asyncio.run(fit(Wide("x"), made=made))
    assert versions
    assert all(versions)


# -- callbacks, epochs, batches ----------------------------------------------------------------------------------------


def test_callbacks_are_called_in_order_with_where_the_run_is(tmp_path):
    """Plain or async; the numbers are those of the moment."""
    seen = []

    class Tell(sm.callbacks.Callback):
        def on_train_begin(self, moment):
            seen.append("begin")

        async def on_epoch_begin(self, moment):
            seen.append(("epoch", moment.epoch))

        def on_step_end(self, moment):
            seen.append(("step", moment.step, moment.spent.rollouts))

        async def on_candidate(self, moment):
            seen.append(("candidate", moment.candidate.state["0/instructions"].value))

        def on_epoch_end(self, moment):
            seen.append(("ended", moment.epoch, round(moment.logs["val_reward"], 2)))

        def on_train_end(self, moment):
            seen.append("end")

    log = sm.callbacks.CSVLogger(tmp_path / "log.csv")
    history, _ = asyncio.run(fit(Try("x" * 50, "x" * 60), callbacks=[Tell(), log]))
    assert seen == [
        "begin", ("epoch", 0), ("candidate", "x" * 50), ("step", 0, 12), ("ended", 0, 0.5),
        ("epoch", 1), ("candidate", "x" * 60), ("step", 1, 24), ("ended", 1, 0.6), ("epoch", 2), "end",
    ]  # fmt: skip
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_reward"]) for row in rows] == history.history["val_reward"]


def test_an_error_in_a_callback_ends_fit_after_the_step():
    """The program holds what the step made."""

    class Breaks(sm.callbacks.Callback):
        def on_step_end(self, moment):
            raise RuntimeError("disk")

    made = program()
    with pytest.raises(RuntimeError, match="disk"):
        asyncio.run(fit(Try("x" * 50, "x" * 60), made=made, callbacks=[Breaks()]))
    assert instructions(made) == "x" * 50


def test_early_stopping_ends_through_finish():
    """After epochs without an improvement; an unknown number is refused with those there are."""
    stop = sm.callbacks.EarlyStopping(patience=2)
    history, made = asyncio.run(fit(Try("x" * 50, "x" * 20, "x" * 30, "x" * 90), callbacks=[stop]))
    assert history.stopped == "callback"
    assert len(history) == 3
    assert instructions(made) == "x" * 50
    with pytest.raises(sm.TrainerError, match=r"val_reward.*got 'val_rewad'.*Did you mean 'val_reward'"):
        asyncio.run(fit(Try("x"), callbacks=[sm.callbacks.EarlyStopping("val_rewad")]))

    class Blind(Try):
        async def update(self, state, feedback, bench):
            self.taken.assign(self.taken.value + 1)
            return state

    measured = {"eval_metric": "accuracy", "callbacks": [sm.callbacks.EarlyStopping("val_accuracy", patience=1)]}
    rows = [sm.Example(row.id, row.inputs, {"text": "seed"}) for row in ROWS]
    history, _ = asyncio.run(fit(Blind("x", "y"), rows=rows, held_out=rows, **measured))
    assert [row["val_accuracy"] for row in history] == [None, None]


def test_early_stopping_does_not_count_an_epoch_without_the_number():
    """Such as one whose State was run on a part of the validation rows."""
    stop = sm.callbacks.EarlyStopping(patience=2)
    for value in (0.5, None, 0.4, None, None):
        stop.on_epoch_end(SimpleNamespace(logs={"val_reward": value}))
    assert stop.stopped is None
    stop.on_epoch_end(SimpleNamespace(logs={"val_reward": 0.3}))
    assert stop.stopped == "val_reward has not improved for 2 epochs"


def test_a_resumed_run_says_that_it_catches_up(tmp_path):
    """`replayed` is True until something is paid for."""
    seen = []

    class Note(sm.callbacks.Callback):
        def __init__(self, last):
            self.last = last

        def on_step_end(self, moment):
            seen.append(moment.replayed)
            if moment.step == self.last:
                self.stop("enough")

    values = ["x" * number for number in (20, 30, 40, 50)]
    asyncio.run(fit(Try(*values), callbacks=[Note(1)], run=tmp_path))
    history, _ = asyncio.run(fit(Try(*values), callbacks=[Note(3)], run=tmp_path))
    assert seen == [False, False, True, True, False, False]
    assert history.history["replayed"] == [True, True, False, False]


def test_epochs_and_batches():
    """A step per batch; epochs are counted from where they begin."""
    seen = []

    class Note(sm.optimizers.Optimizer):
        async def update(self, state, feedback, bench):
            seen.append(bench.batch)
            return state

    async def main(train, **options):
        seen.clear()
        trainer = Trainer(program(), reward=Judge(longer))
        return await trainer.fit(train, eval_data=ROWS, optimizer=Note(), **options)

    history = asyncio.run(main(Batches(ROWS, batch_size=5), num_epoch=4, begin_epoch=2))
    assert history.history["epoch"] == [2, 3]
    assert history.stopped == "epochs"
    assert [len(batch) for batch in seen] == [5, 5, 2] * 2
    assert seen[:3] == seen[3:]
    asyncio.run(main(Batches(ROWS, batch_size=5, shuffle=True), num_epoch=3))
    epochs = [sum(seen[start : start + 3], ()) for start in (0, 3, 6)]
    assert len(set(epochs)) == 3
    assert {tuple(sorted(each)) for each in epochs} == {tuple(sorted(row.id for row in ROWS))}
    last = list(seen)
    asyncio.run(main(Batches(ROWS, batch_size=5, shuffle=True), num_epoch=3, begin_epoch=2))
    assert seen == last[6:]
    with pytest.raises(sm.TrainerError, match="no batch"):
        asyncio.run(main([], num_epoch=1))
    for wrong, text in (
        ({"num_epoch": 1.5}, "number of epochs must be .*, got 1.5"),
        ({"num_epoch": 1, "begin_epoch": -1}, "begin_epoch must be .*, got -1"),
        ({"num_epoch": 1, "callbacks": [sm.callbacks.EarlyStopping]}, "callbacks must be .*, got <class"),
    ):  # fmt: skip
        with pytest.raises(sm.TrainerError, match=text):
            asyncio.run(main(Batches(ROWS), **wrong))
    with pytest.raises(sm.TrainerError, match="the id '3' is there twice"):
        asyncio.run(main([Batch(ROWS), Batch([sm.Example("3", {"text": "another"})])], num_epoch=1))
    with pytest.raises(sm.TrainerError, match="please specify number of epochs"):
        asyncio.run(main(Batches(ROWS)))


def test_shuffled_batches_may_be_used_again_in_a_run(tmp_path):
    """The order of an epoch depends on seed and number alone, not on how often they were read."""
    train_rows = Batches(ROWS, batch_size=5, shuffle=True)

    async def main():
        optimizer = Try("x" * 50, "x" * 60)
        return await Trainer(program(), reward=Judge(longer)).fit(
            train_rows, eval_data=ROWS, optimizer=optimizer, run=tmp_path, num_epoch=1
        )

    assert asyncio.run(main()).to_json() == asyncio.run(main()).to_json()


def test_two_generators_of_one_schema_are_credited_apart():
    """What a part of the feedback addresses is mended, the other one stays."""
    rules = RuleTask(stages=2, rules=2, rows=12)
    made = rules.program
    trainer = Trainer(made, reward=Waiting(rules.reward, Pace()))
    optimizer = sm.optimizers.Gepa(proposer=rules.proposer, only="0/**", patience=3)
    asyncio.run(trainer.fit([Batch(list(rules.train))], eval_data=list(rules.validation), optimizer=optimizer))
    assert "rule b" not in json.dumps(sm.state(made).to_json())


def test_without_validation_rows_the_train_rows_serve():
    """With one warning."""
    trainer = Trainer(program(), reward=Judge(longer))
    with pytest.warns(sm.SynmodWarning, match="compared on the training rows"):
        history = asyncio.run(trainer.fit([Batch(ROWS)], optimizer=Try("x" * 50)))
    assert history.best.score == 0.5


def test_the_results_of_equal_programs_are_equal():
    """Nothing random is left over between two runs in one process."""
    first, second = (result(*asyncio.run(train("Gepa"))) for _ in range(2))
    assert first == second
    assert tickets() == tickets()
    assert Team.model_fields


def test_plain_json_for_a_program_that_declares_nothing_is_refused():
    """What to give, or to call first, is said."""

    class Undeclared(sm.Module):
        async def call(self, inputs):
            return inputs

    with pytest.raises(sm.TrainerError, match="declares no schema for plain JSON: give data models, or bind it first"):
        asyncio.run(Trainer(Undeclared()).fit([Batch([{"text": "a"}])], eval_data=[{"text": "b"}]))
