"""What a run leaves, records, traces and errors, can be pickled and copied deeply: for worker processes and caches."""

import copy
import copyreg
import pickle

import pytest

import synmod as sm
from synmod import errors
from synmod.testing import SchemaLM, ScriptedLM

WAYS = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy, "copy": copy.copy}


class Query(sm.DataModel):
    text: str


class Team(sm.DataModel):
    team: str


class Around(sm.Module):
    """Calls another module, with a keyword."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    async def call(self, inputs: Query, *, loud: bool = False):
        return await self.inner(inputs)


class Events(sm.Hook):
    """Keeps every event."""

    def __init__(self):
        super().__init__()
        self.events = []

    def __getattribute__(self, name):
        return self.events.append if name.startswith("on_") else super().__getattribute__(name)


async def records():
    """Return one of each public record, by name."""
    generator = sm.Generator({"a": int}, language_model=ScriptedLM([{"a": 1}], cycle=True))
    with sm.trace() as trace, sm.hooks(hook := Events()):
        evaluation = await sm.evaluate(Around(generator), [Query(text="x")], reward=lambda outputs: 1.0)
        await Around(generator)(Query(text="x"), loud=True)
    made = {"Evaluation": evaluation, "Trace": trace, "node": trace.roots[0], "model call": trace.roots[0].children[0]}
    made |= {type(event).__name__: event for event in hook.events}
    with pytest.raises(sm.EvaluationError) as caught:
        failing = sm.Generator({"a": int}, language_model=ScriptedLM(["no"], cycle=True))
        await sm.evaluate(failing, [Query(text="x")], reward=lambda outputs: 1)
    made["EvaluationError"] = caught.value
    model = SchemaLM()
    made |= {"LMReply": await model("Hi"), "LMRequest": model.requests[0]}
    async with await model("Hi", stream=True) as stream:
        made["LMChunk"] = [chunk async for chunk in stream]
    made["EmbeddingReply"] = await sm.EmbeddingModel("embedded/hash")(["a"])
    program = sm.Sequential([sm.Input(Query), sm.Generator(Team, language_model="embedded/nearest")])
    program.compile(reward="exact_match", optimizer=sm.optimizers.RandomFewShot(sets=2))
    rows = [(Query(text=f"x{n}"), Team(team=str(n % 3))) for n in range(12)]
    made["History"] = history = await program.fit(rows, budget=100, verbose=0)
    made |= {"Candidate": history.best, "Budget": history.spent, "State": sm.state(program), "Failed": sm.Failed(1, 2)}
    made |= {"Example": sm.Example("1", *rows[0]), "Feedback": sm.Feedback(1.0, objectives={"a": 1.0})}
    return made


async def test_every_public_record_can_be_pickled_and_copied():
    """Each equals what it was made of."""
    for name, record in (await records()).items():
        for way, act in WAYS.items():
            assert repr(act(record)) == repr(record), f"{name} by {way}"


CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, BaseException)]


@pytest.mark.parametrize("is_dask_imported", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_can_be_pickled_and_copied(cls, way, is_dask_imported, monkeypatch):
    """With its message, its notes and its attributes; distributed registers a way of its own for every error."""
    monkeypatch.delitem(copyreg.dispatch_table, cls, raising=False)
    if is_dask_imported:
        tracebacks = pytest.importorskip("tblib.pickling_support")
        monkeypatch.setitem(copyreg.dispatch_table, cls, tracebacks.pickle_exception)
    error = cls("it failed")
    error.add_note("in 'writer'")
    for number, name in enumerate(getattr(error, "__dict__", {})):
        if name != "__notes__":
            setattr(error, name, (name, number))
    again = WAYS[way](error)
    assert (type(again), str(again), again.args, vars(again)) == (cls, str(error), error.args, vars(error))
