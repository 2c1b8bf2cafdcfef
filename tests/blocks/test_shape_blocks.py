"""Map, Repeat, Fallback: lists, loops and spares."""

import asyncio
import gc
import io
import weakref

import pytest

import synmod as sm


class Doc(sm.DataModel):
    title: str
    kids: list["Doc"] = []


class Shelf(sm.DataModel):
    name: str
    docs: list[Doc]
    n: int = 1


class Count(sm.DataModel):
    n: int


SHELF = Shelf(name="s", docs=[Doc(title="a"), Doc(title="b", kids=[Doc(title="c")])])


def counted(doc):
    """The length of a title."""
    return Count(n=len(doc.title))


async def test_map_replaces_the_list_at_its_place():
    """Order of fields and of items stays; value and symbol agree; nothing else changes."""
    mapped = sm.Map(sm.Lambda(counted, output=Count), "docs")
    value = await mapped(SHELF)
    assert value.get_json() == {"name": "s", "docs": [{"n": 1}, {"n": 1}], "n": 1}
    symbol = await mapped(Shelf.to_symbolic_data_model())
    assert symbol.keys() == ("name", "docs", "n")
    assert value.get_schema() == symbol.get_schema()
    assert SHELF.docs[0].title == "a"


class Drawer(sm.DataModel):
    """A shelf whose list may be missing, null or empty."""

    docs: list[Doc] | None = None


@pytest.mark.parametrize("json", [{}, {"docs": None}, {"docs": []}, {"docs": [{"title": "abc"}]}])
@pytest.mark.parametrize("on_error", ["raise", "collect"])
async def test_map_takes_a_list_that_may_be_missing(json, on_error):
    """Null, nothing and an empty list stay what they are; the value is of the schema that its symbol has."""
    mapped = sm.Map(sm.Lambda(counted, output=Count), "docs", on_error=on_error)
    value = await mapped(sm.JsonDataModel(json, data_model=Drawer))
    symbol = await mapped(Drawer.to_symbolic_data_model())
    counts = [{"n": 3}] if on_error == "raise" else [{"value": {"n": 3}, "error": None}]
    assert value.get_json() == ({"docs": counts} if json.get("docs") else json)
    assert sm.is_subschema(value.get_schema(), symbol.get_schema())
    assert value.docs == json.get("docs") or value.docs == counts
    if not json.get("docs"):
        assert await mapped(value) == value


async def test_blocks_show_no_bar(monkeypatch):
    """A pool inside a block is no work of the user's own: on a terminal nothing is drawn for it."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    await sm.Map(sm.Identity(), "docs")(SHELF)
    await sm.BestOf(sm.Identity(), 2, reward=lambda inputs, outputs: 1.0)(SHELF)
    await sm.Majority(sm.Identity(), 2)(SHELF)
    assert terminal.getvalue() == ""


async def test_map_of_a_list():
    """Without a field the input is a list; results in order, whoever is first."""

    async def slow_first(doc):
        for _ in range(5 if doc.title == "a" else 0):
            await asyncio.sleep(0)
        return doc

    docs = [Doc(title=t) for t in "abc"]
    assert await sm.Map(sm.Lambda(slow_first, output=Doc))(docs) == docs
    assert await sm.Map(sm.Lambda(counted, output=Count))([]) == []
    none = await sm.Map(sm.Lambda(counted, output=Count))([Doc(title="a"), None])
    assert none[1] is None


class Words(sm.DataModel):
    words: list[str]


async def test_map_takes_plain_items_as_values():
    """A text is the field `value` of an object; the symbol has the schema of the results."""
    mapped = sm.Map(sm.Lambda(lambda word: Count(n=len(word.value)), output=Count), "words")
    result = await mapped(Words(words=["a", "bcd"]))
    assert result["words"] == [{"n": 1}, {"n": 3}]
    assert (await mapped(Words.to_symbolic_data_model())).get_schema() == result.get_schema()
    echoed = await sm.Map(sm.Identity(), "words")(Words(words=["a"]))
    assert echoed["words"] == [{"value": "a"}]


async def test_map_on_a_symbol_needs_its_field():
    """A symbol says nothing of how long a list is."""
    mapped = sm.Map(sm.Lambda(counted, output=Count))
    with pytest.raises(sm.ArgumentError, match="field"):
        await mapped(Shelf.to_symbolic_data_model())
    with pytest.raises(sm.ArgumentError, match="field"):
        await mapped(SHELF)
    with pytest.raises(sm.SchemaError, match="Did you mean 'docs'"):
        await sm.Map(sm.Identity(), "doc")(Shelf.to_symbolic_data_model())
    with pytest.raises(sm.SchemaError, match="not a list of objects"):
        await sm.Map(sm.Identity(), "name")(SHELF)


async def test_map_collects_failures_as_data():
    """Each result tells its value or its error, valid for the symbol's schema."""

    def picky(doc):
        if doc.title == "a":
            raise KeyError("no a")
        return Count(n=1)

    mapped = sm.Map(sm.Lambda(picky, output=Count), "docs", on_error="collect")
    value = await mapped(SHELF)
    assert value["docs"] == [
        {"value": None, "error": {"type": "KeyError", "message": "'no a'"}},
        {"value": {"n": 1}, "error": None},
    ]
    symbol = await mapped(Shelf.to_symbolic_data_model())
    sm.JsonDataModel(value.get_json(), schema=symbol.get_schema())
    with pytest.raises(KeyError):
        await sm.Map(sm.Lambda(picky, output=Count), "docs")(SHELF)
    first, second = await sm.Map(sm.Lambda(picky, output=Count), on_error="collect")(SHELF.docs)
    assert (first["error"]["type"], second["value"]) == ("KeyError", {"n": 1})


async def test_map_has_no_place_for_none_in_a_field():
    """A module that gives None for an item is an error that names it."""
    mapped = sm.Map(sm.Lambda(lambda doc: None, output=Count | None), "docs")
    with pytest.raises(sm.CallError, match="item 0 of 'docs'"):
        await mapped(SHELF)
    collected = await sm.Map(sm.Lambda(lambda doc: None, output=Count | None), "docs", on_error="collect")(SHELF)
    assert collected["docs"][0] == {"value": None, "error": None}


async def test_map_is_bounded():
    """Never more items at work than `concurrency`; the module is built once."""
    busy, most = 0, 0

    class Built(sm.Module):
        async def build(self, inputs):
            self.seen = self.add_variable(0, name="seen")

        async def call(self, inputs) -> Doc:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0)
            busy -= 1
            return inputs

    mapped = sm.Map(Built(), concurrency=3)
    await mapped([Doc(title=str(n)) for n in range(50)])
    assert most == 3
    assert list(sm.variables(mapped)) == ["module/seen"]


async def test_repeat_feeds_the_output_back():
    """A number of times, or until a condition holds; None ends it."""
    add = sm.Lambda(lambda count: Count(n=count.n + 1) if count.n < 100 else None, output=Count | None)
    assert (await sm.Repeat(add, 3)(Count(n=0)))["n"] == 3
    assert (await sm.Repeat(add, until=lambda count: count.n >= 5)(Count(n=0)))["n"] == 5

    async def later(count):
        await asyncio.sleep(0)
        return count.n >= 2

    assert (await sm.Repeat(add, until=later)(Count(n=0)))["n"] == 2
    assert await sm.Repeat(add, 7)(Count(n=98)) is None


async def test_repeat_has_a_limit():
    """Reaching it is an error, or the last output by request."""
    add = sm.Lambda(lambda count: Count(n=count.n + 1), output=Count)
    with pytest.raises(sm.CallError, match="max_times=4"):
        await sm.Repeat(add, until=lambda count: False, max_times=4)(Count(n=0))
    kept = sm.Repeat(add, until=lambda count: False, max_times=4, on_limit="return")
    assert (await kept(Count(n=0)))["n"] == 4


async def test_repeat_gives_what_it_takes():
    """A module whose output grows from round to round is refused when composed."""
    grows = sm.Parallel(sm.Identity(), sm.Identity(), merge="concat")
    with pytest.raises(sm.SchemaError, match="must return the schema that it takes"):
        await sm.Repeat(grows, 2)(Count.to_symbolic_data_model())
    assert (await sm.Repeat(grows, 1)(Count.to_symbolic_data_model())).keys() == ("n", "n_1")


def failing(error):
    """A module that raises."""

    def fail(_):
        raise error

    return sm.Lambda(fail, output=Count, name="failing")


async def test_fallback_takes_the_next_on_what_is_named():
    """Other errors are raised at once; all failed: the first, the others as notes."""
    spare = sm.Lambda(lambda _: Count(n=7), output=Count)
    assert (await sm.Fallback(failing(sm.UnavailableError("down")), spare)(Count(n=1)))["n"] == 7
    with pytest.raises(KeyError):
        await sm.Fallback(failing(KeyError("x")), spare)(Count(n=1))
    first = ConnectionError("one")
    with pytest.raises(ConnectionError) as caught:
        await sm.Fallback(failing(first), failing(ConnectionError("two")), on=ConnectionError)(Count(n=1))
    assert caught.value is first
    assert any("'failing' failed too: ConnectionError: two" in note for note in first.__notes__)


async def test_a_failure_that_a_fallback_mended_is_freed_by_counting():
    """Neither the error nor the inputs that its traceback leads to wait for the collector."""
    refs = []

    class Down(ConnectionError):
        def __init__(self):
            refs.append(weakref.ref(self))

    def fail(_):
        raise Down

    block = sm.Fallback(sm.Lambda(fail, output=Count), sm.Identity(), on=ConnectionError)
    gc.collect()
    gc.disable()
    try:
        await block(Count(n=1))
        assert [ref() for ref in refs] == [None]
    finally:
        gc.enable()


async def test_fallback_of_members_that_differ():
    """The schema is `U` of what the members return, each one data model."""

    class Other(sm.DataModel):
        x: int

    both = sm.Fallback(sm.Identity(), sm.Constant(Other(x=1)))
    assert (await both(Count.to_symbolic_data_model())).keys() == ("n", "x")
    several = sm.Fallback(sm.Identity(), sm.Parallel(sm.Identity(), sm.Identity()))
    with pytest.raises(sm.SchemaError, match="must return one data model"):
        await several(Count.to_symbolic_data_model())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sm.Map(sm.Identity(), 3), "field is 3"),
        (lambda: sm.Map(sm.Identity(), concurrency=0), "concurrency must be .*, got 0"),
        (lambda: sm.Map(sm.Identity(), on_error="colect"), "Did you mean 'collect'"),
        (lambda: sm.Repeat(sm.Identity()), "either `times` or `until`"),
        (lambda: sm.Repeat(sm.Identity(), 2, until=len), "either `times` or `until`"),
        (lambda: sm.Repeat(sm.Identity(), 0), "times must be .*, got 0"),
        (lambda: sm.Fallback(), "no members"),
        (lambda: sm.Fallback([sm.Identity()]), "pass them one by one, Fallback"),
        (lambda: sm.Fallback(sm.Identity(), on=("x",)), "on has 'x'"),
    ],
)
def test_arguments_are_checked_when_the_block_is_made(make, says):
    """What cannot run is refused at construction, by name."""
    with pytest.raises(sm.ConfigError, match=says):
        make()
