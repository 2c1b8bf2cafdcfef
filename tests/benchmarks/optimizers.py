"""How many rollouts optimizers need: ours, GEPA and DSPy on the same doubles, rows and seeds.

`python -m tests.benchmarks.optimizers [seeds] [part ...]`; parts: rules. Peers that are not installed are
skipped: `pip install 'synmod[benchmark]'`.
"""

import asyncio
import importlib.util
import logging
import statistics
import sys
from dataclasses import dataclass, replace
from functools import partial

import synmod as sm
from synmod.optimizers import Gepa
from synmod.testing.tasks import Case, RuleTask
from synmod.train import Batch, Trainer, records_of, reflection_inputs
from synmod.train.callbacks import Callback

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
    bench = trainer.bench(Gepa(), rows)
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
            bench.begin(bench.step + 1)
            return {path: self.proposed(path, candidate, reflective_dataset[path]) for path in components_to_update}

        def proposed(self, path, candidate, records):
            others = {other: value for other, value in candidate.items() if other != path}
            asked = reflection_inputs(bench.task, bench.targets[path], candidate[path], others, records)
            return wait(bench.ask(task.proposer, asked))["value"]

    found = []

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
    spent, quality = found[-1]
    return Found(spent if quality >= ENOUGH * task.optimum else None, max(0, spent - budget), quality)


class Silent:
    """A logger of GEPA that drops everything."""

    def log(self, message):
        """Drop a line."""


def medians(runs):
    """Return the median of the rollouts, how many runs were good enough, and the most rollouts over the budget."""
    spent = [float("inf") if run.rollouts is None else run.rollouts for run in runs]
    return statistics.median(spent), sum(run.rollouts is not None for run in runs), max(run.over for run in runs)


def compared(what, ours, peers, must):
    """Return the lines of one double: each name with (median, solved, over), and whether ours keeps its promise."""
    lines = []
    for name, runs in {**ours, **peers}.items():
        if isinstance(runs, str):
            lines.append(f"{what:<28}{name:<16}skipped: {runs}")
            continue
        median, solved, over = medians(runs)
        lines.append(f"{what:<28}{name:<16}{median:>10,.1f}{solved:>8} of {len(runs)}{over:>10}")
    measured = [medians(runs)[0] for runs in peers.values() if not isinstance(runs, str)]
    for runs in ours.values():
        for peer in measured:
            got = medians(runs)[0] / peer
            lines[0] += f"{got:>10.2f}{must:>8.2f}{'  over' if got > must else ''}"
    return lines


def lacking(package):
    """Return why a peer is skipped; None where it is installed."""
    return None if importlib.util.find_spec(package) else f"{package} is not installed"


async def rules(seeds):
    """RuleTask: rollouts until 0.9 of the optimum; ours against GEPA."""
    lines = []
    for stages in (2, 3):
        for noise, must in ((0.0, 2 / 3), (0.1, 1 / 2)):

            async def runs(by, stages=stages, noise=noise):
                doubles = ((RuleTask(stages, noise=noise, seed=seed), RuleTask(stages, seed=seed)) for seed in seeds)
                return [await by(*pair, BUDGET) for pair in doubles]

            ours = {"Gepa": await runs(partial(by_ours, lambda task: Gepa(proposer=task.proposer, patience=60)))}
            peers = {"GEPA 0.1.4": lacking("gepa") or await runs(by_gepa)}
            lines += compared(f"rules {stages} x 4{f', noise {noise}' if noise else ''}", ours, peers, must)
    return lines


PARTS = {"rules": rules}


def main(arguments):
    """Print the table."""
    logging.getLogger("synmod.train").setLevel(logging.WARNING)
    seeds = range(next((int(each) for each in arguments if each.isdigit()), 20))
    parts = [each for each in arguments if not each.isdigit()] or list(PARTS)
    if not set(parts) <= set(PARTS):
        sys.exit(f"usage: python -m tests.benchmarks.optimizers [seeds] [part ...]; parts: {', '.join(PARTS)}")
    print(f"{'double':<28}{'optimizer':<16}{'median':>10}{'solved':>14}{'over':>8}{'ratio':>10}{'must':>8}")
    for part in parts:
        for line in asyncio.run(PARTS[part](seeds)):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
