"""`to_html`: a trace as one page of nested calls, which needs no script and no other file."""

import json
import re
from html.parser import HTMLParser

import pytest

import synmod as sm
from synmod.view import trace_page
from tests.view.browser import shown

HOSTILE = (
    "</script><script>document.title='owned'</script><!-- <script> ]]> <img src=x onerror=\"document.title='owned'\">"
)
USED = {
    "calls": 1, "requests": 1, "prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 0, "reasoning_tokens": 0,
    "cost_usd": 0.25, "estimated": False,
}  # fmt: skip


def module_call(number, start, *, parent=None, children=(), lm_calls=(), **more):
    """A module call, as `to_json` writes it."""
    return {
        "call_id": f"run-{number}", "parent_id": parent, "path": "" if parent is None else f"part{number}",
        "name": f"part{number}", "phase": "inference", "start": start, "elapsed_s": 0.5,
        "inputs": [{"question": f"What is {number}?"}], "kwargs": {}, "outputs": {"answer": "so"}, "error": None,
        "usage": USED, "rewards": [], "lm_calls": list(lm_calls), "children": list(children), **more,
    }  # fmt: skip


def model_call(start, *, said="so", asked="Why?", **more):
    """A model call, as `to_json` writes it."""
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": asked}]
    return {
        "model": "own/model", "phase": "inference", "start": start, "elapsed_s": 0.2,
        "request": {"messages": messages, "schema": None, "tools": None, "params": {}},
        "reply": {"text": said, "reasoning": None, "tool_calls": [], "finish_reason": "stop", "model": "own/model",
                  "request_id": None},
        "error": None, "attempts": 1, "cached": False, "tokens": 15, "cost_usd": 0.25, "usage": USED, **more,
    }  # fmt: skip


def trace_of(*calls, lm_calls=()):
    """A whole trace."""
    return {"version": 1, "dropped": 0, "usage": USED, "calls": list(calls), "lm_calls": list(lm_calls)}


class Page(HTMLParser):
    """What a browser would take for tags, and the text of each summary and of each field."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.depth, self.deepest, self.texts, self.inside = [], 0, 0, [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "details":
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
        self.inside = tag
        if tag == "pre":
            self.texts.append("")

    def handle_endtag(self, tag):
        self.depth -= tag == "details"
        self.inside = None

    def handle_data(self, data):
        if self.inside == "pre":
            self.texts[-1] += data

    def calls(self):
        """The classes of the calls, in order."""
        classes = [attributes["class"] for tag, attributes in self.tags if tag == "details"]
        return [each for each in classes if each != "facts"]


def test_calls_are_nested_and_siblings_stand_by_their_start():
    """Module calls and model calls alike, each inside the call that made it."""
    child = module_call(2, 3.0, parent="run-1", lm_calls=[model_call(3.1)])
    call = module_call(1, 1.0, children=[child], lm_calls=[model_call(2.0)])
    page = Page(trace_page(trace_of(call, lm_calls=[model_call(0.5)])))
    assert page.calls() == ["model", "module", "model", "module", "model"]
    assert (page.deepest, page.depth) == (4, 0)  # three calls, and the values of the last


def test_bars_show_which_calls_ran_side_by_side():
    """A bar begins where its call began, and is as wide as the call was long."""
    calls = [module_call(1, 10.0, elapsed_s=2.0), module_call(2, 11.0, elapsed_s=3.0)]
    page = trace_page(trace_of(*calls))
    assert 'style="left:0.00%;width:50.00%"' in page
    assert 'style="left:25.00%;width:75.00%"' in page


@pytest.mark.slow
@pytest.mark.interpreter
def test_bars_of_a_reward_lie_within_the_page():
    """It comes after the call that it judges."""
    page = trace_page(trace_of(module_call(1, 0.0, children=[module_call(2, 1.0, parent=1)])))
    ends = [float(left) + float(wide) for left, wide in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", page)]
    assert max(ends) == pytest.approx(100, abs=0.02)


def test_a_deep_trace_is_written_without_recursion():
    """Far deeper than Python could nest calls; the first five thousand calls are drawn."""
    call = module_call(0, 0.0)
    for number in range(1, 6_000):
        call = module_call(number, 0.0, children=[call])
    text = trace_page(trace_of(call))
    page = Page(text)
    assert (len(page.calls()), page.deepest, page.depth) == (5_000, 5_001, 0)
    assert "the first 5,000 calls are shown, to_json has all" in text


def test_no_text_of_a_trace_becomes_markup():
    """Prompts, names and errors are texts, whatever is in them, and come back to the letter."""
    call = module_call(1, 1.0, path=HOSTILE, error=HOSTILE, lm_calls=[model_call(1.1, asked=HOSTILE, said=HOSTILE)])
    text = trace_page(trace_of(call))
    assert HOSTILE not in text
    page = Page(text)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert page.texts.count(HOSTILE) == 3  # error, prompt and reply


def test_the_page_needs_and_allows_nothing_else():
    """No script, no address, no file beside it; its policy admits its own looks alone."""
    text = trace_page(trace_of(module_call(1, 1.0)))
    assert "://" not in text
    page = Page(text)
    (policy,) = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert not any(name in ("src", "href") or name.startswith("on") for _, a in page.tags for name in a)


def test_prompt_and_reply_stand_in_place_and_errors_stand_out():
    """Each message as it was sent, the text of the reply, tokens and cost; a failed call is marked."""
    asked = model_call(1.1, asked="Why\nso?", said="It is so.")
    text = trace_page(trace_of(module_call(1, 1.0, lm_calls=[asked], error="ValueError: no")))
    page = Page(text)
    assert page.calls() == ["module failed", "model"]
    for shown_text in ("Answer.", "Why\nso?", "It is so.", "ValueError: no"):
        assert shown_text in page.texts
    assert "15 tokens, $0.2500" in text


def test_what_was_cut_or_dropped_is_told():
    """A call that still runs has no time; calls beyond the bound of the trace are counted."""
    running = trace_of(module_call(1, 1.0, elapsed_s=None)) | {"dropped": 3}
    text = trace_page(running)
    assert ">running<" in text
    assert "3 calls beyond the bound not recorded" in text


def test_a_page_is_written_whole(tmp_path):
    """`t.to_html(path)` returns the path, and the file has the text; folders are made."""

    class Query(sm.DataModel):
        question: str

    with sm.trace() as t:
        sm.run(sm.Identity(), Query(question="Wie geht's? 你好"))
    path = tmp_path / "traces" / "run.html"
    assert t.to_html(str(path)) == path
    text = path.read_text("utf-8")
    assert text == t.to_html()
    assert "Wie geht's? 你好" in text
    assert [each.name for each in path.parent.iterdir()] == ["run.html"]
    with pytest.raises(sm.errors.ArgumentError, match="a path must be"):
        t.to_html(3)


@pytest.mark.slow
def test_a_browser_opens_it(tmp_path):
    """Opened from a file: the whole page is there, and nothing of it runs."""
    page = tmp_path / "trace.html"
    page.write_text(trace_page(trace_of(module_call(1, 1.0, lm_calls=[model_call(1.1, asked=HOSTILE)]))), "utf-8")
    found = Page(shown(page.as_uri(), tmp_path))
    assert found.calls() == ["module", "model"]
    assert HOSTILE in found.texts
    assert not {"script", "img"} & {tag for tag, _ in found.tags}


def test_tool_calls_stand_where_the_text_would():
    """A reply without text, and the turn that sends it back, show what was called."""
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    first = model_call(1.0)
    first["reply"] |= {"text": "", "tool_calls": [call]}
    second = model_call(2.0)
    second["request"]["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "3", "tool_call_id": "1"},
    ]
    texts = Page(trace_page(trace_of(lm_calls=[first, second]))).texts
    assert [json.loads(text) for text in texts if text.startswith("[")] == [[call], [call]]
    assert "3" in texts
