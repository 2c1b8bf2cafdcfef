"""The front door: every public name is there, sorted, documented, and cheap to reach."""

import enum
import inspect
import re
import subprocess
import sys
import tomllib
from functools import partial
from operator import attrgetter
from pathlib import Path

import pytest

import synmod as sm
from synmod.testing import RecordReplayLM

ROOT = Path(__file__).parents[1]
PUBLIC = {name: getattr(sm, name) for name in sm.__all__}
ERRORS = {name: x for name, x in PUBLIC.items() if isinstance(x, type) and issubclass(x, Exception)}
WORKING = {name: x for name, x in PUBLIC.items() if callable(x) and name not in ERRORS}
NOT_OURS = {"Field", "KeyPath"}  # pydantic's function, and an alias of a builtin type
RECORDS = {  # handed out, not constructed by users
    "Attempt",
    "BatchEndParam",
    "CallFrame",
    "CallRecord",
    "Citation",
    "EmbeddingReply",
    "EmbeddingRequest",
    "Emitted",
    "Failed",
    "History",
    "LMReply",
    "LMRequest",
    "Rollout",
    "State",
    "TokenLogprob",
    "VariableState",
    "Worth",
}


def test_the_names_are_sorted_and_reachable():
    """`__all__` is in order, without doubles; each name leads to something."""
    assert list(sm.__all__) == sorted(set(sm.__all__))
    assert set(sm.__all__) <= set(dir(sm))


def test_words_that_a_star_import_must_not_hide_stay_out():
    """`All, Any, Not, Path, Schema` are public, but not in `__all__`."""
    for name in ("All", "Any", "Not", "Path", "Schema"):
        assert name not in sm.__all__
        assert hasattr(sm, name)


def test_every_error_of_the_tree_is_exported():
    """Each class of `synmod.errors` is in its `__all__`, and each error is a public name of `synmod`."""
    from synmod import errors

    classes = {name for name, x in vars(errors).items() if isinstance(x, type) and x.__module__ == errors.__name__}
    assert classes == set(errors.__all__)
    assert classes - {"Problem", "SaveProblem", "SkipProblem"} <= set(sm.__all__)


def test_a_misspelt_name_is_guessed():
    """An AttributeError with 'Did you mean'."""
    with pytest.raises(AttributeError, match="Did you mean 'Generator'"):
        sm.Generater


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Layer", "Module"),
        ("load_model", "load"),
        ("StateGraph", "Program"),
        ("settings", "set_default_language_model"),
        ("Signature", "DataModel"),
        ("Dense", "Generator"),
        ("ReAct", "Agent"),
        ("Gepa", "optimizers.Gepa"),
        ("ExactMatch", "rewards.ExactMatch"),
        ("EarlyStopping", "callbacks.EarlyStopping"),
        ("stash", "skip.stash"),
        ("summary", "Program.summary"),
        ("fit", "Program.fit"),
        ("version", "__version__"),
    ],
)
def test_names_of_other_libraries_lead_to_ours(theirs, ours):
    """Those that newcomers write first."""
    with pytest.raises(AttributeError, match=f"no attribute '{theirs}'. Did you mean '{ours}'"):
        getattr(sm, theirs)
    assert attrgetter(ours)(sm)


def test_the_doubles_are_loaded_by_their_name():
    """They are no part of a program that serves."""
    assert run_alone("import synmod\ntry: synmod.testing\nexcept AttributeError as error: print(error)")[-4:] == [
        "`from", "synmod", "import", "testing`."
    ]  # fmt: skip


def parameters_of(thing):
    """The parameters that a user gives: those of a function, or of a constructor that the class itself defines."""
    if isinstance(thing, type):
        if issubclass(thing, sm.DataModel | enum.Enum) or getattr(thing, "_is_protocol", False):
            return []  # pydantic's fields, and members; Python's own constructor of protocols
        thing = vars(thing).get("__init__") or vars(thing).get("__new__")
    if not inspect.isfunction(thing):
        return []
    named = [p.name for p in inspect.signature(thing).parameters.values() if not p.name.startswith("_")]
    return [name for name in named if name not in ("self", "cls")]


@pytest.mark.parametrize("name", sorted(set(WORKING) - NOT_OURS))
def test_a_public_name_is_documented(name):
    """What it is; of what users call or construct also each argument, an example, and the source of the idea."""
    thing = PUBLIC[name]
    doc = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    assert doc, f"{name} has no docstring"
    named = [] if name in RECORDS else parameters_of(thing)
    missing = [parameter for parameter in named if parameter not in doc]
    assert not missing, f"{name}: the docstring does not speak of {missing}"
    if named:
        assert ">>>" in doc or "see `" in doc, f"{name}: no example"
        assert "Source:" in doc, f"{name}: no source of the idea"


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_a_public_error_is_documented_and_a_builtin(name):
    """One sentence, and a builtin that callers expect."""
    error = ERRORS[name]
    assert inspect.getdoc(error)
    assert error.__mro__[-2] is BaseException
    builtins = [base for base in error.__mro__ if base.__module__ == "builtins"]
    assert len(builtins) > 3 or name in ("SynmodError", "SynmodWarning")


def test_importing_loads_no_heavy_library():
    """No provider, validator, tree or event library, no template engine, no search for plug-ins of pydantic."""
    heavy = ("litellm", "jsonschema", "jsonschema_rs", "optree", "anyio", "jinja2", "trio", "email", "shutil", "html")
    code = f"import sys, synmod; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def run_alone(code):
    """What a new process prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_a_new_process_has_every_name_at_once():
    """A star import, `dir`, pickles and the registry have them without asking for one first."""
    pickled = "b'csynmod.blocks\\nGenerator\\n.'"
    code = (
        "from synmod import *; import pickle, synmod; print(Generator.__module__, {*synmod.__all__} <= {*dir(synmod)}, "
        f"pickle.loads({pickled}).__name__, 'synmod>Generator' in synmod.registered())"
    )
    assert run_alone(code) == ["synmod.blocks", "True", "Generator", "True"]


def test_what_comes_later_is_not_there():
    """No placeholder: an AttributeError, never silence."""
    for name in ("skippable",):
        assert not hasattr(sm, name)


def test_the_version_is_one_of_the_distribution():
    """`sm.__version__` is what the build writes into `synmod-lm`; no metadata is read for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    path = project["tool"]["hatch"]["version"]["path"].removeprefix("synmod/")
    source = (Path(sm.__file__).parent / path).read_text(encoding="utf-8")
    assert f'\n__version__ = "{sm.__version__}"' in source
    assert (project["project"]["name"], project["project"]["dynamic"]) == ("synmod-lm", ["version"])
    assert project["project"]["requires-python"] == ">=3.11"


def test_every_text_names_the_distribution():
    """`pip install synmod` would bring another project: `synmod-lm` is installed wherever a text has the command."""
    wrong = re.compile(r"pip install[^`\n]*?(?<![\w/.-])synmod(?!-lm)\b")
    folders = [Path(sm.__file__).parent, ROOT / "docs", ROOT / "examples", ROOT / "tests" / "benchmarks"]
    texts = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".md")]
    assert [path for path in (ROOT / "README.md", *texts) if wrong.search(path.read_text(encoding="utf-8"))] == []


READERS = {
    "load": sm.load,
    "load_variables": partial(sm.load_variables, sm.Identity()),
    "Run": sm.Run,
    "Image": sm.Image.from_path,
    "Cache": sm.Cache,
    "KeywordIndex": sm.KeywordIndex,
    "Recorder": sm.hooks_lib.Recorder,
    "CSVLogger": sm.callbacks.CSVLogger,
    "list_checkpoints": sm.list_checkpoints,
    "RecordReplayLM": RecordReplayLM,
}


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b", 3], ids=repr)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_cannot_be_a_path_is_named(read, path):
    """By whatever reads a file, or keeps a path for later."""
    with pytest.raises((sm.ArgumentError, sm.ConfigError)) as caught:
        read(path)
    assert repr(path) in str(caught.value)
