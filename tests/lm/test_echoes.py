"""Replies that quote a key: what is written to a file holds no key in use, whatever the provider wrote."""

import json

import pytest
from pydantic import SecretStr

import synmod as sm
from synmod import leaves
from synmod.testing import FunctionLM

KEY, HEADER = "sk-echoed-key-0123456789", 'hidden "header" 0123456789'


class Query(sm.DataModel):
    """A question."""

    q: str


class Answer(sm.DataModel):
    """An answer."""

    a: str


def echoing(**given):
    """A model whose replies quote its key and its hidden header."""
    return FunctionLM(lambda _: json.dumps({"a": f"{KEY} {HEADER}"}), headers={"X": SecretStr(HEADER)}, **given)


@pytest.fixture(params=[KEY, SecretStr(KEY), lambda: KEY], ids=["str", "SecretStr", "callable"])
async def program(request):
    """A program that answers with the key; a double reads none, so it is read here."""
    lm = echoing(api_key=request.param)
    await lm.secrets.key()
    return sm.Generator(Answer, language_model=lm)


def assert_clean(text):
    """Neither secret stands in it; what stood around them does."""
    assert "***" in text
    assert "0123456789" not in text


async def test_trace_pages(program, tmp_path):
    """The JSON, the page, the file; the caller gets what the provider wrote."""
    with sm.trace() as trace:
        answer = await program(Query(q="x"))
    assert answer["a"] == f"{KEY} {HEADER}"
    trace.to_html(tmp_path / "trace.html")
    for text in (json.dumps(trace.to_json()), trace.to_html(), (tmp_path / "trace.html").read_text()):
        assert_clean(text)


async def test_recorder_files(program, tmp_path):
    """Each row is JSON; its list in memory holds what was."""
    rows = []
    with sm.hooks(sm.hooks_lib.Recorder(tmp_path / "rows.jsonl"), sm.hooks_lib.Recorder(rows)):
        await program(Query(q="x"))
    text = (tmp_path / "rows.jsonl").read_text()
    assert_clean(text)
    assert len([json.loads(line) for line in text.splitlines()]) == len(rows)
    assert KEY in json.dumps(rows)


async def test_evaluations(program, tmp_path):
    """CSV and JSON."""
    evaluation = await sm.evaluate(program, [(Query(q="x"), Answer(a="y"))], reward="exact_match")
    evaluation.to_csv(tmp_path / "rows.csv")
    assert_clean((tmp_path / "rows.csv").read_text())
    assert_clean(json.dumps(evaluation.to_json()))


async def test_a_key_of_the_environment_is_one(monkeypatch):
    """It is known once it was read."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment-1")
    await sm.LanguageModel("openai/m").secrets.key()
    assert leaves.scrub("a sk-of-the-environment-1 b") == "a *** b"


def test_keys_that_rotate_do_not_fill_the_memory():
    """The latest ones are kept."""
    leaves.remember_secrets(f"rotating-key-{number:06}" for number in range(3_000))
    assert leaves.scrub("rotating-key-002999") == "***"
    assert leaves.scrub("rotating-key-000001") == "rotating-key-000001"
