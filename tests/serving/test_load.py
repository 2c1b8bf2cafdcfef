"""Many calls at once: places and queue, clients that leave, slow readers, nothing mixed up, nothing left."""

import asyncio
import json

import pytest

import synmod as sm
from tests.serving.client import Client, Question, Waiting, answering, echo, post, serving, until


async def test_places_queue_and_the_rest():
    """So many run, so many wait, the rest gets a 429 at once; each that waits gets its turn."""
    program = Waiting()
    app = sm.serve(program, concurrency=2, queue=3)
    clients = [Client("POST", "/call", {"text": str(n)}) for n in range(9)]
    tasks = [asyncio.create_task(client.ask(app)) for client in clients]
    await until(lambda: sum(task.done() for task in tasks) == 4)
    assert [client.status for client in clients] == [0] * 5 + [429] * 4
    assert clients[-1].answer_headers["retry-after"] == "1"
    assert (program.counts["begun"], app.places.running, app.places.waiting) == (2, 2, 3)
    program.gate.set()
    await asyncio.gather(*tasks)
    assert [client.json["text"] for client in clients[:5]] == ["0", "1", "2", "3", "4"]
    assert (app.places.running, app.places.waiting, app.in_flight) == (0, 0, set())


async def test_the_body_is_read_before_a_place_is_taken():
    """Slow senders do not keep others out."""
    program, hold = echo(), asyncio.Event()
    app = sm.serve(program, concurrency=1, queue=0)

    async def slow_body():
        yield b'{"text": '
        await hold.wait()
        yield b'"slow"}'

    slow = [asyncio.create_task(post(app, "/call", b"", parts=slow_body())) for _ in range(5)]
    await asyncio.sleep(0)
    assert (await post(app, "/call", {"text": "quick"})).json == {"text": "quick"}
    hold.set()
    assert {(await task).status for task in slow} <= {200, 429}


@pytest.mark.parametrize("path", ["/call", "/stream"])
async def test_a_client_that_leaves_cancels_its_call(path):
    """Whether it runs or waits for a place."""
    program = Waiting()
    app = sm.serve(program, concurrency=1)
    clients = [Client("POST", path, {"text": "x"}) for _ in range(3)]
    tasks = [asyncio.create_task(client.ask(app)) for client in clients]
    await until(lambda: app.places.waiting == 2)
    clients[1].left.set()
    await until(lambda: app.places.waiting == 1)
    clients[0].left.set()
    await until(lambda: program.counts["begun"] == 2)
    assert program.counts["cancelled"] == 1
    program.gate.set()
    await asyncio.gather(*tasks)
    assert [client.status for client in clients] == [0, 0, 200]
    assert (app.places.running, app.places.waiting, app.in_flight) == (0, 0, set())


async def test_a_client_may_leave_at_any_await():
    """At the k-th step of the loop, for every k: nothing stays behind."""
    app = sm.serve(answering(lambda text: [sm.LMChunk('{"answer": '), sm.LMChunk(f'"{text}"}}')]), concurrency=1)
    for path in ("/call", "/stream", "/v1/chat/completions"):
        body = {"text": "x"} if "v1" not in path else {"messages": [{"role": "user", "content": "x"}], "stream": True}
        for steps in range(60):
            client = Client("POST", path, body)
            task = asyncio.create_task(client.ask(app))
            for _ in range(steps):
                await asyncio.sleep(0)
            client.left.set()
            await task
            assert (app.places.running, app.places.waiting, app.in_flight) == (0, 0, set())
        assert client.status == 200


async def test_a_slow_reader_holds_the_model_back():
    """No piece is read from the model while the client does not read."""
    sent = []

    async def pieces(text):
        return [sm.LMChunk('{"answer": "')] + [sm.LMChunk("a") for _ in range(50)] + [sm.LMChunk('"}')]

    class Seen(sm.Hook):
        def on_lm_chunk(self, event):
            sent.append(event.chunk)

    app = sm.serve(answering(pieces), hooks=[Seen()])
    client = Client("POST", "/stream", {"text": "x"})
    client.reads.clear()
    task = asyncio.create_task(client.ask(app))
    for _ in range(500):
        await asyncio.sleep(0)
    assert len(sent) <= 3
    client.reads.set()
    await task
    assert client.events[-1][1]["outputs"] == {"answer": "a" * 50}


def reply_by_number(text):
    """A model's reply: the number in three pieces, or a failure for some numbers."""
    if int(text) % 7 == 3:
        return sm.RateLimitError("no room")
    return [sm.LMChunk('{"answer": "'), sm.LMChunk(text), sm.LMChunk('"}')]


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_many_at_once_are_neither_lost_nor_mixed_up(count):
    """Beside failures, slow readers and leaving clients, each has its own answer, usage and trace; nothing is left."""
    app = sm.serve(answering(reply_by_number, attempts=1, price=(1.0, 1.0)), queue=count)
    before = asyncio.all_tasks()

    async def ask_in_trace(client):
        with sm.trace() as tracer:
            await client.ask(app)
        return tracer

    clients = [Client("POST", "/stream" if n % 3 == 0 else "/call", {"text": str(n)}) for n in range(count)]
    tasks = [asyncio.create_task(ask_in_trace(client)) for client in clients]
    for client in clients[5::10]:
        client.left.set()
    slow_readers = clients[6::30]
    for client in slow_readers:
        client.reads.clear()
    others = [task for task, client in zip(tasks, clients, strict=True) if client not in slow_readers]
    await asyncio.gather(*others)
    for client in slow_readers:
        client.reads.set()
    traces = [await task for task in tasks]
    for number, (client, tracer) in enumerate(zip(clients, traces, strict=True)):
        if number % 10 == 5:
            assert client.status == 0
            continue
        (root,) = tracer.roots
        (answer,) = [call for call in root.children if call.lm_calls]
        assert [call.inputs[0]["text"] for call in (root, answer)] == [str(number)] * 2
        assert [len(answer.lm_calls), len(root.lm_calls)] == [1, 0]
        if number % 7 == 3:
            assert client.status == 502
            assert "RateLimitError" in root.error
            continue
        outputs = client.events[-1][1]["outputs"] if number % 3 == 0 else client.json
        usage = client.events[-1][1]["usage"] if number % 3 == 0 else client.usage
        assert outputs == root.outputs.get_json() == {"answer": str(number)}
        assert usage == vars(root.usage)
        assert usage["calls"] == 1
    assert (app.places.running, app.places.waiting, app.in_flight) == (0, 0, set())
    assert asyncio.all_tasks() == before


async def test_a_stream_shows_calls_and_what_is_emitted():
    """Of calls path, name, phase and elapsed; inputs, outputs and other calls' pieces only with details."""

    class Two(sm.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = (answering(lambda _: '{"answer": "secret"}', name=name) for name in ("one", "two"))

        async def call(self, inputs: Question) -> Question:
            sm.emit("step", 1)
            await self.inner(inputs)
            await self.outer(inputs)
            return inputs

    x = await post(sm.serve(Two()), "/stream", {"text": "x"})
    assert ("event", {"path": "", "topic": "step", "value": 1}) in x.events
    ends = [body for name, body in x.events if name == "event" and "elapsed_s" in body]
    assert {"inner", "outer", ""} <= {body["path"] for body in ends}
    assert b"secret" not in x.content
    x = await post(sm.serve(Two(), details=True), "/stream", {"text": "x"})
    assert b"secret" in x.content


@pytest.mark.slow
async def test_clients_over_sockets():
    """Under uvicorn: answers, and a closed connection that cancels its call."""
    import httpx

    program = Waiting()
    app = sm.serve({"echo": echo(), "waiting": program})
    limits = httpx.Limits(max_connections=50)
    async with serving(app) as address, httpx.AsyncClient(base_url=address, limits=limits) as http:
        answers = await asyncio.gather(*[http.post("/call", json={"text": str(n)}) for n in range(200)])
        assert [answer.json()["text"] for answer in answers] == [str(n) for n in range(200)]
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/call/waiting", json={"text": "x"}, timeout=0.05)
        while not program.counts["cancelled"]:
            await asyncio.sleep(0.001)
        assert json.loads((await http.get("/openapi.json")).text)["openapi"] == "3.1.0"
    assert not app.in_flight
    assert Question  # the schema of both
