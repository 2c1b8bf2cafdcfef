"""`synmod init`: a project that runs at once."""

from __future__ import annotations

import keyword
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from synmod.leaves import make_folder, write_atomic

_TEMPLATE: Final = Path(__file__).with_name("template")
_PAGE: Final = Path(__file__).parents[1] / "SKILL.md"
_OWN: Final = {"conftest", "data", "out", "runs", "synmod", "tests", "train"}
_LONGEST: Final = 100
_TAKEN: Final = _OWN | {*map(str.lower, sys.stdlib_module_names)}


@click.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Write into a folder that holds something.")
def init(name: str, force: bool) -> None:
    """Make the folder NAME with a project that runs: package, data, training, tests."""
    package, folder = name.replace("-", "_"), Path(name)
    is_name = package.isidentifier() and package.isascii() and package.strip("_") and len(name) <= _LONGEST
    if not is_name or keyword.iskeyword(package) or keyword.issoftkeyword(package):
        raise click.UsageError(f"{name!r:.100} is no name of a package: write letters, digits, dashes: my-desk.")
    if package.lower() in _TAKEN or getattr(find_spec(package), "origin", None):
        raise click.UsageError(f"{name!r} is the name of another module, or of a part of the project: choose another.")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not force)):
        raise click.UsageError(f"the folder {name!r} holds something: choose another name, or pass --force.")
    for file in _TEMPLATE.rglob("*.txt"):
        target = folder / str(file.relative_to(_TEMPLATE)).removesuffix(".txt").replace("PACKAGE", package)
        make_folder(target.parent)
        text = file.read_text("utf-8").replace("PACKAGE", package)
        write_atomic(target, text.replace("FOLDER", name.strip("-_")))  # a distribution begins and ends with a letter
    page = _PAGE.read_text("utf-8").partition("---\n")[2].partition("---\n")[2].lstrip()
    write_atomic(folder / "AGENTS.md", page)
    click.echo(f"synmod: made {name}; go on with: cd {name} && pytest && python train.py", err=True)
