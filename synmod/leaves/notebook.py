"""What notebooks show in the place of a repr: tables of texts, and whole pages, each in a frame of its own."""

from collections.abc import Iterable, Sequence
from typing import Final

_SHOWN: Final = 200  # characters of a cell


def html_table(headings: Sequence[str], rows: Iterable[Iterable[str]], *, above: str = "", below: str = "") -> str:
    """Return a table of texts as HTML, with a line above and below it; everything is escaped, long cells are cut.

    Example:
        >>> html_table(["field"], [["<b>"]])
        '<table><thead><tr><th>field</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'

    Source: pandas' `to_html`.
    """
    from html import escape  # brings the table of all entities: imported where a notebook shows something

    def cell(text: str) -> str:
        return f"<td>{escape(text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...')}</td>"

    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    title, note = above and f"<p><b>{escape(above)}</b></p>", below and f"<p>{escape(below)}</p>"
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def html_frame(page: str) -> str:
    """Return a page in a frame, so that its style does not reach the notebook around it.

    Source: folium's pages in notebooks.
    """
    from html import escape

    return f'<iframe srcdoc="{escape(page)}" sandbox="" style="width: 100%; height: 30rem; border: 0"></iframe>'
