"""Cached: a module remembered, in memory or in a file, and what tells two calls apart."""

import asyncio
import collections
import copy
import functools
import pickle
import threading

import pytest
import trio

import synmod as sm
from synmod.leaves import aio
from synmod.leaves.aio import use_clock
from synmod.testing import ScriptedLM, assert_saves
from tests.clock import ManualClock


class Count(sm.DataModel):
    n: int


class Other(sm.DataModel):
    n: int
    other: str = "x"


Pair = collections.namedtuple("Pair", "first second")


@sm.register("tests_cached")
def double(count) -> Count:
    """A function that a config refers to."""
    return {"n": count["n"] * 2}


@sm.register("tests_cached")
def parity(count):
    """A key."""
    return count["n"] % 2


def counting():
    """A module with state, and the list of what it was asked."""
    asked = []

    class Asked(sm.Module):
        def __init__(self):
            super().__init__()
            self.step = self.add_variable(1, name="step")

        async def call(self, inputs: Count) -> Count:
            asked.append(inputs.n)
            await asyncio.sleep(0)
            return Count(n=inputs.n + self.step.value)

    return Asked(), asked


async def test_equal_calls_run_once():
    """One after the other, and a thousand at once."""
    module, asked = counting()
    cached = sm.Cached(module)
    results = await asyncio.gather(*(cached(Count(n=n % 3)) for n in range(1_000)))
    assert sorted(asked) == [0, 1, 2]
    assert [r["n"] for r in results[:3]] == [1, 2, 3]
    assert (await cached(Count(n=2)))["n"] == 3
    assert sorted(asked) == [0, 1, 2]


async def test_another_state_is_another_entry():
    """A Variable that was assigned, an overlay, another sample: entries of their own."""
    module, asked = counting()
    cached = sm.Cached(module)
    await cached(Count(n=1))
    module.step.assign(5)
    assert (await cached(Count(n=1)))["n"] == 6
    with sm.using(cached, {"module/step": 1}):
        assert (await cached(Count(n=1)))["n"] == 2
    assert len(asked) == 2
    with sm.lm.sample_number(1):
        await cached(Count(n=1))
    assert len(asked) == 3


async def test_entries_grow_old():
    """An entry older than `ttl_s` is made again."""
    module, asked = counting()
    clock = ManualClock()
    with use_clock(clock):
        cached = sm.Cached(module, ttl_s=10)
        await cached(Count(n=1))
        clock.time = 10.0
        await cached(Count(n=1))
        assert len(asked) == 1
        clock.time = 10.5
        await cached(Count(n=1))
    assert len(asked) == 2


async def test_failures_are_never_kept_and_a_cancelled_leader_hands_over():
    """A failure reaches all who waited; a cancelled leader lets the next one lead."""
    gate = asyncio.Event()
    runs = []

    async def work(count):
        runs.append(count.n)
        await gate.wait()
        if len(runs) == 2:
            raise KeyError("second")
        return count

    cached = sm.Cached(sm.Lambda(work, output=Count))
    leader, waiter = (asyncio.create_task(cached(Count(n=1))) for _ in range(2))
    await asyncio.sleep(0)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    gate.set()
    with pytest.raises(KeyError):
        await waiter
    assert (await cached(Count(n=1)))["n"] == 1
    assert runs == [1, 1, 1]


async def test_a_module_that_waits_for_itself_is_told():
    """A module that asks its own cache for what it is about to give is told so."""
    holder = []

    async def ask(count):
        return await holder[0](count)

    holder.append(sm.Cached(sm.Lambda(ask, output=Count)))
    with pytest.raises(sm.CallError, match="wait forever"):
        await holder[0](Count(n=1))


async def test_a_key_of_ones_own():
    """The key says which inputs are equal."""
    module, asked = counting()
    cached = sm.Cached(module, key=lambda count: count.n % 2)
    await cached(Count(n=1))
    assert (await cached(Count(n=3)))["n"] == 2
    assert asked == [1]


@pytest.fixture
def path(tmp_path):
    """Where a file may be."""
    return tmp_path / "cache.db"


async def test_a_file_is_found_by_the_next_block(path):
    """Of a module made anew, with a Cache of its own: typed outputs, nothing runs again."""
    runs = []

    def work(count):
        runs.append(1)
        return count

    for _ in range(3):
        cached = sm.Cached(sm.Lambda(work, output=Count), sm.Cache(path))
        outputs = await cached(Count(n=1))
        assert outputs.to() == Count(n=1)
        assert outputs.get_schema() == Count.get_schema()
        await cached.cache.aclose()
    assert runs == [1]


async def test_functions_count_by_name_and_others_by_themselves(path):
    """Blocks that share a cache: a function by module and name; closures, lambdas and objects by identity."""
    cache = sm.Cache(path)

    def times(k):
        return lambda count: {"n": count["n"] * k}

    def listed(k, data):
        return lambda count: {"n": count["n"] + data[0] * k}

    def power(count, *, k):
        return {"n": count["n"] ** k}

    class Add:
        def __init__(self, k):
            self.k = k

        def add(self, count):
            return {"n": count["n"] + self.k}

    functions = [
        times(2), times(3), listed(1, [1]), listed(1, [2]), functools.partial(power, k=2),
        functools.partial(power, k=3), Add(1).add, Add(2).add, double,
    ]  # fmt: skip
    for _ in range(2):
        values = [(await sm.Cached(sm.Lambda(fn, output=Count), cache)(Count(n=3)))["n"] for fn in functions]
        assert values == [6, 9, 4, 5, 9, 27, 4, 5, 6]
    again = {"n": 3}
    assert (await sm.Cached(sm.Lambda(plain, output=Count), cache)(Count(n=3))).get_json() == again
    assert (await sm.Cached(sm.Lambda(renamed(plain), output=Count), cache)(Count(n=3))).get_json() == again
    cache.close()


def plain(count):
    """A function that is not registered."""
    return {"n": count["n"]}


def renamed(function):
    """Another function of the same module and name: the code does not count."""

    def other(count):
        return {"n": -count["n"]}

    other.__qualname__ = function.__qualname__
    return other


async def test_closures_over_what_can_change_do_not_share_entries():
    """Two functions of one factory that differ by an enclosing list gave one answer out of a shared cache."""
    cache = sm.Cache()

    def make(n):
        data = [n]
        return sm.Cached(sm.Lambda(lambda count: {"n": data[0]}, output=Count), cache)

    assert [(await make(n)(Count(n=0)))["n"] for n in (1, 2, 3)] == [1, 2, 3]


async def test_classes_of_one_factory_do_not_share_entries():
    """A class inside a function may use whatever is around it."""
    cache = sm.Cache()

    def make(n):
        class Local(sm.Module):
            async def call(self, inputs: Count) -> Count:
                return Count(n=n)

        return sm.Cached(Local(), cache)

    blocks = [make(n) for n in (1, 2, 3)]
    assert [(await block(Count(n=0)))["n"] for block in blocks] == [1, 2, 3]
    assert (await sm.Cached(blocks[0].module, cache)(Count(n=0)))["n"] == 1


async def test_another_structure_is_another_entry():
    """An attribute set later, another argument, another default model or stand-in, another child."""
    cache = sm.Cache()
    model = ScriptedLM({"**": [{"n": n} for n in range(9)]})
    generator = sm.Generator(Count, language_model=model, temperature=0.1)
    cached = sm.Cached(generator, cache)

    async def ask():
        return (await cached(Other(n=1)))["n"]

    assert [await ask(), await ask()] == [0, 0]
    generator.temperature = 0.5
    assert [await ask(), await ask()] == [1, 1]
    generator.temperature = 0.1
    assert await ask() == 0
    with sm.use_language_models(ScriptedLM([{"n": 7}], name="stand-in")):
        assert [await ask(), await ask()] == [7, 7]
    assert await ask() == 0
    cached = sm.Cached(sm.Generator(Count, language_model=model, instructions="Other."), cache)
    assert await ask() == 2
    cached = sm.Cached(sm.Generator(Count), cache)
    with sm.default_language_model(ScriptedLM([{"n": 5}], name="one")):
        assert [await ask(), await ask()] == [5, 5]
    with sm.default_language_model(ScriptedLM([{"n": 6}], name="two")):
        assert [await ask(), await ask()] == [6, 6]


async def test_another_schema_is_another_entry():
    """Equal JSON of other schemas: what a module gives may depend on them."""
    cached = sm.Cached(sm.Identity())
    wide = sm.JsonDataModel({"n": 1}, schema={"type": "object", "properties": {"n": {"type": "number"}}})
    assert (await cached(Count(n=1))).get_schema() == Count.get_schema()
    assert (await cached(wide)).get_schema() == wide.get_schema()


class Nest(sm.Module):
    """Gives what its factory makes, and counts."""

    def __init__(self, give):
        super().__init__()
        self.give = sm.static(give)
        self.runs = sm.static([])

    async def call(self, *inputs):
        self.runs.append(1)
        return self.give(*inputs)


@pytest.mark.parametrize("give", [lambda x: None, lambda x: x])
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_one_data_model_or_none_is_remembered(path, give, kind):
    """None, and a value with its schema, class and label."""
    cached = sm.Cached(Nest(give), sm.Cache(path if kind == "file" else None))
    value = sm.JsonDataModel(Count(n=1), name="label")
    first, again = await cached(value), await cached(value)
    assert len(cached.module.runs) == 1
    assert first == again
    assert again is None or (again.name, again.get_schema()) == ("label", Count.get_schema())
    await cached.cache.aclose()


@pytest.mark.parametrize("give", [lambda x: (x, None), lambda x: [], lambda x: {"a": x}])
async def test_another_output_runs_each_time(give):
    """Lists, tuples and mappings of data models are not remembered."""
    cached = sm.Cached(Nest(give))
    for _ in range(2):
        assert await cached(Count(n=1)) == give(Count(n=1).to_json_data_model())
    assert len(cached.module.runs) == 2


async def test_odd_keys_of_inputs():
    """1 and "1" are two keys."""
    cached = sm.Cached(Nest(lambda x: x[next(iter(x))] + Count(n=len(cached.module.runs))))
    for inputs in ({1: Count(n=1)}, {"1": Count(n=1)}, {(1, 2): Count(n=1)}) * 2:
        await cached(inputs)
    assert len(cached.module.runs) == 3


async def test_inputs_are_told_apart_by_their_nests():
    """None, several arguments and lists are not mixed up."""
    cached = sm.Cached(Nest(lambda *inputs: None))
    one = Count(n=1)
    for inputs in [(one,), (one, None), (None, one), ([one],), ([one, None],), ([[one]],), (one, one), ({"a": one},)]:
        await cached(*inputs)
        await cached(*copy.deepcopy(inputs))
    assert len(cached.module.runs) == 8


async def test_blocks_with_other_keys_do_not_mix():
    """Two keys may give the same JSON, and mean something else by it."""
    cache, module = sm.Cache(), sm.Identity()
    halves = sm.Cached(module, cache, key=lambda count: count["n"] % 2)
    thirds = sm.Cached(module, cache, key=lambda count: count["n"] % 3)
    assert (await halves(Count(n=3)))["n"] == 3
    assert (await thirds(Count(n=4)))["n"] == 4
    assert (await halves(Count(n=5)))["n"] == 3


async def test_an_async_key():
    """It is awaited; what it gives must be JSON."""

    async def key(count):
        await asyncio.sleep(0)
        return count["n"] % 2

    module, asked = counting()
    cached = sm.Cached(module, key=key)
    for n in range(6):
        await cached(Count(n=n))
    assert asked == [0, 1]
    with pytest.raises(sm.DataError):
        await sm.Cached(module, key=lambda count: {1})(Count(n=1))


async def test_a_first_call_that_builds_is_remembered():
    """Variables that the first call makes are part of the state that the second one asks by."""
    runs = []

    class Built(sm.Module):
        async def build(self, inputs):
            self.step = self.add_variable(1, name="step")

        async def call(self, inputs: Count) -> Count:
            runs.append(1)
            return {"n": inputs["n"] + self.step.value}

    cached = sm.Cached(sm.Sequential([Built(), Built()]))
    for _ in range(3):
        assert (await cached(Count(n=1)))["n"] == 3
    assert len(runs) == 2


async def test_an_entry_that_no_longer_fits_is_a_miss(path):
    """The module declares another output today: it runs again."""

    def made(extra):
        class Answer(sm.DataModel):
            n: int
            if extra:
                more: str = "m"

        class Answers(sm.Module):
            async def call(self, inputs: Count) -> Answer:
                return Answer(n=inputs["n"])

        return sm.Cached(Answers(), sm.Cache(path))

    old, new = made(False), made(True)
    assert (await old(Count(n=1))).get_json() == {"n": 1}
    await old.cache.aclose()
    assert (await new(Count(n=1))).get_json() == {"n": 1, "more": "m"}
    await new.cache.aclose()


async def test_copies_share_and_files_do_not_name_it(path):
    """A clone and a deep copy have the very Cache; a file has none of it, and what is loaded remembers in memory."""
    cached = sm.Cached(sm.Lambda(double), sm.Cache(path, max_bytes=5_000), ttl_s=9, key=parity)
    assert cached.clone().cache is cached.cache
    assert copy.deepcopy(cached).cache is cached.cache
    assert pickle.loads(pickle.dumps(cached)).cache.path == str(path)
    plain = sm.Cached(sm.Lambda(double), ttl_s=9, key=parity)
    assert sm.graphdef(cached) == sm.graphdef(plain)
    text = sm.dumps(cached)
    assert text == sm.dumps(plain)
    assert "cache.db" not in text
    assert_saves(cached)
    loaded = sm.loads(text)
    assert loaded.cache.path is None
    assert not path.exists()
    loaded.cache = cached.cache
    await loaded(Count(n=1))
    assert path.exists()
    cached.cache.close()


async def test_an_edited_clone_never_answers_for_its_original():
    """Equal entries are shared, others are not."""
    module, asked = counting()
    cached = sm.Cached(module)
    clone = cached.clone()
    await cached(Count(n=1))
    assert (await clone(Count(n=1)))["n"] == 2
    assert len(asked) == 1
    clone.module.step.assign(4)
    assert (await clone(Count(n=1)))["n"] == 5
    assert (await cached(Count(n=1)))["n"] == 2


async def test_a_hit_is_a_cancellation_point():
    """A task that was cancelled does not get past a memory."""
    cached = sm.Cached(sm.Identity())
    await cached(Count(n=1))

    async def ask_for_ever():
        while True:
            await cached(Count(n=1))

    task = asyncio.create_task(ask_for_ever())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_many_calls_a_third_cancelled(path, any_loop, kind):
    """Ten keys, each run for all who stay; nobody hangs, nothing is left."""
    runs = []

    async def work(count):
        runs.append(count["n"])
        for _ in range(5):
            await aio.checkpoint()
        return count

    cached = sm.Cached(sm.Lambda(work, output=Count), sm.Cache(path if kind == "file" else None))
    done = []

    async def ask(n):
        outputs = await cached(Count(n=n % 10))
        done.append((n, outputs["n"]))

    async def main():
        async with aio.task_group() as group:
            async with aio.task_group() as doomed:
                for n in range(100):
                    doomed.start_soon(ask, n)
                await aio.checkpoint()
                for n in range(100, 300):
                    group.start_soon(ask, n)
                await aio.checkpoint()
                doomed.cancel()
        await cached.cache.aclose()

    any_loop(main)
    assert {n for n, _ in done} >= set(range(100, 300))
    assert all(n % 10 == value for n, value in done)
    assert len(runs) < 60


def test_four_threads_with_loops(path):
    """One file, four loops of two kinds: each key is run by one of them."""
    runs = []

    async def work(count):
        runs.append(count["n"])
        await aio.checkpoint()
        return count

    cached = sm.Cached(sm.Lambda(work, output=Count), sm.Cache(path))
    results = []

    async def main():
        async with aio.task_group() as group:
            for n in range(50):
                group.start_soon(ask, n % 10)

    async def ask(n):
        results.append((await cached(Count(n=n)))["n"] == n)

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
    threads += [threading.Thread(target=lambda: trio.run(main)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    cached.cache.close()
    assert results == [True] * 200
    assert sorted(runs) == list(range(10))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sm.Cached(sm.Identity(), ttl_s=0), "ttl_s must be .*, got 0"),
        (lambda: sm.Cached(sm.Identity(), ttl_s=float("nan")), "ttl_s must be .*, got nan"),
        (lambda: sm.Cached(sm.Identity(), key="question"), "key is a str"),
        (lambda: sm.Cached(sm.Identity(), "answers.db"), "sm.Cache"),
        (lambda: sm.Cached(len), "module is a builtin"),
    ],
)
def test_arguments_are_checked_when_the_block_is_made(make, says):
    """A ConfigError that names the argument."""
    with pytest.raises(sm.ConfigError, match=says):
        make()
