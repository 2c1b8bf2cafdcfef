"""Every example in a docstring runs as it stands, offline."""

import doctest
import importlib
import pkgutil

import pytest

import synmod

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(synmod.__path__, "synmod.") if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_file_run(name, tmp_path, monkeypatch):
    """Each example runs with `sm` and the names of its file."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    printed = []
    for test in finder.find(module, name, globs={**vars(module), "sm": synmod}):
        runner.run(test, out=printed.append)
    assert runner.failures == 0, "".join(printed)
