"""The pictures that the README and the pages show are those that `plot` draws today."""

import importlib.util
from pathlib import Path

import synmod as sm

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "pages" / "assets"


def example(name):
    """Return the example of a name, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_desk_is_drawn_alike():
    """Drawn anew, in examples/, by: support_desk.desk.plot("../docs/pages/assets/desk.svg")."""
    drawn = example("support_desk").desk.plot(format="svg")
    assert drawn == (ASSETS / "desk.svg").read_text(encoding="utf-8")


def test_the_citations_are_drawn_alike():
    """Drawn anew by: python examples/skip_citations.py --plot docs/pages/assets/citations.svg."""
    drawn = sm.run(example("skip_citations").past_the_models).plot(format="svg")
    assert drawn == (ASSETS / "citations.svg").read_text(encoding="utf-8")
