"""Table: a model reads a SQLite file, and nothing else, and nothing for long."""

import sqlite3

import anyio
import pytest

import synmod as sm
from synmod.testing import ScriptedLM

SETUP = """
CREATE TABLE sale (item TEXT, price REAL);
INSERT INTO sale VALUES ('tea', 2), ('sea', 3.5), (x'0102', 9e999);
CREATE TABLE secret (a, b);
INSERT INTO secret VALUES (1, 'hidden');
CREATE VIEW shown AS SELECT a FROM secret;
CREATE VIRTUAL TABLE docs USING fts5(body);
INSERT INTO docs VALUES ('the deep sea');
"""


@pytest.fixture
def path(tmp_path):
    """A file whose name has to be quoted."""
    path = tmp_path / "my shop?mode=rwc#1.db"
    connection = sqlite3.connect(path)
    connection.executescript(SETUP)
    connection.close()
    return path


async def test_a_select_gives_rows(path):
    """With their columns; what is not JSON is text."""
    table = sm.Table(path, name="shop")
    assert await table("SELECT * FROM sale ORDER BY rowid") == {
        "columns": ["item", "price"],
        "rows": [["tea", 2.0], ["sea", 3.5], ["(2 bytes)", "inf"]],
        "more": False,
    }
    assert (await table("SELECT body FROM docs WHERE docs MATCH 'sea'"))["rows"] == [["the deep sea"]]
    assert (await table("SELECT value FROM json_each('[1, 2]')"))["rows"] == [[1], [2]]
    assert (await table("SELECT * FROM shown"))["rows"] == [[1]]
    assert await sm.Table(path, rows=1)("SELECT item FROM sale") == {
        "columns": ["item"],
        "rows": [["tea"]],
        "more": True,
    }


READS = """
SELECT * FROM secret
SELECT count(*) FROM secret
SELECT count(*) FROM main.secret
SELECT b FROM secret sale
SELECT * FROM shown
WITH shown AS (SELECT b FROM secret) SELECT * FROM shown
WITH sale AS (SELECT b FROM secret) SELECT count(*) FROM sale
SELECT item FROM sale WHERE EXISTS (SELECT 1 FROM secret)
SELECT item FROM sale UNION SELECT b FROM secret
SELECT item FROM sale ORDER BY (SELECT b FROM secret)
SELECT * FROM sqlite_master
SELECT count(*) FROM sqlite_schema
SELECT * FROM pragma_table_info('secret')
SELECT count(*) FROM pragma_table_list
PRAGMA table_info(secret)
SELECT * FROM dbstat
DELETE FROM sale
DROP TABLE sale
CREATE TEMP TABLE x (a)
ATTACH ':memory:' AS x
VACUUM INTO '/tmp/x.db'
SELECT load_extension('x')
SELECT 1; SELECT 2
SELECT zeroblob(100000000)
SELECT hex(zeroblob(900000))
SELECT no FROM sale
SELECT
BEGIN
""".strip().splitlines()


@pytest.mark.parametrize(
    "sql", [*READS, "", "\0", "SELECT '\ud800'", "SELECT " + "1," * 99_999 + "1"], ids=range(len(READS) + 4)
)
async def test_nothing_else_can_be_read_or_done(sql, path):
    """A ToolError, which a model reads; the file is as before."""
    before = path.read_bytes()
    table = sm.Table(path, tables=["sale", "docs"])
    with pytest.raises(sm.ToolError):
        await table(sql)
    assert path.read_bytes() == before
    assert "secret" not in table.description and "CREATE TABLE sale" in table.description


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT a.body FROM docs a, c WHERE x < 0",
    ],
)
async def test_a_long_query_is_ended(sql, path):
    """After `seconds`, with a word about it."""
    with pytest.raises(sm.ToolError, match=r"no result within 0\.05 s"):
        await sm.Table(path, seconds=0.05)(sql)


async def test_a_locked_file_is_waited_for_as_long(path):
    """Not for the five seconds of SQLite."""
    table, other = sm.Table(path, seconds=0.01), sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sm.ToolError, match="locked"), anyio.fail_after(3):
        await table("SELECT * FROM sale")
    other.close()


async def test_a_long_result_is_refused(path):
    """Rather than filling the context of the model."""
    sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50) SELECT hex(zeroblob(2000)) FROM c"
    with pytest.raises(sm.ToolError, match="over 100,000 characters"):
        await sm.Table(path)(sql)


async def test_an_agent_reads_it(path, tmp_path):
    """The schema is in the description; a saved agent has the name alone."""
    table = sm.Table(path, tables=["sale"], name="shop")
    calls = [
        sm.ToolCall("1", "shop", {"sql": "SELECT b FROM secret"}),
        sm.ToolCall("2", "shop", {"sql": "SELECT sum(price) FROM sale WHERE price < 9"}),
    ]
    lm = ScriptedLM([*calls, {"total": 5.5}] * 2)
    agent = sm.Agent([table], {"total": float}, language_model=lm)

    class Question(sm.DataModel):
        question: str

    assert (await agent(Question(question="How much?")))["total"] == 5.5
    assert "CREATE TABLE sale" in str(lm.requests[0].tools)
    assert "prohibited" in lm.requests[1].messages[-1].content
    assert "5.5" in lm.requests[2].messages[-1].content
    text = sm.dumps(agent)
    assert str(tmp_path) not in text and "CREATE" not in text
    loaded = sm.loads(text, indexes={"shop": table}, language_models=lm)
    assert (await loaded(Question(question="How much?")))["total"] == 5.5


def test_wrong_arguments_are_named(path, tmp_path):
    """A file that is not there or not SQLite, and a table that is not in it."""
    (tmp_path / "text.db").write_text("no database" * 99)
    for wrong in (tmp_path / "no.db", tmp_path / "text.db"):
        with pytest.raises(sm.ConfigError, match=wrong.name):
            sm.Table(wrong)
    assert not (tmp_path / "no.db").exists()
    with pytest.raises(sm.ConfigError, match="has no table 'sales'. Did you mean 'sale'"):
        sm.Table(path, tables=["sales"])
    with pytest.raises(sm.ConfigError, match="tables must be a list of names"):
        sm.Table(path, tables="sale")
