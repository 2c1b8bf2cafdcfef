"""Data: values of ten fields made, joined, masked, compared and validated."""

import synmod as sm
from synmod.data import schema_from, validate
from tests.benchmarks.measure import alone, paired


class Report(sm.DataModel):
    """Ten fields."""

    title: str
    author: str
    summary: str
    language: str
    pages: int
    words: int
    score: float
    price: float
    public: bool
    tags: list[str]


class Author(sm.DataModel):
    """What is joined to a report."""

    name: str
    age: int


REPORT = Report(
    title="Bridges", author="Ada", summary="How to build them.", language="en", pages=12, words=3400, score=0.5,
    price=9.5, public=True, tags=["steel", "stone"],
)  # fmt: skip


def _repeat(fn, times):
    def run():
        for _ in range(times):
            fn()

    return run


def rows(scale=1.0):
    """Measure."""
    times = max(int(20_000 * scale), 10)
    value, author = sm.JsonDataModel(REPORT), sm.JsonDataModel(Author(name="Ada", age=36))
    yield paired(
        "a value of a ten-field instance",
        _repeat(lambda: sm.JsonDataModel(REPORT), times),
        _repeat(REPORT.model_dump, times),
        budget=6,
        per=times,
    )
    yield alone("value + value, the plan kept", _repeat(lambda: value + author, times), budget_us=10, per=times)
    mask = ["title", "pages"]
    yield alone("a mask, the plan kept", _repeat(lambda: value.in_mask(mask), times), budget_us=10, per=times)
    sub, sup = schema_from(Report.get_schema()), schema_from({"type": "object", "required": ["title", "pages"]})
    known = _repeat(lambda: sm.is_subschema(sub, sup), times)
    yield alone("is_subschema, the pair known", known, budget_us=0.5, per=times)
    reply = REPORT.get_json()
    judged = _repeat(lambda: validate(sub, reply, "the reply"), times)
    yield alone("validating a ten-field reply", judged, budget_us=15, per=times)
