"""Tool: a function as a model calls it; arguments are checked before, the result is JSON after."""

import asyncio
import dataclasses
import datetime as dt
import enum
import functools
import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict

import synmod as sm
from synmod.testing import assert_saves

DONE = []


class City(sm.DataModel):
    """A place."""

    name: str


class Point(pydantic.BaseModel):
    """Not a data model of ours."""

    x: float


class Colour(enum.Enum):
    RED = "red"


def parameters(fn, **options):
    """The parameters that a model reads of a function."""
    return sm.Tool(fn, **options).function_schema["function"]["parameters"]


def test_the_schema_is_that_of_the_signature():
    """Literal, unions with None, defaults, enums, pydantic classes and data models; descriptions of the docstring."""

    def plan(
        city: City,
        point: Point,
        unit: Literal["km", "mi"],
        colour: Colour = Colour.RED,
        /,
        limit: int | None = None,
        *,
        names: Annotated[list[str], sm.Field(min_length=1, description="who")] = ["a"],  # noqa: B006
        schema: dict = {},  # noqa: B006
        anything=None,
    ):
        """Plan a tour.

        Through several places.

        Args:
            city: Where it begins,
                and ends.
            unit (str): Of lengths.

        Returns:
            limit: not an argument.
        """

    read = parameters(plan)
    assert read["required"] == ["city", "point", "unit"]
    assert read["additionalProperties"] is False
    about = read["properties"]
    assert (about["city"]["description"], about["unit"]["description"]) == ("Where it begins, and ends.", "Of lengths.")
    assert about["unit"]["enum"] == ["km", "mi"]
    assert about["limit"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Limit"}
    assert (about["names"]["minItems"], about["names"]["default"]) == (1, ["a"])
    assert about["names"]["description"] == "who"
    assert (about["colour"]["default"], about["schema"]["type"]) == ("red", "object")
    assert {"City", "Point", "Colour"} == set(read["$defs"])
    assert sm.Tool(plan).function_schema["function"]["description"] == "Plan a tour."


async def test_a_partial_function_keeps_types_and_docstring():
    """What is bound is not asked for any more."""

    async def ship(city: City, order: int, express: bool = False) -> str:
        """Ship an order.

        Args:
            order: Its number.
        """
        return f"{order} to {city.name}, {express}"

    tool = sm.Tool(functools.partial(ship, City(name="Oslo"), express=True), name="ship")
    function = tool.function_schema["function"]
    assert function["description"] == "Ship an order."
    assert function["parameters"]["properties"]["order"]["description"] == "Its number."
    assert function["parameters"]["required"] == ["order"]
    assert (await tool(order=3))["result"] == "3 to Oslo, True"


class Own:
    """Not JSON."""


OWN = Own()


async def test_defaults_are_those_of_the_function():
    """Those of `Field`, and objects that are not JSON, too; one without annotation is not offered."""

    def search(
        words: list[str] = pydantic.Field(default_factory=list, max_length=2),
        limit: int = pydantic.Field(5, description="How many.", ge=1),
        by: Any = OWN,
        connection=OWN,
        kind: Annotated[str, "Of what."] = "any",
    ):
        return [words, limit, by is OWN, connection is OWN, kind]

    about = parameters(search)["properties"]
    assert list(about) == ["words", "limit", "by", "kind"]
    assert (about["limit"]["default"], about["limit"]["minimum"], about["limit"]["description"]) == (5, 1, "How many.")
    assert ("default" in about["by"], about["kind"]["description"]) == (False, "Of what.")
    tool = sm.Tool(search)
    assert (await tool())["result"] == [[], 5, True, True, "any"]
    assert (await tool(words=["a"], limit=1, kind="b"))["result"] == [["a"], 1, True, True, "b"]
    with pytest.raises(sm.SchemaError, match="limit"):
        await tool(limit=0)


def google(city: str, days: int):
    """Plan.

    Args:
        city (str): Where to.
        days: How long,
            in days.

    Returns:
        city: Not this.
    """


def numpy(city: str, days: int):
    """Plan.

    Parameters
    ----------
    city : str
        Where to.
    days
        How long,
        in days.

    Returns
    -------
    city : str
        Not this.
    """


def sphinx(city: str, days: int):
    """Plan.

    :param str city: Where to.
    :param days: How long,
        in days.
    :returns: Not this.
    """


@pytest.mark.parametrize("fn", [google, numpy, sphinx])
def test_docstrings_of_every_style_describe_parameters(fn):
    """Those of Google, NumPy and Sphinx."""
    described = {name: field["description"] for name, field in parameters(fn)["properties"].items()}
    assert described == {"city": "Where to.", "days": "How long, in days."}


@dataclasses.dataclass
class Stay:
    """A stay."""

    nights: int
    room: str = "any"


class Guest(TypedDict):
    """A guest."""

    name: str


class Desk:
    """A desk."""

    def book(self, stay: Stay, guest: Guest, since: dt.date = dt.date(2024, 5, 17)) -> str:
        """Book a stay."""
        return f"{stay.nights} {guest['name']} {since}"

    @staticmethod
    def at_once(stay: Stay, guest: Guest) -> str:
        """Book a stay."""
        return Desk().book(stay, guest)


@pytest.mark.parametrize(
    "fn",
    [
        Desk().book,
        Desk.at_once,
        functools.lru_cache(Desk.at_once),
        functools.partial(Desk().book, since=dt.date(2024, 5, 17)),
        functools.wraps(Desk.at_once)(lambda *args, **kwargs: Desk.at_once(*args, **kwargs)),
    ],
)
async def test_callables_keep_name_types_and_docstring(fn):
    """Methods, cached, partial and wrapped functions."""
    function = sm.Tool(fn).function_schema["function"]
    assert (function["name"] in ("book", "at_once"), function["description"]) == (True, "Book a stay.")
    assert {"stay", "guest"} <= function["parameters"]["properties"].keys() <= {"stay", "guest", "since"}
    if not isinstance(fn, type(functools.lru_cache(Desk.at_once))):  # its arguments must be hashable
        result = await sm.Tool(fn)(stay={"nights": 2}, guest={"name": "Ada"})
        assert result["result"] == "2 Ada 2024-05-17"


@pytest.mark.parametrize(
    ("result", "json"),
    [
        ("caf\udce9.txt", "caf\ufffd.txt"),
        ("\ud83d\ude00", "\U0001f600"),
        ({"a\ud800": ["\udfff", 1]}, {"a\ufffd": ["\ufffd", 1]}),
        (("a\udce9",), ["a\ufffd"]),
    ],
)
async def test_half_a_character_in_a_result_is_replaced(result, json):
    """Names of files may hold some; two that belong together are one character."""
    assert (await sm.Tool(lambda: result, name="give")())["result"] == json


async def test_arguments_reach_the_function_typed():
    """As its annotations say, wherever they stand in its signature."""

    def show(city: City, colour: Colour = Colour.RED, /, day: dt.date | None = None, *, n: int = 2):
        return [type(x).__name__ for x in (city, colour, day, n)]

    tool = sm.Tool(show)
    assert (await tool(city={"name": "Oslo"}, day="2024-05-17"))["result"] == ["City", "Colour", "date", "int"]
    assert (await tool(city={"name": "Oslo"}))["result"] == ["City", "Colour", "NoneType", "int"]
    given = sm.JsonDataModel({"city": {"name": "Oslo"}}, tool.input_spec.get_schema())
    assert (await tool(given))["result"] == ["City", "Colour", "NoneType", "int"]
    for more in ({"day": "2024-05-17"}, {}):
        with pytest.raises(sm.CallError, match="pass one, or all by keyword"):
            await tool(given, *([] if more else [given]), **more)


@pytest.mark.parametrize("arguments", [{}, {"n": "1"}, {"n": 1, "m": 2}, {"n": -1}, {"n": 13}])
async def test_wrong_arguments_never_reach_the_function(arguments):
    """The schema and the validators of the types are asked first."""

    def lucky(n):
        if n == 13:
            raise ValueError("unlucky")
        return n

    runs = []

    def note(n: Annotated[int, sm.Field(ge=0), pydantic.AfterValidator(lucky)]):
        runs.append(n)

    with pytest.raises(sm.SchemaError):
        await sm.Tool(note)(**arguments)
    assert runs == []


@pytest.mark.parametrize(
    ("result", "json"),
    [
        (None, None),
        ("text", "text"),
        ((1, 2.5), [1, 2.5]),
        (dt.date(2024, 5, 17), "2024-05-17"),
        ({"a": City(name="Oslo")}, {"a": {"name": "Oslo"}}),
        ([City(name="Oslo").to_json_data_model()], [{"name": "Oslo"}]),
        (Point(x=1), {"x": 1.0}),
        (Colour.RED, "red"),
    ],
)
async def test_results_become_json(result, json):
    """Under `result`, whatever the function returns."""
    assert (await sm.Tool(lambda: result, name="give")())["result"] == json


async def test_a_data_model_is_returned_as_it_is():
    """Where the function is annotated to return one; so a tool is a step of a program, too."""

    def look(question: str) -> City:
        return City(name=question)

    class Query(sm.DataModel):
        question: str

    program = sm.Sequential([Query, sm.Tool(look), sm.Prefix("my")])
    assert (await program(Query(question="Oslo"))).get_json() == {"my_name": "Oslo"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: object(),
        lambda: float("nan"),
        lambda: b"\xff",
        lambda: 10**5000,
        lambda: functools.reduce(lambda inner, _: [inner], range(5000), []),
    ],
)
async def test_a_result_that_is_not_json_is_an_error(make):
    """It names the tool, and the type of what may have no repr: too long a number, too deep a list."""
    with pytest.raises(sm.DataError, match=r"give: a result of type .* is not JSON: "):
        await sm.Tool(make, name="give")()


def test_a_plain_function_runs_in_a_thread_and_an_async_one_does_not(any_loop):
    """So that none blocks the loop; the call is known in both."""

    def plain():
        return [threading.current_thread() is threading.main_thread(), sm.current_call().name]

    async def waiting():
        return plain()

    class Asked:
        async def __call__(self):
            """Ask."""
            return plain()

    async def main():
        tools = [sm.Tool(plain), sm.Tool(waiting), sm.Tool(Asked(), name="asked"), sm.Tool(lambda: waiting(), name="x")]
        return [(await tool())["result"] for tool in tools]

    assert any_loop(main) == [[False, "plain"], [True, "waiting"], [True, "asked"], [True, "x"]]


@pytest.mark.parametrize("verdict", [True, False, None, "no"])
@pytest.mark.parametrize("is_async", [True, False])
async def test_approval_comes_before_each_run(verdict, is_async):
    """It gets name and arguments; without it nothing runs: what a person typed is no approval."""
    asked, runs = [], []

    def plain(name, arguments):
        asked.append((name, arguments))
        return verdict

    async def waiting(name, arguments):
        return plain(name, arguments)

    tool = sm.Tool(lambda n: runs.append(n), name="note", approve=waiting if is_async else plain)
    for _ in range(2):
        if verdict is True:
            await tool(n=1)
        else:
            with pytest.raises(sm.ToolError, match="note: this run was not approved"):
                await tool(n=1)
    assert asked == [("note", {"n": 1})] * 2
    assert runs == ([1, 1] if verdict is True else [])


async def test_approval_does_not_change_the_arguments():
    """They were checked before."""

    def tamper(name, arguments):
        arguments["n"] = "other"
        return True

    tool = sm.Tool(lambda n: n, name="echo", parameters={"properties": {"n": {"type": "integer"}}}, approve=tamper)
    assert (await tool(n=1))["result"] == 1


async def test_a_run_that_takes_too_long_is_left():
    """An async function is cancelled, a thread is left to itself; an error of the function's own stays that error."""
    cancelled, release = [], threading.Event()

    async def waiting():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def failing():
        raise TimeoutError("mine")

    try:
        for fn in (waiting, release.wait):
            with pytest.raises(sm.ToolError, match=r"slow: no result within timeout_s=0\.01"):
                await sm.Tool(fn, name="slow", parameters={"type": "object"}, timeout_s=0.01)()
    finally:
        release.set()
    assert cancelled == [True]
    with pytest.raises(TimeoutError, match="mine"):
        await sm.Tool(failing, timeout_s=60)()


def words():
    yield "a"


async def later_words():
    yield "a"


def call_back(fn: Callable[[int], int]):
    return fn(1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sm.Tool(3), "no name"),
        (lambda: sm.Tool(lambda: 1), "pass name"),
        (lambda: sm.Tool(int), "is a class"),
        (lambda: sm.Tool(functools.partial(City)), "is a class"),
        (lambda: sm.Tool(words), "is a generator"),
        (lambda: sm.Tool(later_words), "is a generator"),
        (lambda: sm.Tool(max), "max.*signature"),
        (lambda: sm.Tool(call_back), r"call_back\.fn"),
        (lambda: sm.Tool(len, name="a b"), "name"),
        (lambda: sm.Tool(len, name="länge"), "ASCII"),
        (lambda: sm.Tool(len, name=3), "name"),
        (lambda: sm.Tool(sm.Identity(), name="x"), "function"),
        (lambda: sm.Tool(lambda *args: 1, name="x"), r"\*args"),
        (lambda: sm.Tool(lambda **more: 1, name="x"), r"\*\*more"),
        (lambda: sm.Tool(lambda: 1, name="x", timeout_s=0), "positive"),
        (lambda: sm.Tool(lambda: 1, name="x", timeout_s="1"), "timeout_s"),
        (lambda: sm.Tool(lambda: 1, name="x", approve=3), "approve"),
        (lambda: sm.Tool(lambda: 1, name="x", approve="Ask"), "or 'ask' to ask a person"),
        (lambda: sm.Tool(lambda lock: 1, name="x", parameters={"type": "string"}), "object"),
    ],
)
def test_what_cannot_be_a_tool_is_refused(make, says):
    """With what to write instead."""
    with pytest.raises((sm.ConfigError, sm.SchemaError), match=says):
        make()


def test_a_type_without_a_schema_is_refused():
    """A model could not give it."""

    def hold(lock: threading.Event):
        """Hold it."""

    with pytest.raises((sm.ConfigError, sm.SchemaError), match="hold|Event"):
        sm.Tool(hold)


@sm.register(package="tests_tool")
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def test_a_tool_of_a_registered_function_is_saved():
    """And runs again after a load; another one is refused with the remedy."""
    tool = assert_saves(sm.Tool(add, name="plus", timeout_s=3))
    assert (await tool(a=2))["result"] == 3
    with pytest.raises(sm.SaveError, match="register"):
        sm.dumps(sm.Tool(lambda: 1, name="x"))


async def test_a_model_is_offered_a_tool_itself():
    """`tools=[tool]` of a call; the tool then runs with the arguments of the call."""
    from synmod.testing import SchemaLM

    tool = sm.Tool(add)
    lm = SchemaLM(tool_calls=1)
    reply = await lm("?", tools=[tool])
    assert lm.requests[0].tools == (tool.function_schema,)
    arguments = reply.tool_calls[0].arguments
    assert (await tool(**arguments))["result"] == arguments["a"] + arguments.get("b", 1)
