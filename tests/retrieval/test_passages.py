"""Passages of texts, files and folders: nothing is lost, none is too long, ids are stable."""

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import synmod as sm

PIECES = st.sampled_from(
    [
        "word ",
        "A sentence. ",
        "Why? ",
        "\n\n",
        "\n",
        "海は深い。",
        "x" * 40,
        "# Head\n",
        "Head\n==\n",
        "---\n",
        "```\n",
        "é",
        "<b>",
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)


@given(TEXTS, st.integers(1, 60), st.data())
def test_nothing_is_lost_and_nothing_is_too_long(text, size, data):
    """Without an overlap exactly the text but for white space; with one, no more of it twice than it allows."""
    exact = sm.passages(text, size=size, overlap=0)
    assert "".join("".join(p.text for p in exact).split()) == "".join(text.split())
    overlap = data.draw(st.integers(0, size - 1))
    passages = sm.passages(text, size=size, overlap=overlap)
    assert all(0 < len(passage.text) <= size for passage in [*exact, *passages])
    joined = "".join("".join(passage.text for passage in passages).split())
    assert len(joined) <= len(text) + overlap * len(passages)
    rest = iter(joined)
    assert all(character in rest for character in "".join(text.split()))  # in this order
    assert len({passage.id for passage in passages}) == len(passages)
    assert passages == sm.passages(text, size=size, overlap=overlap)


def test_sections_begin_with_their_heading():
    """A `#` in a block of code is no heading."""
    parts = [
        (None, "what is\nbefore\n---\n\n---\n\n- item\n---"),
        ("Tea", "# Tea #\nA drink.\n````sh\n```\n# not one\n```\n````"),
        ("C#", "  ## C#\nIt is sharp.\n"),
        ("Green tea", "Green tea\n---\nIt is\ngreen.\n---\n~~~\nNo\n==\n~~~\n"),
        ("Sea", "Sea\n="),
    ]
    text = "\n".join(part for _, part in parts)
    for end in ("\n", "\r\n"):
        passages = sm.passages(text.replace("\n", end))
        assert [(p.metadata.get("heading"), p.text.replace(end, "\n")) for p in passages] == [
            (heading, part.strip()) for heading, part in parts
        ]


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_front_matter_is_not_text(end):
    """A block of YAML at the very beginning is left out; a rule there, or a later one, is text."""
    text = end.join(["---", "title: Tea", "tags:", "  - drink", "---", "# Tea", "A drink."])
    assert [p.text for p in sm.passages(text)] == [end.join(["# Tea", "A drink."])]
    assert sm.passages(end.join(["---", "title: Tea", "---"])) == []
    for whole in (end.join(["---", "A drink: tea.", "---"]), f"Tea{end}{text}"):
        assert "".join(p.text for p in sm.passages(whole)).startswith(whole.split()[0])
        assert "---" in sm.passages(whole)[0].text


def test_a_long_section_is_cut_between_sentences():
    """With the last sentence repeated where it is short enough."""
    text = "One is here. Two is here. Three is here. Four is here."
    pieces = [p.text for p in sm.passages(text, size=30, overlap=15)]
    assert pieces == ["One is here. Two is here.", "Two is here. Three is here.", "Three is here. Four is here."]
    assert [p.text for p in sm.passages("abcdefgh", size=3, overlap=0)] == ["abc", "def", "gh"]


def test_a_folder_is_read(tmp_path):
    """Markdown, text and HTML, in order, with the file's name; hidden and other files are left out."""
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.md").write_text("# Head\ntext", encoding="utf-8")
    (tmp_path / "b" / "c.TXT").write_bytes("caf\u00e9".encode("latin-1"))
    (tmp_path / "d.html").write_text(
        "<title>T</title><style>p {}</style><p>One<br>two</p><script>no()</script>"
        "<![x[]><h2>Big <i>head</i></h2><p>a &amp; b</p>"
    )
    (tmp_path / "e.py").write_text("no")
    (tmp_path / ".git" / "f.md").write_text("no")
    passages = sm.passages(tmp_path)
    assert [(p.metadata["file"], p.metadata.get("heading")) for p in passages] == [
        ("a.md", "Head"),
        ("b/c.TXT", None),
        ("d.html", None),
        ("d.html", "Big head"),
    ]
    assert passages[1].text == "caf\u00e9"
    assert re.sub(r"\s+", "|", passages[2].text) == "T|One|two"
    assert re.sub(r"\s+", " ", passages[3].text) == "Big head a & b"
    assert [p.metadata for p in sm.passages(tmp_path / "e.py")] == [{"file": "e.py"}]


def test_a_page_that_breaks_off_is_text(tmp_path):
    """Where older versions of Python would take minutes for 90 kB."""
    (tmp_path / "a.html").write_text("<h1>Tea</h1>" + "<p " * 30_000)
    passages = sm.passages(tmp_path, overlap=0)
    assert {p.metadata["heading"] for p in passages} == {"Tea"}
    assert "".join("".join(p.text for p in passages).split()) == "Tea" + "<p" * 30_000


def test_what_has_not_changed_keeps_its_id(tmp_path):
    """So that an index adds only what is new."""
    path = tmp_path / "a.md"
    path.write_text("# A\none\n# B\ntwo\n# B\ntwo")
    index = sm.KeywordIndex()
    assert sm.run(index.add(sm.passages(path))) == 3
    path.write_text("# Z\nzero\n# A\none\n# B\ntwo\n# B\ntwo")
    assert sm.run(index.add(sm.passages(path))) == 1


def test_wrong_arguments_are_named(tmp_path):
    """And a file that is not there."""
    for kwargs, words in (({"size": 0}, "size must be"), ({"overlap": 800}, "overlap must be less than size=800")):
        with pytest.raises(sm.ArgumentError, match=words):
            sm.passages("x", **kwargs)
    with pytest.raises(sm.ArgumentError, match="source must be a Path"):
        sm.passages(5)
    with pytest.raises(sm.DataError, match="No such file"):
        sm.passages(Path(tmp_path / "no.md"))
