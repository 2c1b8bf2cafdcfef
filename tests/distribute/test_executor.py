"""DaskExecutor on a cluster of threads: what comes back is what one process would have found."""

import asyncio
import gc
import sys
import time

import pytest
from dask.distributed import Client, LocalCluster

import synmod as sm
from synmod.testing import ScriptedLM
from synmod.train import Batch, PositionalInputs, Trainer
from tests.distribute import parts
from tests.distribute.parts import Desk, Joined, Loud, Ticket, is_loud, length

ROWS = [sm.Example(str(n), Ticket(text=f"ticket {n}"), {"text": f"TICKET {n}!"}, {"why": n}) for n in range(30)]


@pytest.fixture(scope="module")
def cluster():
    """Two workers, threads of this process."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def executor(cluster):
    """Rows on the cluster."""
    return sm.DaskExecutor(cluster)


def told(evaluation):
    """All of an evaluation that is not a time or an id of this process."""
    record = evaluation.to_json()
    for result in [*record["results"], *record["errors"]]:
        del result["elapsed_s"], result["call_id"]
        if result["error"] is not None:
            result["error"]["notes"] = [note.partition(", call ")[0] for note in result["error"]["notes"]]
    del record["elapsed_s"]
    return record


async def both(program, rows, executor, **options):
    """Evaluate here and there, and compare; return one of them."""
    here = await sm.evaluate(program, rows, **options)
    there = await sm.evaluate(program, rows, **options, executor=executor)
    assert told(there) == told(here)
    return there


async def test_an_evaluation_is_that_of_one_process(executor):
    """Outputs, scores, feedback, failures and metrics, in input order."""
    rows = [
        *ROWS,
        sm.Example("bad", Ticket(text="fail"), {"text": "?"}),
        sm.Example("json", {"text": "a"}, {"text": "A!"}),
    ]
    evaluation = await both(Loud(name="loud"), rows, executor, reward=is_loud, metrics=[length, "accuracy"], samples=2)
    assert (evaluation.total, len(evaluation.errors)) == (64, 2)
    assert evaluation.errors[0].error.message == "cannot shout 'fail'"
    assert evaluation.results[0].feedback.objectives == {"zeal": 0.5}
    assert evaluation.results[0].outputs["nth"] == 1


async def test_rows_of_every_form(executor):
    """Several inputs, plain JSON, a row whose JSON misses its schema, a target that is a data model."""
    program = sm.Sequential([sm.Input(Ticket), Loud()])
    rows = [({"text": "a"}, Desk(desk="billing")), ({"words": "b"}, None), (Ticket(text="c"), ["x"])]
    evaluation = await both(program, rows, executor)
    assert [result.error is None for result in evaluation.results] == [True, False, True]
    await both(Joined(), [sm.Example(None, PositionalInputs([Ticket(text="a"), Desk(desk="billing")]))], executor)


async def test_values_in_force_go_along(executor):
    """An overlay around the evaluation, and one around each row; memories begin anew in each row."""
    program = Loud()
    await sm.build(program, Ticket)
    overlay = sm.state(program).replace({"mark": "?", "said": 5})
    with sm.using(program, overlay):
        evaluation = await both(program, ROWS, executor)
    assert evaluation.results[3].outputs.get_json() == {"text": "TICKET 3?", "nth": 6}
    assert program.mark.value == "!"


async def test_models_in_force_go_along(executor):
    """A default, and stand-ins, for all or by name; also where workers have another default."""
    program = sm.Sequential([sm.Generator(Desk)])
    rows = [(Ticket(text=f"refund {n}"), {"desk": "billing"}) for n in range(5)]
    with sm.default_language_model("embedded/nearest"):
        await both(program, rows, executor, reward="exact_match")
    held = sm.Sequential([sm.Generator(Desk, language_model=sm.LanguageModel("openai/gpt-4o", name="mine"))])
    for block in ("embedded/nearest", {"mine": sm.LanguageModel("embedded/nearest", temperature=0.5)}):
        with sm.use_language_models(parts.house()), sm.use_language_models(block):
            evaluation = await both(held, rows, sm.DaskExecutor(executor.address, setup=parts.live_models))
        assert not evaluation.errors


async def test_setup_makes_live_models(executor, monkeypatch):
    """What a file cannot hold is made on the worker; usage is accounted for here, by phase."""
    program = sm.Sequential([sm.Generator(Desk, language_model=parts.house())])
    rows = [(Ticket(text=f"refund {n}"), {"desk": "billing"}) for n in range(5)]
    elsewhere = sm.DaskExecutor(executor.address, imports=["tests.distribute.parts"], setup=parts.live_models)
    with sm.track_usage() as usage:
        evaluation = await both(program, rows, elsewhere, reward="exact_match")
    assert evaluation.usage.prompt_tokens == 25
    assert usage.calls == usage["inference"].calls == 10
    assert usage.cost_usd == pytest.approx(70e-6)


async def test_fit_ends_with_the_same_bytes(executor, tmp_path):
    """History, values and journal of a run are those of one process; and the run goes on without the cluster."""
    inputs = [{"text": f"{word} {n}"} for n in range(8) for word in ("refund of a bill", "parcel by courier")]
    targets = [{"desk": desk} for _ in range(8) for desk in ("billing", "shipping")]

    async def train(**options):
        program = sm.Sequential([sm.Input(Ticket), sm.Generator(Desk, language_model="embedded/nearest")])
        trainer = Trainer(program, reward="exact_match", concurrency=8)
        history = await trainer.fit(
            [Batch(inputs[at : at + 4], targets[at : at + 4]) for at in range(0, 8, 4)],
            eval_data=[Batch(inputs[8:], targets[8:])], optimizer="bootstrap_few_shot", num_epoch=2, **options,
        )  # fmt: skip
        return history.to_json(), sm.state(program).to_json()

    here = await train()
    assert await train(executor=executor, run=tmp_path / "run") == here
    assert await train(run=tmp_path / "run") == here


async def test_an_evaluation_is_kept_here(executor, tmp_path):
    """A run records what workers found: the same line goes on without them, and calls nothing."""
    program = Loud()
    there = await sm.evaluate(program, ROWS, reward=is_loud, metrics=[length], executor=executor, run=tmp_path)
    parts.LOOPS.clear()
    here = await sm.evaluate(program, ROWS, reward=is_loud, metrics=[length], run=tmp_path)
    assert told(here) == told(there)
    assert not parts.LOOPS


async def test_a_trainer_scores_there(executor):
    """In its contexts, with their models, from the first values of its states."""
    program = sm.Sequential([sm.Input(Ticket), sm.Generator(Desk)])
    contexts = [sm.Context("a", "embedded/nearest", limit=3), sm.Context("b", "embedded/nearest", limit=2)]
    trainer = Trainer(program, reward="exact_match", context=contexts)
    await trainer.bind(Ticket, Desk)
    await trainer.init_params()
    batches = [Batch([{"text": "refund"}, {"text": "parcel"}], [{"desk": "billing"}, {"desk": "shipping"}])]
    assert told(await trainer.score(batches, executor=executor)) == told(await trainer.score(batches))


async def test_a_teacher_runs_there(executor):
    """A model that stands in for single rows goes along with them."""
    program = sm.Sequential([sm.Input(Ticket), sm.Generator(Desk, language_model="embedded/nearest")])
    program.compile("exact_match", sm.optimizers.BootstrapFewShot(teacher=parts.house()))
    rows = [({"text": f"refund {n}"}, {"desk": "billing"}) for n in range(8)]
    elsewhere = sm.DaskExecutor(executor.address, setup=parts.live_models)
    history = await program.fit(rows, epochs=1, verbose=0, executor=elsewhere)
    assert history.best.mean() == 1.0


async def test_batches_have_the_size_that_was_asked_for(cluster):
    """Ten rows in batches of three are four batches: each has a loop of its own."""
    parts.LOOPS.clear()
    await sm.evaluate(Loud(), ROWS[:10], executor=sm.DaskExecutor(cluster, batch=3))
    assert len(set(map(id, parts.LOOPS))) == 4


async def test_a_client_is_taken_too(cluster):
    """Its address and security are used; it stays open."""
    async with Client(cluster.scheduler_address, asynchronous=True, set_as_default=False) as client:
        await both(Loud(), ROWS[:3], sm.DaskExecutor(client))
        assert client.status == "running"


async def test_what_cannot_be_saved_is_found_before_anything_runs(executor):
    """Classes, rewards and metrics that are not registered: named, with the line to write."""

    class Mine(sm.Module):
        async def call(self, ticket: Ticket) -> Ticket:
            raise AssertionError("this runs nowhere")

    def untold(outputs):
        return 1.0

    for program, options, name in (
        (Mine(), {}, "Mine"), (Loud(), {"reward": untold}, "untold"), (Loud(), {"metrics": [untold]}, "untold")
    ):  # fmt: skip
        with pytest.raises(sm.SaveError, match=rf"{name}(.|\n)*register"):
            await sm.evaluate(program, ROWS, executor=executor, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"UnboundModelError: .*'house'.*setup="),
        ({"imports": ["no.such.module"]}, "ModuleNotFoundError.*no"),
        ({"setup": "tests.distribute.parts:no_models"}, "RuntimeError: no key for the house"),
        ({"setup": "tests.distribute.parts:nothing"}, "AttributeError.*nothing"),
    ],
)
async def test_what_workers_lack_is_found_before_the_first_batch(cluster, options, message):
    """Models without a connection, modules and functions that are missing there."""
    program = sm.Sequential([Loud(), sm.Generator(Desk, language_model=parts.house())])
    parts.LOOPS.clear()
    with pytest.raises(sm.RunError, match=f"workers cannot run this program: {message}"):
        await sm.evaluate(program, ROWS, executor=sm.DaskExecutor(cluster, **options))
    assert not parts.LOOPS


async def test_a_double_cannot_go_along(executor):
    """A stand-in that a file cannot hold is found, too."""
    with sm.use_language_models(ScriptedLM([])), pytest.raises(sm.RunError, match="testing/scripted"):
        await sm.evaluate(Loud(), ROWS, executor=executor)


async def test_rows_that_are_no_json_are_named(executor):
    """Nothing is pickled."""
    with pytest.raises(sm.DataError, match="row 'odd' cannot be sent"):
        await sm.evaluate(Loud(), [sm.Example("odd", Ticket(text="a"), object())], executor=executor)
    with pytest.raises(sm.ArgumentError, match="plain JSON"):
        await sm.evaluate(sm.Identity(), [{"text": "a"}], executor=executor)


async def test_a_budget_of_calls_is_refused(executor):
    """Nobody could keep it; one of rollouts is kept."""
    with sm.budget(calls=5), pytest.raises(sm.ArgumentError, match="rollouts"):
        await sm.evaluate(Loud(), ROWS, executor=executor)


async def test_failures_stop_an_evaluation_as_here(executor):
    """Twenty failures at the beginning; what finished is in `partial`."""
    rows = [Ticket(text=f"fail {n}") for n in range(40)]
    with pytest.raises(sm.EvaluationError, match="the first 20 runs to finish have all failed") as caught:
        await sm.evaluate(Loud(), rows, executor=executor)
    assert str(caught.value.__cause__).startswith("ValueError: cannot shout")
    assert len(caught.value.partial.errors) >= 20


async def test_a_cancelled_evaluation_leaves_no_task(executor):
    """Cancelled at once, or by a deadline in the middle."""
    tasks = asyncio.all_tasks()
    running = asyncio.create_task(sm.evaluate(Loud(), ROWS, executor=executor))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(sm.DeadlineExceeded), sm.deadline(0.05):
        await sm.evaluate(Loud(), ROWS * 1, executor=executor, concurrency=1)
    await asyncio.sleep(0.05)
    assert {task for task in asyncio.all_tasks() if "synmod" in repr(task)} <= tasks


async def test_a_client_that_is_cancelled_while_it_connects_is_closed():
    """Nothing is left for the collector to close, which would be too late."""
    reached = asyncio.Event()

    async def silent(reader, writer):
        reached.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        executor = sm.DaskExecutor(f"tcp://127.0.0.1:{port}")
        running = asyncio.create_task(sm.evaluate(Loud(), ROWS, executor=executor))
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    del running
    gc.collect()


@pytest.mark.slow
async def test_a_client_has_time_to_close(executor):
    """Also on a busy machine: one that is cut off logs a traceback, and is closed by nobody."""

    async def hog():
        while True:
            time.sleep(0.3)  # as if others had the processor
            await asyncio.sleep(0)

    async with executor.open_client() as client:
        hogging = asyncio.create_task(hog())
        await asyncio.sleep(0)
    hogging.cancel()
    assert client.status == "closed"


def test_only_asyncio(executor):
    """Dask does not run on trio."""
    import trio

    with pytest.raises(sm.RunError, match="asyncio"):
        trio.run(lambda: sm.evaluate(Loud(), ROWS, executor=executor))


async def test_a_missing_scheduler_or_package_is_told(monkeypatch):
    """An address where nobody answers; the line to install."""
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):
        with pytest.raises(sm.RunError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
            await sm.evaluate(Loud(), ROWS, executor=sm.DaskExecutor("tcp://127.0.0.1:9"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(sm.ConfigError, match=r"pip install 'synmod-lm\[dask\]'"):
        await sm.evaluate(Loud(), ROWS, executor=sm.DaskExecutor("tcp://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("address", "options", "message"),
    [
        (5, {}, "address"),
        ("tcp://x:1", {"imports": "shop"}, "imports"),
        ("tcp://x:1", {"setup": lambda: None}, "setup"),
        ("tcp://x:1", {"setup": "shop.models"}, "module:function"),
        ("tcp://x:1", {"batch": 0}, "batch"),
    ],
)
def test_arguments_are_checked(address, options, message):
    """When it is made."""
    with pytest.raises(sm.ArgumentError, match=message):
        sm.DaskExecutor(address, **options)
