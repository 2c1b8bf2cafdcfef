"""`sm.last`, and `text(prompts=True)` of a trace: what was sent, as a person reads it."""

import os
import subprocess
import sys

import pytest

import synmod as sm
from synmod.leaves import remember_secrets
from synmod.scope.transcript import transcript
from synmod.testing import ScriptedLM


def test_last_prints_the_prompt_and_the_reply_of_the_last_calls():
    """`sm.last(n)` prints the turns and the reply of the last calls, the last one last."""
    for reply in ("First.", "Second."):
        sm.run(ScriptedLM([reply])("Why <b>?\nAnd how?"))
    assert repr(sm.last()).partition("\n")[2] == "  user:\n    Why <b>?\n    And how?\n  reply:\n    Second."
    assert [call["reply"]["text"] for call in sm.last(2).calls] == ["First.", "Second."]
    assert ">Why &lt;b&gt;?" in sm.last()._repr_html_()


def test_twenty_calls_are_kept():
    """More than 20 calls leave the last 20."""
    model = ScriptedLM([str(number) for number in range(25)])
    for _ in range(25):
        sm.run(model("Why?"))
    assert [call["reply"]["text"] for call in sm.last(100).calls] == [str(number) for number in range(5, 25)]


def test_a_failed_call_is_shown_with_its_error():
    """A call that failed has its prompt and its error, and no reply."""
    with pytest.raises(sm.ModelError):
        sm.run(ScriptedLM([sm.RequestError("refused")])("Why?"))
    assert [heading for heading, _ in transcript(sm.last().calls[0])] == ["user", "error"]


def test_keys_are_scrubbed():
    """A key that a prompt contains is not printed."""
    remember_secrets(["sk-of-this-test-77"])
    sm.run(ScriptedLM(["So."])("My key is sk-of-this-test-77."))
    shown = repr(sm.last()) + sm.last()._repr_html_()
    assert "sk-of-this-test-77" not in shown
    assert "My key is ***." in shown


def test_a_number_that_is_none_is_an_error():
    """`n` is a whole number above zero."""
    with pytest.raises(sm.ArgumentError, match="last: n"):
        sm.last(0)


def test_the_environment_turns_it_off():
    """With SYNMOD_LAST=0 no call is kept."""
    code = (
        "import synmod as sm; from synmod.testing import ScriptedLM; sm.run(ScriptedLM(['So.'])('Why?')); "
        "print(len(sm.last()), sm.last())"
    )
    environment = {**os.environ, "SYNMOD_LAST": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0 No model was called")


def test_images_and_tool_calls_are_named():
    """Of an image its kind is shown, of a tool call its name and arguments."""
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": "data:..."}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]},
    ]
    tools = [{"type": "function", "function": {"name": "f"}}]
    reply = {"text": "", "reasoning": "Hm.", "tool_calls": [{"name": "f", "arguments": {"a": 2}}]}
    assert list(transcript({"request": {"messages": turns, "tools": tools}, "reply": reply})) == [
        ("user", "See:\n[image_url]"),
        ("assistant", 'f({"a": 1})'),
        ("tools", "f"),
        ("reasoning", "Hm."),
        ("reply", 'f({"a": 2})'),
    ]


def test_a_trace_shows_its_prompts():
    """`text(prompts=True)` shows prompt and reply below each model call; without values there is nothing to show."""
    for values, expected in ((True, 1), (False, 0)):
        with sm.trace(values=values) as t:
            sm.run(ScriptedLM(["So."])("Why?"))
        assert t.text(prompts=True).count("  user:\n    Why?\n  reply:\n    So.") == expected
        assert t.text() == str(t)
        assert "Why?" not in t.text()
