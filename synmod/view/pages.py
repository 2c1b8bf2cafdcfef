"""HTML pages without scripts or other files: of a picture, an evaluation, a training run, and a trace.

The nested calls of a trace open, each with a bar on the time axis.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from synmod import leaves, scope

from .tables import dollars_text, plural, printable

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


def escape(text: str) -> str:
    """Return a text escaped for XML or HTML, without control characters except line breaks."""
    return leaves.escape_html("\n".join(map(printable, text.split("\n"))))


def write_text(text: str, path: Any) -> str:
    """Return a text, and write it to `path` if one is given (ArgumentError if it is not a path)."""
    if path is not None:
        leaves.write_atomic(leaves.path_text(path), text)
    return text


# -- a picture ---------------------------------------------------------------------------------------------------------

_PICTURE_STYLE: Final = """.picture { overflow-x: auto; margin: 1.2rem 0; }
.picture svg { display: block; max-width: 100%; height: auto; }
"""


def picture_page(name: str, svg: str, summary: str) -> str:
    """Return the page of a picture, with the summary below it."""
    body = f'<div class="picture">\n{svg}</div>\n<pre>{escape(summary)}</pre>'
    return _PAGE.format(title=escape(name), style=_PICTURE_STYLE, body=body)


# -- a report ----------------------------------------------------------------------------------------------------------


class ReportEntry(NamedTuple):
    """One entry of a report, which opens.

    Attributes:
        title: Shown when it is closed, too.
        note: Shown at the right of the title.
        fields: Texts by name, shown when it is open.
        failed: Whether it is shown as a failure.
    """

    title: str
    note: str
    fields: Mapping[str, str]
    failed: bool = False


def report_page(title: str, note: str, parts: Iterable[str], entries: Sequence[ReportEntry]) -> str:
    """Return a page of parts, such as tables and pictures, and of entries that open.

    Args:
        title: The heading.
        note: Shown below it.
        parts: HTML.
        entries: The first 5,000 are shown.
    """
    shown = entries[:_MAX_CALLS]
    cut = f"<p>and {len(entries) - len(shown):,} more</p>" if len(entries) > len(shown) else ""
    body = "\n".join([f"<p>{escape(note)}</p>", *parts, *map(_entry_html, shown), cut])
    return _PAGE.format(title=escape(title), style=_TRACE_STYLE + _REPORT_STYLE, body=body)


def _entry_html(entry: ReportEntry) -> str:
    """Return the HTML of an entry of a report."""
    fields = [f"<dt>{escape(name)}</dt><dd><pre>{escape(text)}</pre></dd>" for name, text in entry.fields.items()]
    kind = "failed" if entry.failed else "entry"
    heading = f"<summary><b>{escape(entry.title)}</b><span>{escape(entry.note)}</span></summary>"
    return f'<details class="{kind}">{heading}<dl>{"".join(fields)}</dl></details>'


# -- an evaluation, a training run -------------------------------------------------------------------------------------

_DATA: Final = ("inputs", "target", "outputs")
_LEAST: Final = -1e300  # a run without a score comes first


def evaluation_page(note: str, record: dict[str, Any], baseline: dict[str, Any] | None, difference: str) -> str:
    """Return the page of an evaluation: its numbers, then its runs, the worst first.

    Args:
        note: The evaluation in a line.
        record: From `Evaluation.to_json`; without results the runs that failed are shown.
        baseline: That of an earlier evaluation of the same examples; runs that lost most come first.
        difference: How they differ, as text.
    """
    records = [record] if baseline is None else [record, baseline]
    before = {} if baseline is None else _scores_by_id(baseline)
    results: list[dict[str, Any]] = record["results"] or record["errors"]

    def order(result: dict[str, Any]) -> tuple[float, float]:
        score = _LEAST if result["score"] is None else result["score"]
        return score - before.get(result["id"], score), score

    names = dict.fromkeys(name for column in records for name in column["metrics"])
    rows = [["score", *(_number(column["score"]) for column in records)]]
    rows += [[name, *(_number(column["metrics"].get(name)) for column in records)] for name in names]
    rows += [["cost", *(dollars_text(column["usage"]["cost_usd"]) for column in records)]]
    table = leaves.html_table(["", "now", "baseline"][: len(records) + 1], rows, below=difference)
    entries = [_entry_of_run(result, before.get(result["id"])) for result in sorted(results, key=order)]
    return report_page("Evaluation", leaves.scrub(note), [table], entries)


def _scores_by_id(record: dict[str, Any]) -> dict[str, float]:
    """Return the mean score of each example that has one, by id."""
    scores: dict[str, list[float]] = {}
    for result in record["results"]:
        if result["score"] is not None:
            scores.setdefault(result["id"], []).append(result["score"])
    return {example: fmean(values) for example, values in scores.items()}


def _entry_of_run(result: dict[str, Any], before: float | None) -> ReportEntry:
    """Return the entry of one run; `before` is the score of its example in the baseline."""
    score = _number(result["score"]) if before is None else f"{_number(before)} → {_number(result['score'])}"
    error, feedback = result["error"], result["feedback"]
    fields = {name: json_text(result[name]) for name in _DATA if result[name] is not None}
    if feedback is not None and feedback["critique"]:
        fields["critique"] = json_text(feedback["critique"])
    if error is not None:
        fields["error"] = f"{error['type']}: {error['message']}"
    first = " ".join(json_text(result["inputs"]).split())
    return ReportEntry(f"{result['id']}: {first:.200}", score, fields, error is not None)


def history_page(
    note: str, records: Mapping[str, dict[str, Any]], pictures: Sequence[str], changes: Mapping[str, str]
) -> str:
    """Return the page of a training run: the numbers and pictures of some runs, and the candidates of the first.

    Args:
        note: The run in a line.
        records: From `History.to_json`, by the names of the runs.
        pictures: A picture per run.
        changes: The changes of each candidate of the first run, by its id.
    """
    headings = ["run", "seed", "best", "candidates", "rollouts", "cost", "stopped"]
    parts = [leaves.html_table(headings, [[name, *_cells_of_run(record)] for name, record in records.items()])]
    for name, picture in zip(records, pictures, strict=True):
        parts += [f"<p>{leaves.escape_html(name)}</p>", picture]
    record = next(iter(records.values()))
    entries = [
        ReportEntry(
            f"{candidate['id']} {candidate['operator']}{', the best' * (candidate['id'] == record['best'])}",
            _number(_score_of(candidate)),
            {"changes": leaves.scrub(changes[candidate["id"]]) or "none", "parents": json_text(candidate["parents"])},
        )
        for candidate in record["candidates"]
    ]
    return report_page("Training", leaves.scrub(note), parts, entries)


def _cells_of_run(record: dict[str, Any]) -> list[str]:
    """Return the cells of a run: the scores of its seed and its best candidate, and what it took."""
    by_id = {candidate["id"]: candidate for candidate in record["candidates"]}
    scores = [_number(_score_of(by_id[name])) for name in (record["candidates"][0]["id"], record["best"])]
    spent = record["spent"]
    return [*scores, str(len(by_id)), str(spent["rollouts"] or 0), dollars_text(spent["cost_usd"]), record["stopped"]]


def _score_of(candidate: dict[str, Any]) -> float | None:
    """Return the mean score of a candidate on the validation rows, None without one."""
    scores = candidate["scores"].get("validation")
    return fmean(scores.values()) if scores else None


def _number(value: float | None) -> str:
    """Return a number as text."""
    return "-" if value is None else f"{value:.4g}"


# -- a trace -----------------------------------------------------------------------------------------------------------

_MAX_CALLS: Final = 5_000
_OPEN_LEVELS: Final = 3
_SHOWN_FIELDS: Final = ("inputs", "kwargs", "request", "reply", "outputs", "error")
"""The fields of a call that are shown one by one, in this order."""

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

_REPORT_STYLE: Final = """p { overflow-wrap: anywhere; }
table { display: block; overflow-x: auto; border-collapse: collapse; margin: 0 0 1.2rem; }
th, td { border-bottom: 1px solid var(--rule); padding: .15rem .8rem .15rem 0; text-align: left; white-space: nowrap; }
svg { display: block; max-width: 100%; width: 48rem; height: auto; margin: 0 0 1.2rem; }
@media (max-width: 40rem) { svg { font-size: 17px; } }
@media (prefers-color-scheme: dark) { svg rect { fill: none; } svg path { stroke: var(--ink); }
  svg text:not([fill]) { fill: var(--ink); } svg text[fill="#1f6feb"] { fill: var(--module); }
  svg text[fill="#6e7781"] { fill: var(--soft); } }
"""


def trace_page(trace: dict[str, Any]) -> str:
    """Return the page of a trace from `Tracer.to_json`; see `Tracer.to_html`."""
    roots = scope.in_order_of_start(trace["calls"], trace["lm_calls"])
    begin = min((call["start"] for call in roots), default=0.0)
    calls = [call for root in roots for call in (root, *_below(root))]  # a reward comes after the call that it judges
    end = max((call["start"] + (call["elapsed_s"] or 0.0) for call in calls), default=begin)
    rows: list[str] = []
    open_calls = 0
    waiting = [(call, 0) for call in reversed(roots)]
    while waiting and len(rows) < _MAX_CALLS:  # iterative: calls may be deeply nested
        call, depth = waiting.pop()
        rows.append("</details>" * (open_calls - depth) + _call_html(call, begin, end - begin or 1.0, depth))
        open_calls = depth + 1
        waiting += [(child, open_calls) for child in reversed(_below(call))]
    rows.append("</details>" * open_calls)
    cut = f"the first {_MAX_CALLS:,} calls are shown, to_json has all" if waiting else ""
    dropped = f"{plural(trace['dropped'], 'call')} beyond the bound not recorded" if trace["dropped"] else ""
    totals = " · ".join(filter(None, (_usage(trace["usage"]), scope.seconds_text(end - begin), cut, dropped)))
    body = "\n".join([f"<p>{escape(totals)}</p>", *rows])
    title = f"Trace of {plural(len(roots), 'call')}"
    return _PAGE.format(title=title, style=_TRACE_STYLE, body=body)


def _call_html(call: dict[str, Any], begin: float, span: float, depth: int) -> str:
    """Return the opening HTML of a call, which its children follow: its summary line and its details."""
    elapsed = begin + span - call["start"] if call["elapsed_s"] is None else call["elapsed_s"]
    kind = "module" if "call_id" in call else "model"
    failed = " failed" if call.get("error") else ""
    is_open = " open" if _below(call) and depth < _OPEN_LEVELS else ""
    left, wide = (call["start"] - begin) / span * 100, elapsed / span * 100
    name = call.get("path") or call.get("name") or call.get("model") or "(root)"
    is_other = kind == "module" and call["name"] != name.rpartition("/")[2]
    note = f" <small>{escape(str(call['name']))}</small>" if is_other else ""
    return (
        f'<details class="{kind}{failed}"{is_open}><summary><b>{escape(str(name))}{note}</b>'
        f'<span class="cost">{escape(_usage(call.get("usage")))}</span>'
        f'<span class="time">{scope.seconds_text(call["elapsed_s"])}</span>'
        f'<span class="bar"><i style="left:{left:.2f}%;width:{wide:.2f}%"></i></span></summary>{_facts(call)}'
    )


def _facts(call: dict[str, Any]) -> str:
    """Return the details of a call: inputs and outputs first, the rest as one object."""
    left_out = ("children", "lm_calls", *_SHOWN_FIELDS)
    rest = {key: value for key, value in call.items() if key not in left_out and value is not None}
    fields = [field for key in _SHOWN_FIELDS if call.get(key) for field in _field_parts(key, call[key])]
    rows = [
        f'<div class="{key}"><dt>{escape(label)}</dt><dd><pre>{escape(json_text(value))}</pre></dd></div>'
        for key, label, value in [*fields, ("details", "details", rest)]
    ]
    heading = ", ".join(dict.fromkeys(label for key, label, _ in fields if key != "error")) or "details"
    return f'<details class="facts"><summary>{escape(heading)}</summary><dl>{"".join(rows)}</dl></details>'


def _field_parts(key: str, value: Any) -> list[tuple[str, str, Any]]:
    """Return the parts of a field to show: each message of a request as it was sent, the text of a reply."""
    if key == "request":
        turns: list[dict[str, Any]] = value.get("messages") or []
        messages = [(key, str(turn.get("role", "")), turn.get("content") or turn.get("tool_calls")) for turn in turns]
        rest = {name: part for name, part in value.items() if name != "messages" and part}
        return [*messages, *([(key, "request", rest)] if rest else [])]
    if key == "reply":
        rest = {name: part for name, part in value.items() if name != "text" and part}
        content = value.get("text") or value.get("tool_calls") or ""
        return [(key, "reply", content), *([(key, "reply metadata", rest)] if rest else [])]
    return [(key, key, value)]


def json_text(value: Any) -> str:
    """Return a string as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _usage(usage: dict[str, Any] | None) -> str:
    """Return tokens and cost as text; empty if no tokens were used."""
    tokens = usage and usage["prompt_tokens"] + usage["completion_tokens"]
    if not usage or not tokens:
        return ""
    cost = usage.get("cost_usd")
    return f"{tokens:,} tokens" + ("" if cost is None else f", {dollars_text(cost)}")


def _below(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls that a call made, in order of start."""
    return scope.in_order_of_start(call.get("children", ()), call.get("lm_calls", ()))
