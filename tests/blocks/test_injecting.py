"""What a tool knows and its model must not choose: values by type, in no schema, prompt, trace, file or error."""

import asyncio
import json
import threading
from functools import partial
from typing import Protocol

import pytest

import synmod as sm
from synmod.testing import ScriptedLM


class Customer(sm.DataModel):
    """Who asks."""

    id: int
    token: str = "SECRET-7f3a"


class Regular(Customer):
    """One who comes often."""


class Database:
    """Not data."""

    def __repr__(self):
        return "SECRET-7f3a"


class Query(sm.DataModel):
    """What is asked."""

    question: str


@sm.register(package="injecting")
def orders(year: int, customer: sm.Injected[Customer], /, *, db: sm.Injected[Database] = None) -> str:
    """List the orders of a year."""
    return f"{customer.id} in {year}, {'no ' if db is None else ''}db"


async def run(tool, *values, **arguments):
    """The result of a tool with values injected."""
    with sm.inject(*values):
        return (await tool(**arguments))["result"]


async def test_an_injected_parameter_is_filled_and_not_offered():
    """Positional or by keyword; a default where nothing is supplied."""
    tool = sm.Tool(orders)
    assert list(tool.function_schema["function"]["parameters"]["properties"]) == ["year"]
    assert await run(tool, Customer(id=7), year=2026) == "7 in 2026, no db"
    assert await run(tool, Customer(id=7), Database(), year=2026) == "7 in 2026, db"
    with pytest.raises(sm.SchemaError):
        await run(tool, Customer(id=7), year=2026, customer={"id": 8})


async def test_the_innermost_then_the_last_wins_and_subclasses_match():
    """A block inside another one adds to it."""
    tool = sm.Tool(orders)
    assert await run(tool, Customer(id=1), Regular(id=2), year=0) == "2 in 0, no db"
    with sm.inject(Customer(id=1), Database()):
        assert await run(tool, Regular(id=3), year=0) == "3 in 0, db"
        assert await run(tool, Database(), year=0) == "1 in 0, db"


async def test_tasks_and_threads_inherit_and_do_not_mix():
    """A plain tool runs in a thread; a hundred customers ask at once."""
    threads = set()

    def who(customer: sm.Injected[Customer]) -> int:
        threads.add(threading.get_ident())
        return customer.id

    tool = sm.Tool(who)
    assert await asyncio.gather(*(run(tool, Customer(id=n)) for n in range(100))) == [*range(100)]
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("wrap", [lambda tool: tool, sm.Cached], ids=["tool", "cached"])
async def test_a_missing_value_is_found_before_the_first_model_call(wrap):
    """It names the tool and the type, in a call of the tool alone, too."""
    lm = ScriptedLM(["hi"])
    agent = sm.Agent([wrap(sm.Tool(orders, name="orders"))], language_model=lm)
    with pytest.raises(sm.CallError, match="orders: no Customer is injected for 'customer'"), sm.inject(Database()):
        await agent(Query(question="?"))
    assert lm.requests == []
    with pytest.raises(sm.CallError, match="no Customer is injected"):
        await sm.Tool(orders)(year=1)


async def test_the_block_ends():
    """Also for a task that outlives it."""
    ended = asyncio.Event()

    async def late():
        await ended.wait()
        return await sm.Tool(orders)(year=1)

    with sm.inject(Customer(id=7)):
        task = asyncio.create_task(late())
        await asyncio.sleep(0)
    ended.set()
    with pytest.raises(sm.CallError, match="no Customer"):
        await task


async def test_it_is_in_no_schema_prompt_trace_file_or_error(tmp_path, caplog):
    """Wherever a run of an agent leaves its traces."""

    @sm.register(package="injecting")
    def refuse(customer: sm.Injected[Customer], db: sm.Injected[Database]) -> str:
        """Refuse."""
        raise sm.ToolError("not for you")

    calls = [sm.ToolCall("1", "orders", {"year": 2026}), sm.ToolCall("2", "refuse", {})]
    lm = ScriptedLM([calls, sm.ToolCall("3", "orders", {"year": "x"}), sm.ToolCall("4", "orders", {"year": "x"})])
    cached = sm.Cached(sm.Tool(orders), sm.Cache(tmp_path / "cache.db"))
    agent = sm.Agent([sm.Tool(orders), refuse], language_model=lm, return_messages=True)
    caplog.set_level("INFO")
    with sm.inject(Customer(id=7), Database()), sm.trace() as trace, sm.hooks(sm.hooks_lib.Logger(values=True)):
        await cached(sm.JsonDataModel({"year": 1}, schema=sm.Tool(orders).input_spec.get_schema()))
        with pytest.raises(sm.BadReplyError) as caught:
            await agent(Query(question="?"))
    cached.cache.close()
    written = [repr(lm.requests), caplog.text, trace.to_html(), json.dumps(sm.dumps(agent)), repr(caught.value)]
    written += [str(agent.tools["orders"].function_schema), *caught.value.__notes__]
    written += [file.read_bytes().decode(errors="replace") for file in tmp_path.iterdir()]
    assert [text for text in written if "SECRET" in text] == []
    assert "7 in 2026" in repr(lm.requests)


async def test_a_cache_does_not_give_one_customer_the_answer_of_another():
    """What is injected into the tools below is part of the key; a block that concerns none of them is not."""
    runs = []

    def who(n: int, customer: sm.Injected[Customer]) -> int:
        runs.append(customer.id)
        return customer.id

    tool = sm.Cached(sm.Tool(who))
    inputs = sm.JsonDataModel({"n": 1}, schema=sm.Tool(who).input_spec.get_schema())

    async def ask(*values):
        with sm.inject(*values):
            return (await tool(inputs))["result"]

    assert [await ask(Customer(id=n)) for n in (1, 2, 1)] == [1, 2, 1]
    assert await ask(Customer(id=1), Database()) == 1
    assert runs == [1, 2]


async def test_a_partial_that_binds_it_and_a_schema_of_ones_own():
    """What is bound stays; where the schema is given, the arguments are passed beside what is injected."""
    bound = partial(orders, db=Database())
    assert await run(sm.Tool(bound, name="orders"), Customer(id=7), year=1) == "7 in 1, db"

    def search(query, customer: sm.Injected[Customer]):
        return f"{query} {customer.id}"

    tool = sm.Tool(search, parameters={"type": "object", "properties": {"query": {"type": "string"}}})
    assert await run(tool, Customer(id=7), query="x") == "x 7"


def test_what_cannot_be_found_by_its_type_is_refused():
    """When the tool is made; nothing is injected by an empty block."""

    class Duck(Protocol):
        pass

    def quack(duck: sm.Injected[Duck]):
        pass

    with pytest.raises(sm.ConfigError, match="found by their type"):
        sm.Tool(quack)
    with pytest.raises(sm.ArgumentError, match="no value"):
        sm.inject()


async def test_generic_and_optional_types_are_found_by_their_classes():
    """`dict[str, int]` by dict; a union by each of its classes."""

    def count(of: str, counts: sm.Injected[dict[str, int]], by: sm.Injected[int | float] = 1) -> float:
        return counts[of] * by

    assert await run(sm.Tool(count), {"a": 2}, of="a") == 2
    assert await run(sm.Tool(count), {"a": 2}, 1.5, of="a") == 3
