"""show, run, eval, fit, diff: what they print, and every mistake as one line with the fix and its status."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import synmod as sm
from tests.cli.conftest import ROOT, make_desk, start


def test_run_prints_the_outputs(folder, synmod):
    """As JSON on standard output, nothing else."""
    assert synmod("run", "desk.json", '{"text": "my parcel"}') == (0, '{"team": "shipping"}\n', "")


def save_echo():
    """Save a program of no class of ours, which returns its input."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    sm.Sequential([sm.Input(schema), sm.Identity()]).save("e.json")


@pytest.mark.parametrize("way", ["argument", "standard input", "rows"])
def test_text_is_utf_8_whatever_the_locale(folder, way):
    """In arguments, on standard input and in files; and on standard output."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    save_echo()
    text = '{"text": "grün ✓"}'
    Path("rows.jsonl").write_text(text, "utf-8")
    arguments = {"argument": [text], "standard input": ["-"], "rows": ["--rows", "rows.jsonl"]}
    process = start("run", "e.json", *arguments[way], env=environment)
    out, err = process.communicate(text.encode())
    outputs = {"text": "grün ✓"}
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out.decode()) == ({"outputs": outputs} if way == "rows" else outputs)


def test_run_streams_to_standard_error(folder, synmod):
    """The outputs stay alone on standard output."""
    status, out, err = synmod("run", "desk.json", '{"text": "x"}', "--stream")
    assert (status, out) == (0, '{"team": "shipping"}\n')
    assert '{"team"' in err


def test_run_writes_a_trace(folder, synmod):
    """A page with all calls, also where the program fails."""
    assert synmod("run", "desk.json", '{"text": "fail"}', "--trace", "t.html")[0] == 1
    assert "desk" in Path("t.html").read_text()


def test_run_rows(folder, synmod):
    """One line per row, in order, targets ignored; a failed row is a line, too, and the status is 1."""
    Path("rows.jsonl").write_text('{"text": "a"}\n{"text": "fail"}\n{"text": "b", "team": "x"}\n')
    status, out, err = synmod("run", "desk.json", "--rows", "rows.jsonl", "--out", "out.jsonl")
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [*lines[0]] == ["outputs"]
    assert lines[1] == {"error": {"type": "ValueError", "message": "no\nluck"}}
    assert (status, out) == (1, "")
    assert "1 of 3 rows failed" in err
    status, out, err = synmod("run", "desk.json", "--rows", "rows.jsonl", "--run", "runs/a")
    assert [json.loads(line) for line in out.splitlines()] == lines
    assert Path("runs/a/journal.db").exists()


def test_set_and_model(folder, synmod):
    """A Variable for this run; a text needs no quotes."""
    examples = '[{"inputs": {"text": "x"}, "outputs": {"team": "billing"}}]'
    out = synmod(
        "run", "desk.json", '{"text": "x"}', "--set", f"decide/examples={examples}", "--set", "decide/instructions=Go"
    )
    assert out == (0, '{"team": "billing"}\n', "")
    status, out, err = synmod("run", "desk.json", '{"text": "x"}', "--model", "embedded/rules")
    assert status in (0, 1)
    assert "Traceback" not in err


@pytest.mark.filterwarnings("ignore:evaluate")
def test_eval(folder, synmod):
    """Score, and the comparison with another program; worse for certain is a status of 1."""
    status, out, err = synmod("eval", "desk.json", "rows.jsonl", "--reward", "exact_match", "--csv", "all.csv")
    assert (status, err) == (0, "")
    assert (status, json.loads(out)["score"]) == (0, 1.0)
    assert len(Path("all.csv").read_text().splitlines()) == 6
    worse = make_desk()
    sm.update(worse, {"decide/examples": [{"inputs": {"text": "x"}, "outputs": {"team": "billing"}}]})
    worse.save("worse.json")
    arguments = ("rows.jsonl", "--reward", "exact_match", "--against")
    status, out, _ = synmod("eval", "worse.json", *arguments, "desk.json")
    assert (status, json.loads(out)["comparison"]["difference"]) == (1, -1.0)
    assert synmod("eval", "desk.json", *arguments, "worse.json")[0] == 0
    assert synmod("eval", "desk.json", *arguments, "desk.json")[0] == 0


def test_fit(folder, synmod):
    """The trained program is saved; the run goes on where it stopped."""
    line = (
        "fit",
        "desk.json",
        "rows.jsonl",
        "--reward",
        "exact_match",
        "--budget",
        "40",
        "--run",
        "r",
        "--out",
        "new.json",
    )
    assert synmod(*line, "--optimizer", "RandomFewShot")[0] == 0
    assert sm.load("new.json")
    assert synmod(*line)[0] == 0


def test_diff(folder, synmod):
    """0 for equal, 1 for different, 2 for what cannot be read."""
    assert synmod("diff", "desk.json", "desk.json") == (0, "{}\n", "")
    other = make_desk()
    sm.update(other, {"decide/instructions": "Other."})
    other.save("other.json")
    status, out, _ = synmod("diff", "desk.json", "other.json")
    assert status == 1
    assert json.loads(out)["decide/instructions"]["new"] == "Other."
    Path("bad.json").write_text("[]")
    for bad in ("bad.json", "none.json", "rows.jsonl", "."):
        status, out, err = synmod("diff", "desk.json", bad)
        assert (status, out) == (2, "")
        assert bad in err


@pytest.mark.parametrize("kind", ["text", "json", "mermaid", "svg"])
def test_show(folder, synmod, kind):
    """The parts, and what the program needs."""
    status, out, _ = synmod("show", "desk.json", "--format", kind)
    assert status == 0
    assert "decide" in out
    if kind == "text":
        assert max(map(len, out.splitlines())) <= 80
    if kind == "json":
        shown = json.loads(out)
        assert shown["inputs"]["required"] == ["text"]
        assert shown["outputs"]["required"] == ["team"]
        assert shown["models"] == {"embedded/nearest": "embedded/nearest"}
        assert shown["classes"] == ["cli_tests>Decision", "cli_tests>fail"]


MISTAKES = {
    "": (2, "Usage"),
    "rum": (2, "Did you mean 'run'"),
    "run": (2, "Missing argument"),
    "run none.json {}": (2, "none.json"),
    "run desk.json": (2, "--rows FILE"),
    "run desk.json {} --rows rows.jsonl": (2, "--rows FILE"),
    "run desk.json {} --out x.jsonl": (2, "--out is for --rows"),
    "run desk.json {text:x}": (2, "not JSON"),
    "run desk.json {}": (1, "text"),
    'run pair.json {"txt":"a"}': (1, """wanted the key 'text', got {"txt": "a"}; the whole: wanted the key 'n'"""),
    "run desk.json [] --debugg": (2, "--debug"),
    'run desk.json {"text":"fail"}': (1, "ValueError: no luck ("),
    "run rows.jsonl {}": (1, "rows.jsonl"),
    "run desk.json {} --import nowhere": (2, "no such module"),
    "run desk.json {} --import nowhere.deeper": (2, "no such module"),
    "run desk.json {} --import ": (2, "no such module"),
    "run desk.json {} --import .desk": (2, "no such module"),
    "run desk.json {} --model gpt": (2, "--model"),
    "run desk.json {} --set decide/instrctions=x": (2, "Did you mean 'decide/instructions'"),
    "run desk.json {} --set decide/examples=x": (2, "not JSON"),
    "run desk.json {} --set decide/examples=1": (1, "decide/examples"),
    "run desk.json --rows none.jsonl": (2, "none.jsonl"),
    "eval desk.json rows.jsonl --reward exact": (2, "exact_match"),
    "fit desk.json rows.jsonl --reward exact_match": (2, "--out"),
    "fit desk.json rows.jsonl --reward exact_match --out x.json --optimizer Gepo": (2, "gepa"),
    "serve": (2, "Missing argument"),
    "run desk.json --rows rows.jsonl --stream": (2, "--stream is for one input"),
    "serve none.json": (2, "none.json"),
    "serve desk.json --host 0.0.0.0": (2, "SYNMOD_TOKEN"),
    "serve desk.json --port 99999": (2, "99999"),
    "serve desk.json --budget calls": (2, "calls=10"),
    "serve desk.json --budget cals=1": (2, "Did you mean 'calls'"),
    "serve desk.json --budget calls=-1": (2, "at least 0"),
    "serve desk.json --allow-host *": (2, "without patterns"),
    "serve a.b=desk.json": (2, "letters, digits"),
    "mcp a.b=desk.json": (2, "letters, digits"),
    "serve a=desk.json b=none.json": (2, "none.json"),
    "mcp none.json": (2, "none.json"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_with_the_fix(folder, synmod, line, monkeypatch):
    """On standard error, without a traceback; 1 for the program and its data, 2 for usage."""
    monkeypatch.delenv("SYNMOD_TOKEN", raising=False)
    sm.Sequential([sm.Input({"type": "object", "required": ["text", "n"]}), sm.Identity()]).save("pair.json")
    status, out, err = synmod(*line.split(" ")) if line else synmod()
    wanted, text = MISTAKES[line]
    assert (status, out) == (wanted, "")
    assert text in err
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1 or not line


def test_a_failure_names_the_line_of_the_users_module(folder, synmod):
    """`--debug` shows all."""
    _, _, err = synmod("run", "desk.json", '{"text": "fail"}')
    assert "conftest.py:" in err
    process = start("run", "desk.json", '{"text": "x"}', "--debug")
    _, err = process.communicate()
    assert process.returncode == 1
    assert b"Traceback" in err


@pytest.mark.slow
@pytest.mark.parametrize("lines", [0, 1])
def test_a_reader_that_closes_the_pipe(folder, lines):
    """`synmod ... | head` ends quietly, whether nothing was read or a part."""
    save_echo()
    Path("rows.jsonl").write_text('{"text": "a text"}\n' * 3_000)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = start("run", "e.json", "--rows", "rows.jsonl", env=environment)
    for _ in range(lines):
        assert process.stdout.readline() == b'{"outputs": {"text": "a text"}}\n'
    process.stdout.close()
    assert process.communicate()[1] == b""
    assert process.returncode == 1


ASK = """
import synmod as sm
@sm.register(package="asker")
async def ask(inputs: sm.JsonDataModel) -> sm.JsonDataModel:
    answers = [await sm.ask("Sure?"), await sm.ask("Why?", answer=str)]
    return sm.JsonDataModel({"answers": answers}, schema={"type": "object"})
"""


def ask_program():
    """Save a program that asks two questions, and the module that it needs."""
    Path("asker.py").write_text(ASK)
    code = (
        "import synmod as sm, asker; sm.Sequential([sm.Input({'type': 'object'}), sm.Lambda(asker.ask)]).save('a.json')"
    )
    subprocess.run([os.sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": f"{ROOT}:."})


@pytest.mark.slow
def test_questions_are_asked_on_the_terminal(folder):
    """One after the other, on standard error; the outputs stay alone on standard output."""
    ask_program()
    ours, terminal = os.openpty()
    process = start("run", "a.json", "{}", "--import", "asker", stdin=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    for question, answer in ((b"Sure?", b"true\n"), (b"Why?", "so ✓\n".encode())):
        while question not in shown:
            shown += os.read(ours, 1_000)
        os.write(ours, answer)
    out = process.communicate()[0].decode()
    os.close(ours)
    assert (process.returncode, json.loads(out)) == (0, {"answers": [True, "so ✓"]})


@pytest.mark.slow
def test_without_a_terminal_the_question_is_shown_with_the_line_that_answers_it(folder):
    """Also where standard input is closed."""
    ask_program()
    line = f"exec {os.sys.executable} -m synmod run a.json {{}} --import asker <&-"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "'Sure?': add --run DIR, and this line shows the command that answers it" in done.stderr


def test_the_command_is_light():
    """`import synmod` imports neither starlette nor click."""
    code = (
        "import sys, synmod; print([name for name in ('starlette', 'click', 'uvicorn', 'mcp') if name in sys.modules])"
    )
    out = subprocess.run([os.sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
