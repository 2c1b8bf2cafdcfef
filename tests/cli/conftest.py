"""Saved programs, and the command in this process or in one of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import synmod as sm
from synmod.cli.main import main

ROOT = Path(__file__).parents[2]


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
