"""Every page of the docs can be reached, and every link between files leads somewhere."""

import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "pages"
TEXTS = [ROOT / "README.md", *sorted(PAGES.rglob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def test_the_navigation_names_every_page():
    """The navigation names each page once, and no other."""
    nav = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"- (\S+\.md)$", nav, re.MULTILINE)
    assert sorted(named) == sorted(page.relative_to(PAGES).as_posix() for page in PAGES.rglob("*.md"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: str(text.relative_to(ROOT)))
def test_links_lead_to_files(text):
    """Each link outside code leads to a file that exists."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [link for link in _LINK.findall(prose) if not (text.parent / link).exists()] == []


@pytest.mark.parametrize("folder", ["tutorial", "recipes", "ideas"])
def test_the_first_page_leads_to_all_others(folder):
    """The first page links every page of a folder; only the reference is left to the navigation."""
    first = (PAGES / "index.md").read_text(encoding="utf-8")
    linked = {link for link in _LINK.findall(first) if link.startswith(folder)}
    assert linked == {page.relative_to(PAGES).as_posix() for page in (PAGES / folder).glob("*.md")}


@pytest.mark.parametrize("name", re.findall(r"^::: (\S+)$", "".join(p.read_text() for p in TEXTS), re.MULTILINE))
def test_the_reference_names_what_exists(name):
    """Each room or class that a page of the reference shows can be imported."""
    assert pkgutil.resolve_name(name).__doc__
