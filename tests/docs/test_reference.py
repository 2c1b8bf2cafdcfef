"""The reference has every public name, once, and every field of a record is described."""

import ast
import dataclasses
import itertools
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pydantic
import pytest

import synmod as sm

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "pages" / "reference").glob("*.md"))
NAMES = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)]
SHOWN = {name: pkgutil.resolve_name(name) for name in NAMES if ".fixtures." not in name}  # pytest imports those itself
OTHERS = [sm.Field]  # pydantic's
SOURCES = {
    node.name: node
    for file in Path(sm.__file__).parent.rglob("*.py")
    for node in ast.parse(file.read_text("utf-8")).body
    if isinstance(node, ast.ClassDef)
}
CLASSES = {name: each for name, each in SHOWN.items() if isinstance(each, type)}


def test_every_public_name_has_one_place():
    """Each name of `synmod` that is not a room is on a page, and nothing is on two."""
    public = {name: getattr(sm, name) for name in sm.__all__}
    shown = [id(each) for each in [*SHOWN.values(), *OTHERS]]
    rooms = {name for name, each in public.items() if isinstance(each, ModuleType)}
    assert sorted(name for name in public.keys() - rooms if id(public[name]) not in shown) == []
    assert len(set(shown)) == len(shown)


def fields_of(cls):
    """Return the fields of a record: a dataclass, a named tuple, or a data model."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return list(cls._fields)
    return list(cls.model_fields) if issubclass(cls, pydantic.BaseModel) else []


def described(cls):
    """Return the docstrings of a class and of those it derives from, and its fields with a docstring of their own."""
    bases = [base for base in cls.__mro__ if base.__name__ in SOURCES]
    text = " ".join(base.__doc__ or "" for base in bases)
    for body in (SOURCES[base.__name__].body for base in bases):
        for field, doc in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr):
                text += f" {ast.unparse(field.target)}"
    return text


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if fields_of(cls)])
def test_the_fields_of_a_record_are_described(name):
    """Each public field of a record is named by its docstring, or has one."""
    cls = CLASSES[name]
    public = [field for field in fields_of(cls) if not field.startswith("_")]
    text = described(cls)
    assert [field for field in public if not re.search(rf"\b{field}\b", text)] == []
