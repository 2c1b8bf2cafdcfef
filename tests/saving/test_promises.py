"""The promises S1, S6 and S7, counted: what a load touches, and what it costs."""

import contextlib
import json
import subprocess
import sys
import time
import tracemalloc

import pytest

import synmod as sm
from synmod.saving import dumps, load, loads
from tests.saving.hostile import document, minimal, places, sections_of
from tests.saving.programs import Answer, Explain, Keep

FORBIDDEN = (
    "import", "compile", "exec", "marshal", "pickle", "socket", "subprocess", "os.system", "os.exec", "os.fork",
    "os.spawn", "os.posix_spawn", "os.putenv", "os.remove", "os.rename", "os.mkdir", "os.listdir", "os.scandir",
    "ctypes", "shutil", "tempfile", "urllib", "ftplib", "smtplib", "glob", "code.__new__", "function.__new__",
)  # fmt: skip

_SEEN = []
_WATCHING = []


def _watch(event, args):
    if _WATCHING:
        _SEEN.append((event, args))


sys.addaudithook(_watch)


@contextlib.contextmanager
def watched():
    """Collects the audit events of a block."""
    _SEEN.clear()
    _WATCHING.append(True)
    try:
        yield _SEEN
    finally:
        _WATCHING.pop()


def touched(events):
    """The events that a load may not cause, and how many files were opened."""
    bad = [event for event in events if event[0].startswith(FORBIDDEN)]
    return bad, sum(event == "open" for event, _ in events)


def published_attacks():
    """One document for each way in which loaders of other projects were broken."""
    config = ("graph__nodes__0__config__thing",)
    values = [
        {"function": "os>system"},  # CVE-2024-3660, CVE-2025-1550: functions by name
        {"class": "subprocess>Popen"},
        {"function": "keras.utils>get_file"},  # CVE-2025-8747
        {"json": {"lc": 1, "type": "secret", "id": ["AWS_SECRET_ACCESS_KEY"]}},  # CVE-2025-68664
        {"json": {"lc": 2, "type": "constructor", "id": ["langchain", "x"], "kwargs": {}}},  # CVE-2025-64439
        {"json": {"py/object": "os.system", "py/reduce": ["x"]}},
        {"json": {"module": "builtins", "class_name": "eval", "config": {}, "registered_name": "eval"}},
        {"json": "/etc/passwd"},  # CVE-2025-12058: a path from the config
        {"json": "file:///etc/passwd"},
        {"json": "{{ ''.__class__.__mro__[1].__subclasses__() }}"},
        {"json": "{x.__init__.__globals__}"},
        {"class": "keras>Lambda"},  # CVE-2025-9905
        {"tree": {"type": "builtins>type", "children": [], "config": {"json": None}}},
        {"language_model": "http://evil.example"},
    ]
    documents = [document(minimal(**{config[0]: value})) for value in values]
    documents += [
        document(minimal(graph__nodes__0__type=name)) for name in ("os>system", "builtins>eval", "torch>load")
    ]
    text = dumps(Keep(sm.LanguageModel("openai/x")))
    for field, value in (("api_base", "http://127.0.0.1:9/v1"), ("model", "openai/x@http://127.0.0.1:9")):
        sections = sections_of(text)
        sections["language_models"]["openai/x"][field] = value  # CVE-2024-6587
        documents.append(document(sections))
    for schema in ({"$ref": "http://127.0.0.1:9/x"}, {"$ref": "file:///etc/passwd"}, {"$id": "http://127.0.0.1:9/"}):
        documents.append(document(minimal(data_models=[{"schema": {"type": "object", "properties": {"a": schema}}}])))
    return documents


def generated():
    """Documents with one place each changed."""
    sections = sections_of(dumps([Explain("x"), Keep([Answer, {1: Answer(answer="a")}, sm.LanguageModel("openai/x")])]))
    pool = [None, {"function": "os>system"}, {"node": 0}, "os.system", {"class": "os>x"}, 3, [], {}]
    for number, place in enumerate(places(sections)):
        if not place or len(place) < 3:
            continue
        changed = json.loads(json.dumps(sections))
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = pool[number % len(pool)]
        yield document(changed)


def test_s1_loading_touches_nothing(tmp_path):
    """S1: around a second load, whatever the bytes: no import, one file, no socket, no process, no code compiled."""
    documents = [*published_attacks(), *generated(), dumps(Explain()), dumps(Keep(Answer))]
    for number, text in enumerate(documents):
        for _ in range(2):
            with watched() as events, contextlib.suppress(sm.LoadError):
                loads(text)
            seen = list(events)
        assert touched(seen) == ([], 0), text
        if number % 10 == 0:
            path = tmp_path / "x.json"
            path.write_text(text)
            with watched() as events, contextlib.suppress(sm.LoadError):
                load(path)
            assert touched(list(events)) == ([], 1), text


def test_s2_the_package_holds_no_way_to_code():
    """S2: no import by name, no pickle, marshal, eval or exec in what loads."""
    import ast
    import pathlib

    rooms = ("saving", "tree", "data", "flow", "module", "blocks", "program", "lm", "scope", "leaves")
    root = pathlib.Path(sm.__file__).parent
    for room in rooms:
        for file in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    assert not {"pickle", "marshal", "shelve", "imp"} & {name.name for name in node.names}, file
                    assert not {"importlib", "runpy"} & {name.name for name in node.names} or room == "lm", file
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert node.func.id not in ("eval", "exec", "compile", "__import__"), file


def test_s6_a_listening_server_sees_nothing():
    """S6: endpoints from a file are refused; not even a name is looked up."""
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(0.2)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        text = dumps(Keep(sm.LanguageModel("openai/x")))
        for field, value in (("api_base", address), ("model", f"openai/{address}"), ("supply", [address])):
            sections = sections_of(text)
            sections["language_models"]["openai/x"][field] = value
            with pytest.raises(sm.FormatError):
                loads(document(sections))
        with pytest.raises(TimeoutError):
            server.accept()


SIZE = 4 * 2**20

HEAVY = {
    "openers": "[" * SIZE,
    "closed": "[" * (SIZE // 2) + "]" * (SIZE // 2),
    "empties": "[" + "[]," * (SIZE // 3) + "1]",
    "pairs": "[]" * (SIZE // 2),
    "commas": "," * SIZE,
    "quotes": '"' * SIZE,
    "backslashes": '"' + "\\" * SIZE + '"',
    "numbers": "[" + "1," * (SIZE // 2) + "1]",
    "digits": "1" * SIZE,
    "fraction": "1." + "1" * SIZE,
    "exponent": "1e" + "1" * SIZE,
    "keys": "{" + ",".join(f'"{n}":0' for n in range(SIZE // 12)) + "}",
    "same key": '{"header":{' + ",".join(['"a":0'] * (SIZE // 8)) + "}}",
    "wide text": '{"header": "' + "\U0001f600" * (SIZE // 4) + '"}',
    "slashes": document(minimal(state={"a/" * (SIZE // 2): 1})),
    "objects": '{"header":[' + '{"":{}},' * (SIZE // 16) + "1]}",
    "few objects": '{"header":[' + '{"":{}},' * (SIZE // 24) + "1]}",
    "listed objects": "[" + '{"":{}},' * (SIZE // 16) + "1]",
    "spaces": " " * SIZE,
    "empty strings": "[" + '"",' * (SIZE // 3) + "1]",
    "strings alone": '""' * (SIZE // 2),
    "short keys": "{" + '"a":1,' * (SIZE // 6) + '"b":1}',
    "nested keys": '{"a":' * (SIZE // 5),
    "escaped strings": "[" + r'"\\",' * (SIZE // 7) + "1]",
    "escaped quotes": "[" + r'"\"",' * (SIZE // 7) + "1]",
}


@pytest.mark.parametrize("name", HEAVY)
def test_s7_refusal_is_quick(name):
    """S7: within a second (three on a busy machine), whatever fills the file."""
    start = time.process_time()
    with pytest.raises(sm.LoadError):
        loads(HEAVY[name])
    assert time.process_time() - start < 3


@pytest.mark.parametrize("name", ["empty strings", "strings alone", "short keys", "nested keys", "escaped strings"])
def test_s7_refusal_takes_little_memory(name):
    """S7: a text that is refused is never taken apart as a whole."""
    text = HEAVY[name].encode()
    tracemalloc.start()
    try:
        with pytest.raises(sm.FormatError):
            loads(text)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(text)
    finally:
        tracemalloc.stop()


def packed(sections):
    """The text of a document without spaces."""
    header = {"synmod": "0.1.0", "format": 1, "kind": "program"}
    return json.dumps({"header": header, **sections}, separators=(",", ":"))


RECORD = minimal()["graph"]["nodes"][0]
VARIABLE = {"type": "synmod>Param", "schema": {}, "trainable": True}

CROWDS = {
    "state paths": lambda size: packed(minimal(state={f"w{number}": 0 for number in range(3 * size)})),
    "unreached nodes": lambda size: packed(minimal(graph__nodes=[RECORD] * (size // 5))),
    "variables": lambda size: packed(
        minimal(
            graph__nodes=[
                {**RECORD, "attributes": {f"a{number}": {"variable": number} for number in range(size // 5)}}
            ],
            graph__variables=[VARIABLE] * (size // 5),
            state={f"b{number}": {} for number in range(size // 5)},
        )
    ),
    "terms": lambda size: packed(
        minimal(graph__nodes__0__config__thing={"list": [{"list": []}] * size + [{"bad": 1}]})
    ),
}
"""Many small records of one kind, refused only after the check of all of them."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CROWDS)
def test_s7_crowds_are_refused_quickly(name):
    """S7: within a second (three on a busy machine), also where only the last of many records is wrong."""
    text = CROWDS[name](60_000)
    start = time.process_time()
    with pytest.raises(sm.LoadError):
        loads(text)
    assert time.process_time() - start < 3


@pytest.mark.slow
def test_s7_a_graph_whose_paths_would_outgrow_the_file():
    """State paths are looked up in the graph, never listed from it."""
    depth, name = 3_000, "n" * 1_000
    sections = minimal()
    record = sections["graph"]["nodes"][0]
    variable = {"type": "synmod>Param", "schema": {}, "trainable": True}
    sections["graph"]["nodes"] = [
        {**record, "attributes": {"v": {"variable": number}, name: {"node": number + 1}}} for number in range(depth)
    ]
    sections["graph"]["nodes"].append(record)
    sections["graph"]["variables"] = [variable] * depth
    for state in ({}, {"v": 1}, {f"x{number}": 1 for number in range(depth)}):
        text = document(sections | {"state": state})
        start = time.process_time()
        with pytest.raises(sm.LoadError):
            loads(text)
        assert time.process_time() - start < 3


@pytest.mark.slow
def test_s7_large_programs_of_honest_people_come_back():
    """Ten thousand Variables and a value of some megabytes; the limits are far from them."""
    rows = [{"question": f"q{number}", "scores": [number, 0.5, True]} for number in range(20_000)]
    program = Keep([sm.Param(f"text {number}") for number in range(10_000)], sm.Param(rows))
    limits = sm.FileLimits(max_values=500_000)
    text = dumps(program, limits=limits)
    assert dumps(loads(text, limits=limits), limits=limits) == text


def test_s7_thousands_of_generators_have_room():
    """The default limits take 4,000 Generators; a caller may raise them, a file cannot."""
    text = dumps([sm.Generator(Answer, instructions=f"Answer {number}.") for number in range(100)])
    values = text.count(",") + text.count("[") + text.count("{")
    assert values * 40 < sm.FileLimits().max_values
    with pytest.raises(sm.FormatError, match="max_values is 1,000"):
        loads(text, limits=sm.FileLimits(max_values=1_000))
    assert loads(text)[99].instructions.value == "Answer 99."


def test_s7_a_schema_that_costs_too_much_is_refused_alone():
    """Each schema passes the complexity budget of data by itself."""
    wide = {"type": "object", "properties": {f"f{n}": {"anyOf": [{"type": "string"}] * 40} for n in range(400)}}
    start = time.process_time()
    with pytest.raises(sm.LoadError) as caught:
        loads(document(minimal(data_models=[{"schema": wide}])))
    assert isinstance(caught.value.__cause__, sm.SchemaTooComplex)
    assert caught.value.where == "/data_models/0/schema"
    assert time.process_time() - start < 3


MEMORY = """
import os, resource, sys
import synmod as sm
from synmod.saving import loads, dumps
from tests.saving.programs import Keep

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

loads(dumps(Keep(1)))
before = peak()  # it only grows: the documents come in the order of their size, and the room for each grows too
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    try:
        loads(data)
    except sm.LoadError:
        pass
    took, allowed = peak() - before, 64 * 2**20 + 10 * len(data)
    if took > allowed:
        sys.exit(f"{path}: {took:,} of {allowed:,}")
"""


@pytest.mark.slow
def test_s7_memory(tmp_path):
    """S7: at most 64 MiB plus ten times the file."""
    paths = []
    texts = HEAVY | {name: make(100_000) for name, make in CROWDS.items()}
    for name in sorted(texts, key=lambda name: len(texts[name].encode())):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(texts[name])
    run = subprocess.run([sys.executable, "-c", MEMORY, *paths], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
