"""How many rollouts optimizers need: ours, GEPA and DSPy on the same doubles, rows and seeds.

`python -m tests.benchmarks.optimizers [seeds] [part ...]`; parts: rules, tickets, choices. Peers that are not installed
are skipped: `pip install 'synmod-lm[benchmark]'`.
"""

import asyncio
import importlib.util
import logging
import math
import statistics
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from types import SimpleNamespace

import synmod as sm
from synmod import optimizers
from synmod.embedded import NearestAdapter
from synmod.leaves.frozen import frozen
from synmod.lm import LMRequest
from synmod.optimizers import BootstrapFewShot, Gepa, Omega, RandomFewShot
from synmod.testing.tasks import Case, ChoiceTask, RuleTask, tickets
from synmod.train import Batch, Trainer
from synmod.train.callbacks import Callback
from synmod.train.optimizer import proposer_inputs, records_of

ENOUGH = 0.9  # of the optimum, on test rows
BUDGET = 3_000


@dataclass(frozen=True)
class Found:
    """What one run came to.

    Attributes:
        rollouts: Spent until the answer was good enough; None where it never was.
        over: Rollouts beyond the budget.
        quality: Mean score on test rows at the end.
    """

    rollouts: int | None
    over: int
    quality: float


async def quality_of(task, values=None):
    """Return the mean score on test rows, of the program as it is or with other values."""
    with sm.using(task.program, values or {}):
        return (await sm.evaluate(task.program, task.test, reward=task.reward, progress=False)).score


class UntilGoodEnough(Callback):
    """Stops a run as soon as what the program holds is good enough."""

    def __init__(self, task, clean):
        super().__init__()
        self.task, self.clean, self.rollouts = task, clean, None

    async def on_step_end(self, moment):
        values = {path: leaf.value for path, leaf in moment.trainer.get_params()[0].items()}
        if await quality_of(self.clean, values) >= ENOUGH * self.task.optimum:
            self.rollouts = moment.spent.rollouts
            self.stop("good enough")


async def by_ours(make, task, clean, budget):
    """Run one of our optimizers until it is good enough."""
    watch = UntilGoodEnough(task, clean)
    trainer = Trainer(task.program, reward=task.reward, seed=task.seed)
    history = await trainer.fit(
        [Batch(list(task.train))],
        eval_data=[Batch(list(task.validation))],
        optimizer=make(task),
        budget=budget,
        callbacks=[watch],
    )
    over = max(0, history.spent.rollouts - budget)
    return Found(watch.rollouts, over, await quality_of(clean, history.best.state.to_json()))


async def by_gepa(task, clean, budget):
    """Run GEPA by its adapter until it is good enough; its answer is the candidate with the best validation mean."""
    import gepa

    trainer = Trainer(task.program, reward=task.reward, seed=task.seed)
    await trainer.bind(Case)
    rows = {
        split: {row.id: replace(row, inputs=Case(**row.inputs)) for row in getattr(task, split)}
        for split in ("train", "validation")
    }
    bench, ledger = trainer.open_run(Gepa(), rows)
    loop = asyncio.get_running_loop()
    seed = bench.seed

    def wait(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    class Adapter:
        def evaluate(self, batch, candidate, capture_traces=False):
            split = "validation" if batch[0].startswith("validation") else "train"
            rollouts = wait(bench.evaluate(seed.replace(candidate), batch, split=split, calls=True))
            return gepa.EvaluationBatch(
                [rollout.outputs for rollout in rollouts],
                [rollout.score for rollout in rollouts],
                rollouts if capture_traces else None,
            )

        def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
            items = wait(bench.feedback(eval_batch.trajectories))
            return {path: records_of(items[path], bench.best_score) for path in components_to_update}

        def propose_new_texts(self, candidate, reflective_dataset, components_to_update):
            ledger.begin(bench.step + 1)
            try:
                return {path: self.proposed(path, candidate, reflective_dataset[path]) for path in components_to_update}
            except Exception as error:
                faults.append(error)  # GEPA would go on without a proposal
                raise

        def proposed(self, path, candidate, records):
            asked = proposer_inputs(bench, seed.replace(candidate), path, records)
            return wait(bench.ask(task.proposer, asked))["value"]

    found, faults = [], []

    def is_good_enough(state):
        scores = state.program_full_scores_val_set
        best = max(range(len(scores)), key=scores.__getitem__)
        quality = wait(quality_of(clean, state.program_candidates[best]))
        found.append((state.total_num_evals, quality))
        return quality >= ENOUGH * task.optimum

    await asyncio.to_thread(
        gepa.optimize,
        seed.to_json(),
        list(bench.train),
        list(bench.validation),
        adapter=Adapter(),
        max_metric_calls=budget,
        stop_callbacks=is_good_enough,
        seed=task.seed,
        logger=Silent(),
    )
    if faults:
        raise faults[0]
    spent, quality = found[-1]
    return Found(spent if quality >= ENOUGH * task.optimum else None, max(0, spent - budget), quality)


class Silent:
    """A logger of GEPA that drops everything."""

    def log(self, message):
        """Drop a line."""


def lacking(package):
    """Return why a peer is skipped; None where it is installed."""
    return None if importlib.util.find_spec(package) else f"{package} is not installed"


def line(what, name, figure, detail="", must=""):
    """Return a line of the table."""
    return f"{what:<24}{name:<30}{figure:>10}  {detail:<38}{must}".rstrip()


def medians(runs):
    """Return the median of the rollouts, and in words how many runs were good enough, and what went over the budget."""
    spent = statistics.median(math.inf if run.rollouts is None else run.rollouts for run in runs)
    solved, over = sum(run.rollouts is not None for run in runs), max(run.over for run in runs)
    return spent, f"rollouts, {solved} of {len(runs)} solved, {over} over"


async def rules(seeds):
    """RuleTask: rollouts until 0.9 of the optimum; ours against GEPA."""
    for stages, noise, most in [(2, 0.0, 2 / 3), (2, 0.1, 1 / 2), (3, 0.0, 2 / 3), (3, 0.1, 1 / 2)]:
        what = f"rules {stages} x 4{f', noise {noise}' if noise else ''}"

        async def runs(by, stages=stages, noise=noise):
            doubles = [(RuleTask(stages, noise=noise, seed=seed), RuleTask(stages, seed=seed)) for seed in seeds]
            return medians([await by(*pair, BUDGET) for pair in doubles])

        if reason := lacking("gepa"):
            theirs = None
            yield line(what, "GEPA", "skipped", reason)
        else:
            theirs, words = await runs(by_gepa)
            yield line(what, "GEPA", f"{theirs:.1f}", words)
        for cls in (Gepa, Omega):
            ours, words = await runs(partial(by_ours, lambda task, cls=cls: cls(proposer=task.proposer, patience=60)))
            must = f"{ours / theirs:.2f} of GEPA's, must {most:.2f}" if theirs and cls is Gepa else ""
            yield line(what, cls.__name__, f"{ours:.1f}", words, must)


async def trained(task, optimizer, budget):
    """Return the mean score on test rows after a run, and the rollouts that it took."""
    trainer = Trainer(
        task.program, reward=task.reward, label_names=["desk"] if task.train[0].target else (), seed=task.seed
    )
    rows = [Batch(list(split)) for split in (task.train, task.validation)]
    history = await trainer.fit(rows[:1], eval_data=rows[1:], optimizer=optimizer, budget=budget)
    return await quality_of(task), history.spent.rollouts


def means(runs):
    """Return the mean quality and the rollouts in words."""
    qualities, rollouts = zip(*runs, strict=True)
    return f"{statistics.fmean(qualities):.3f}", f"of test rows, {statistics.fmean(rollouts):.0f} rollouts"


async def on_tickets(seeds):
    """Tickets: accuracy on test rows after a budget; ours against DSPy."""
    yield line("tickets", "nothing", *means([(await quality_of(tickets(seed)), 0) for seed in seeds]))
    for cls, budget, least in [
        (RandomFewShot, 255, 0.76),
        (BootstrapFewShot, 400, 0.84),
        (BootstrapFewShot, 640, 0.87),
    ]:
        found = [await trained(tickets(seed), cls(max_examples=16), budget) for seed in seeds]
        yield line("tickets", f"{cls.__name__}, budget {budget}", *means(found), f"must {least}")
    name = "DSPy random search"
    if reason := lacking("dspy"):
        yield line("tickets", name, "skipped", reason)
    else:
        yield line("tickets", name, *means([await asyncio.to_thread(by_dspy, tickets(seed)) for seed in seeds]))


def by_dspy(task):
    """Run DSPy's BootstrapFewShotWithRandomSearch; return accuracy on test rows and the rollouts that it took."""
    import dspy

    schema = {"type": "object", "properties": {"desk": {"enum": ["billing", "shipping", "technical"]}}}
    nearest, calls = NearestAdapter(), []

    class Nearest(dspy.BaseLM):
        """Our embedded model. Of each turn of the user it sees the input, so that DSPy's wrapping is no noise."""

        def forward(self, prompt=None, messages=None, **options):
            shown = [
                {**turn, "content": turn["content"].split("[[ ## text ## ]]")[-1].split("Respond with")[0].strip()}
                if turn["role"] == "user"
                else turn
                for turn in messages
            ]
            request = LMRequest("embedded/nearest", tuple(map(frozen, shown)), frozen({**schema, "required": ["desk"]}))
            calls.append(request)
            choice = SimpleNamespace(
                message=SimpleNamespace(content=nearest.send(request).text, tool_calls=None), finish_reason="stop"
            )
            return SimpleNamespace(choices=[choice], usage={}, model="nearest")

    def rows(split):
        return [dspy.Example(text=row.inputs["text"], desk=row.target["desk"]).with_inputs("text") for row in split]

    def metric(example, prediction, trace=None):
        return example.desk == prediction.desk

    quiet = StringIO()
    with (
        warnings.catch_warnings(action="ignore"),
        redirect_stdout(quiet),
        redirect_stderr(quiet),
        dspy.context(lm=Nearest("nearest", cache=False), adapter=dspy.JSONAdapter()),
    ):
        search = dspy.BootstrapFewShotWithRandomSearch(
            metric, max_labeled_demos=16, num_candidate_programs=13, num_threads=1
        )  # with its first three sets 16, as many as ours
        program = search.compile(dspy.Predict("text -> desk"), trainset=rows(task.train), valset=rows(task.validation))
        spent = len(calls)
        right = [metric(example, program(**example.inputs())) for example in rows(task.test)]
    return statistics.fmean(right), spent


async def choices(seeds):
    """ChoiceTask: how far below the optimum a search ends."""
    for cls in filter(None, [getattr(optimizers, "Mipro", None)]):
        found = []
        for seed in seeds:
            task = ChoiceTask(seed=seed)
            quality, rollouts = await trained(task, cls(proposals=task.proposals), 650)
            found.append((task.optimum - quality, rollouts))
        yield line("choices 6 x 6", f"{cls.__name__}, budget 650", *means(found), "below the optimum, must 0.05")
    yield line("choices 6 x 6", "DSPy MIPROv2", "skipped", "it takes no texts to choose from")


PARTS = {"rules": rules, "tickets": on_tickets, "choices": choices}


async def show(part, seeds):
    """Print the lines of a part as they are found."""
    async for each in PARTS[part](seeds):
        print(each, flush=True)


def main(arguments):
    """Print the table."""
    logging.disable(logging.WARNING)
    seeds = range(next((int(each) for each in arguments if each.isdigit()), 20))
    parts = [each for each in arguments if not each.isdigit()] or list(PARTS)
    if not set(parts) <= set(PARTS):
        sys.exit(f"usage: python -m tests.benchmarks.optimizers [seeds] [part ...]; parts: {', '.join(PARTS)}")
    print(line("double", "optimizer", "figure"))
    for part in parts:
        asyncio.run(show(part, seeds))


if __name__ == "__main__":
    main(sys.argv[1:])
