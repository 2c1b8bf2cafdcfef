"""The page of a trace: one file that holds its data, script and looks, and lets nothing else in."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from synmod.errors import ArgumentError
from synmod.leaves.files import write_atomic
from synmod.view.timeline.rows import rows_of

_SCRIPTS: Final = ("words.js", "lanes.js", "chart.js", "list.js", "details.js", "page.js")

_LONG_INTEGER: Final = re.compile(r"[:,\[]-?[0-9]{15}")

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>synmod trace</title>
<style>{looks}</style>
</head>
<body>
{body}<script id="trace" type="application/json">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def trace_page(trace: dict[str, Any], path: Any) -> str:
    """Draw a trace, and write the page where a path is given; see `Tracer.to_html`."""
    if path is not None and not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"to_html: path={path!r:.100} is no path; write a file name, or None for the text alone.")
    text = _text(trace)
    if path is not None:
        write_atomic(cast("str | os.PathLike[str]", path), text)
    return text


def _text(trace: dict[str, Any]) -> str:
    """Put the page together."""
    looks = _part("page.css")
    script = "'use strict';\n(() => {\n" + "\n".join(map(_part, _SCRIPTS)) + "})();\n"
    data = {"version": trace["version"], "dropped": trace["dropped"], "usage": trace["usage"], "rows": rows_of(trace)}
    return _PAGE.format(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(looks)}; base-uri 'none'; "
        "form-action 'none'",
        looks=looks, body=_part("page.html"), data=_as_data(data), script=script,
    )  # fmt: skip


def _as_data(data: dict[str, Any]) -> str:
    """JSON that stands in a script tag: ASCII, and without a character that could end the tag or open another."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    if _LONG_INTEGER.search(text):  # a browser would round it: it is shown as text instead
        exact = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 16 else digits)
        text = json.dumps(exact, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    """Read one of the files beside this one."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _hash(text: str) -> str:
    """Name a text as a policy does: no other script or style is let in."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
