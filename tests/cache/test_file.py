"""The file of a cache: what survives a crash, what damage costs, and who may share it."""

import asyncio
import gc
import logging
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

import synmod
from synmod.cache import Cache, key_of

VALUES = {key_of(n): {"n": n, "text": "x" * (n * 7 % 300)} for n in range(40)}


ROOM = f"""
import sys, types
sys.modules["synmod"] = types.ModuleType("synmod")
sys.modules["synmod"].__path__ = {synmod.__path__!r}
"""
"""Lets a child process import the room without the front door: it needs nothing above it, and is there at once."""


def command(code, *args):
    """What runs code in a new process, where warnings are errors too."""
    return [sys.executable, "-W", "error", "-c", ROOM + code, *map(str, args)]


async def fill(cache, values=VALUES):
    """Keep all values at once."""
    await asyncio.gather(*(cache.keep(key, value) for key, value in values.items()))


async def hits(cache):
    """Return how many of the values are found."""
    return sum([await cache.find(key) is not None for key in VALUES])


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The bytes of a file that holds all values."""
    path = tmp_path_factory.mktemp("filled") / "cache.db"
    cache = Cache(path)
    asyncio.run(fill(cache))
    cache.close()
    return path.read_bytes()


def reopened(path, data=None):
    """Write a file, use it, and use it again: what the first found, and that the second finds all."""
    if data is not None:
        path.write_bytes(data)
    cache = Cache(path)

    async def main():
        found = await hits(cache)
        await fill(cache)
        assert await hits(cache) == len(VALUES)
        await cache.aclose()
        return found

    return asyncio.run(main())


def test_entries_outlive_the_process(tmp_path, filled):
    """Another Cache finds all; JSON text in an ordinary SQLite file, which only its owner can read."""
    path = tmp_path / "new" / "folder" / "cache.db"
    cache = Cache(path)
    asyncio.run(fill(cache))
    assert {os.stat(f"{path}{end}").st_mode & 0o777 for end in ("", "-wal")} == {0o600}
    assert path.parent.stat().st_mode & 0o077 == 0
    cache.close()
    assert os.listdir(path.parent) == ["cache.db"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        (text,) = connection.execute("SELECT body FROM entry WHERE key = ?", (key_of(0),)).fetchone()
    connection.close()
    assert text == '{"n":0,"text":""}'
    assert reopened(path) == len(VALUES)


def test_uses_are_remembered_too(tmp_path):
    """Oldest use goes first also where the use was in another life."""
    path = tmp_path / "cache.db"
    value = {"x": "x" * 700}

    async def first(cache):
        for n in range(10):
            await cache.keep(f"k{n}", value)
        await cache.aclose()
        await cache.find("k0")
        await cache.aclose()

    async def second(cache):
        await cache.keep("k10", value)
        return [n for n in range(11) if await cache.find(f"k{n}")]

    asyncio.run(first(Cache(path, max_bytes=10_000)))
    cache = Cache(path, max_bytes=10_000)
    assert asyncio.run(second(cache)) == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    cache.close()


def test_the_file_is_about_as_large_as_it_may_be(tmp_path):
    """Ten times as much as there is room for: the file ends a little above `max_bytes`, whatever the sizes."""
    path = tmp_path / "cache.db"
    cache = Cache(path, max_bytes=200_000)
    sizes = random.Random(7)
    for _ in range(4):
        asyncio.run(fill(cache, {key_of(sizes.random()): {"x": "x" * sizes.randrange(4_000)} for _ in range(200)}))
    cache.close()
    assert 120_000 < path.stat().st_size < 400_000


KILLED = """
import asyncio, sys
from synmod.cache import Cache
async def main(cache):
    async def one(n):
        await cache.keep(str(n), {"n": n, "text": "x" * 500})
        print(n, flush=True)
    for n in range(0, 100_000, 50):
        await asyncio.gather(*map(one, range(n, n + 50)))
asyncio.run(main(Cache(sys.argv[1])))
"""


@pytest.mark.parametrize("lines", [1, 230])
def test_acknowledged_entries_survive_a_kill(tmp_path, lines):
    """Whatever `keep` had returned for is found after SIGKILL, and the file is whole."""
    path = tmp_path / "cache.db"
    process = subprocess.Popen(command(KILLED, path), stdout=subprocess.PIPE, text=True)
    told = [int(process.stdout.readline()) for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    told += map(int, process.stdout.read().split("\n")[:-1])
    process.stdout.close()
    process.wait()
    cache = Cache(path)

    async def main():
        return [n for n in told if await cache.find(str(n)) != {"n": n, "text": "x" * 500}]

    assert asyncio.run(main()) == []
    cache.close()
    assert os.listdir(tmp_path) == ["cache.db"]


@pytest.mark.slow
def test_processes_share_a_file(tmp_path):
    """Three at once, from the first moment on: none fails, and every entry is there."""
    code = """
import asyncio, sys, logging
from synmod.cache import Cache
logging.basicConfig()
async def main(cache):
    for n in range(20):
        await asyncio.gather(*(cache.keep(f"{sys.argv[2]} {n} {m}", {"m": m}) for m in range(10)))
asyncio.run(main(Cache(sys.argv[1])))
"""
    path = tmp_path / "new" / "cache.db"
    processes = [
        subprocess.Popen(command(code, path, number), stderr=subprocess.PIPE, text=True) for number in range(3)
    ]
    assert [process.communicate()[1] for process in processes] == [""] * 3
    cache = Cache(path)

    async def main():
        keys = [f"{number} {n} {m}" for number in range(3) for n in range(20) for m in range(10)]
        return [key for key in keys if await cache.find(key) is None]

    assert asyncio.run(main()) == []
    cache.close()
    assert os.listdir(path.parent) == ["cache.db"]


def test_the_end_of_a_process_is_quiet(tmp_path):
    """No thread without a file, no file before its use, and no warning where nobody closed anything."""
    code = """
import asyncio, threading
from synmod.cache import Cache
cache = Cache()
asyncio.run(cache.keep("k", {}))
assert threading.active_count() == 1
unused = Cache("never.db")
cache = Cache("cache.db")
asyncio.run(cache.keep("k", {}))
holder = [cache]; holder.append(holder)
"""
    subprocess.run(command(code), cwd=tmp_path, check=True)
    assert os.listdir(tmp_path) == ["cache.db"]


def test_a_cache_that_nobody_holds_lets_go(tmp_path):
    """The collector closes file and log."""
    cache = Cache(tmp_path / "cache.db")
    asyncio.run(cache.keep("k", {}))
    del cache
    gc.collect()
    ends = time.monotonic() + 10
    while len(os.listdir(tmp_path)) > 1 and time.monotonic() < ends:  # a worker thread may still hold the last write
        time.sleep(0.001)
    assert os.listdir(tmp_path) == ["cache.db"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_opens_the_file_for_itself(tmp_path):
    """What the parent wrote is found in the child and the other way round; neither disturbs the other."""
    cache = Cache(tmp_path / "cache.db")
    asyncio.run(cache.keep("parent", {"x": 1}))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            found = asyncio.run(cache.find("parent"))
            asyncio.run(cache.keep("child", {"x": 2}))
            cache.close()
            status = 0 if found == {"x": 1} else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    asyncio.run(cache.keep("after", {"x": 3}))
    assert asyncio.run(cache.find("child")) == {"x": 2}
    cache.close()
    assert os.listdir(tmp_path) == ["cache.db"]


BODIES = ["{", "[1]", "NaN", "x" * 9, None, b"\xff", 7, "[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: f"{body!r:.9}")
def test_a_row_that_is_not_json_is_a_miss(tmp_path, filled, body, caplog):
    """That entry is not found, all others are, and nothing is moved."""
    path = tmp_path / "cache.db"
    path.write_bytes(filled)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entry SET body = ? WHERE key = ?", (body, key_of(7)))
    connection.close()
    assert reopened(path) == len(VALUES) - 1
    assert os.listdir(tmp_path) == ["cache.db"]
    assert not caplog.records


@pytest.mark.parametrize("data", [b"no database at all " * 1_000, "truncated", "header", "schema", "name", "page"])
def test_a_damaged_file_is_moved_aside(tmp_path, filled, data, caplog):
    """It stays readable beside; the run goes on with a new one, and says so."""
    spoilt = {
        "truncated": filled[: len(filled) // 2],
        "header": b"SQLitf" + filled[6:],
        "schema": filled.replace(b"CREATE TRIGGER entry_added", b"CREATE TRIGGER entry_addex"),
        "name": filled.replace(b"entry_added", b"entry_\xffdded", 1),
        "page": filled[:4_096] + bytes(4_096) + filled[8_192:],
    }.get(data, data)
    path = tmp_path / "cache.db"
    reopened(path, spoilt)
    assert sorted(os.listdir(tmp_path)) == ["cache.db", "cache.db.corrupt-1"]
    assert (tmp_path / "cache.db.corrupt-1").read_bytes() == spoilt
    (record,) = caplog.records
    assert record.name == "synmod.cache"
    assert "corrupt-1" in record.getMessage()
    caplog.clear()
    assert reopened(path) == len(VALUES)
    reopened(path, spoilt)
    assert "cache.db.corrupt-2" in os.listdir(tmp_path)


def test_a_newer_file_is_moved_aside(tmp_path, filled, caplog):
    """An older release does not write into what it cannot read."""
    path = tmp_path / "cache.db"
    path.write_bytes(filled)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    assert reopened(path) == 0
    assert "another format (3, not 2)" in caplog.text
    assert "cache.db.corrupt-1" in os.listdir(tmp_path)


FOREIGN = {
    "a trigger that refuses": ["CREATE TRIGGER no BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT, 'no'); END"],
    "a trigger that writes": ["CREATE TRIGGER p AFTER INSERT ON entry BEGIN UPDATE entry SET body = '{}'; END"],
    "a view": [
        "ALTER TABLE entry RENAME TO e",
        "CREATE VIEW entry AS WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT e.* FROM e, r",
    ],
    "another table": ["CREATE TABLE mine (x)"],
    "no table": ["DROP TABLE entry"],
    "no index": ["DROP INDEX entry_by_use"],
}  # fmt: skip


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_file_with_other_parts_than_ours_is_moved_aside(tmp_path, filled, statements):
    """Nothing in it runs: neither its triggers nor its views."""
    path = tmp_path / "cache.db"
    path.write_bytes(filled)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    assert reopened(path) == 0
    assert sorted(os.listdir(tmp_path)) == ["cache.db", "cache.db.corrupt-1"]


@pytest.mark.parametrize("change", ["DELETE FROM total", *(f"UPDATE total SET bytes = {n}" for n in (2**62, -(2**62)))])
def test_a_wrong_sum_of_sizes_is_counted_again(tmp_path, filled, change):
    """It makes the cache neither delete all that it holds nor grow without a limit."""
    path = tmp_path / "cache.db"
    path.write_bytes(filled)
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    assert reopened(path) == len(VALUES)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT bytes = (SELECT sum(size) FROM entry) FROM total").fetchone() == (1,)
    connection.close()


async def test_an_entry_of_the_future_is_too_old(tmp_path):
    """A clock that was set back makes no entry valid for ever."""
    path = tmp_path / "cache.db"
    cache = Cache(path, ttl_s=60)
    await cache.keep("k", {"x": 1})
    await cache.aclose()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entry SET made = made + 3600")
    connection.close()
    assert await cache.find("k") is None
    assert await Cache(path).find("k") == {"x": 1}
    await cache.aclose()


async def test_a_damaged_file_goes_aside_with_its_log_and_index(tmp_path, filled):
    """Another process still has all three open: what stayed would keep everyone from writing."""
    path = tmp_path / "cache.db"
    path.write_bytes(filled)
    other = Cache(path)
    await other.keep("k", {"x": 1})
    code = """
import asyncio
from synmod.cache import Cache
with open(sys.argv[1], "r+b") as file:  # not in this process, whose locks end when it closes the file
    file.seek(4_096)
    file.write(bytes(40_000))
cache = Cache(sys.argv[1])
print(asyncio.run(cache.keep("new", {"x": 2})), asyncio.run(cache.find("new")))
cache.close()
"""
    done = await asyncio.to_thread(subprocess.run, command(code, path), capture_output=True, text=True)
    assert done.stdout == "True {'x': 2}\n", done.stderr
    parts = {f"cache.db.corrupt-1{part}" for part in ("", "-wal", "-shm")}
    assert parts <= set(os.listdir(tmp_path))
    await other.aclose()


@pytest.mark.parametrize("part", ["cache.db", "cache.db-wal", "folder", "another"])
async def test_nothing_is_kept_in_files_that_were_removed(tmp_path, part):
    """Of a file that is not shared: the write is refused, with the system's words and the path."""
    folder = tmp_path / "folder"
    cache = Cache(folder / "cache.db", shared=False)
    assert await cache.keep("k", {"x": 1})
    if part == "folder":
        folder.rename(tmp_path / "elsewhere")
    elif part == "another":
        os.replace(folder / "cache.db", folder / "old.db")
        (folder / "cache.db").write_bytes(b"")
    else:
        (folder / part).unlink()
    assert not await cache.keep("l", {"x": 2})
    assert isinstance(cache.fault, OSError)
    assert str(folder / (part if part.startswith("cache") else "cache.db")) in str(cache.fault)
    cache.close()


def test_another_database_is_left_alone(tmp_path, caplog):
    """A path given by mistake: nothing of it is changed, the cache goes on in memory."""
    path = tmp_path / "cache.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    data = path.read_bytes()
    reopened(path)
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["cache.db"]
    assert "another database" in caplog.text


@pytest.mark.parametrize("place", ["file/cache.db", "folder", "/proc/cache.db"])
def test_an_unwritable_place_falls_back_to_memory(tmp_path, place, caplog):
    """Logged once; the run goes on."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    cache = Cache(tmp_path / place)

    async def main():
        await fill(cache)
        return await hits(cache)

    assert asyncio.run(main()) == len(VALUES)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "memory" in caplog.text
    cache.close()


@pytest.mark.parametrize("seed", range(12))
def test_damage_at_random_places_costs_entries_only(tmp_path, filled, seed):
    """Whatever bytes change: no error, and the next run finds everything again."""
    draw = random.Random(seed)
    data = bytearray(filled)
    for _ in range(draw.choice([1, 5, 50])):
        place = draw.choice([draw.randrange(len(data)), draw.randrange(120)])
        junk = draw.randbytes(draw.choice([1, 1, 100]))
        data[place : place + len(junk)] = junk
    path = tmp_path / "cache.db"
    reopened(path, bytes(data))
    assert reopened(path) == len(VALUES)


async def test_damage_under_way_costs_entries_only(tmp_path):
    """A read finds it, the file is moved aside, and the next entries are kept in a new one."""
    path = tmp_path / "cache.db"
    cache = Cache(path)
    await fill(cache)
    await cache.aclose()
    await cache.find("open")
    size = path.stat().st_size
    os.truncate(path, 4_096)
    with open(path, "r+b") as file:
        file.seek(0)
        file.write(bytes(200))
    assert size > 8_192
    assert await hits(cache) < len(VALUES)
    await fill(cache)
    assert await hits(cache) == len(VALUES)
    await cache.aclose()


async def test_a_locked_file_is_waited_for(tmp_path):
    """Another process in the middle of a write holds nobody up for good, and no read at all."""
    path = tmp_path / "cache.db"
    cache = Cache(path)
    await cache.keep("a", {"x": 1})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(cache.keep("b", {"x": 2}))
    await asyncio.sleep(0.01)
    assert await cache.find("a") == {"x": 1}
    assert not writing.done()
    other.execute("COMMIT")
    other.close()
    await writing
    assert await cache.find("b") == {"x": 2}
    await cache.aclose()


@pytest.mark.parametrize("read", [Cache.items, lambda cache: cache.pairs("a", "b")])
async def test_a_file_that_is_kept_busy_is_an_os_error(tmp_path, monkeypatch, read):
    """On a file system without WAL, a list of what is kept waits for the lock of a writer, but not for good."""
    monkeypatch.setattr("synmod.cache.database._use_wal", lambda connection: None)
    monkeypatch.setattr("synmod.cache.cache._READ_WAIT_S", 0.0)
    cache = Cache(tmp_path / "cache.db")
    await cache.keep("a", {"x": 1})
    other = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="locked"):
        read(cache)
    other.close()
    assert read(cache)
    await cache.aclose()


FULL = """
import asyncio, resource, sys
from synmod.cache import Cache
async def main(cache):
    await cache.keep("before", {"x": 1})
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    for n in range(20):
        await cache.keep(str(n), {"x": "x" * 10_000})
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await cache.keep("after", {"x": 2})
    assert await cache.find("before") == {"x": 1} and await cache.find("after") == {"x": 2}
    await cache.aclose()
asyncio.run(main(Cache(sys.argv[1])))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_costs_no_call(tmp_path):
    """What cannot be written is not kept, and logged; what was there before is still found."""
    done = subprocess.run(command(FULL, tmp_path / "cache.db"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Entries not kept: 1" in done.stderr


async def test_nothing_goes_where_there_is_no_limit(tmp_path):
    """`max_bytes=None` keeps every entry."""
    cache = Cache(tmp_path / "cache.db", max_bytes=None)
    for n in range(60):
        await cache.keep(f"k{n}", {"x": "x" * 20_000})
    await cache.aclose()
    assert [n for n in range(60) if await cache.find(f"k{n}") is None] == []
    await cache.aclose()


async def test_what_is_kept_at_once_is_one_commit(tmp_path):
    """A hundred entries that are kept at the same moment write a tenth of what they write one after the other."""
    together, alone = Cache(tmp_path / "together.db"), Cache(tmp_path / "alone.db")
    assert all(await asyncio.gather(*(together.keep(str(n), {"x": n}) for n in range(100))))
    for n in range(100):
        assert await alone.keep(str(n), {"x": n})
    written = [(tmp_path / f"{name}.db-wal").stat().st_size for name in ("together", "alone")]
    assert written[0] < written[1] / 10
    assert [await together.find(str(n)) for n in range(100)] == [{"x": n} for n in range(100)]
    await together.aclose()
    await alone.aclose()


async def test_a_cancelled_keep_leaves_no_other_waiting(tmp_path):
    """Whichever of several that wait for one commit is cancelled, the others are kept."""
    for victim in range(3):
        cache = Cache(tmp_path / f"{victim}.db")
        tasks = [asyncio.create_task(cache.keep(str(n), {"x": n})) for n in range(3)]
        await asyncio.sleep(0)
        tasks[victim].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result is True for result in done] == [n != victim for n in range(3)]
        await cache.aclose()


async def test_an_entry_that_is_there_is_found_while_the_file_is_closed(tmp_path):
    """A thread that closes the file does not make it empty: the file is opened again."""
    cache, is_closed, may_end = Cache(tmp_path / "cache.db", shared=False), threading.Event(), threading.Event()
    await cache.keep("k", {"v": 1})
    close_connections = cache._finalizer

    def close_slowly():
        close_connections()
        is_closed.set()
        may_end.wait(10)

    cache._finalizer = close_slowly
    thread = threading.Thread(target=cache.close)
    thread.start()
    await asyncio.to_thread(is_closed.wait, 10)
    finding = asyncio.create_task(cache.find("k"))
    await asyncio.sleep(0)
    may_end.set()
    assert await finding == {"v": 1}
    thread.join()
    cache.close()


READ_AND_CLOSE = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from synmod.cache import Cache

cache = Cache(sys.argv[1], shared=False)

async def fill():
    async with asyncio.TaskGroup() as group:
        for number in range(2_000):
            group.create_task(cache.keep(str(number), {"a": number, "b": {"c": number}}))

def read():
    for _ in range(40):
        assert len(cache.pairs("a", "b")) == len(cache.items()) == 2_000

asyncio.run(fill())
with ThreadPoolExecutor() as pool:
    readers = [pool.submit(read) for _ in range(2)]
    while not all(reader.done() for reader in readers):
        cache.close()
for reader in readers:
    reader.result()
"""


def test_a_file_is_not_closed_under_a_thread_that_reads(tmp_path):
    """SQLite would crash the process: the reading of a block that is cancelled goes on in its thread."""
    command = [sys.executable, "-c", READ_AND_CLOSE, tmp_path / "cache.db"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert child.returncode == 0, child.stderr
