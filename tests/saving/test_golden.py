"""Golden files: what any release has saved loads for ever, runs as it did, and in this format saves byte for byte."""

import json

import pytest

import synmod as sm
from synmod.registry import registered
from synmod.saving import FIRST_READERS, FORMAT, dumps, load
from tests.golden.catalogue import CATALOGUE, plain
from tests.golden.rewrite import FOLDER, made

FILES = sorted(FOLDER.glob("*/*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_golden_files_load_run_and_save(path):
    """Each loads and gives the recorded outputs; one of the present format is the very text that is saved again."""
    program = load(path)
    if path.parent.name == str(FORMAT):
        assert dumps(program) == path.read_text()
    outputs = json.loads((path.parent / "outputs" / "outputs.json").read_text())
    if path.stem in outputs:
        _, inputs = CATALOGUE[path.stem]
        assert plain(await program(*inputs)) == outputs[path.stem]


@pytest.mark.parametrize("name", CATALOGUE)
async def test_the_catalogue_still_writes_the_golden_text(name):
    """The program that a golden file was made of is saved as the same text today."""
    make, _ = CATALOGUE[name]
    path = FOLDER / str(FORMAT) / f"{name}.json"
    assert dumps(await made(make)) == path.read_text()


def test_every_public_module_is_in_a_golden_file():
    """None is forgotten."""
    saved = set()
    for path in FILES:
        saved |= {node["type"] for node in json.loads(path.read_text())["graph"]["nodes"]}
    public = {
        name
        for name, found in registered().items()
        if name.startswith("synmod>") and isinstance(found, type) and issubclass(found, sm.Module)
        if not found.__module__.startswith(("synmod.train", "synmod.optimizers", "synmod.testing"))  # not in programs
    }
    assert public - saved == set()


def test_every_format_names_its_first_reader():
    """A header says what to install."""
    assert list(FIRST_READERS) == list(range(1, FORMAT + 1))
