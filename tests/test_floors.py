"""The contracts on imports catch what they are there for."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLANTED = {
    "upward": ("tree/walk.py", "from synmod import blocks"),
    "circle": ("lm/words.py", "from . import prompt"),
    "library": ("train/bench.py", "import litellm"),
}


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_import_is_caught(planted, tmp_path):
    """An import upward, a circle in a room, a library outside its door."""
    pytest.importorskip("importlinter")
    file, line = PLANTED[planted]
    shutil.copytree(ROOT / "synmod", tmp_path / "synmod", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "synmod" / file).open("a") as end:
        end.write(f"\n{line}\n")
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout
    assert file.removesuffix(".py").replace("/", ".") in done.stdout
