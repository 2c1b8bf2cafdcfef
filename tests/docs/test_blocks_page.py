"""The page on blocks has a runnable example of each of them."""

import re
from pathlib import Path

import synmod as sm

PAGE = (Path(__file__).parents[2] / "docs" / "pages" / "ideas" / "blocks.md").read_text(encoding="utf-8")


def test_every_block_is_in_an_example():
    """Called, not only named; what a block gives, such as `Thinking`, is no block."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    blocks = [name for name in sm.blocks.__all__ if issubclass(getattr(sm.blocks, name), sm.Module)]
    assert len(blocks) > 25
    assert [name for name in blocks if not re.search(rf"\bsm\.(blocks\.)?{name}\(", code)] == []
