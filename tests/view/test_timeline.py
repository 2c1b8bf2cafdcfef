"""`to_html`: a trace as one page, which holds everything, lets nothing in, and stays quick with thousands of calls."""

import html
import json
import re
from html.parser import HTMLParser

import pytest

import synmod as sm
from synmod.view import rows_of, trace_page
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
        "name": f"part{number}", "method": None, "phase": "inference", "start": start, "elapsed_s": 0.5,
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


class Tags(HTMLParser):
    """Collects what a browser would take for tags."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def data_of(page):
    """The data that a page holds."""
    return json.loads(re.search(r'<script id="trace" type="application/json">(.*?)</script>', page, re.S)[1])


def test_rows_are_flat_and_siblings_stand_by_their_start():
    """Module calls and model calls alike, each before those below it."""
    child = module_call(2, 3.0, parent="run-1", lm_calls=[model_call(3.1)])
    rows = rows_of(
        trace_of(module_call(1, 1.0, children=[child], lm_calls=[model_call(2.0)]), lm_calls=[model_call(0.5)])
    )
    assert [(row["kind"], row["start"], row["parent"], row["depth"]) for row in rows] == [
        ("model", 0.5, -1, 0), ("module", 1.0, -1, 0), ("model", 2.0, 1, 1),
        ("module", 3.0, 1, 1), ("model", 3.1, 3, 2),
    ]  # fmt: skip
    assert not any(key in row for row in rows for key in ("children", "lm_calls"))


def test_a_deep_trace_is_written_without_recursion():
    """Far deeper than Python could nest calls."""
    call = module_call(0, 0.0)
    for number in range(1, 5_000):
        call = module_call(number, 0.0, children=[call])
    assert len(data_of(trace_page(trace_of(call), None))["rows"]) == 5_000


def test_no_text_of_a_trace_becomes_markup():
    """Prompts, names and errors are data, whatever is in them, and come back to the letter."""
    call = module_call(1, 1.0, name=HOSTILE, error=HOSTILE, lm_calls=[model_call(1.1, asked=HOSTILE, said=HOSTILE)])
    page = trace_page(trace_of(call), None)
    assert HOSTILE not in page
    assert "owned'</" not in page
    tags = [tag for tag, _ in Tags(page).found]
    assert tags.count("script") == 2
    assert "img" not in tags
    rows = data_of(page)["rows"]
    assert rows[0]["error"] == rows[0]["name"] == rows[1]["reply"]["text"] == HOSTILE


def test_the_page_needs_and_allows_nothing_else():
    """No address, no file beside it; its policy admits its own script and looks, by their hashes, and no network."""
    page = trace_page(trace_of(module_call(1, 1.0)), None)
    assert "://" not in page
    (policy,) = [a["content"] for tag, a in Tags(page).found if tag == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not any(name in ("src", "href", "style") or name.startswith("on") for _, a in Tags(page).found for name in a)


def test_our_script_makes_no_markup_of_texts():
    """Elements are made one by one, and texts put in as texts."""
    page = trace_page(trace_of(), None)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(", page)


def test_a_page_is_written_whole(tmp_path):
    """`t.to_html(path)` gives the text, and the file has it; folders are made."""

    class Query(sm.DataModel):
        question: str

    with sm.trace() as t:
        sm.run(sm.Identity(), Query(question="Wie geht's? 你好"))
    path = tmp_path / "traces" / "run.html"
    text = t.to_html(path)
    assert path.read_text("utf-8") == text == t.to_html()
    assert data_of(text)["rows"][0]["inputs"] == [{"question": "Wie geht's? 你好"}]
    assert [each.name for each in path.parent.iterdir()] == ["run.html"]
    with pytest.raises(sm.errors.ArgumentError, match="path=3 is no path"):
        t.to_html(3)


def test_numbers_are_shown_to_the_last_digit():
    """A browser would round an integer of twenty digits; it is shown as text, and others stay numbers."""
    call = module_call(1, 1.0, inputs=[{"id": 12345678901234567890, "few": 7}], outputs={"n": -9007199254740993})
    (row,) = data_of(trace_page(trace_of(call), None))["rows"]
    assert row["inputs"] == [{"id": "12345678901234567890", "few": 7}]
    assert row["outputs"] == {"n": "-9007199254740993"}
    assert row["start"] == 1.0


def test_a_page_of_nothing_says_so(tmp_path):
    """A trace without calls is drawn too."""
    page = tmp_path / "empty.html"
    with sm.trace() as t:
        pass
    t.to_html(page)
    assert "No call was recorded." in shown(page.as_uri(), tmp_path)


def test_a_browser_shows_a_call_with_all_of_it_as_text(tmp_path):
    """Opened from a file at one call: inputs, prompt, reply and error, and nothing of it runs.

    Its model calls are told with it, however many modules it called before.
    """
    page = tmp_path / "trace.html"
    asked = model_call(1.9, asked=HOSTILE, said="It is so.")
    many = [module_call(f"1-{number}", 1.0 + number / 100, parent="run-1") for number in range(30)]
    trace_page(trace_of(module_call(1, 1.0, children=many, lm_calls=[asked], error="ValueError: no")), page)
    dom = shown(page.as_uri() + "#0", tmp_path)
    assert "<title>synmod trace</title>" in dom
    panel = html.unescape(dom[dom.index('<aside id="details"') :])
    for text in ("What is 1?", "ValueError: no", "It is so.", HOSTILE, "Prompt", "Inputs"):
        assert text in panel
    assert "<img" not in dom.split('<script id="trace"')[0]


def test_keys_walk_search_and_look_closer(tmp_path):
    """`n` goes to the next error, `z` looks at one call, `Esc` at all; Enter goes to the next that was found."""
    failing = module_call(3, 2.0, parent="run-2", error="ValueError: no")
    page = tmp_path / "trace.html"
    trace_page(trace_of(module_call(1, 1.0), module_call(2, 2.0, children=[failing])), page)
    script = """<script>
      const note = () => [location.hash, document.getElementById('window').textContent].join(' ');
      const press = (key, at = document.body) => at.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
      const search = document.getElementById('search'), notes = [];
      for (const key of ['n', 'z', 'Escape']) { press(key); notes.push(note()); }
      search.value = 'what is'; search.dispatchEvent(new Event('input'));
      for (let turn = 0; turn < 3; turn += 1) { press('Enter', search); notes.push(location.hash); }
      document.body.append(notes.join('|'));
    </script></body>"""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    page.write_text(text.replace("</body>", script), "utf-8")
    dom = shown(page.as_uri(), tmp_path)
    hint = "Drag to look closer, click to choose a call."
    assert f"#2 {hint}|#2 part3: 500 ms|#2 {hint}|#0|#1|#2" in dom


def test_five_thousand_calls_open_in_three_seconds(tmp_path):
    """Only the lines in sight are made; the search finds one call among them all, and shows who called it."""
    calls = []
    for number in range(1_250):
        start = number * 0.01
        inner = module_call(f"{number}-1", start + 0.1, parent=f"run-{number}", lm_calls=[model_call(start + 0.2)])
        calls.append(module_call(number, start, children=[inner], lm_calls=[model_call(start + 0.4)]))
    page = tmp_path / "trace.html"
    assert len(data_of(trace_page(trace_of(*calls), page))["rows"]) == 5_000
    dom = shown(page.as_uri(), tmp_path)
    assert int(re.search(r'data-ready="(\d+)"', dom)[1]) < 3_000
    assert 10 < dom.count('role="treeitem"') < 100
    assert "2,500 calls" in dom and "2,500 model calls" in dom
    found = shown(page.as_uri() + "#search=what%20is%20777-1", tmp_path)
    assert "1 found" in found
    assert re.findall(r'<span class="label" title="([^"]*)"', found) == ["", "part777-1"]
