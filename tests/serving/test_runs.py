"""Durable runs over HTTP: on disk before the answer, answered by people, gone on with after a restart."""

import asyncio
import json

import pytest

import synmod as sm
from synmod.testing import FunctionLM
from tests.serving.client import Client, Question, Waiting, echo, get, post, until


class Clerk(sm.Module):
    """Writes a draft, asks whether it may be sent, and sends it."""

    def __init__(self, calls, **options):
        super().__init__(**options)
        lm = FunctionLM(lambda _: calls.append("model") or '{"answer": "draft"}')
        self.writer = sm.Generator({"answer": str}, language_model=lm)

    async def call(self, inputs: Question) -> Question:
        draft = await self.writer(inputs)
        sm.emit("draft", {"text": draft["answer"]})
        sent = await sm.ask("Send it?", draft)
        return Question(text=f"{draft['answer']} {'sent' if sent else 'kept'}")


async def wait_for(app, run_id, state):
    """Return the record of a run once it is in a state."""
    for _ in range(2_000):
        record = (await get(app, f"/runs/{run_id}")).json
        if record["state"] == state:
            return record
        await asyncio.sleep(0.005)
    raise AssertionError(record)


async def until_idle(app):
    """Wait until no run of a server is under way."""
    while app.in_flight:
        await asyncio.sleep(0.001)


async def close(app):
    """Stop the runs of a server, as the end of its process does."""
    app.open_runs().stop()
    await until_idle(app)


async def test_a_run_waits_for_a_person_and_goes_on_after_a_restart(tmp_path):
    """The model is called once; the server that goes on is another one."""
    calls = []
    app = sm.serve(Clerk(calls, name="clerk"), runs=tmp_path / "runs")
    x = await post(app, "/runs", {"text": "x"}, root_path="/ai")
    assert x.status == 201
    run_id = x.json["id"]
    assert x.answer_headers["location"] == f"/ai/runs/{run_id}"
    assert json.loads((tmp_path / "runs" / run_id / "request.json").read_text())["inputs"] == {"text": "x"}
    record = await wait_for(app, run_id, "waiting")
    question = record["questions"][0]
    assert (question["text"], question["value"], question["schema"]["type"]) == (
        "Send it?",
        {"answer": "draft"},
        "boolean",
    )
    assert record["usage"]["calls"] == 1
    await close(app)
    other = sm.serve(Clerk(calls, name="clerk"), runs=tmp_path / "runs")
    assert (await wait_for(other, run_id, "waiting"))["questions"] == [question]
    path = f"/runs/{run_id}/answers"
    assert (await post(other, path, {"none": True})).status == 409
    assert (await post(other, path, {question["id"]: "yes"})).status == 422
    assert (await post(other, path, [])).status == 422
    assert (await post(other, path, {question["id"]: True})).status == 200
    record = await wait_for(other, run_id, "done")
    assert (record["outputs"], record["questions"], record["problem"]) == ({"text": "draft sent"}, [], None)
    assert (await post(other, path, {question["id"]: True})).status == 409
    assert calls == ["model"]
    await close(other)


async def test_another_process_may_answer(tmp_path):
    """The server looks for answers; so does `synmod runs DIR answer` reach it."""
    app = sm.serve(Clerk([], name="clerk"), runs=tmp_path)
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    question = (await wait_for(app, run_id, "waiting"))["questions"][0]
    sm.Run(tmp_path / run_id).answer(question["id"], False)
    assert (await wait_for(app, run_id, "done"))["outputs"] == {"text": "draft kept"}
    await close(app)


async def test_equal_keys_are_one_run(tmp_path):
    """Fifty at once with one key; other inputs under the key are a 422."""
    program = Waiting()
    app = sm.serve(program, runs=tmp_path)
    key = {"idempotency-key": "order-17/../../x"}
    answers = await asyncio.gather(*[post(app, "/runs", {"text": "x"}, headers=key) for _ in range(50)])
    assert {x.status for x in answers} == {201}
    assert len({x.json["id"] for x in answers}) == 1
    assert (await post(app, "/runs", {"text": "y"}, headers=key)).status == 422
    await wait_for(app, answers[0].json["id"], "running")
    await until(lambda: program.counts["begun"] == 1)
    assert len([*tmp_path.iterdir()]) == 1
    await close(app)


async def test_a_run_that_another_process_holds_is_tried_again(tmp_path, monkeypatch):
    """As often as it takes, though nothing in its folder changes."""
    monkeypatch.setattr("synmod.serving.durable_runs._LOOK_S", 0.01)
    app = sm.serve(Clerk([], name="clerk"), runs=tmp_path)
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    question = (await wait_for(app, run_id, "waiting"))["questions"][0]
    async with sm.durable(tmp_path / run_id):
        await post(app, f"/runs/{run_id}/answers", {question["id"]: True})
        for _ in range(20):
            await asyncio.sleep(0.01)
            assert (await get(app, f"/runs/{run_id}")).json["state"] == "queued"
    assert (await wait_for(app, run_id, "done"))["outputs"] == {"text": "draft sent"}
    await close(app)


async def test_a_run_whose_journal_is_damaged_fails(tmp_path, caplog):
    """It would pay and act again; the reason is in the log."""
    calls = []
    app = sm.serve(Clerk(calls, name="clerk"), runs=tmp_path)
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    await wait_for(app, run_id, "waiting")
    await close(app)
    (tmp_path / run_id / "journal.db").write_bytes(b"damage" * 1_000)
    other = sm.serve(Clerk(calls, name="clerk"), runs=tmp_path)
    assert (await wait_for(other, run_id, "failed"))["problem"]["status"] == 500
    assert "the journal is damaged" in caplog.text
    assert calls == ["model"]
    await close(other)


async def test_a_list_of_runs_and_how_they_end(tmp_path):
    """Newest first, by state; a failed one has its problem, a cancelled one stays cancelled."""

    def fail(inputs: Question) -> Question:
        raise ValueError("secret")

    waiting = Waiting()
    programs = {"echo": echo(), "failing": sm.Lambda(fail), "waiting": waiting}
    app = sm.serve(programs, runs=tmp_path)
    ids = [(await post(app, f"/runs/{name}", {"text": "x"})).json["id"] for name in programs]
    record = await wait_for(app, ids[1], "failed")
    assert record["problem"]["status"] == 500
    assert "secret" not in json.dumps(record)
    await wait_for(app, ids[0], "done")
    await wait_for(app, ids[2], "running")
    assert [run["id"] for run in (await get(app, "/runs")).json] == ids[::-1]
    client = Client("DELETE", f"/runs/{ids[2]}")
    assert (await client.ask(app)).json["state"] == "cancelled"
    await until_idle(app)
    assert waiting.counts["cancelled"] == 1
    assert (await wait_for(app, ids[2], "cancelled"))["outputs"] is None
    assert (await Client("DELETE", f"/runs/{ids[0]}").ask(app)).json["state"] == "done"
    await close(app)


async def test_the_list_has_the_state_of_each_run(tmp_path):
    """A run at work is in the list of the running ones."""
    app = sm.serve(Waiting(), runs=tmp_path)
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    await wait_for(app, run_id, "running")
    assert [run["state"] for run in (await get(app, "/runs")).json] == ["running"]
    assert [run["id"] for run in (await get(app, "/runs", query="state=running")).json] == [run_id]
    assert (await get(app, "/runs", query="state=queued")).json == []
    for query in ("state=runing", "a=b&state=%72uning"):
        x = await get(app, "/runs", query=query)
        assert (x.status, "Did you mean 'running'" in x.json["detail"]) == (400, True)
    await close(app)


async def test_runs_wait_in_a_queue_that_is_bounded(tmp_path):
    """The rest is a 429; a key that is known is no further run, and a restart goes on with all of them."""
    program = Waiting()
    app = sm.serve(program, runs=tmp_path, concurrency=1, queue=2)
    answers = await asyncio.gather(
        *[post(app, "/runs", {"text": str(n)}, headers={"idempotency-key": str(n)}) for n in range(9)]
    )
    assert sorted(x.status for x in answers) == [201] * 3 + [429] * 6
    assert {x.answer_headers.get("retry-after") for x in answers if x.status == 429} == {"1"}
    kept = [n for n, x in enumerate(answers) if x.status == 201]
    again = await post(app, "/runs", {"text": str(kept[0])}, headers={"idempotency-key": str(kept[0])})
    assert (again.status, again.json["id"]) == (201, answers[kept[0]].json["id"])
    assert len([*tmp_path.iterdir()]) == 3
    await close(app)
    program.gate.set()
    other = sm.serve(program, runs=tmp_path, concurrency=1, queue=0)
    for n in kept:
        assert (await wait_for(other, answers[n].json["id"], "done"))["outputs"] == {"text": str(n)}
    await close(other)


@pytest.mark.parametrize("state", ["done", "cancelled"])
async def test_a_run_that_has_ended_stays_so(tmp_path, state):
    """An answer without values does not run it again; the server forgets it, and its events end with how it ended."""
    calls = []
    app = sm.serve(Clerk(calls, name="clerk"), runs=tmp_path)
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    record = await wait_for(app, run_id, "waiting")
    if state == "done":
        await post(app, f"/runs/{run_id}/answers", {record["questions"][0]["id"]: True})
        await wait_for(app, run_id, "done")
    else:
        await Client("DELETE", f"/runs/{run_id}").ask(app)
    assert (await post(app, f"/runs/{run_id}/answers", {})).json["state"] == state
    await until_idle(app)
    assert not app.runs._live
    name, body = (await get(app, f"/runs/{run_id}/events")).events[-1]
    assert (name, body.get("detail")) == (("result", None) if state == "done" else ("error", "The run was cancelled."))
    assert calls == ["model"]
    await close(app)


async def test_a_run_has_the_budget_and_the_hooks_of_the_server(tmp_path):
    """A run is no way around the budget of a request; what it used is in the metrics, once."""
    calls, topics = [], []

    class Topics(sm.Hook):
        def on_emit(self, event):
            topics.append(event.topic)

    poor = sm.serve(Clerk(calls, name="clerk"), runs=tmp_path / "poor", budget={"calls": 0})
    run_id = (await post(poor, "/runs", {"text": "x"})).json["id"]
    assert (await wait_for(poor, run_id, "failed"))["problem"]["status"] == 422
    assert calls == []
    await close(poor)
    app = sm.serve(Clerk(calls, name="clerk"), runs=tmp_path / "runs", budget={"calls": 1}, hooks=[Topics()])
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    record = await wait_for(app, run_id, "waiting")
    await post(app, f"/runs/{run_id}/answers", {record["questions"][0]["id"]: True})
    await wait_for(app, run_id, "done")
    assert "draft" in topics
    tokens = f'synmod_tokens_total{{kind="prompt"}} {record["usage"]["prompt_tokens"]}\n'
    assert tokens in (await get(app, "/metrics")).content.decode()
    await close(app)


@pytest.mark.parametrize("run_id", ["..", "%2e%2e", "../secret", "a.b", "x" * 65, "none", "a\\b", "\x00"])
@pytest.mark.parametrize("end", ["", "/events", "/answers"])
async def test_names_of_runs_cannot_leave_the_folder(tmp_path, run_id, end):
    """Nothing outside is read or written."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "request.json").write_text("{}")
    app = sm.serve(echo(), runs=tmp_path / "runs")
    x = await Client("POST" if end == "/answers" else "GET", f"/runs/{run_id}{end}", {}).ask(app)
    assert x.status == 404
    assert not [*(tmp_path / "runs").iterdir()]
    await close(app)


async def test_the_events_of_a_run(tmp_path):
    """In order, with numbers; a reader goes on after `Last-Event-ID`; the last event is the result."""
    app = sm.serve(Clerk([], name="clerk"), runs=tmp_path)
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    reader = Client("GET", f"/runs/{run_id}/events")
    task = asyncio.create_task(reader.ask(app))
    question = (await wait_for(app, run_id, "waiting"))["questions"][0]
    assert not app.in_flight
    await post(app, f"/runs/{run_id}/answers", {question["id"]: True})
    await task
    names = [name for name, _ in reader.events]
    assert names[-1] == "result"
    assert "waiting" in names
    assert {"path": "", "topic": "draft", "value": {"text": "draft"}} in [body for _, body in reader.events]
    late = await Client("GET", f"/runs/{run_id}/events", headers={"last-event-id": "99999"}).ask(app)
    assert [name for name, _ in late.events] == ["result"]
    await close(app)


async def test_without_a_folder_a_question_is_a_409():
    """It has the questions; there are no runs."""
    app = sm.serve(Clerk([], name="clerk"))
    x = await post(app, "/call", {"text": "x"})
    assert x.status == 409
    assert x.json["questions"][0]["text"] == "Send it?"
    assert (await post(app, "/runs", {"text": "x"})).status == 404


async def test_a_server_that_goes_down_leaves_runs_for_the_next(tmp_path):
    """What runs is cancelled at the end of the grace, and goes on after the restart."""
    program = Waiting()
    app = sm.serve(program, runs=tmp_path)
    run_id = (await post(app, "/runs", {"text": "x"})).json["id"]
    await wait_for(app, run_id, "running")
    app.begin_to_stop()
    assert (await post(app, "/runs", {"text": "x"})).status == 503
    app.cancel_rest()
    await close(app)
    assert not app.in_flight
    program.gate.set()
    other = sm.serve(program, runs=tmp_path)
    assert (await wait_for(other, run_id, "done"))["outputs"] == {"text": "x"}
    await close(other)
