"""`passages`: texts, files and folders cut into passages, by their headings and then by sentences."""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from synmod.errors import ArgumentError, DataError
from synmod.leaves import check_int, must_be

from .retrieve import Passage

Section = tuple[str, str]
"""A heading, and the text that it begins."""

_TEXTS: Final = frozenset({".md", ".markdown", ".txt", ".rst", ".html", ".htm"})  # read in a folder
_PAGES: Final = (".html", ".htm")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+((?:\S++|\s++(?!#*\s*\Z))*+)\s*#*\s*")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)\s*")
_UNDERLINED: Final = re.compile(r"(\s*\n)? {0,3}[^\s#>|*+=`~-].*\n?")  # no paragraph, list, table or quotation
_FRONT_MATTER: Final = re.compile(r"\A---\s*\n[\w-]+:.*?\n---[ \t\r]*(\n|\Z)", re.DOTALL)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])|\n\s*\n")
_WORD_END: Final = re.compile(r"\s+")


def passages(source: Path | str, *, size: int = 800, overlap: int = 100) -> list[Passage]:
    r"""Cut a text, a file or a folder into passages for an index.

    A passage is a section below a heading of Markdown or HTML, or where that is longer than `size`, some of its
    sentences. Nothing of the text is lost but white space between passages, the front matter of Markdown, and the tags,
    scripts and styles of HTML.
    The id is a digest of file, heading and text: what has not changed is not added again.

    Args:
        source: A `Path`: a file, or a folder whose Markdown, text and HTML files are read, those below it as well, but
            not hidden ones. A str is the text itself, as Markdown.
        size: The maximum number of characters of a passage.
        overlap: How many characters at most a passage repeats from the one before it, in whole sentences or words.

    Returns:
        Passages in order, with `file` (relative to the folder) and `heading` as metadata where there are any.

    Raises:
        ArgumentError: `source` is neither, `size` is not a whole number above 0, or `overlap` not one below `size`.
        DataError: The file or folder cannot be read.

    Example:
        >>> [(p.metadata["heading"], p.text) for p in passages("# Tea\nA drink.\n# Sea\nIt is deep.")]
        [('Tea', '# Tea\nA drink.'), ('Sea', '# Sea\nIt is deep.')]

    Source: the text splitters of LangChain and LlamaIndex; differs: one function, nothing is lost.
    """
    check_int("passages: size", size)
    if check_int("passages: overlap", overlap, 0) >= size:
        raise ArgumentError(must_be("passages: overlap", f"less than size={size}", overlap))
    counts, result = Counter[str](), list[Passage]()
    for file, sections in _read(source):
        for heading, text in sections:
            metadata = {name: value for name, value in (("file", file), ("heading", heading)) if value}
            for piece in _pieces(text, size, overlap):
                content = f"{file}\0{heading}\0{piece}".encode("utf-8", "surrogatepass")
                key = hashlib.sha256(content).hexdigest()[:24]
                counts[key] += 1
                number = f"-{counts[key]}" if counts[key] > 1 else ""  # an equal text under an equal heading
                result.append(Passage(id=f"{key}{number}", text=piece, metadata=metadata))
    return result


def _read(source: Any) -> Iterator[tuple[str, list[Section]]]:
    """Yield the name of each file, and its sections.

    Raises:
        ArgumentError: It is not a path or a text.
        DataError: It cannot be read.
    """
    if isinstance(source, str):
        yield "", _markdown_sections(source)
        return
    if not isinstance(source, Path):
        raise ArgumentError(must_be("passages: source", "a Path, or the text itself as a str", source))
    from .pages import html_sections  # slow to import

    try:
        paths = [source]
        if source.is_dir():
            below = (path for path in sorted(source.rglob("*")) if path.suffix.lower() in _TEXTS and path.is_file())
            paths = [path for path in below if not any(x.startswith(".") for x in path.relative_to(source).parts)]
        for path in paths:
            name = path.relative_to(source).as_posix() if path is not source else path.name
            text = _decode(path.read_bytes())
            is_page = path.suffix.lower() in _PAGES
            yield name, html_sections(text) if is_page else _markdown_sections(text)
    except OSError as error:
        raise DataError(f"passages: {source}: {error.strerror or error}.") from None


def _decode(content: bytes) -> str:
    """Return the text of a file: in UTF-8, else in Latin-1, where every byte is a character."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


# -- sections ----------------------------------------------------------------------------------------------------------


def _markdown_sections(text: str) -> list[Section]:
    """Return the sections of Markdown; a `#` in a block of code is not a heading."""
    lines, starts, fence = _FRONT_MATTER.sub("", text).splitlines(keepends=True), [(0, "")], ""
    for at, line in enumerate(lines):
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif fence:
            continue
        elif match := _HEADING.fullmatch(line):
            starts.append((at, match[1]))
        elif _UNDERLINE.fullmatch(line) and _UNDERLINED.fullmatch("".join(lines[max(at - 2, 0) : at])):
            starts.append((at - 1, lines[at - 1].strip()))
    ends = [at for at, _ in starts[1:]]
    return [(heading, "".join(lines[at:end])) for (at, heading), end in zip(starts, [*ends, None], strict=True)]


# -- pieces ------------------------------------------------------------------------------------------------------------


def _pieces(text: str, size: int, overlap: int) -> Iterator[str]:
    """Yield a text in pieces of at most `size` characters: whole sentences, else whole words, else as it comes."""
    text = text.strip()
    sentences = [match.end() for match in _SENTENCE.finditer(text)]
    words = [match.end() for match in _WORD_END.finditer(text)]
    start = end = 0
    while len(text) - start > size:
        low, high = end, start + size
        end = _last(sentences, low, high) or _last(words, low, high) or high
        if piece := text[start:end].strip():
            yield piece
        start = _first(sentences, end - overlap, end) or _first(words, end - overlap, end) or end
    if piece := text[start:].strip():
        yield piece


def _last(ends: list[int], low: int, high: int) -> int:
    """Return the last of some sorted places above `low`, up to `high`; 0 for none."""
    at = bisect_right(ends, high) - 1
    return ends[at] if at >= 0 and ends[at] > low else 0


def _first(ends: list[int], low: int, high: int) -> int:
    """Return the first of some sorted places from `low` to below `high`; 0 for none."""
    at = bisect_left(ends, low)
    return ends[at] if at < len(ends) and ends[at] < high else 0
