"""Every Python block of the README and the docs, and every example, satisfies pyright in basic mode."""

import json
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


@pytest.mark.slow
def test_blocks_and_examples_satisfy_pyright(tmp_path):
    """No error in basic mode, so that what users copy is not underlined in their editors."""
    pytest.importorskip("pyright")
    for page in PAGES:
        name = page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "_").replace("-", "_")
        (tmp_path / f"{name}.py").write_text(page_as_module(page), encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        (tmp_path / example.name).write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    config = {"typeCheckingMode": "basic", "pythonVersion": "3.11", "extraPaths": [str(ROOT)]}
    config["reportRedeclaration"] = False  # the blocks of a page are programs of their own, each with its `main`
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout.replace(f"{Path(tmp_path)}/", "")
    assert "0 errors" in done.stdout
