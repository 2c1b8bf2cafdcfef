"""The picture that the README shows is the one that `plot` draws today."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_committed_picture_is_drawn_alike():
    """Drawn anew by: python examples/support_desk.py --plot docs/pages/assets/desk.svg."""
    spec = importlib.util.spec_from_file_location("support_desk", ROOT / "examples" / "support_desk.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    committed = (ROOT / "docs" / "pages" / "assets" / "desk.svg").read_text(encoding="utf-8")
    assert example.desk.plot(format="svg") == committed
