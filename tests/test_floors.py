"""The contracts on imports catch what they are there for."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import synmod

ROOT = Path(__file__).parents[1]
PLANTED = {
    "floors: imports only point down": ("tree/walk.py", "from synmod import blocks"),
    "no circle of imports, in a room either": ("lm/words.py", "from . import prompt"),
    "each library has one door": ("train/bench.py", "import litellm"),
}


@pytest.mark.slow
@pytest.mark.parametrize("contract", PLANTED)
def test_a_planted_import_is_caught(contract, tmp_path):
    """An import upward, a circle in a room, a library outside its door."""
    pytest.importorskip("importlinter")
    file, line = PLANTED[contract]
    shutil.copytree(Path(synmod.__file__).parent, tmp_path / "synmod", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "synmod" / file).open("a") as end:
        end.write(f"\n{line}\n")
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{contract} BROKEN" in done.stdout
