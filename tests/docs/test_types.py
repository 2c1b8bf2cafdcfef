"""Every Python block of the README and the docs, and every example, satisfies pyright in basic mode, and mypy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import PAGES, ROOT, blocks_of


def page_as_module(page):
    """Return the blocks of a page as one module, each at its lines of the page."""
    lines: list[str] = []
    for line, code, _ in blocks_of(page):
        lines += [""] * (line - 1 - len(lines)) + code.splitlines()
    return "\n".join([*lines, ""])


def write_modules(folder):
    """Write each page and each example as a module of a folder."""
    for page in PAGES:
        name = page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "_").replace("-", "_")
        (folder / f"{name}.py").write_text(page_as_module(page), encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        (folder / example.name).write_text(example.read_text(encoding="utf-8"), encoding="utf-8")


@pytest.mark.slow
def test_blocks_and_examples_satisfy_mypy(tmp_path):
    """No error, so that the code of the README passes the other checker too."""
    pytest.importorskip("mypy")
    write_modules(tmp_path)
    allowed = [f"--disable-error-code={code}" for code in ("no-redef", "import-untyped", "import-not-found")]
    options = ["--python-version=3.11", "--follow-imports=silent", f"--cache-dir={tmp_path / 'cache'}", *allowed]
    command = [sys.executable, "-m", "mypy", *options, *sorted(map(str, tmp_path.glob("*.py")))]
    env = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout.replace(f"{tmp_path}/", "")


@pytest.mark.slow
def test_blocks_and_examples_satisfy_pyright(tmp_path):
    """No error in basic mode, so that what users copy is not underlined in their editors."""
    pytest.importorskip("pyright")
    write_modules(tmp_path)
    config = {"typeCheckingMode": "basic", "pythonVersion": "3.11", "extraPaths": [str(ROOT)]}
    config["reportRedeclaration"] = False  # the blocks of a page are programs of their own, each with its `main`
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout.replace(f"{Path(tmp_path)}/", "")
    assert "0 errors" in done.stdout
