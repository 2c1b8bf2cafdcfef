"""Copies, configs and files of programs: structure, sharing and graph steps are kept."""

import asyncio
import copy
import pickle
import threading

import pytest

from synmod import ops
from synmod.errors import LoadError, SealedError
from synmod.flow import run
from synmod.module import Module
from synmod.program import Input, Program, Sequential, compose
from synmod.registry import register
from synmod.saving import dumps, loads, save
from synmod.scope import Hook
from synmod.testing import assert_saves
from synmod.tree import merge, split, state, variables
from tests.program.parts import Answer, Echo, Hint, Noted, Query, Reply, Shout, query

for part in (Query, Hint, Answer, Reply, Shout, Echo, Noted):
    register(package="program_tests")(part)


@compose
async def rag(query: Query, hint: Hint | None = None):
    """Answers twice."""
    shared = Shout(name="shared")
    first = await shared(await Reply()(query))
    noted = await Noted()(first)
    return {"loud": await shared(noted), "all": [ops.prefix(query, "my") & first, hint]}


async def expected(program):
    return await program(query("q"), Hint(hint="h"))


@pytest.mark.parametrize(
    "copied",
    [
        lambda: rag.clone(),
        lambda: copy.deepcopy(rag),
        lambda: merge(*split(rag)),
        lambda: pickle.loads(pickle.dumps(rag)),
        lambda: loads(dumps(rag)),
        lambda: Program.from_config(rag.get_config()),
        lambda: Program(inputs=rag.inputs, outputs=rag.outputs, name="rag"),
    ],
    ids=["clone", "deepcopy", "merge", "pickle", "file", "config", "again"],
)
async def test_every_copy_runs_like_its_source(copied):
    """Same steps, same children, same outputs, counters at zero."""
    await expected(rag)
    twin = copied()
    assert [step.name for step in twin.steps] == [step.name for step in rag.steps]
    assert list(variables(twin)) == list(variables(rag))
    assert twin.built
    with pytest.raises(SealedError):
        twin.more = Reply()
    assert twin.cumulated_invocations == 0
    assert await expected(twin) == await expected(rag)
    assert twin.inputs[1].name == "hint"
    assert await twin(query("q")) == await rag(query("q"))
    shared = [step.module for step in twin.steps if step.name == "shared"]
    assert shared[0] is shared[1]


@pytest.mark.parametrize("copied", [lambda: rag.clone(), lambda: loads(dumps(rag))], ids=["clone", "file"])
async def test_a_copy_is_independent(copied):
    """Its modules and Variables are its own, its steps run its own modules."""
    twin = copied()
    assert twin.steps[0].module is twin.reply
    assert twin.reply is not rag.reply
    before = state(rag)
    twin.variables[0].assign({"fields": []})
    assert state(rag) == before


async def test_a_copy_composes_further():
    """Its symbols remember its steps, so that it can be extended or cut like any graph."""
    twin = rag.clone()
    more = Program(inputs=twin.inputs, outputs=await Echo()(twin.outputs["loud"]))
    assert (await more(query("q"), None))["answer"] == "Q"
    middle = twin.steps[1]
    assert middle.inputs[0].keys() == ("answer",)


async def test_clone_has_no_hooks_and_renames():
    """Neither hooks nor counters are kept, and a name may be given."""
    program = rag.clone(name="other")
    assert program.name == "other"
    hooked = Program(inputs=rag.inputs, outputs=rag.outputs, hooks=[Hook()])
    assert hooked.clone().hooks == ()


@pytest.mark.parametrize("program", [rag, Sequential([Input(Query), Noted(), Reply()]), Sequential([Echo()])])
def test_programs_save(program):
    """Saved and loaded, text, graph and state are the same."""
    assert_saves(program)


def test_a_row_comes_back_built_or_open_as_it_was():
    """An unbuilt Sequential can be saved, and is open again after a load."""
    unbuilt = loads(dumps(Sequential([Noted()])))
    assert not unbuilt.built
    unbuilt.add(Reply())
    built = loads(dumps(Sequential([Input(Query), Noted()])))
    assert built.built
    with pytest.raises(SealedError):
        built.add(Reply())


def test_program_load_names_what_it_found(tmp_path):
    """`Program.load` of another root is a LoadError with the class."""
    path = rag.save(tmp_path / "rag.json")
    assert isinstance(Program.load(path), Program)
    save(Reply(), path)
    with pytest.raises(LoadError, match="Reply"):
        Program.load(path)
    rag.save_variables(tmp_path / "values.json")
    assert rag.load_variables(tmp_path / "values.json").applied == ("noted/notes",)


async def test_a_clone_made_during_a_call_is_whole():
    """It shares nothing that runs."""
    begun, release = asyncio.Event(), asyncio.Event()

    class Wait(Module):
        async def call(self, inputs: Query) -> Query:
            begun.set()
            await release.wait()
            return inputs

    x = Input(Query)
    program = Program(inputs=x, outputs=[await Wait()(x), await Echo()(x)])
    running = asyncio.ensure_future(program(query()))
    await begun.wait()
    twin = program.clone()
    release.set()
    assert await running == await twin(query())


def test_one_program_in_many_threads_and_loops(any_loop):
    """Nothing of a program is bound to a loop."""
    results = []

    def work(index):
        results.append(run(rag, query(str(index))))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result["loud"]["answer"] for result in results) == [str(index) for index in range(8)]
    assert any_loop(rag, query("a"))["loud"]["answer"] == "A"
