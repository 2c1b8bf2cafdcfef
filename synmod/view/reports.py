"""The pages of an evaluation and of a training run, from their JSON: `Evaluation.to_html`, `History.to_html`."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from synmod import leaves

from .pages import ReportEntry, json_text, report_page
from .tables import dollars_text

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
