"""Cache: entries by key, in memory and in a file alike."""

import asyncio
import copy
import pickle
import threading

import pytest
import trio.testing

import synmod as sm
from synmod.cache import Cache, key_of
from synmod.leaves import aio
from synmod.leaves.aio import use_clock, wall_time
from tests.clock import ManualClock


@pytest.fixture(params=["memory", "file"])
def cache(request, tmp_path):
    """A cache of each kind, small where a test asks for it."""
    max_bytes = 10_000 if "small" in request.fixturenames else 1 << 30
    cache = Cache(tmp_path / "cache.db" if request.param == "file" else None, max_bytes=max_bytes)
    yield cache
    cache.close()


@pytest.fixture
def small():
    """Makes the cache a small one."""


VALUE = {"text": "ü ☃ \U0001f600", "n": [1, 2.5, -0.0, 10**40, None, True], "": {"a": {"b": []}}}


def test_what_is_kept_is_found(cache, any_loop):
    """The same JSON to the last digit, frozen; other keys are not found; the last value of a key counts."""

    async def main():
        assert await cache.find("k") is None
        await cache.keep("k", VALUE)
        found = await cache.find("k")
        await cache.keep("k", {"other": 1})
        return found, await cache.find("k"), await cache.find("K")

    found, other, nothing = any_loop(main)
    assert repr(found) == repr(VALUE)
    assert (other, nothing) == ({"other": 1}, None)
    with pytest.raises(TypeError):
        found["text"] = "changed"


async def test_nothing_of_the_callers_value_stays(cache):
    """A later change of it changes no entry."""
    value = {"list": [1]}
    await cache.keep("k", value)
    value["list"].append(2)
    assert await cache.find("k") == {"list": [1]}


async def test_deep_values(cache):
    """As deep as a schema and the value below it may be."""
    deep = {}
    for _ in range(270):
        deep = {"a": deep}
    await cache.keep("k", deep)
    assert repr(await cache.find("k")) == repr(deep)


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": {1}}, {1: 2}, {"x": "\ud800"}, [1], None, "text"])
async def test_only_json_objects_are_kept(cache, value):
    """Whatever else is a DataError, and nothing is kept."""
    with pytest.raises(sm.DataError):
        await cache.keep("k", value)
    assert await cache.find("k") is None


@pytest.mark.parametrize("key", ["ü", "\ud800", 1, None, b"k"])
async def test_a_key_is_ascii(cache, key):
    """Anything else is refused before it is stored."""
    with pytest.raises(sm.ArgumentError, match="key_of"):
        await cache.keep(key, {})
    with pytest.raises(sm.ArgumentError, match="key_of"):
        await cache.find(key)


async def test_oldest_use_goes_first(cache, small):
    """Both reads and writes are uses; what is left counts for at most `max_bytes`."""
    for n in range(10):
        await cache.keep(f"k{n}", {"x": "x" * 700})
    await cache.find("k0")
    await cache.find("k2")
    for n in range(10, 13):
        await cache.keep(f"k{n}", {"x": "x" * 700})
    left = [n for n in range(13) if await cache.find(f"k{n}")]
    assert left == [0, 2, 5, 6, 7, 8, 9, 10, 11, 12]


async def test_an_entry_that_is_too_big_drives_out_no_other(cache, small):
    """It is not kept, and takes the place of none."""
    await cache.keep("small", {"x": 1})
    await cache.keep("big", {"x": "x" * 20_000})
    assert await cache.find("big") is None
    assert await cache.find("small") == {"x": 1}


async def test_entries_of_one_key_count_once(cache, small):
    """Writing a key again and again fills nothing."""
    await cache.keep("other", {"x": 1})
    for n in range(100):
        await cache.keep("k", {"x": "x" * (n % 7 * 300)})
    assert await cache.find("other") == {"x": 1}


@pytest.mark.parametrize("path", [None, "cache.db"])
async def test_entries_grow_old(tmp_path, path):
    """By the injected clock; the shorter of both limits holds; what was made again is young again."""
    clock = ManualClock()
    cache = Cache(path and tmp_path / path, ttl_s=10)
    with use_clock(clock):
        await cache.keep("k", {"x": 1})
        clock.time = 10.0
        assert await cache.find("k") == {"x": 1}
        assert await cache.find("k", ttl_s=5) is None
        clock.time = 10.1
        assert await cache.find("k", ttl_s=50) is None
        await cache.keep("k", {"x": 2})
        clock.time = 20.0
        assert await cache.find("k") == {"x": 2}
    cache.close()


def test_the_clock_of_a_loop_holds():
    """trio's test clock moves the age of entries; its own clock, which begins anew each run, does not."""
    cache = Cache(ttl_s=10)

    async def keep():
        await cache.keep("k", {})
        return await cache.find("k")

    async def grow_old():
        await keep()
        await trio.sleep(10.5)
        return await cache.find("k")

    assert trio.run(keep) == {}
    assert asyncio.run(cache.find("k")) == {}
    assert trio.run(cache.find, "k") == {}
    assert trio.run(grow_old, clock=trio.testing.MockClock(autojump_threshold=0)) is None
    assert abs(asyncio.run(_now()) - trio.run(_now)) < 5


async def _now():
    return wall_time()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sm.Cache(""), "path must be .*, got ''"),
        (lambda: sm.Cache("a\0b"), "path must be"),
        (lambda: sm.Cache(3), "path must be .*, got 3"),
        (lambda: sm.Cache(max_bytes=0), "max_bytes must be .*, got 0"),
        (lambda: sm.Cache(max_bytes=1.5), "max_bytes must be .*, got 1.5"),
        (lambda: sm.Cache(max_bytes=True), "max_bytes must be .*, got True"),
        (lambda: sm.Cache(ttl_s=0), "ttl_s must be .*, got 0"),
        (lambda: sm.Cache(ttl_s="1"), "ttl_s must be .*, got '1'"),
        (lambda: sm.Cache(ttl_s=float("nan")), "ttl_s must be .*, got nan"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    """At construction, in words."""
    with pytest.raises(sm.ConfigError, match=message):
        make()


def test_copies_are_the_same_cache_and_pickles_open_the_same_place(tmp_path):
    """A copy is the very object; a pickle leads to the same file, of memory to an empty one."""
    cache = Cache(tmp_path / "cache.db", max_bytes=9_999, ttl_s=7)
    assert copy.copy(cache) is cache
    assert copy.deepcopy([cache])[0] is cache
    again = pickle.loads(pickle.dumps(cache))
    assert (again.path, again.max_bytes, again.ttl_s) == (cache.path, 9_999, 7)
    assert repr(again) == f"Cache({cache.path!r}, max_bytes=9999, ttl_s=7)"
    assert pickle.loads(pickle.dumps(Cache())).path is None


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    """A later change of folder does not matter."""
    monkeypatch.chdir(tmp_path)
    cache = Cache("cache.db")
    monkeypatch.chdir("/")
    asyncio.run(cache.keep("k", {}))
    cache.close()
    assert (tmp_path / "cache.db").exists()


def test_keys_are_canonical():
    """The order of keys does not count; kinds of numbers do."""
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert len({key_of(each) for each in (1, 1.0, True, "1", None, [1], {"1": None})}) == 7


def test_threads_and_loops_share_it(cache):
    """Four threads with loops of their own: each finds what it wrote, and what the others wrote."""
    failures = []

    async def work(number):
        for n in range(5):
            async with aio.task_group() as group:
                for m in range(5):
                    group.start_soon(cache.keep, f"{number} {n} {m}", {"x": m})
            if await cache.find(f"{number} {n} 4") != {"x": 4}:
                failures.append((number, n))

    threads = [
        threading.Thread(target=runner, args=(number,))
        for number, runner in enumerate([lambda n: asyncio.run(work(n)), lambda n: trio.run(work, n)] * 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert asyncio.run(cache.find("3 4 4")) == {"x": 4}


def test_what_was_kept_is_found_while_other_threads_read(tmp_path):
    """A read of one thread never sees the older state of the file that a read of another has open."""
    cache = Cache(tmp_path / "cache.db")
    missed = []

    async def work(thread):
        for number in range(80):
            await cache.keep(f"{thread} {number}", {"x": number})
            if await cache.find(f"{thread} {number}") is None:
                missed.append((thread, number))

    threads = [threading.Thread(target=lambda thread=thread: asyncio.run(work(thread))) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert missed == []


async def test_cancellation_while_it_waits_leaves_nothing(cache):
    """A third of a thousand writers is cancelled; the others are done, and nobody waits any more."""
    tasks = [asyncio.create_task(cache.keep(f"k{n}", {"x": n})) for n in range(1_000)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result is True or isinstance(result, asyncio.CancelledError) for result in results)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert await cache.find("k998") == {"x": 998}
