"""Writes the golden files of the present format: `python -m tests.golden.rewrite`, from the root of the repository.

For intended changes of a format that is not released yet; the commit says what grew.
"""

import inspect
import json
from pathlib import Path

import synmod as sm
from synmod.saving import FORMAT, loads, save
from tests.golden.catalogue import CATALOGUE, plain

FOLDER = Path(__file__).parent


async def made(make):
    """A program of the catalogue, whose maker may be async."""
    program = make()
    return await program if inspect.isawaitable(program) else program


async def answer(text, inputs):
    """What a saved program answers."""
    return plain(await loads(text)(*inputs))


def rewrite(folder=None):
    """Write every file of the catalogue, and the recorded outputs."""
    folder = folder or FOLDER / str(FORMAT)
    outputs = {}
    for name, (make, inputs) in CATALOGUE.items():
        program = sm.run(made, make)
        path = save(program, folder / f"{name}.json")
        path.chmod(0o644)
        if inputs is not None:
            outputs[name] = sm.run(answer, path.read_text(), inputs)
    target = folder / "outputs" / "outputs.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(outputs, indent=2, ensure_ascii=False) + "\n")
    return folder


if __name__ == "__main__":
    print(f"written: {rewrite()}")
