"""Which model answers: strings, the default model, and models that stand in."""

import asyncio
import threading

import pytest

import synmod as sm
from synmod.errors import ConfigError
from synmod.lm import (
    LanguageModel,
    current_language_model,
    default_language_model,
    model_from,
    resolve_model,
    set_default_language_model,
    use_language_models,
)
from synmod.testing import FunctionLM


@pytest.fixture(autouse=True)
def no_default():
    """Each test begins and ends without a default model."""
    set_default_language_model(None)
    yield
    set_default_language_model(None)


def test_equal_strings_are_one_model():
    """A string names one model of the process, from every thread."""
    made = []
    threads = [threading.Thread(target=lambda: made.append(model_from("embedded/nearest"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, made))) == 1


@pytest.mark.parametrize("wrong", ["gpt-4o", 3, "", "/x", "a/", "a b/c"])
def test_what_names_no_model_is_refused(wrong):
    """A string without a slash shows the form."""
    with pytest.raises(ConfigError):
        model_from(wrong, "Generator")


def test_the_form_is_shown():
    """The message shows provider/name."""
    with pytest.raises(ConfigError, match="provider/name"):
        LanguageModel("gpt-4o")


def test_without_any_model_the_error_says_all():
    """ConfigError naming module path, `language_model=`, the statement and the block."""
    with pytest.raises(ConfigError) as caught:
        resolve_model(None, "pipeline/writer")
    for words in ("pipeline/writer", "language_model=", "set_default_language_model", "with sm.default_language_model"):
        assert words in str(caught.value)


def test_a_statement_holds_for_every_thread():
    """Threads and tasks that exist already see the default of the process."""
    lm = FunctionLM(lambda request: "x")
    seen = []
    go = threading.Event()
    thread = threading.Thread(target=lambda: (go.wait(), seen.append(resolve_model(None, "x"))))
    thread.start()
    set_default_language_model(lm)
    go.set()
    thread.join()
    assert seen == [lm]
    set_default_language_model(None)
    assert current_language_model() is None


def test_a_block_wins_and_gives_back():
    """`with` holds for the block; the default of the process is what it was before."""
    process, block = FunctionLM(lambda request: "p"), FunctionLM(lambda request: "b")
    set_default_language_model(process)
    with default_language_model(block) as inner:
        assert inner is block
        assert resolve_model(None, "x") is block
        set_default_language_model(None)
        assert resolve_model(None, "x") is block
        set_default_language_model(process)
    assert resolve_model(None, "x") is process


def test_a_block_of_none_has_no_default():
    """None in a block means none, whatever the process says."""
    set_default_language_model(FunctionLM(lambda request: "p"))
    with default_language_model(None):
        assert current_language_model() is None


def test_other_threads_do_not_see_a_block():
    """A block is a ContextVar: another thread keeps the default of the process."""
    process = FunctionLM(lambda request: "p")
    set_default_language_model(process)
    seen = []
    with default_language_model(FunctionLM(lambda request: "b")):
        thread = threading.Thread(target=lambda: seen.append(current_language_model()))
        thread.start()
        thread.join()
    assert seen == [process]


def test_blocks_that_begin_at_once_in_many_threads_leave_no_default():
    """The process keeps its default, however blocks of several threads interleave."""
    lms = [FunctionLM(lambda request: "x") for _ in range(4)]

    def work(lm):
        for _ in range(300):
            with default_language_model(lm):
                assert current_language_model() is lm

    threads = [threading.Thread(target=work, args=(lm,)) for lm in lms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert current_language_model() is None


async def test_tasks_started_in_a_block_inherit_it():
    """What the block starts sees it; siblings do not."""
    lm = FunctionLM(lambda request: "b")

    async def look():
        await asyncio.sleep(0)
        return current_language_model()

    with default_language_model(lm):
        task = asyncio.create_task(look())
    assert await task is lm
    assert current_language_model() is None


async def test_one_model_stands_in_for_all():
    """Every call begun in the block goes to it, whatever is called."""
    real, double = FunctionLM(lambda request: "real"), FunctionLM(lambda request: "double")
    with use_language_models(double):
        assert (await real("x")).text == "double"
        assert (await double("x")).text == "double"
    assert (await real("x")).text == "real"
    assert (real.cumulated_calls, double.cumulated_calls) == (1, 2)


async def test_a_mapping_stands_in_by_name():
    """A mapping of saved names stands in for those alone; `m` serves `m#2` too."""
    double = FunctionLM(lambda request: "double")
    named = [FunctionLM(lambda request: "real", name=name) for name in ("m", "m#2", "other")]
    with use_language_models({"m": double}):
        assert [(await lm("x")).text for lm in named] == ["double", "double", "real"]
    with use_language_models({"m": double, "m#2": named[2]}):
        assert (await named[1]("x")).text == "real"


async def test_a_mapping_may_swap_two_models():
    """Standing in is decided once, so two models may answer for each other."""
    one = FunctionLM(lambda request: "one", name="one")
    two = FunctionLM(lambda request: "two", name="two")
    with use_language_models({"one": two, "two": one}):
        assert ((await one("x")).text, (await two("x")).text) == ("two", "one")


async def test_the_innermost_block_wins():
    """Blocks nest; an inner mapping leaves the others to the outer block."""
    inner, outer, real = (FunctionLM(lambda request, text=text: text, name=text) for text in ("inner", "outer", "real"))
    with use_language_models(outer):
        with use_language_models(inner):
            assert (await real("x")).text == "inner"
        with use_language_models({"else": inner}):
            assert (await real("x")).text == "outer"
        assert (await real("x")).text == "outer"


async def test_a_stand_in_serves_modules_without_a_model():
    """One model that stands in for all also answers where there is no default."""
    double = FunctionLM(lambda request: "double")
    with use_language_models(double):
        assert resolve_model(None, "x") is double


def test_what_stands_in_must_be_a_model():
    """Anything else is a ConfigError that names the place."""
    with pytest.raises(ConfigError, match="'m'"), use_language_models({"m": 3}):
        pass
    with pytest.raises(ConfigError), use_language_models("gpt-4o"):
        pass


async def test_a_call_under_way_keeps_its_model():
    """Only calls begun in the block go to the stand-in."""
    real = FunctionLM(lambda request: "real", latency_s=0.01)
    task = asyncio.create_task(real("x"))
    await asyncio.sleep(0)
    with use_language_models(FunctionLM(lambda request: "double")):
        assert (await task).text == "real"


def test_the_front_door_has_them():
    """The names are at the top."""
    assert sm.set_default_language_model is set_default_language_model
    assert sm.default_language_model is default_language_model
    assert sm.use_language_models is use_language_models
