"""Every Python block of the README and the docs runs, offline, and prints the output that the page shows.

The blocks of one page run in one namespace, in order. A `text` block that follows a Python block is its output; a line
`...` in it stands for any lines, and a time in milliseconds for any time.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

import synmod as sm
from synmod import blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "pages").rglob("*.md"))]
_BLOCK = re.compile(r"^```(python|text)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(page):
    """Return (line, code, expected output or None) of each Python block of a page."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        kind, body = match.groups()
        if kind == "python":
            found.append([text.count("\n", 0, match.start()) + 2, body, None])
        elif found and found[-1][2] is None:
            found[-1][2] = body
    return found


def matches(expected, printed):
    """Whether `printed` is what a page shows, `...` standing for any lines."""
    pattern = ".*".join(re.escape(part.strip("\n")) for part in re.split(r"^\.\.\.$", expected, flags=re.MULTILINE))
    pattern = re.sub(r"\d+\\\.\d+\\ ms", r"\\d+\\.\\d+ ms", pattern)
    return re.fullmatch(pattern, printed.strip("\n"), re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    """Each block of a page runs, and its output is the one shown; some read files of the repository."""
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    namespace = {"__name__": "__main__"}
    for line, code, expected in blocks_of(page):
        printed = io.StringIO()
        compiled = compile("\n" * (line - 1) + code, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(compiled, namespace)
        if expected is not None:
            assert matches(expected, printed.getvalue()), f"{page.name}:{line} printed\n{printed.getvalue()}"


def test_every_block_has_an_example():
    """A ready-made module that the page on blocks does not use fails here."""
    code = "".join(code for _, code, _ in blocks_of(ROOT / "docs" / "pages" / "ideas" / "blocks.md"))
    modules = [name for name, x in vars(blocks).items() if isinstance(x, type) and issubclass(x, sm.Module)]
    assert [name for name in modules if not re.search(rf"\b(sm|blocks)\.{name}\(", code)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_is_wider_than_a_page(page):
    """On a screen of 1280 pixels, beside both lists of links, 91 columns of code fit."""
    blocks = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for kind, block in blocks if kind != "sh" for line in block.splitlines()]
    assert [line for line in lines if len(line) > 88] == []
