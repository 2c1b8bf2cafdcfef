"""DaskExecutor on a real cluster of two processes, one of which is killed in the middle."""

import subprocess
import sys
from pathlib import Path

import pytest
from dask.distributed import LocalCluster

import synmod as sm
from synmod.train import Batch, Trainer
from tests.distribute.parts import Desk, KillsItsWorkerOnce, Loud, Ticket, is_loud
from tests.distribute.test_executor import told

pytestmark = pytest.mark.slow

IMPORTS = ["tests.distribute.parts"]


@pytest.fixture(scope="module")
def cluster():
    """Two processes."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def flag(tmp_path):
    """A file that is there once a worker was killed."""
    return tmp_path / "killed"


async def test_an_evaluation_survives_a_worker(cluster, flag):
    """Its batches run again; nothing in the result differs from one process."""
    program = sm.Sequential([KillsItsWorkerOnce(str(flag)), Loud()])
    rows = [sm.Example(str(n), Ticket(text=f"{n}"), {"text": f"{n}!"}) for n in range(60)]
    there = await sm.evaluate(
        program, rows, reward=is_loud, executor=sm.DaskExecutor(cluster, imports=IMPORTS, batch=4)
    )
    assert flag.exists()  # so that here nobody is killed
    here = await sm.evaluate(program, rows, reward=is_loud)
    assert there.score == 1.0
    assert told(there) == told(here)


async def test_a_fit_survives_a_worker(cluster, flag):
    """History and values are those of one process, byte for byte."""
    inputs = [{"text": f"{word} {n}"} for n in range(12) for word in ("refund of a bill", "parcel by courier")]
    targets = [{"desk": desk} for _ in range(12) for desk in ("billing", "shipping")]

    async def train(**options):
        model = sm.Generator(Desk, language_model="embedded/nearest")
        program = sm.Sequential([sm.Input(Ticket), KillsItsWorkerOnce(str(flag)), model])
        history = await Trainer(program, reward="exact_match").fit(
            [Batch(inputs[:12], targets[:12])], eval_data=[Batch(inputs[12:], targets[12:])],
            optimizer="bootstrap_few_shot", num_epoch=2, **options,
        )  # fmt: skip
        return sm.data.dump_json(history.to_json()), sm.dumps(program)

    there = await train(executor=sm.DaskExecutor(cluster, imports=IMPORTS))
    assert flag.exists()
    assert there == await train()


async def test_classes_that_a_worker_does_not_know_are_found_first(cluster, flag):
    """Without `imports` the classes of the program are not registered there."""
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as fresh:
        with pytest.raises(sm.RunError, match="LoadError: (.|\n)*tests_distribute>"):
            await sm.evaluate(Loud(), [Ticket(text="a")], executor=sm.DaskExecutor(fresh))


def test_from_plain_code(tmp_path):
    """`sm.run` in a script of its own, with a cluster made there, ends without a warning."""
    script = """
import synmod as sm
from dask.distributed import LocalCluster
from tests.distribute.parts import Loud, Ticket

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        executor = sm.DaskExecutor(cluster, imports=["tests.distribute.parts"])
        print(sm.run(sm.evaluate(Loud(), [Ticket(text="a")], executor=executor)))
"""
    path = tmp_path / "script.py"
    path.write_text(script)
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", path], cwd=root, env={"PYTHONPATH": str(root), "PATH": ""},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.stdout == "Evaluation(no score over 1 of 1 (0 failed))\n", ended.stderr
    assert "Traceback" not in ended.stderr
