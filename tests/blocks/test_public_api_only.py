"""Blocks are written as a user would write them: they reach into nobody's private parts."""

import ast
from pathlib import Path

import pytest

import synmod.blocks

FILES = sorted(Path(synmod.blocks.__file__).parent.glob("*.py"))

OF_MODULE = {"graph_ignored", "_execution"}
"""What `Module` leaves to its subclasses to say."""


OF_NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}
"""Underscored so that they leave field names free; public all the same."""


def is_private(name):
    """One leading underscore: somebody's own."""
    return name.startswith("_") and not name.endswith("__") and name not in OF_NAMEDTUPLE


def is_own(target):
    """`self`, `cls` or `type(self)`."""
    if isinstance(target, ast.Call) and ast.unparse(target.func) == "type":
        target = target.args[0]
    return isinstance(target, ast.Name) and target.id in ("self", "cls")


def defined(tree):
    """The names that a file gives to attributes, methods and fields."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


OWN = {name for file in FILES for name in defined(ast.parse(file.read_text(encoding="utf-8")))} | OF_MODULE


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_friend_access(file):
    """Private attributes are those of the block itself; nothing private is imported from another room."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            assert is_own(node.value) and node.attr in OWN, f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            words = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            assert not any(map(is_private, words)), f"line {node.lineno}: {ast.unparse(node)}"
