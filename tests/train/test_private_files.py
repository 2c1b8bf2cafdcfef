"""Files that hold prompts or data, and the folders made for them, are for their owner alone."""

import os
import stat

import pytest

import synmod as sm
from synmod.testing import RecordReplayLM, SchemaLM

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no permission bits on this system")


class Query(sm.DataModel):
    text: str


class Answer(sm.DataModel):
    answer: str


async def write_everything(folder):
    """Write a file of each kind, each in a folder of its own that is missing."""
    generator, rows = sm.Generator(Answer, language_model=SchemaLM()), [(Query(text="x"), Answer(answer="y"))]
    await sm.KeywordIndex(folder / "a/b/words.db").add([{"id": "1", "text": "tea"}])
    await sm.VectorIndex("embedded/hash", folder / "c/d/vectors.db").add([{"id": "1", "text": "tea"}])
    cache = sm.Cache(folder / "e/f/cache.db")
    await cache.keep("k", {"a": 1})
    await sm.Generator(Answer, language_model=RecordReplayLM(folder / "g/h/cassette.jsonl", SchemaLM()))(rows[0][0])
    with sm.hooks(sm.hooks_lib.Recorder(folder / "i/j/calls.jsonl")), sm.trace() as trace:
        await generator(rows[0][0])
    trace.to_html(folder / "k/l/trace.html")
    evaluation = await sm.evaluate(generator, rows, reward="exact_match", run=folder / "m/n/run")
    evaluation.to_csv(folder / "o/p/rows.csv")
    sm.Run(folder / "m/n/run").export(folder / "q/r/run.jsonl")
    program = sm.Sequential([sm.Input(Query), sm.Generator(Answer, language_model="embedded/nearest")])
    program.compile(reward="exact_match", optimizer=sm.optimizers.RandomFewShot(sets=2))
    callbacks = [sm.callbacks.CSVLogger(folder / "s/t/log.csv")]
    many = [(Query(text=f"x{n}"), Answer(answer=str(n % 3))) for n in range(12)]
    history = await program.fit(many, budget=100, run=folder / "m/n/fit", verbose=0, callbacks=callbacks)
    history.to_csv(folder / "w/x/history.csv")
    sm.save_variables(program, folder / "y/z/values.json")
    return cache


async def test_what_holds_prompts_or_data_is_for_its_owner_alone(tmp_path):
    """0600 and 0700 whatever the umask allows, the log and the index of a database included."""
    before = os.umask(0o000)
    try:
        cache = await write_everything(tmp_path / "new")
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    finally:
        os.umask(before)
    assert {oct(mode) for path, mode in modes.items() if path.is_file()} == {"0o600"}
    assert {oct(mode) for path, mode in modes.items() if path.is_dir()} == {"0o700"}
    assert {path.suffix for path in modes} >= {".db", ".db-wal", ".db-shm", ".jsonl", ".csv", ".html", ".json", ""}
    await cache.aclose()


async def test_what_exists_keeps_its_mode(tmp_path):
    """A folder or a file that its owner shares on purpose stays shared."""
    tmp_path.chmod(0o755)
    names = ("index.db", "calls.jsonl", "cassette.jsonl")
    for name in names:
        (tmp_path / name).touch(0o644)
        (tmp_path / name).chmod(0o644)
    await (index := sm.KeywordIndex(tmp_path / "index.db")).add([{"id": "1", "text": "tea"}])
    await index.aclose()
    model = RecordReplayLM(tmp_path / "cassette.jsonl", SchemaLM())
    with sm.hooks(sm.hooks_lib.Recorder(tmp_path / "calls.jsonl")):
        await sm.Generator(Answer, language_model=model)(Query(text="x"))
    assert all((tmp_path / name).stat().st_size for name in names)
    assert {oct(stat.S_IMODE((tmp_path / name).stat().st_mode)) for name in names} == {"0o644"}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
