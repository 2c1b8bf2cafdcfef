"""The text of HTML pages, by their headings; imported when the first page is read."""

import re
from html.parser import HTMLParser
from typing import Any, Final

_LINE: Final = re.compile(
    "address|article|aside|blockquote|br|dd|div|dl|dt|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|"
    "table|td|th|tr|ul"
)

_MOST_REST: Final = 1_000  # characters of a broken page in which tags are still read


def html_sections(text: str) -> list[tuple[str, str]]:
    """Return the sections of an HTML page: headings, and the texts that they begin."""
    page = _Page(convert_charrefs=True)
    page.feed(text)
    if len(page.rawdata) <= _MOST_REST:
        page.close()
    else:  # in older versions of Python, `close` takes quadratic time (CVE-2025-6069)
        page.handle_data(page.rawdata)
    return [(" ".join(page.headings[at].split()), "".join(parts)) for at, parts in enumerate(page.texts)]


class _Page(HTMLParser):
    """The texts of a page by section, and their headings."""

    def __init__(self, *, convert_charrefs: bool) -> None:
        super().__init__(convert_charrefs=convert_charrefs)
        self.headings, self.texts = [""], [list[str]()]
        self._in_heading = False
        self._skips = ""

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Read `<![...]>` as a comment, as browsers do; of an unknown one, `HTMLParser` raises AssertionError."""
        return self.parse_bogus_comment(i, bool(report))

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002  # the method's signature
        """Begin a section, a line, or something to leave out."""
        if tag in ("script", "style"):
            self._skips = tag
        elif re.fullmatch("h[1-6]", tag):
            self._in_heading = True
            self.headings.append("")
            self.texts.append([])
        if _LINE.fullmatch(tag):
            self.texts[-1].append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a heading, a line, or something to leave out."""
        if tag == self._skips:
            self._skips = ""
        if re.fullmatch("h[1-6]", tag):
            self._in_heading = False
        if _LINE.fullmatch(tag):
            self.texts[-1].append("\n")

    def handle_data(self, data: str) -> None:
        """Add a text to its section."""
        if not self._skips:
            self.texts[-1].append(data)
            if self._in_heading:
                self.headings[-1] += data
