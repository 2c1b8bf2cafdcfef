"""One call, step by step: what goes in, what comes out, what is restored."""

import asyncio

import anyio
import pytest

from synmod.data import DataModel, JsonDataModel
from synmod.errors import ArgumentError, CallError, NoCallError, SchemaError
from synmod.module import Module, build
from synmod.scope import FRAME, current_call
from tests.module.models import Answer, Echo, Query, Reply


async def test_an_instance_becomes_a_value():
    """`call` sees a JsonDataModel, whatever the caller had."""
    seen = []

    class Look(Module):
        async def call(self, inputs):
            seen.append(type(inputs))
            return inputs

    out = await Look()(Query(question="Who?"))
    assert seen == [JsonDataModel]
    assert out["question"] == "Who?"


async def test_containers_keep_their_type_and_identity():
    """Nests are rebuilt only where something in them was converted."""
    got = {}

    class Take(Module):
        async def call(self, a, b):
            got.update(a=a, b=b)
            return a[0]

    value = JsonDataModel(Query(question="x"))
    untouched, changed = [value, (value,)], {"k": (Query(question="y"), None)}
    await Take()(untouched, changed)
    assert got["a"] is untouched
    assert isinstance(got["b"]["k"], tuple)
    assert got["b"]["k"][0]["question"] == "y"
    assert got["b"]["k"][1] is None


async def test_models_in_keyword_arguments_become_values_at_any_depth():
    """Keyword arguments may be anything; instances in them are converted too."""

    class Take(Module):
        async def call(self, inputs, *, extra=None, flag=False):
            assert type(extra["docs"][0]) is JsonDataModel
            assert flag == "yes"
            return inputs

    await Take()(Query(question="x"), extra={"docs": [Query(question="y")]}, flag="yes")


async def test_a_plain_call_may_be_no_coroutine():
    """`call` may be a plain `def` where nothing waits."""

    class Plain(Module):
        def call(self, inputs):
            return inputs

    class Passing(Module):
        def __init__(self):
            self.child = Plain()

        def call(self, inputs):
            return self.child(inputs)

    assert (await Passing()(Query(question="x")))["question"] == "x"


async def test_a_call_without_data_works():
    """`await module()` calls and builds without inputs."""

    class Clock(Module):
        def build(self):
            self.ticks = self.add_variable(0, name="ticks")

        async def call(self):
            self.ticks.assign(self.ticks.value + 1)
            return JsonDataModel({"ticks": self.ticks.value}, schema={"type": "object"})

    clock = Clock()
    await clock()
    assert (await clock())["ticks"] == 2


async def test_a_class_without_call_says_so():
    """Calling a class that defines no `call` is a NoCallError naming it."""

    class Silent(Module):
        pass

    with pytest.raises(NoCallError, match="Silent"):
        await Silent()(Query(question="x"))
    with pytest.raises(NoCallError, match="Silent"):
        await Silent()()
    with pytest.raises(NoCallError, match="Silent"):
        await build(Silent(), Query)
    assert await build(Silent()) is None


async def test_a_plain_object_is_validated_and_wrapped_where_one_schema_is_declared():
    """A dict may be returned where the output is declared, and is checked."""

    class Gives(Module):
        async def call(self, inputs) -> Answer:
            return {"answer": "yes"}

    class Wrong(Module):
        async def call(self, inputs) -> Answer:
            return {"antwort": "ja"}

    out = await Gives()(Query(question="x"))
    assert out.to() == Answer(answer="yes")
    with pytest.raises(SchemaError, match="answer"):
        await Wrong()(Query(question="x"))


async def test_declared_structures_are_checked():
    """A tuple that was declared must come; None is allowed for a leaf, for the whole as annotated."""

    class Pair(Module):
        mode = "right"

        async def call(self, inputs) -> tuple[Answer, Query]:
            return {
                "right": (Answer(answer="a"), Query(question="q")),
                "half": (None, Query(question="q")),
                "none": None,
                "single": Answer(answer="a"),
            }[self.mode]

    pair = Pair()
    out = await pair(Query(question="x"))
    assert out[0]["answer"] == "a"
    pair.mode = "half"
    assert (await pair(Query(question="x")))[0] is None
    pair.mode = "none"
    with pytest.raises(CallError, match="return"):
        await pair(Query(question="x"))
    pair.mode = "single"
    with pytest.raises(CallError, match="structure"):
        await pair(Query(question="x"))


async def test_a_call_that_forgets_to_return_is_an_error():
    """Annotated without `| None` it is a CallError; with it, or without an annotation, None passes."""

    class Forgets(Module):
        async def call(self, inputs: Query) -> Answer:
            Answer(answer="a")

    class Declared(Forgets):
        output_spec = Answer

        async def call(self, inputs: Query):
            return None

    class Maybe(Module):
        async def call(self, inputs: Query) -> Answer | None:
            return None

    with pytest.raises(CallError, match=r"is a `return` missing.*\| None"):
        await Forgets()(Query(question="x"))
    assert await Declared()(Query(question="x")) is None
    assert await Maybe()(Query(question="x")) is None


async def test_the_class_validators_run_where_a_class_is_declared():
    """A value that satisfies the schema but not the class is refused, coming in and going out."""
    from pydantic import field_validator

    class Even(DataModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    class Through(Module):
        async def call(self, inputs: Even) -> Even:
            return inputs

    class Odd(Module):
        async def call(self, inputs) -> Even:
            return {"n": 3}

    odd = JsonDataModel({"n": 3}, schema=Even.get_schema())
    with pytest.raises(SchemaError, match="odd"):
        await Through()(odd)
    with pytest.raises(SchemaError, match="odd"):
        await Odd()(Query(question="x"))
    through = Through()
    assert (await through(Even(n=2)))["n"] == 2
    with pytest.raises(SchemaError, match="odd"):
        await through(odd)


async def test_arguments_that_do_not_fit_the_signature():
    """Too many, too few, misspelt: ArgumentError with the signature, before any build."""
    reply = Reply()
    query = Query(question="x")
    for args, kwargs in (((query, query), {}), ((), {}), ((query,), {"trainig": True})):
        with pytest.raises(ArgumentError, match=r"call\(inputs"):
            await reply(*args, **kwargs)
    with pytest.raises(ArgumentError, match="Did you mean 'temperature'"):

        class Warm(Module):
            async def call(self, inputs, temperature=0.0):
                return inputs

        await Warm()(query, temprature=1.0)


async def test_a_rejected_argument_leaves_no_frame():
    """A failure at any step restores the context."""
    reply = Reply()
    for argument in ("x", 3, {"a": 1}, object()):
        with pytest.raises(CallError):
            await reply(argument)
        assert FRAME.get() is None
    assert reply.counters.failed == 4


def test_a_failing_call_raises_itself_with_one_note(any_loop):
    """Errors of user code surface as the same object, noted once by the innermost call."""

    class Boom(Module):
        async def call(self, inputs):
            raise error

    class Around(Module):
        def __init__(self):
            self.inner = Boom()

        async def call(self, inputs):
            return await self.inner(inputs)

    error = KeyError("x")

    async def main():
        with pytest.raises(KeyError) as caught:
            await Around()(Query(question="x"))
        assert caught.value is error
        assert len(error.__notes__) == 1
        assert "'inner' (Boom), call " in error.__notes__[0]
        assert FRAME.get() is None
        del error.__notes__
        del error._synmod_noted_in

    any_loop(main)


@pytest.mark.parametrize("inputs", [Query(question="x"), Query.to_symbolic_data_model()])
@pytest.mark.parametrize("failures", [1, 2])
def test_the_only_failure_of_a_task_group_is_raised_as_itself(any_loop, failures, inputs):
    """So retries, fallbacks and limits see it; its traceback shows where it was raised. Several stay a group."""

    class Crowd(Module):
        async def call(self, inputs):
            async with anyio.create_task_group() as outer, anyio.create_task_group() as inner:
                outer.start_soon(anyio.sleep, 60)
                for _ in range(failures):
                    inner.start_soon(fail)

    async def fail():
        raise error

    error = KeyError("x")

    async def main():
        with pytest.raises(KeyError if failures == 1 else ExceptionGroup) as caught:
            await Crowd()(inputs)
        assert "'crowd' (Crowd), call " in caught.value.__notes__[0]
        assert failures > 1 or (caught.value is error and caught.value.__context__ is None)
        assert failures > 1 or caught.traceback[-1].name == "fail"

    any_loop(main)


async def test_paths_and_ids_of_frames():
    """A frame knows its path below the entry module, its parent and root, and is frozen."""
    seen = []

    class Leaf(Module):
        async def call(self, inputs):
            seen.append(current_call())
            return inputs

    class Tree(Module):
        def __init__(self):
            self.parts = {"a/b": [Leaf()]}
            self.leaf = Leaf()

        async def call(self, inputs):
            await self.parts["a/b"][0](inputs)
            await self.leaf(inputs)
            return await Leaf(name="stray")(inputs)

    await Tree()(Query(question="x"))
    assert [frame.path for frame in seen] == ["parts/a~1b/0", "leaf", "stray"]
    assert [frame.depth for frame in seen] == [1, 1, 1]
    assert all(frame.parent.path == "" and frame.root is frame.parent for frame in seen)
    assert len({frame.id for frame in seen}) == 3
    with pytest.raises(AttributeError):
        seen[0].phase = "reward"


async def test_a_task_that_outlives_its_call_is_an_entry_call():
    """Work that goes on after its call attaches to the nearest live frame, or is an entry call of its own."""
    gate = asyncio.Event()
    inner = Echo(name="late")

    class Spawns(Module):
        async def call(self, inputs):
            async def later():
                await gate.wait()
                assert current_call() is None
                await inner(inputs)

            self.task = asyncio.create_task(later())
            return inputs

    spawns = Spawns()
    await spawns(Query(question="x"))
    gate.set()
    await spawns.task
    assert inner.counters.invocations == 1
    assert inner.counters.nested == 0


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_cancelled_or_closed_call_counts_as_cancelled(how):
    """Neither invocations nor failures move; the frame is gone."""

    class Waits(Module):
        async def call(self, inputs):
            await asyncio.sleep(3600)

    waits = Waits()
    if how == "cancel":
        task = asyncio.create_task(waits(Query(question="x")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        coroutine = waits(Query(question="x"))
        coroutine.send(None)
        coroutine.close()
    assert (waits.counters.cancelled, waits.counters.invocations, waits.counters.failed) == (1, 0, 0)
    assert FRAME.get() is None


async def test_a_class_that_text_made_is_called_like_any_other():
    """`exec` in a bare namespace leaves methods without a module name."""
    names = {"Module": Module}
    exec("class Made(Module):\n    async def call(self, inputs):\n        return inputs\n", names)
    assert (await names["Made"]()(Query(question="x"))).question == "x"


async def test_an_edit_of_another_program_makes_no_table_anew(counted_work):
    """The first call of one program, which builds it, costs the next entry calls of others no walk."""

    class Part(Module):
        async def build(self, inputs):
            self.v = self.add_variable("x", name="v")

        async def call(self, inputs: Query) -> Query:
            return inputs

    class Row(Module):
        def __init__(self):
            super().__init__()
            self.parts = [Part() for _ in range(50)]

        async def call(self, inputs: Query) -> Query:
            return await self.parts[0](inputs)

    row, value = Row(), JsonDataModel({"question": "x"}, data_model=Query)
    await row(value)
    await row(value)
    with counted_work() as before:
        await row(value)
    await Row()(value)
    with counted_work() as after:
        await row(value)
    assert after[0] < before[0] + 100
