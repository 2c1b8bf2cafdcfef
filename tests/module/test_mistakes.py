"""What mistakes say: where, what was got, what was wanted, the next step."""

import dataclasses
import re

import pydantic
import pytest

import synmod as sm
from synmod.data import DataModel, SymbolicDataModel
from synmod.errors import (
    ArgumentError,
    CallError,
    ConfigError,
    DataError,
    GraphError,
    NotBuiltError,
    RunError,
    SchemaError,
    SynmodError,
)
from synmod.flow import run
from synmod.module import Module
from synmod.program import Input, Program
from synmod.tree import Param
from tests.module.models import Answer, Built, Echo, Notes, Query, Reply

q = Query(question="x")


class Wide(DataModel):
    """Two required fields."""

    a: str
    b: int


class TakesWide(Module):
    """Wants both."""

    async def call(self, inputs: Wide, *, mood="calm"):
        return inputs


async def said(pending) -> str:
    """The message of the error that awaiting raises."""
    with pytest.raises(SynmodError) as caught:
        await pending
    return str(caught.value)


async def test_a_forgotten_await_names_await():
    """On an input, and in an operator."""
    echo = Echo()
    pending = echo(q)
    assert "await" in await said(echo(pending))
    pending.close()
    pending = echo(q)
    with pytest.raises(DataError, match="await"):
        SymbolicDataModel(data_model=Query) + pending
    pending.close()


async def test_a_forgotten_await_by_keyword_or_in_a_program_names_await():
    """Where the build needs it, and where a program is composed."""
    with pytest.raises(CallError, match="argument 'inputs' is a coroutine.*await"):
        await Built()(inputs=Echo()(q))
    source = Input(data_model=Query)
    pending = Echo()(source)
    for outputs in (pending, [pending]):
        with pytest.raises(GraphError, match="await"):
            Program(inputs=source, outputs=outputs)
    pending.close()


async def test_what_build_needs_by_keyword_must_be_data():
    """A text given by keyword is an error as it is by position."""
    assert "argument 'inputs' is a str, not data" in await said(Built()(inputs="x"))


async def test_a_call_that_was_never_awaited_is_told_by_a_public_name():
    """Python's own warning speaks of `Module.__call__`, the refusal of a second loop of a line that can be written."""
    pending = Echo()(q)
    assert pending.__qualname__ == "Module.__call__"
    with pytest.raises(RunError, match=re.escape("`await module(...)`")):
        run(pending)
    with pytest.raises(RunError, match=re.escape("`await echo(...)`")):
        run(Echo(), q)


async def test_arguments_that_do_not_fit_are_counted_and_named():
    """What was got beside what is taken."""
    assert "got 2 positional arguments. The signature is call(inputs" in await said(Reply()(q, q))
    text = await said(TakesWide()(Wide(a="", b=1), moood="calm"))
    assert "unknown argument 'moood'; got 1 positional argument and by keyword 'moood'" in text
    assert "Did you mean 'mood'?" in text


async def test_a_text_names_the_demanded_class():
    """The one of its parameter, or the one thing that is declared; else data, or a keyword."""

    class Spec(Module):
        input_spec = Answer

        async def call(self, inputs):
            return inputs

    text = await said(Reply()("What?"))
    assert "'reply' (Reply): argument 0 is a str, not data: write Query(...)." in text
    assert "write Answer(...)" in await said(Spec()("What?"))
    assert "by keyword" in await said(Echo()("hello"))


async def test_a_dict_of_plain_json_names_json_data_model():
    """With the place where it stands."""
    text = await said(Reply()({"question": "x"}))
    assert "sm.JsonDataModel(x, data_model=Query)" in text
    text = await said(Echo()({"docs": [q, q, 3]}))
    assert "argument 0, key 'docs', index 2" in text
    assert "is an int" in text


@dataclasses.dataclass
class Record:
    """A dataclass of plain values."""

    a: str


class Row(pydantic.BaseModel):
    """A pydantic class that is not a data model."""

    a: str


@pytest.mark.parametrize("record", [Record("x"), Row(a="x")])
async def test_a_record_of_another_kind_is_told_to_be_a_data_model(record):
    """A dataclass of values, or a pydantic instance, as an input or as an output."""

    class Returns(Module):
        async def call(self, inputs):
            return record

    class Declares(Module):
        async def call(self, inputs) -> Answer:
            return record

    name = type(record).__name__
    assert f"argument 0 is a {name}, not data: derive {name} from sm.DataModel." in await said(Echo()(record))
    for module in (Returns(), Declares()):
        assert f"call returned a {name}, which is not data. Derive {name} from sm.DataModel." in await said(module(q))


async def test_a_class_names_an_instance_and_input():
    """A data-model class has no value."""
    text = await said(Reply()(Query))
    assert "Query(...)" in text
    assert "sm.Input(data_model=Query)" in text


async def test_the_wrong_model_names_both_sides():
    """Path, argument, the fields of both, what validation found, and where the contract came from."""

    class Other(DataModel):
        a: int

    text = await said(TakesWide(name="wide")(Other(a=1)))
    for part in (
        "'wide' (TakesWide)",
        "argument 0",
        "Other(a)",
        "Wide(a, b)",
        "key 'b'",
        "/a: wanted string",
        "of call",
    ):
        assert part in text
    built = Built()
    await built(q)
    text = await said(built(Answer(answer="x")))
    for part in ("Answer(answer)", "Query(question)", "built on"):
        assert part in text


async def test_swapped_and_missing_inputs_name_both_sides():
    """Inputs swapped, one too many, one too few."""

    class Two(Module):
        async def call(self, a: Query, b: Answer):
            return a

    two = Two()
    answer = Answer(answer="y")
    assert "argument 0: got Answer(answer), wanted Query(question)" in await said(two(answer, q))
    assert "call(a: " in await said(two(q))
    assert "call(a: " in await said(two(q, answer, q))


async def test_another_structure_names_both():
    """A list where one model belongs, or two where three do."""

    class Spec(Module):
        def __init__(self):
            self.input_spec = [Query, Answer]

        async def call(self, inputs):
            return inputs[0]

    spec = Spec()
    await spec((q, Answer(answer="x")))
    text = await said(spec([q]))
    assert "structure" in text
    assert "input_spec" in text
    assert "got a list" in await said(Reply()([q]))


async def test_misspelt_names_are_guessed():
    """Constructor keywords, config keys and fields."""
    with pytest.raises(ConfigError, match=r"Did you mean 'hooks'.*name, description, trainable, hooks"):
        Echo(hook=[])
    with pytest.raises(ConfigError, match="Did you mean 'name'"):
        Echo.from_config({"nmae": "x"})

    class Mood(Module):
        def __init__(self, mood, **kwargs):
            super().__init__(**kwargs)

    with pytest.raises(ConfigError, match="Did you mean 'trainable'"):
        Mood("good", trainble=False)

    class ReadsWrong(Module):
        async def call(self, inputs):
            return Answer(answer=inputs["questoin"])

    assert "Did you mean 'question'" in await said(ReadsWrong()(q))


@pytest.mark.parametrize("output", ["text", {"answer": "x"}, 3, [1], object()])
async def test_an_output_that_is_no_data_names_its_type_and_the_remedy(output):
    """Wrap it, or declare the output."""

    class Returns(Module):
        async def call(self, inputs):
            return output

    text = await said(Returns()(q))
    assert f" {type(output).__name__}" in text or "int" in text
    assert "-> Answer" in text


async def test_a_coroutine_as_output_names_await():
    """A forgotten await in front of the last call."""

    class Forgets(Module):
        async def call(self, inputs):
            return Echo()(inputs)

    module = Forgets()
    with pytest.raises(CallError, match="await") as caught, pytest.warns(RuntimeWarning, match="never awaited"):
        try:
            await module(q)
        except CallError as error:
            error.__traceback__ = None
            import gc

            gc.collect()
            raise
    assert caught


def test_listing_variables_before_build_names_the_line():
    """With the module and `sm.build`."""

    class Outer(Module):
        def __init__(self):
            self.inner = Built()

        async def call(self, inputs):
            return await self.inner(inputs)

    for view in ("variables", "trainable_variables", "non_trainable_variables"):
        with pytest.raises(NotBuiltError, match=r"inner.*sm\.build"):
            getattr(Outer(), view)


def test_a_class_that_cannot_be_is_refused_when_it_is_made():
    """ConfigError naming class and attribute."""
    from synmod.tree import Param

    cases = {
        "define call": {"__call__": lambda self: None},
        "generator": {"call": lambda self: (yield)},
        "staticmethod": {"call": staticmethod(lambda: None)},
        "classmethod": {"build": classmethod(lambda cls: None)},
        "'variables'": {"variables": ()},
        "'path'": {"path": "x"},
        "'prompt' is a Variable": {"prompt": Param("x")},
    }
    for text, namespace in cases.items():
        with pytest.raises(ConfigError, match=re.escape(text)) as caught:
            type("Wrong", (Module,), namespace)
        assert "Wrong" in str(caught.value)


async def test_an_optional_field_that_may_be_missing_is_no_misfit():
    """Further fields are welcome, annotations do not matter, and a value that fits is taken."""

    class Loose(DataModel):
        question: str
        more: str = "more"

    await Reply()(Loose(question="x"))
    await TakesWide()(Wide(a="x", b=1))
    with pytest.raises(SchemaError):
        await TakesWide()(Notes())


@dataclasses.dataclass
class Held:
    """A container of its own kind."""

    inside: object


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"k": (v,)}, Held, lambda v: {v}])
def test_a_variable_on_a_class_is_refused_in_any_container(wrap):
    """All instances would share it without anybody seeing it; the error names class and attribute."""
    with pytest.raises(ConfigError, match=r"class Shared: 'rules' is a Variable on the class"):
        type("Shared", (Module,), {"rules": wrap(Param("x"))})


@pytest.mark.parametrize(
    ("make", "guess"),
    [
        (lambda: sm.BestOf(modul=Echo(), n=3, reward=len), "unknown argument 'modul'. Did you mean 'module'"),
        (lambda: sm.BestOf(Echo(), 3, reward=len, treshold=1), "unknown argument 'treshold'. Did you mean 'threshold'"),
        (lambda: sm.ChainOfThought(datamodel=Query), "unknown keyword 'datamodel'. Did you mean 'data_model'"),
        (
            lambda: sm.Sequential(member=[Echo()]),
            "unknown argument 'member'. Did you mean 'members'? It accepts: members,",
        ),
        (lambda: sm.Fallback(Echo(), module=Echo()), "Fallback: unknown argument 'module'"),
    ],
)
def test_a_misspelt_required_argument_is_named(make, guess):
    """Before what is missing, since the misspelt one is why it is missing."""
    with pytest.raises(ConfigError, match=re.escape(guess)):
        make()


def test_hooks_that_are_not_a_list_are_refused():
    """One hook, or something else in the place of a list, is an ArgumentError that shows the list."""
    with pytest.raises(sm.errors.ArgumentError, match=r"hooks must be a list of hooks, `hooks=\[\.\.\.\]`, got 3"):
        Module(hooks=3)


def test_declared_slots_are_attributes_like_others():
    """`__slots__` of a class of one's own hides nothing from the graph."""

    class Slotted(Module):
        __slots__ = ("echo", "note")

        def __init__(self):
            super().__init__()
            self.echo, self.note = Echo(), Param("x")

    module = Slotted()
    assert module.submodules == (module.echo,)
    assert sm.variables(module)["note"].value == "x"
    assert isinstance(module.clone().echo, Echo)


@pytest.mark.parametrize("keyword", ["name", "description", "trainable", "hooks"])
def test_a_constructor_that_hands_nothing_on_shows_what_to_write(keyword):
    """An argument of every module is only there where the constructor takes it."""

    class Closed(Module):
        def __init__(self, size, style="brief"):
            super().__init__()

    remedy = "write `def __init__(self, size, style='brief', **options)` and `super().__init__(**options)` in Closed."
    with pytest.raises(ConfigError, match=re.escape(remedy)):
        Closed(1, **{keyword: None})


async def test_errors_show_a_label_beside_the_path():
    """Where one was given: in the note of a failure, and where a module refuses its inputs."""

    class Fails(Module):
        async def call(self, inputs):
            raise KeyError("x")

    with pytest.raises(KeyError) as caught:
        await sm.Sequential([sm.Identity(), Fails(name="technical")])(Query(question="?"))
    assert caught.value.__notes__[0].startswith("in '1 (technical)' (Fails), call ")
    with pytest.raises(KeyError) as caught:
        await sm.Sequential([sm.Identity(), Fails()])(Query(question="?"))
    assert caught.value.__notes__[0].startswith("in '1' (Fails), call ")


def test_fields_in_place_of_a_data_model_show_the_model():
    """As in DSPy: the message has the class that `call` takes, where it is known."""
    with pytest.raises(ArgumentError, match=r"Fields go in one data model: Query\(question=\.\.\.\)\."):
        run(Reply(), question="Why?")
    with pytest.raises(ArgumentError, match=r"Fields go in one data model: Query\(text=\.\.\.\)\."):
        run(sm.Identity(), text="Why?")


def test_too_many_positional_arguments_show_what_goes_by_keyword():
    """Names alone, not the whole signature."""
    with pytest.raises(ConfigError, match=r"only data_model by position, schema=..., language_model.* by keyword\."):
        sm.Generator(Query, "embedded/nearest")


def test_a_sealed_module_shows_how_a_value_is_set():
    """Where another Variable was to take the place of one."""
    built = Built()
    run(built, q)
    with pytest.raises(
        sm.SealedError, match=r"The value of the Variable can be changed: `module\.notes\.assign\(json\)`\."
    ):
        built.notes = Param("y")
    with pytest.raises(GraphError, match=r"`module\.notes\.assign\(json\)`"):
        built.notes = {"fields": []}
    built.notes.value = {"fields": ["question", "more"]}
    assert built.notes.version == 1


async def test_an_annotation_of_data_with_an_unknown_name_is_an_error():
    """Of an input, an output, a program: it would otherwise lift the contract unseen."""

    class TakesUnknown(Module):
        async def call(self, inputs: "Tickt"):  # noqa: F821
            return inputs

    class ReturnsUnknown(Module):
        async def call(self, inputs) -> "sm.JsonDataModel[Answr]":  # noqa: F821
            return inputs

    class KeywordUnknown(Module):
        async def call(self, inputs: Query, *, log: "Logger" = None):  # noqa: F821
            return inputs

    for module, name in ((TakesUnknown(), "Tickt"), (ReturnsUnknown(), "Answr")):
        with pytest.raises(ConfigError, match=f"call: the name '{name}' in the annotation .* is not defined: define"):
            await module(q)
    assert await KeywordUnknown()(q) == q

    async def wired(query: "Tickt"):  # noqa: F821
        return query

    with pytest.raises(ConfigError, match="the name 'Tickt'"):
        sm.compose(wired)


async def test_training_is_a_known_keyword_of_every_call():
    """A misspelt one is told what was meant."""
    for module in (Echo(), sm.Generator(Answer), await composed()):
        assert "Did you mean 'training'?" in await said(module(q, trainning=True))


async def composed():
    """A program of one Input."""
    source = Input(data_model=Query)
    return Program(inputs=source, outputs=await Echo()(source))


async def test_a_second_input_is_told_how_inputs_are_combined():
    """A module of one input takes one data model."""
    text = await said(sm.Generator(Answer)(q, Answer(answer="x")))
    assert "too many positional arguments" in text
    assert "It takes one data model: several are combined by `x + y`." in text


async def test_a_call_without_self_is_told_so():
    """Python would speak of a number of arguments."""

    class Selfless(Module):
        async def call(inputs):  # noqa: N805
            return inputs

    assert "Is `self` missing? Write `call(self, inputs)`." in await said(Selfless()(q))


async def test_a_getattr_of_ones_own_declares_nothing():
    """A module that forwards missing names to a member has not the contract of that member."""

    class Inner(Module):
        input_spec = output_spec = Answer

        async def call(self, inputs):
            return inputs

    class Forwards(Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def __getattr__(self, name):
            return getattr(vars(self)["inner"], name)

        async def call(self, inputs):
            return inputs

    assert Forwards().input_spec is None
    assert await Forwards()(q) == q


def test_parameters_may_be_called_like_those_of_python():
    """`cls` of a constructor, `main` of what `sm.run` runs."""

    class OfClass(Module):
        def __init__(self, cls, self_=None):
            super().__init__()
            self.model = cls

    assert OfClass(cls=Query).model is Query

    async def echo(main):
        return main

    assert run(echo, main=3) == 3


async def test_none_by_keyword_is_the_branch_not_taken():
    """For a parameter annotated with data, as by position; for any other it is a value."""

    class Joins(Module):
        async def call(self, inputs, *, extra: Query, tone=None):
            return Query(question=str(tone))

    assert await Joins()(q, extra=None) is None
    assert (await Joins()(q, extra=q, tone=None))["question"] == "None"
