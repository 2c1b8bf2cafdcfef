"""A picture as one page that needs nothing else: the drawing, and the summary below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.view.svg import svg
from synmod.view.svg_looks import escaped

if TYPE_CHECKING:
    from synmod.view.picture import Picture

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 2rem; font-family: system-ui, sans-serif; line-height: 1.5; }}
  h1 {{ font-size: 1.3rem; font-weight: 600; }}
  .picture {{ overflow-x: auto; }}
  .picture svg {{ display: block; max-width: 100%; height: auto; }}
  pre {{ overflow-x: auto; font-size: 0.8rem; line-height: 1.35; padding: 1rem 0; }}
</style>
</head>
<body>
<h1>{title}</h1>
<div class="picture">
{picture}</div>
<pre>{summary}</pre>
</body>
</html>
"""


def html(picture: Picture, summary: str) -> str:
    """Write the page."""
    lines = "\n".join(map(escaped, summary.split("\n")))
    return _PAGE.format(title=escaped(picture.name), picture=svg(picture), summary=lines)
