"""Work through batch jobs in a process of its own.

`python -m tests.lm.batch_child <wire> <base> <folder> <evaluate or fit>` prints what came of it as JSON.
"""

import json
import sys

import synmod as sm
from synmod.train import Batch
from tests.lm.batch_servers import WIRES
from tests.lm.loopback import KEY

JOBS = sm.BatchJobs(quiet_s=0.05, poll_s=0.02)


class Query(sm.DataModel):
    q: str


def agrees(outputs):
    """Reward: the second call answered well."""
    return float(outputs["b"] == "y")


def rows_of(count, name="q"):
    """Rows whose texts end with a number."""
    return [sm.Example(f"{name}{at}", Query(q=f"q{name}{at}"), None) for at in range(count)]


def program_of(lm):
    """Two calls, one after the other."""
    return sm.Sequential(
        [sm.Generator({name: str}, name=name, structured="prompt", language_model=lm) for name in "ab"]
    )


async def evaluate(lm, folder=None, count=20):
    """The score and the number of results of an evaluation."""
    evaluation = await sm.evaluate(program_of(lm), rows_of(count), reward=agrees, run=folder)
    return [evaluation.score, len(evaluation.results)]


async def fit(lm, folder=None):
    """The History of a fit, and what the program holds in the end."""
    program = program_of(lm)
    trainer = sm.Trainer(program, reward=agrees, seed=3)
    optimizer = sm.optimizers.RandomFewShot(max_examples=2, sets=3)
    train, held_out = rows_of(8, "t"), rows_of(10, "v")
    history = await trainer.fit([Batch(train)], eval_data=held_out, optimizer=optimizer, run=folder)
    return [history.to_json(), sm.state(program).to_json()]


async def main(wire, base, folder, work):
    """Print the result of the work."""
    lm = sm.LanguageModel(api_base=base, api_key=KEY, batch=JOBS, attempts=3, **WIRES[wire].settings)
    print(json.dumps(await {"evaluate": evaluate, "fit": fit}[work](lm, folder), sort_keys=True))


if __name__ == "__main__":
    sm.run(main, *sys.argv[1:])
