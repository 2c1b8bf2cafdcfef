"""Rows of files: YAML and Arrow as plain JSON, each fault with its place."""

import datetime as dt
import io
import json
import sys
from decimal import Decimal

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import synmod as sm
from synmod.data import ROW_READERS


def read(kind, content):
    """Every row with its place."""
    return list(ROW_READERS[kind](content))


@pytest.fixture
def arrow():
    """The library, a hundred megabytes that not every machine has."""
    return pytest.importorskip("pyarrow")


def written(arrow, table, kind):
    """The bytes of a table in a file of that kind."""
    file = io.BytesIO()
    if kind == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, file)
    elif kind == ".feather":
        pytest.importorskip("pyarrow.feather").write_feather(table, file)
    else:
        with arrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    return file.getvalue()


ARROW_KINDS = [".parquet", ".feather", ".arrow"]


@pytest.mark.parametrize("kind", ARROW_KINDS)
def test_cells_of_arrow_are_plain_json(arrow, kind):
    """Whatever their type: nested, by dictionary, dates, decimals and texts in bytes; null and NaN are missing."""
    columns = {
        "text": arrow.array(["a", None]).dictionary_encode(),
        "number": [1.5, float("nan")],
        "day": [dt.date(2024, 1, 2), None],
        "time": arrow.array([dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), None], arrow.timestamp("us", "UTC")),
        "price": [Decimal("1.50"), Decimal("2")],
        "bytes": [b"hi", None],
        "nested": [{"list": [1, 2]}, None],
        "map": arrow.array([[("k", 1)], []], arrow.map_(arrow.string(), arrow.int64())),
    }
    (_, first), (place, second) = read(kind, written(arrow, arrow.table(columns), kind))
    assert json.loads(json.dumps(first, allow_nan=False)) == {
        "text": "a",
        "number": 1.5,
        "day": "2024-01-02",
        "time": "2024-01-02T03:00:00Z",
        "price": 1.5,
        "bytes": "hi",
        "nested": {"list": [1, 2]},
        "map": [["k", 1]],
    }
    assert place == "row 1"
    assert second == {**dict.fromkeys(columns), "price": 2, "map": []}


@pytest.mark.parametrize("kind", ARROW_KINDS)
def test_a_cell_that_is_not_json_is_a_fault_of_its_row(arrow, kind):
    """Bytes that are not text, and infinity; the other rows are read."""
    for column, fault in (
        (arrow.array([b"a", b"\xff"]), "/x: a value of type bytes"),
        (arrow.array([0.0, float("inf")]), "/x: inf"),
    ):
        (_, row), (place, error) = read(kind, written(arrow, arrow.table({"x": column}), kind))
        assert list(row) == ["x"]
        assert place == "row 1"
        assert fault in str(error)


def test_a_broken_file_of_arrow_is_a_data_error(arrow):
    """Empty, cut off, with one column twice, with bytes that are not text in a column of texts, or of another kind."""
    parts = [None, arrow.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), arrow.py_buffer(b"a\xff")]
    bytes_as_text = arrow.table({"x": arrow.Array.from_buffers(arrow.string(), 2, parts)})
    content = written(arrow, arrow.table({"x": ["a"] * 9}), ".parquet")
    twice = arrow.Table.from_arrays([arrow.array([1]), arrow.array([2])], ["x", "x"])
    for broken in (b"", content[:-30], b"PAR1", *(written(arrow, bad, ".arrow") for bad in (twice, bytes_as_text))):
        for kind in ARROW_KINDS:
            with pytest.raises(sm.DataError):
                read(kind, broken)


def test_any_change_of_a_byte_gives_rows_or_a_data_error(arrow):
    """What a broken file holds is checked before it is read: it may point to anywhere in memory."""
    table = arrow.table(
        {"text": ["a", None, "c"], "d": arrow.array(["x", "y", "x"]).dictionary_encode(), "n": [[1], [], None]}
    )

    @settings(deadline=None, max_examples=150, derandomize=True)
    @given(st.sampled_from([(kind, written(arrow, table, kind)) for kind in ARROW_KINDS]), st.data())
    def check(file, draw):
        kind, content = file
        place = draw.draw(st.integers(0, len(content) - 1))
        changed = content[:place] + bytes([draw.draw(st.integers(0, 255))]) + content[place + 1 :]
        try:
            rows = read(kind, changed)
        except sm.DataError:
            return
        assert all(isinstance(row, dict | sm.DataError) for _, row in rows)

    check()


def test_yaml_is_a_list_of_rows():
    """Dates become texts; a mark at the beginning is no text."""
    content = "\ufeff- text: ü\n  day: 2024-01-02\n- {text: '*', list: [1, null, yes]}\n".encode()
    assert read(".yaml", content) == [
        ("line 1", {"text": "ü", "day": "2024-01-02"}),
        ("line 3", {"text": "*", "list": [1, None, True]}),
    ]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor for the tag"),
        ("{day: 2024-13-45}", "month must be in 1..12"),
        ("{n: .nan}", "/n: nan"),
        ("{n: !!timestamp x}", "it cannot be read"),
        ("{n: !!bool maybe}", "maybe"),
        ("{? [a] : b}", "unhashable key"),
    ],
)
def test_a_yaml_row_that_cannot_be_read_is_its_own_fault(row, fault):
    """No tag makes an object; the other rows are read."""
    (place, error), (_, other) = read(".yml", f"- {row}\n- text: a\n".encode())
    assert place == "line 1"
    assert isinstance(error, sm.DataError)
    assert fault in str(error)
    assert other == {"text": "a"}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("- &a [x, x]\n- &b [*a, *a]\n- [*b, *b]\n", r"line 2: \*a is an alias; write its value out"),
        ("- text: [1\n", "line 2: did not find"),
        ("text: a\n", "begin each with a dash"),
        ("", "begin each with a dash"),
        ("- a\n---\n- b\n", "line 2: but found another document"),
        ("[" * 5000, "exceeded maximum nesting depth"),
        ("- \0", "not allowed"),
    ],
)
def test_a_hostile_yaml_file_is_a_data_error(content, fault):
    """Aliases of aliases, which grow without end, are not followed."""
    with pytest.raises(sm.DataError, match=fault):
        read(".yaml", content.encode())


@pytest.mark.parametrize(("kind", "library"), [(".yaml", "pyyaml"), (".parquet", "pyarrow"), (".arrow", "pyarrow")])
def test_a_missing_library_is_named_with_what_installs_it(monkeypatch, kind, library):
    """In place of an error of the import."""
    for name in ("yaml", "pyarrow", "pyarrow.parquet", "pyarrow.feather"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(sm.ConfigError, match=f"pip install {library}"):
        read(kind, b"- a")


def test_tabs_alone_stand_between_the_cells_of_a_tsv_file():
    """A comma in the header does not; a line that is not whole is named."""
    assert read(".tsv", b"a, b\tc\nx, y\tz\n") == [("line 2", {"a, b": "x, y", "c": "z"})]
    with pytest.raises(sm.DataError, match="line 2: '\t' expected"):
        read(".tsv", b'a\tb\n"x" y\tz\n')
    assert [str(row) for _, row in read(".tsv", b"a\tb\n1\n")] == ["1 cells for 2 columns."]
