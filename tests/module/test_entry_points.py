"""`with_name_scope`, `once`, `Deferred`, `variable_creator`, `train` and `eval`."""

import asyncio
import copy
import gc
import inspect
import pickle
import threading

import pytest

import synmod as sm
from tests.module.models import Query


@sm.register(package="tests_entry_points")
class Inner(sm.Module):
    """Tells its scope."""

    def __init__(self):
        super().__init__()
        self.scopes = sm.static([])

    async def call(self, inputs: Query) -> Query:
        self.scopes.append(sm.current_scope())
        return inputs


@sm.register(package="tests_entry_points")
class Encoder(sm.Module):
    """Has several ways in."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.runs = sm.static([])

    @sm.Module.with_name_scope
    def plain(self, x, *, fail=False):
        """Plain."""
        if fail:
            raise ValueError(sm.current_scope())
        return sm.current_scope()

    @sm.Module.with_name_scope
    async def encode(self, x):
        """Async."""
        await asyncio.sleep(0)
        return await self.inner(x)

    @sm.Module.with_name_scope
    async def stream(self, n):
        """A generator."""
        for _ in range(n):
            yield sm.current_scope()

    async def bare(self, x):
        return sm.current_scope()

    @sm.once
    async def connect(self):
        """Wait, and note the run."""
        await asyncio.sleep(0.001)
        self.runs.append("connect")

    @sm.once
    def prepare(self, fail=False):
        """Note the run."""
        if fail:
            raise ValueError("no")
        self.runs.append("prepare")

    @sm.once
    async def wrong(self):
        return 1

    @sm.once
    async def around(self):
        await self.around()


async def test_a_method_enters_the_scope_of_its_module():
    """Plain, async and generator methods; undecorated ones leave it alone; it is left on every way out."""
    encoder = Encoder()
    assert encoder.plain(1) == "encoder"
    assert await encoder.bare(1) == ""
    await encoder.encode(Query(question="q"))
    assert encoder.inner.scopes == ["encoder/inner"]
    with pytest.raises(ValueError, match="encoder"):
        encoder.plain(1, fail=True)
    assert sm.current_scope() == ""
    seen = []
    async for scope in encoder.stream(2):
        seen += [scope, sm.current_scope(), sm.current_call()]
    assert seen == ["encoder", "", None] * 2
    with encoder.name_scope:
        assert encoder.plain(1) == "encoder"


async def test_a_method_is_a_span_and_counted():
    """Labelled by the method; below it what it called; signature and `__wrapped__` stay."""
    encoder = Encoder()
    with sm.trace() as trace:
        await encoder.encode(Query(question="q"))
        encoder.plain(1)
        with pytest.raises(ValueError, match="encoder"):
            encoder.plain(1, fail=True)
        [scope async for scope in encoder.stream(1)]
        stopped = encoder.stream(3)
        await anext(stopped)
        await stopped.aclose()
    assert [root.name for root in trace.roots] == ["encode", "plain", "plain", "stream", "stream"]
    assert [child.path for child in trace.roots[0].children] == ["inner"]
    assert [root.error is None for root in trace.roots] == [True, True, False, True, False]
    assert all(root.elapsed_s is not None for root in trace.roots)
    assert dict(encoder.counters.methods) == {"encode": 1, "plain": 2, "stream": 2}
    assert encoder.counters.invocations == 0
    assert str(inspect.signature(Encoder.plain)) == "(self, x, *, fail=False)"
    assert inspect.iscoroutinefunction(Encoder.encode)
    assert Encoder.encode.__wrapped__.__name__ == "encode"
    with pytest.raises(sm.ConfigError):
        sm.Module.with_name_scope(3)


async def test_a_stream_keeps_to_itself():
    """Blocks of its body hold in its steps alone, also of two in turn; one that is forgotten is closed."""

    class Stream(sm.Module):
        @sm.Module.with_name_scope
        async def steps(self, phase):
            with sm.phase(phase):
                while True:
                    yield sm.current_scope(), await self.inside()

        @sm.Module.with_name_scope
        async def inside(self):
            return sm.current_call().phase

    stream = Stream()
    with sm.trace() as trace:
        one, other = stream.steps("reward"), stream.steps("optimizer")
        for _ in range(3):
            assert await anext(one) == ("stream", "reward")
            assert await stream.inside() == "inference"
            assert await asyncio.create_task(anext(other)) == ("stream", "optimizer")
            assert (sm.current_scope(), sm.current_call()) == ("", None)
        await asyncio.create_task(other.aclose())
        del one
        gc.collect()
        for _ in range(5):
            await asyncio.sleep(0)
    assert [root.elapsed_s is not None for root in trace.roots if root.name == "steps"] == [True, True]


async def test_spans_nest_and_do_not_mix():
    """A span inside a call is below it; a hundred at once know nothing of one another."""

    class Outer(sm.Module):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder()

        async def call(self, inputs: Query) -> Query:
            return await self.encoder.encode(inputs)

    outer = Outer()
    with sm.trace() as trace:
        await asyncio.gather(*(outer(Query(question="q")) for _ in range(100)))
    assert {root.children[0].name for root in trace.roots} == {"encode"}
    assert "encoder.encode" in str(trace)
    assert set(outer.encoder.inner.scopes) == {"outer/encoder/inner"}
    assert outer.encoder.counters.methods["encode"] == 100


async def test_once_runs_once_under_gather():
    """Concurrent first callers wait for the one run; the mark travels with copies and pickles."""
    encoder = Encoder()
    await asyncio.gather(*(encoder.connect() for _ in range(20)))
    await encoder.connect()
    assert encoder.runs == ["connect"]
    merged = sm.merge(*sm.split(encoder))
    for twin in (encoder.clone(), copy.deepcopy(encoder), merged, pickle.loads(pickle.dumps(encoder))):
        before = len(twin.runs)
        await twin.connect()
        assert len(twin.runs) == before
    assert sm.graphdef(Encoder()) == sm.graphdef(encoder)


async def test_a_failed_or_cancelled_run_is_none():
    """The next caller runs it."""
    encoder = Encoder()
    with pytest.raises(ValueError, match="no"):
        encoder.prepare(fail=True)
    encoder.prepare()
    encoder.prepare(fail=True)
    assert encoder.runs == ["prepare"]
    first = asyncio.create_task(encoder.connect())
    second = asyncio.create_task(encoder.connect())
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert encoder.runs == ["prepare", "connect"]
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_once_returns_nothing_and_waits_for_nobody_but_others():
    """A value is a CallError, as is a run that waits for itself; both may be tried again."""
    encoder = Encoder()
    for _ in range(2):
        with pytest.raises(sm.CallError, match="cannot return values"):
            await encoder.wrong()
        with pytest.raises(sm.CallError, match="waits for itself"):
            await encoder.around()


def test_once_under_threads():
    """One of many threads runs it, the others wait until it is done."""

    class Slow:
        def __init__(self):
            self.runs = 0
            self.go = threading.Event()

        @sm.once
        def start(self):
            self.go.wait(5)
            self.runs += 1

    slow = Slow()
    after = []
    threads = [threading.Thread(target=lambda: (slow.start(), after.append(slow.runs))) for _ in range(8)]
    for thread in threads:
        thread.start()
    slow.go.set()
    for thread in threads:
        thread.join(5)
    assert after == [1] * 8
    other = copy.copy(slow)
    other.start()
    assert other.runs == 1


async def test_deferred_makes_its_target_at_the_first_call():
    """Once, also under gather; then attributes pass to it, before they are AttributeErrors."""
    made = []

    def make():
        made.append(1)
        return Encoder()

    deferred = sm.Deferred(make, call_methods=("encode",))
    assert repr(deferred) == "Deferred(make)"
    for attempt in (lambda: deferred.inner, lambda: setattr(deferred, "extra", 1), lambda: delattr(deferred, "inner")):
        with pytest.raises(AttributeError):
            attempt()
    assert deferred.submodules == ()
    await asyncio.gather(*(deferred.encode(Query(question="q")) for _ in range(5)))
    assert made == [1]
    assert deferred.target.inner is deferred.inner
    deferred.extra = 2
    assert deferred.target.extra == 2
    del deferred.extra
    assert not hasattr(deferred.target, "extra")
    assert repr(deferred) == "Deferred(Encoder())"


async def test_deferred_in_a_program_is_built_saved_and_loaded():
    """The target is part of the graph from the build on."""
    program = sm.Sequential([sm.Deferred(Inner), sm.Deferred(sm.Identity)])
    await sm.build(program, Query)
    assert [type(m).__name__ for m in program.submodules] == ["Deferred", "Inner", "Deferred", "Identity"]
    assert (await program(Query(question="q")))["question"] == "q"
    again = sm.loads(sm.dumps(program))
    assert sm.graphdef(again) == sm.graphdef(program)
    assert (await again(Query(question="q")))["question"] == "q"
    with pytest.raises(sm.ConfigError):
        sm.Deferred(3)
    with pytest.raises(sm.ConfigError, match="no module"):
        await sm.Deferred(lambda: 3)(Query(question="q"))


def test_variable_creators_nest():
    """The innermost is asked first; keywords are those of add_variable and `owner`."""
    seen = []

    def outer(create, **kwargs):
        seen.append(("outer", kwargs["owner"], sorted(kwargs)))
        return create(**kwargs)

    def inner(create, **kwargs):
        seen.append(("inner", kwargs["name"]))
        return create(**{**kwargs, "initializer": "changed", "type": sm.Memory})

    with sm.variable_creator(outer), sm.variable_creator(inner):
        variable = sm.Module(name="m").add_variable("x", name="prompt")
    assert (variable.value, type(variable)) == ("changed", sm.Memory)
    keys = ["data_model", "description", "initializer", "name", "owner", "schema", "trainable", "type"]
    assert seen == [("inner", "prompt"), ("outer", "m", keys)]
    assert type(sm.Module().add_variable("x")) is sm.Param
    with sm.variable_creator(lambda create, **kwargs: 3), pytest.raises(sm.ArgumentError, match="create"):
        sm.Module().add_variable("x")
    with pytest.raises(sm.ArgumentError):
        sm.variable_creator(3)


async def test_variable_creators_are_of_their_task():
    """Tasks started inside see it, others do not; after an error it is gone."""

    def make(create, **kwargs):
        return create(**{**kwargs, "initializer": "inside"})

    async def add():
        await asyncio.sleep(0)
        return sm.Module().add_variable("plain").value

    outside = asyncio.create_task(add())
    with pytest.raises(KeyError), sm.variable_creator(make):
        assert await asyncio.create_task(add()) == "inside"
        raise KeyError
    assert [await outside, await add()] == ["plain", "plain"]


def test_train_and_eval_set_modes():
    """Wherever a node has such an attribute."""

    class Mode(Inner):
        def __init__(self):
            super().__init__()
            self.training, self.deterministic = False, True

    class ReadOnly(Inner):
        deterministic = property(lambda self: 1 / 0)

    root = sm.Sequential([Mode(), Inner()])
    assert root.train() is root
    assert (root.members[0].training, root.members[0].deterministic) == (True, False)
    assert not hasattr(root.members[1], "training")
    root.eval()
    assert (root.members[0].training, root.members[0].deterministic) == (False, True)
    root.members[0].deterministic = None
    sm.Sequential([root.members[0], ReadOnly()]).train()
    assert root.members[0].deterministic is False


def test_once_on_every_loop(any_loop):
    """Waiting works on asyncio, uvloop and trio."""
    from synmod.leaves.aio import checkpoint, task_group

    class Slow(sm.Module):
        def __init__(self):
            super().__init__()
            self.runs = 0

        @sm.once
        async def start(self):
            for _ in range(3):
                await checkpoint()
            self.runs += 1

    async def main():
        slow = Slow()
        async with task_group() as group:
            for _ in range(5):
                group.start_soon(slow.start)
        return slow.runs

    assert any_loop(main) == 1
