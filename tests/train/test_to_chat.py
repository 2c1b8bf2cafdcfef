"""`Evaluation.to_chat`: the model calls of good runs as lines of chat completions."""

import json

import pytest

import synmod as sm
from synmod.testing import FunctionLM


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


EXAMPLE = {"inputs": {"question": "one"}, "outputs": {"answer": "ONE"}}


def answer(request):
    """The last word of the prompt in capitals; of 'three' something else."""
    word = str(request.messages[-1]["content"]).split()[-1].strip('"}')
    return {"answer": "?" if word == "three" else word.upper()}


def right(inputs, outputs):
    """Whether the answer is the question in capitals."""
    return outputs["answer"] == inputs["question"].upper()


async def evaluate(**options):
    """The evaluation of two rows, the second of which is wrong."""
    generator = sm.Generator(Answer, examples=[EXAMPLE], language_model=FunctionLM(answer))
    rows = [Query(question="two"), Query(question="three")]
    return await sm.evaluate(generator, rows, reward=right, **options)


def lines_of(path):
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_calls_of_good_runs_are_written_without_examples(tmp_path):
    """System turn, input, answer; examples stay on request; a lower threshold takes more runs."""
    evaluation = await evaluate(keep_calls=True)
    (line,) = lines_of(evaluation.to_chat(tmp_path / "chat.jsonl"))
    assert [turn["role"] for turn in line["messages"]] == ["system", "user", "assistant"]
    assert json.loads(line["messages"][-1]["content"]) == {"answer": "TWO"}
    assert "ONE" not in json.dumps(line)
    whole = lines_of(evaluation.to_chat(tmp_path / "chat.jsonl", threshold=0.0, examples=True))
    assert [[turn["role"] for turn in line["messages"]] for line in whole] == [
        ["system", "user", "assistant", "user", "assistant"]
    ] * 2
    assert all(line.keys() == {"messages"} for line in whole)


async def test_a_resumed_run_has_its_calls(tmp_path):
    """They are in the records of the run."""
    first = await evaluate(keep_calls=True, run=tmp_path / "run")
    again = await evaluate(keep_calls=True, run=tmp_path / "run")
    written = [lines_of(each.to_chat(tmp_path / "chat.jsonl")) for each in (first, again)]
    assert written[0] == written[1] != []


async def test_runs_of_which_none_is_good_are_an_error(tmp_path):
    """An empty file would be found out when a model is trained on it; the error has the best score."""
    evaluation = await evaluate(keep_calls=True)
    with pytest.raises(sm.ArgumentError, match=r"no run scored 1\.5; the best score is 1"):
        evaluation.to_chat(tmp_path / "chat.jsonl", threshold=1.5)
    assert not (tmp_path / "chat.jsonl").exists()


async def test_calls_that_were_not_kept_are_an_error(tmp_path):
    """The error names the keyword; calls are in no other record."""
    evaluation = await evaluate()
    with pytest.raises(sm.ArgumentError, match="keep_calls=True"):
        evaluation.to_chat(tmp_path / "chat.jsonl")
    assert "lm_calls" not in evaluation.to_json()["results"][0]
    with pytest.raises(sm.ArgumentError, match="keep_results"):
        await evaluate(keep_calls=True, keep_results=False)
