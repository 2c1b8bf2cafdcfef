"""Saved programs, and the command in this process or in one of its own."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

import synmod as sm
from synmod.cli.main import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """What the command sets in its process, the model of `--model` and where `--import` looks, ends with the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sm.set_default_language_model(None)


@sm.register(package="cli_tests")
class Ticket(sm.DataModel):
    """A ticket."""

    text: str


@sm.register(package="cli_tests")
class Decision(sm.DataModel):
    """A team."""

    team: str


@sm.register(package="cli_tests")
def fail(inputs: Ticket) -> Ticket:
    """Raise for some texts."""
    if "fail" in inputs["text"]:
        raise ValueError("no\nluck")
    return Ticket(text=inputs["text"])


def make_desk():
    """A program that answers by the nearest example, offline."""
    examples = [{"inputs": {"text": "parcel"}, "outputs": {"team": "shipping"}}]
    decide = sm.Generator(Decision, examples=examples, language_model="embedded/nearest")
    return sm.Sequential({"ticket": sm.Input(Ticket), "check": sm.Lambda(fail), "decide": decide}, name="desk")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with `desk.json` and rows."""
    monkeypatch.chdir(tmp_path)
    make_desk().save("desk.json")
    rows = [{"text": f"parcel {n}", "team": "shipping"} for n in range(5)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def synmod(monkeypatch, capfdbinary):
    """Runs the command in this process; returns its status, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["synmod", *arguments])
        monkeypatch.setattr(sys, "path", [*sys.path])
        with pytest.raises(SystemExit) as end:
            main()
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return end.value.code, out.decode(), err.decode()

    return run


def start(*arguments, **options):
    """Start the command in a process of its own."""
    command = [sys.executable, "-m", "synmod", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **{**pipes, **options})


# -- servers in a process of their own ---------------------------------------------------------------------------------

HOSTILE = "<img src=x onerror=alert(1)>"
MODULE = """
import asyncio, synmod as sm
@sm.register(package="shop")
class Ticket(sm.DataModel):
    text: str
@sm.register(package="shop")
async def wait(inputs: Ticket) -> Ticket:
    await asyncio.sleep(float(inputs["text"]))
    return Ticket(text=inputs["text"])
@sm.register(package="shop")
async def handle(inputs: Ticket) -> Ticket:
    sent = await sm.ask("Send it?", inputs)
    return Ticket(text=f"{inputs['text']} {sent}")
@sm.register(package="shop")
async def twice(inputs: Ticket) -> Ticket:
    first, second = [await sm.ask(question, inputs, answer=str) for question in ("What?", "Why?")]
    return Ticket(text=f"{inputs['text']} {first} {second}")
@sm.register(package="shop")
class Work(sm.Module):
    def __init__(self, writer, **options):
        super().__init__(**options)
        self.writer = writer
    async def call(self, inputs: Ticket) -> Ticket:
        words = []
        for step in range(8):
            await asyncio.sleep(0.05)
            words.append((await self.writer(Ticket(text=f"{inputs['text']} {step}")))["word"])
        return Ticket(text=" ".join(words))
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with programs that wait, echo, ask a person, answer by examples, and work in steps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SYNMOD_TOKEN", raising=False)
    Path("shop.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    sys.modules.pop("shop", None)
    shop = importlib.import_module("shop")
    examples = [{"inputs": {"text": "hostile"}, "outputs": {"answer": HOSTILE}}]
    answer = sm.Generator({"answer": str}, examples=examples, language_model="embedded/nearest")
    words = [{"inputs": {"text": f"{n} {m}"}, "outputs": {"word": f"{n}.{m}"}} for n in range(40) for m in range(8)]
    work = shop.Work(sm.Generator({"word": str}, examples=words, language_model="embedded/nearest"))
    parts = {"wait": sm.Lambda(shop.wait), "echo": sm.Identity(), "clerk": sm.Lambda(shop.handle), "answer": answer}
    parts |= {"twice": sm.Lambda(shop.twice), "work": work}
    for name, part in parts.items():
        sm.Sequential([sm.Input(shop.Ticket), part], name=name).save(f"{name}.json")
    yield
    sys.modules.pop("shop")


@contextmanager
def served(*arguments, imports="shop", **options):
    """Run `synmod serve`; yield its address and the process."""
    process = start("serve", *arguments, "--port", "0", "--import", imports, **options)
    try:
        line = process.stderr.readline().decode()
        yield re.search(r"http://\S+", line)[0], process
    finally:
        process.kill()
        process.communicate()


def ask(address, path, body=None, **headers):
    """Send a request; return the status and the body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
