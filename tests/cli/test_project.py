"""`synmod init` writes a project that works at once, offline and without installing it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import synmod as sm
from tests.cli.conftest import ask, served

ROOT = Path(__file__).parents[2]
ODD = ["demo", "My-Desk-2", "_x", "a", "Tickets" + "s" * 60]


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_a_new_project_works_at_once(name, tmp_path, synmod, monkeypatch):
    """Its tests, its training, run, eval and serve; every file of the page is there."""
    monkeypatch.chdir(tmp_path)
    status, out, _ = synmod("init", name)
    assert (status, out) == (0, "")
    project, package = tmp_path / name, name.replace("-", "_")
    monkeypatch.chdir(project)
    texts = [file.read_text("utf-8") for file in project.rglob("*") if file.is_file()]
    assert not any("PACKAGE" in text or "FOLDER" in text for text in texts)
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == name.strip("_")
    files = [
        "README.md",
        "AGENTS.md",
        "Dockerfile",
        ".gitignore",
        "train.py",
        "tests/test_program.py",
        "data/test.jsonl",
    ]
    assert all((project / file).is_file() for file in [*files, f"{package}/modules.py", f"{package}/program.py"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": ""}
    saved, imports = f"out/{package}.json", ("--import", f"{package}.modules")
    for arguments in (
        ["pytest", "-q"],
        ["train.py"],
        ["synmod", "run", saved, '{"text": "Where is my parcel?"}', *imports],
        ["synmod", "eval", saved, "data/test.jsonl", "--reward", "exact_match", *imports],
    ):
        command = [sys.executable, *(["-m"] if arguments[0] in ("pytest", "synmod") else []), *arguments]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert '"score": ' in done.stdout
    with served(saved, imports=f"{package}.modules", cwd=project, env=environment) as (address, _):
        assert ask(address, "/call", {"text": "Where is my parcel?"}) == (200, '{"team":"shipping"}')


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a/b",
        "a b",
        "1x",
        "é",
        "class",
        "match",
        "json",
        "tests",
        "data",
        "synmod",
        "Train",
        "-",
        "__",
        "x" * 300,
    ],
)
def test_a_bad_name_is_refused(name, tmp_path, synmod, monkeypatch):
    """What is no package name, a keyword, a module of Python's, or a name of the project's own; nothing is written."""
    monkeypatch.chdir(tmp_path)
    status, out, err = synmod("init", "--", name)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_holds_something_is_refused(tmp_path, synmod, monkeypatch):
    """Unless it is forced; files of other names stay."""
    monkeypatch.chdir(tmp_path)
    Path("desk").mkdir()
    Path("desk/mine.txt").write_text("mine")
    assert synmod("init", "desk")[0] == 2
    assert synmod("init", "desk", "--force")[0] == 0
    assert Path("desk/mine.txt").read_text() == "mine"
    Path("file").write_text("x")
    assert synmod("init", "file", "--force")[0] == 2


def test_the_page_for_coding_agents_is_one():
    """`docs/llms.txt` is `synmod/SKILL.md` without its head, and its code runs."""
    skill = (Path(sm.__file__).parent / "SKILL.md").read_text("utf-8")
    page = (ROOT / "docs" / "llms.txt").read_text("utf-8")
    assert skill.endswith("---\n" + page)
    code = page.partition("```python\n")[2].partition("```")[0]
    exec(code, {"__name__": "page"})
    assert page.count("\n10. ") == 2
