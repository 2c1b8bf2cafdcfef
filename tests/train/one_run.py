"""Trains small programs, in processes that may be killed: what `test_runs.py` starts.

`python one_run.py OPTIMIZER FOLDER KILLS` runs once without a kill, then once with that many, and prints what came of
both as JSON. Each process is a fork of this one, which has imported everything and started nothing.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Literal

import synmod as sm
from synmod.testing import RuleTask
from synmod.train import Batch, ReflectionInputs, Trainer

TEAMS = {
    "billing": ["invoice", "charged", "refund", "card"],
    "shipping": ["parcel", "courier", "late", "address"],
    "technical": ["crash", "error", "login", "screen"],
}


BASES = ("Optimizer", "Reflective", "GridSearch")  # of optimizers of one's own; one that needs choices
OPTIMIZERS = sorted(
    name for name, cls in vars(sm.optimizers).items()
    if isinstance(cls, type) and issubclass(cls, sm.optimizers.Optimizer) and name not in BASES
)  # fmt: skip


class Ticket(sm.DataModel):
    text: str


class Team(sm.DataModel):
    team: Literal["billing", "shipping", "technical"]


def tickets(rows=24, seed=0):
    """Rows of (text, team)."""
    draw, found = random.Random(seed), []
    for _ in range(rows):
        team = draw.choice(list(TEAMS))
        words = [draw.choice(TEAMS[team]), draw.choice(["bad", "odd", "wrong"]), draw.choice(TEAMS[team])]
        found.append(({"text": f"Hello, my {' '.join(words)}"}, {"team": team}))
    return found


class Pace:
    """How long things take at most, and the file that counts rollouts by its length: no part of what a run is of."""

    def __init__(self, seconds=0.0, path=None):
        self.seconds, self.path = seconds, path

    async def wait(self):
        """Take some time."""
        if self.seconds:
            await asyncio.sleep(random.uniform(0, self.seconds))

    def count(self):
        """Count a rollout, also for other processes."""
        if self.path is not None:
            with open(self.path, "ab") as file:
                file.write(b".")


class Waiting(sm.rewards.Reward):
    """A reward that takes its time, and counts rollouts."""

    def __init__(self, reward, pace, **options):
        super().__init__(**options)
        self.reward, self.pace = reward, pace
        self.needs_target = reward.needs_target

    async def call(self, y_true, y_pred):
        self.pace.count()
        await self.pace.wait()
        given = (y_true, y_pred) if self.needs_target else (y_pred,)
        result = self.reward.call(*given)
        return await result if asyncio.iscoroutine(result) else result


class SlowProposer(sm.Module):
    """Asks another one, and takes its time."""

    def __init__(self, proposer, pace):
        super().__init__()
        self.proposer, self.pace = proposer, pace

    async def call(self, inputs: ReflectionInputs):
        await self.pace.wait()
        return await self.proposer(inputs)


def task(name, seed=0, pace=None):
    """Return what an optimizer is tried on: `(program, reward, train batches, validation rows, optimizer)`."""
    cls = getattr(sm.optimizers, name)
    if "instruction" in cls.kinds and name != "Mipro":
        rules = RuleTask(stages=2, rules=3, rows=12, seed=seed)
        rows = (
            [rules.train[start : start + 6] for start in range(0, 12, 6)] if cls.learns_from_batches else [rules.train]
        )
        optimizer = cls(proposer=SlowProposer(rules.proposer, pace or Pace()), patience=4)
        if name == "Prune":
            texts = [f"Be brief.\nrule {stage}0\nrule {stage}1\n\nrule {stage}2" for stage in "ab"]
            sm.update(rules.program, {f"{at}/instructions": text for at, text in enumerate(texts)})
        return rules.program, rules.reward, [Batch(list(each)) for each in rows], list(rules.validation), optimizer
    program = sm.Sequential([sm.Input(Ticket), sm.Generator(Team, language_model="embedded/nearest")])
    rows = tickets(seed=seed)
    batch = Batch([x for x, _ in rows[:12]], [y for _, y in rows[:12]])
    held_out = [sm.Example(f"v{i}", x, y) for i, (x, y) in enumerate(rows[12:])]
    options = (
        {"proposals": {"0/instructions": ["Be brief."]}, "instructions": 2, "steps": 6}
        if name == "Mipro"
        else {"max_examples": 4}
    )
    return program, sm.rewards.ExactMatch(), [batch], held_out, cls(**options)


async def train(name, run=None, *, seed=0, concurrency=4, seconds=0.0, path=None, program=None, **options):
    """Train; return `(History, program)`."""
    pace = Pace(seconds, path)
    made, reward, rows, held_out, optimizer = task(name, seed, pace)
    program = made if program is None else program
    trainer = Trainer(program, reward=Waiting(reward, pace), seed=seed, concurrency=concurrency)
    options = {"eval_data": held_out, "optimizer": optimizer, "budget": 300, **options}
    return await trainer.fit(rows, run=run, **options), program


def result(history, program):
    """Return what two equal runs have in common, as text."""
    return json.dumps([history.to_json(), sm.state(program).to_json()], sort_keys=True)


def child(name, folder, number, concurrency):
    """Run in a fork; return its process id."""
    process = os.fork()
    if process:
        return process
    try:
        counted = Path(folder, f"{number}.count")
        options = {"concurrency": concurrency, "seconds": 0.02, "path": counted}
        history, program = asyncio.run(train(name, Path(folder, number), **options))
        Path(folder, f"{number}.out").write_text(result(history, program))
    finally:
        os._exit(0)


def main(name, folder, kills, concurrency=4):
    """Run once as it is, once with kills, and the latter once more."""
    os.waitpid(child(name, folder, "whole", concurrency), 0)
    counted, out = Path(folder, "killed.count"), Path(folder, "killed.out")
    total, killed = Path(folder, "whole.count").stat().st_size, 0
    counted.touch()
    while not out.exists():
        process = child(name, folder, "killed", concurrency)
        most = counted.stat().st_size + random.randint(1, 1 + 3 * total // (2 * kills)) if killed < kills else 1 << 30
        while counted.stat().st_size < most and os.waitpid(process, os.WNOHANG) == (0, 0):
            time.sleep(0.001)
        if not out.exists():
            time.sleep(random.uniform(0, 0.02))
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            killed += 1
    counts = [Path(folder, f"{each}.count").stat().st_size for each in ("whole", "killed")]
    texts = [Path(folder, f"{each}.out").read_text() for each in ("whole", "killed")]
    os.waitpid(child(name, folder, "killed", concurrency), 0)
    again = Path(folder, "killed.out").read_text()
    after = Path(folder, "killed.count").stat().st_size
    print(
        json.dumps(
            {"kills": killed, "counts": counts, "equal": texts[0] == texts[1], "again": again == texts[1],
             "free": after == counts[1]}
        )
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
