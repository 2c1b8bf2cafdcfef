"""Pages that need no script and no other file: of a picture; of a trace, nested calls that open, each a bar in time."""

from __future__ import annotations

import json
import os
from typing import Any, Final, cast
from xml.sax.saxutils import escape

from synmod.errors import ArgumentError
from synmod.leaves.files import write_atomic

from .summary import dollars_text, plural, printable, seconds_text

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2430; --soft: #687384; --rule: #d9dee5; --paper: #fff; --band: #f4f6f8;
  --module: #5b86c9; --model: #c98f35; --error: #c0392b; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #dfe5ec; --soft: #93a0b0; --rule: #313945; --paper: #15191f;
  --band: #1d232b; --module: #6c9be0; --model: #dba54b; --error: #ff7b6b; }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 90rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 14px/1.5 ui-sans-serif, system-ui, sans-serif; }}
h1 {{ font-size: 1.15rem; margin: 0; }}
pre {{ margin: 0; padding: .5rem .7rem; background: var(--band); border-radius: 4px; overflow: auto;
  font: 12px/1.5 ui-monospace, monospace; }}
{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def escaped(text: str) -> str:
    """Return a text that stands in XML or HTML, without control characters but for line breaks."""
    return escape("\n".join(map(printable, text.split("\n"))), {'"': "&quot;"})


def written(what: str, text: str, path: Any) -> str:
    """Return a text, and write it where a path is given."""
    if path is not None and not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"{what}: path={path!r:.100} is not a path; write a file name, or None for the text alone.")
    if path is not None:
        write_atomic(cast("str | os.PathLike[str]", path), text)
    return text


# -- a picture ---------------------------------------------------------------------------------------------------------

_PICTURE_STYLE: Final = """.picture { overflow-x: auto; margin: 1.2rem 0; }
.picture svg { display: block; max-width: 100%; height: auto; }
"""


def picture_page(name: str, svg: str, summary: str) -> str:
    """Return the page of a picture, with the summary below it."""
    body = f'<div class="picture">\n{svg}</div>\n<pre>{escaped(summary)}</pre>'
    return _PAGE.format(title=escaped(name), style=_PICTURE_STYLE, body=body)


# -- a trace -----------------------------------------------------------------------------------------------------------

_MOST: Final = 5_000
_OPEN_TO: Final = 3  # levels
_BESIDE: Final = ("inputs", "kwargs", "request", "reply", "outputs", "error")
"""The fields of a call that have a place of their own, in this order."""

_TRACE_STYLE: Final = """h1 + p { color: var(--soft); margin: .2rem 0 1.2rem; }
details { border-left: 1px solid var(--rule); padding-left: .9rem; }
body > details { border-left: 0; padding-left: 0; }
summary { display: flex; gap: 1rem; align-items: center; padding: .15rem .3rem; border-radius: 4px; cursor: pointer;
  list-style: none; }
summary::-webkit-details-marker { display: none; }
summary:hover, summary:focus-visible { background: var(--band); }
summary b { flex: 1 1 18rem; min-width: 8rem; font-weight: 600; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
summary b::before { content: "▸ "; color: var(--soft); }
details[open] > summary b::before { content: "▾ "; }
summary small { color: var(--soft); font-weight: 400; }
summary span { flex: 0 0 auto; color: var(--soft); font-variant-numeric: tabular-nums; text-align: right; }
.time { width: 5rem; }
.cost { width: 12rem; }
.bar { flex: none; width: 30vw; height: .75rem; position: relative; background: var(--band); border-radius: 3px; }
.bar i { position: absolute; height: 100%; min-width: 2px; background: var(--module); border-radius: 3px; }
.model .bar i { background: var(--model); }
.model > summary b { font-weight: 400; }
.failed > summary b, .failed > summary .time { color: var(--error); }
.failed > summary .bar i { background: var(--error); }
.facts summary { color: var(--soft); font-size: .85em; }
.facts summary::before { content: "▸"; }
.facts[open] > summary::before { content: "▾"; }
dl { margin: 0 0 .8rem 1.1rem; }
dt { color: var(--soft); font-size: .85em; margin-top: .4rem; }
dd { margin: 0; }
pre { max-height: 24rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.error pre { color: var(--error); }
@media (max-width: 50rem) { .bar, .cost { display: none; } }
"""


def trace_page(trace: dict[str, Any], path: Any) -> str:
    """Return the page of what `Tracer.to_json` returns, and write it where a path is given; see `Tracer.to_html`."""
    roots = _by_start(trace["calls"], trace["lm_calls"])
    begin = min((call["start"] for call in roots), default=0.0)
    end = max((call["start"] + (call["elapsed_s"] or 0.0) for call in roots), default=begin)
    rows: list[str] = []
    is_open = 0  # how many calls are
    waiting = [(call, 0) for call in reversed(roots)]
    while waiting and len(rows) < _MOST:  # iterative: calls may lie deep inside one another
        call, depth = waiting.pop()
        rows.append("</details>" * (is_open - depth) + _opened(call, begin, end - begin or 1.0, depth))
        is_open = depth + 1
        waiting += [(each, is_open) for each in reversed(_below(call))]
    rows.append("</details>" * is_open)
    cut = f"the first {_MOST:,} calls are shown, to_json has all" if waiting else ""
    dropped = f"{plural(trace['dropped'], 'call')} beyond the bound not recorded" if trace["dropped"] else ""
    about = " · ".join(filter(None, (_usage(trace["usage"]), seconds_text(end - begin), cut, dropped)))
    body = "\n".join([f"<p>{escaped(about)}</p>", *rows])
    title = f"Trace of {plural(len(roots), 'call')}"
    return written("to_html", _PAGE.format(title=title, style=_TRACE_STYLE, body=body), path)


def _opened(call: dict[str, Any], begin: float, span: float, depth: int) -> str:
    """Return one call, open for those below it: its line, then everything else that is known of it."""
    running = call["elapsed_s"] is None
    elapsed = begin + span - call["start"] if running else call["elapsed_s"]
    kind = "module" if "call_id" in call else "model"
    failed = " failed" if call.get("error") else ""
    is_open = " open" if _below(call) and depth < _OPEN_TO else ""
    left, wide = (call["start"] - begin) / span * 100, elapsed / span * 100
    name = call.get("path") or call.get("name") or call.get("model") or "(root)"
    is_other = kind == "module" and call["name"] != name.rpartition("/")[2]
    note = f" <small>{escaped(str(call['name']))}</small>" if is_other else ""
    return (
        f'<details class="{kind}{failed}"{is_open}><summary><b>{escaped(str(name))}{note}</b>'
        f'<span class="cost">{escaped(_usage(call.get("usage")))}</span>'
        f'<span class="time">{"running" if running else seconds_text(elapsed)}</span>'
        f'<span class="bar"><i style="left:{left:.2f}%;width:{wide:.2f}%"></i></span></summary>{_facts(call)}'
    )


def _facts(call: dict[str, Any]) -> str:
    """Return what is known of a call: what went in and came out first, the rest as one object."""
    left_out = ("children", "lm_calls", *_BESIDE)
    rest = {key: value for key, value in call.items() if key not in left_out and value is not None}
    fields = [field for key in _BESIDE if call.get(key) for field in _opened_fields(key, call[key])]
    rows = [
        f'<div class="{key}"><dt>{escaped(label)}</dt><dd><pre>{escaped(_text(value))}</pre></dd></div>'
        for key, label, value in [*fields, ("details", "details", rest)]
    ]
    heading = ", ".join(dict.fromkeys(label for key, label, _ in fields if key != "error")) or "details"
    return f'<details class="facts"><summary>{escaped(heading)}</summary><dl>{"".join(rows)}</dl></details>'


def _opened_fields(key: str, value: Any) -> list[tuple[str, str, Any]]:
    """Return what is shown of a field: of a request each message as it was sent, of a reply its text."""
    if key == "request":
        messages = [(key, str(each.get("role", "")), each.get("content")) for each in value.get("messages") or ()]
        rest = {name: part for name, part in value.items() if name != "messages" and part}
        return [*messages, *([(key, "request", rest)] if rest else [])]
    if key == "reply":
        rest = {name: part for name, part in value.items() if name != "text" and part}
        return [(key, "reply", value.get("text") or ""), *([(key, "reply metadata", rest)] if rest else [])]
    return [(key, key, value)]


def _text(value: Any) -> str:
    """Return a value as text; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _usage(usage: dict[str, Any] | None) -> str:
    """Return tokens and cost, where there were any."""
    tokens = usage and usage["prompt_tokens"] + usage["completion_tokens"]
    if not usage or not tokens:
        return ""
    cost = usage.get("cost_usd")
    return f"{tokens:,} tokens" + ("" if cost is None else f", {dollars_text(cost)}")


def _below(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls that a call made, by their start."""
    return _by_start(call.get("children", ()), call.get("lm_calls", ()))


def _by_start(calls: Any, lm_calls: Any) -> list[dict[str, Any]]:
    """Return module calls and model calls in one order."""
    return sorted([*calls, *lm_calls], key=lambda call: call["start"])
