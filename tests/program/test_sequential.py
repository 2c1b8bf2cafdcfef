"""Sequential: members in a row."""

import asyncio
import copy
import functools
import re

import pytest

import synmod as sm
from synmod.blocks import Lambda
from synmod.errors import BadNameError, CallError, ConfigError, GraphError, NotBuiltError, SchemaError, SealedError
from synmod.flow import run
from synmod.module import Module, build
from synmod.program import Input, Program, Sequential
from synmod.scope import current_call
from synmod.tree import merge, paths_of, split, variables
from tests.program.parts import Answer, Echo, Hint, Noted, Nothing, Query, Reply, Shout, TakesNone, WaitingBuild, query


def test_each_member_gets_what_the_one_before_returned(any_loop):
    """Whole, in order."""

    async def main():
        return await Sequential([Reply(), Shout()])(query("who"))

    assert any_loop(main)["answer"] == "WHO"


def test_members_stand_at_int_steps():
    """Children `0`, `1`, ...; an Input is none; paths are tuples of ints."""
    reply, shout = Reply(), Shout()
    sequence = Sequential([Input(Query), reply, shout], "mine")
    assert sequence.name == "mine"
    assert sequence.members == (reply, shout)
    assert sequence.submodules == (reply, shout)
    assert paths_of(sequence, shout) == [(1,)] or list(paths_of(sequence, shout)) == [(1,)]
    assert sequence.get_module("1") is shout
    assert sequence.get_module((0,)) is reply
    assert all(isinstance(name, str) for name in dir(sequence))


@pytest.mark.parametrize(
    "make",
    [
        lambda *members: Sequential(*members, name="mine"),
        lambda *members: Sequential([*members], "mine"),
        lambda *members: Sequential(iter(members), name="mine"),
    ],
    ids=["arguments", "a list", "an iterator"],
)
def test_members_in_a_list_or_one_argument_each(make):
    """It is the same Sequential, and saved as the same bytes."""
    made = make(Input(Query), Echo(), Echo())
    assert made.built
    assert sm.dumps(made) == sm.dumps(Sequential([Input(Query), Echo(), Echo()], name="mine"))
    assert sm.dumps(made.clone()) == sm.dumps(sm.loads(sm.dumps(made))) == sm.dumps(made)
    assert repr(make(Echo())) == repr(Sequential([Echo()], name="mine"))


async def test_paths_of_frames_and_state_use_the_index():
    """Calls and Variables are keyed by the place."""
    seen = []

    class Look(Module):
        async def call(self, inputs):
            seen.append(current_call().path)
            return inputs

    sequence = Sequential([Noted(), Look()])
    await sequence(query())
    assert seen == ["1"]
    assert list(variables(sequence)) == ["0/notes"]


async def test_empty_it_returns_its_input_as_call_gets_it():
    """An instance comes back as a value."""
    assert await Sequential()(query()) == query()
    assert await Sequential()(None) is None


async def test_a_single_member_is_that_member():
    """One member, one call."""
    assert await Sequential([Reply()])(query("a")) == Answer(answer="a")


async def test_plain_callables_are_members():
    """Functions, async functions, callables of any kind; a return annotation declares the output."""

    def wrap(x) -> Answer:
        return {"answer": x["question"]}

    async def again(x):
        return Answer(answer=x["answer"] + "!")

    class Call:
        def __call__(self, x):
            return x

    def keep(x, k):
        return x.in_mask(k)

    sequence = Sequential([wrap, again, Call(), functools.partial(keep, k="answer")])
    assert (await sequence(query("a")))["answer"] == "a!"


async def test_what_a_callable_returns_is_data():
    """A str, or a dict without a declaration, is a CallError with the remedy."""
    with pytest.raises(CallError, match="Answer"):
        await Sequential([lambda x: "text"])(query())
    with pytest.raises(CallError):
        await Sequential([lambda x: {"answer": "x"}])(query())


async def test_further_arguments_go_to_the_first_member():
    """Positional and by keyword to modules, positional to functions."""

    class Two(Module):
        async def call(self, a: Query, b: Hint, *, loud=False) -> Answer:
            return Answer(answer=a["question"] + b["hint"] + ("!" if loud else ""))

    assert (await Sequential([Two(), Shout()])(query("a"), Hint(hint="b"), loud=True))["answer"] == "AB!"

    def two(a, b) -> Answer:
        return Answer(answer=a["question"] + b["hint"])

    assert (await Sequential([two, Shout()])(query("a"), Hint(hint="b")))["answer"] == "AB"


async def test_none_flows_by_the_rule_of_each_member():
    """Members that take no None are passed over, one that takes it runs."""
    shout = Shout()
    assert await Sequential([Nothing(), shout])(query()) is None
    assert shout.counters.nested == 0
    assert (await Sequential([Nothing(), TakesNone()])(query()))["answer"] == "none"
    assert await Sequential([Nothing(), lambda x: x])(query()) is None
    assert await Sequential([Reply()])(None) is None


def test_a_function_becomes_a_lambda_of_its_name():
    """So it is seen in paths, summaries and traces, and saved where it is registered."""
    sequence = Sequential([str_upper, lambda x: x])
    assert [type(member) for member in sequence.members] == [Lambda, Lambda]
    assert [member.name for member in sequence.members] == ["str_upper", "lambda_"]


async def test_without_input_it_builds_at_the_first_call_member_by_member():
    """On what really reaches each member."""
    first, second = Noted(), Noted()
    sequence = Sequential([first, Reply(), second])
    assert not sequence.built
    with pytest.raises(NotBuiltError):
        _ = sequence.variables
    await sequence(query())
    assert sequence.built
    assert [v.value["fields"] for v in sequence.variables] == [["question"], ["answer"]]


async def test_sm_build_builds_the_whole_row():
    """From a schema, without a call."""
    sequence = Sequential([Noted(), Reply()])
    outputs = await build(sequence, Query)
    assert outputs.keys() == ("answer",)
    assert sequence.built


@pytest.mark.parametrize("first", [Input(Query), Query])
def test_with_an_input_first_the_constructor_builds_at_once(first):
    """Without a loop, without a model; a class stands for its Input."""
    sequence = Sequential([first, Noted(), Reply()])
    assert sequence.built
    assert len(sequence.variables) == 1
    assert run(sequence, query("a"))["answer"] == "a"


async def test_it_builds_at_once_inside_a_running_loop_too():
    """Driving needs no loop of its own."""
    assert Sequential([Input(Query), Noted()]).built


async def test_the_input_is_its_contract():
    """Another model is refused before the first member; a subschema passes."""
    sequence = Sequential([Input(Query), Echo()])
    with pytest.raises(SchemaError):
        await sequence(Hint(hint="h"))
    with pytest.raises(SchemaError):
        await sequence(Input(Hint))
    assert await sequence(query()) == query()


async def test_a_build_that_waits_is_left_to_the_first_call():
    """It stays unbuilt, nothing is half-made, and `sm.build` needs no schema then."""
    sequence = Sequential([Input(Query), Noted(), WaitingBuild()])
    assert not sequence.built
    assert not sequence.members[0].built
    outputs = await build(sequence)
    assert outputs.keys() == ("question",)
    assert sequence.built
    other = Sequential([Input(Query), WaitingBuild()])
    assert await other(query()) == query()
    assert other.built


def test_an_error_of_a_build_is_raised_by_the_constructor():
    """As itself."""

    class Wrong(Module):
        async def build(self, inputs):
            raise LookupError("mine")

        async def call(self, inputs):
            return inputs

    with pytest.raises(LookupError, match="mine"):
        Sequential([Input(Query), Wrong()])
    with pytest.raises(SchemaError):
        Sequential([Input(Hint), Reply()])


def test_an_input_elsewhere_than_first_is_a_graph_error():
    """In the constructor, and by `add`."""
    for members in ([Echo(), Input(Query)], [Input(Query), Input(Query)]):
        with pytest.raises(GraphError, match="first"):
            Sequential(members)
    with pytest.raises(GraphError, match="first"):
        Sequential([Echo()]).add(Input(Query))


@pytest.mark.parametrize("member", [3, "text", None, Reply])
def test_other_members_are_config_errors(member):
    """Values, and classes of modules, with the index."""
    with pytest.raises(ConfigError, match="member 1"):
        Sequential([Echo(), member])


async def test_add_and_pop_until_it_is_built():
    """Then they are SealedErrors; the config follows."""
    sequence = Sequential()
    sequence.add(Input(Query))
    sequence.add(Reply())
    shout = Shout()
    sequence.add(shout)
    assert sequence.pop() is shout
    sequence.add(lambda x: x)
    assert len(sequence.members) == 2
    assert len(sequence.get_config()["members"]) == 3
    assert (await sequence(query("a")))["answer"] == "a"
    with pytest.raises(SealedError):
        sequence.add(Echo())
    with pytest.raises(SealedError, match="cannot remove the last member"):
        sequence.pop()
    with pytest.raises(GraphError, match="no member"):
        Sequential().pop()


async def test_a_failed_build_of_a_parent_undoes_add_and_pop():
    """The members, their names and the config are as before."""

    class Composed(Module):
        def __init__(self):
            self.row, self.named = Sequential([Reply()]), Sequential({"reply": Reply()})

        async def build(self, inputs):
            self.row.add(Shout())
            self.named.pop()
            self.named.add(Shout(), "shout")
            raise ValueError("late")

        async def call(self, inputs):
            return inputs

    module = Composed()
    with pytest.raises(ValueError, match="late"):
        await module(query("a"))
    for row in (module.row, module.named):
        assert [type(member) for member in row.members] == [Reply]
        assert len(row.get_config()["members"]) == 1
    assert list(module.named.get_config()["members"]) == ["reply"]


async def test_config_goes_in_again():
    """`from_config(get_config())` has the same members and contract."""
    sequence = Sequential([Input(Query), Reply(), Shout()], name="mine")
    again = Sequential.from_config(sequence.get_config())
    assert again.members == sequence.members
    assert again.name == "mine"
    assert (await again(query("a")))["answer"] == "A"
    with pytest.raises(SchemaError):
        await again(Hint(hint="x"))


async def test_copies_keep_members_contract_and_functions():
    """clone, deepcopy, split and merge; unbuilt stays unbuilt."""
    sequence = Sequential([Input(Query), Noted(), Reply(), str_upper])
    for twin in (sequence.clone(), copy.deepcopy(sequence), merge(*split(sequence))):
        assert twin.built
        assert len(twin.members) == 3
        assert twin.members[0] is not sequence.members[0]
        assert (await twin(query("a")))["answer"] == "A"
        with pytest.raises(SchemaError):
            await twin(Hint(hint="x"))
    unbuilt = Sequential([Noted()]).clone()
    assert not unbuilt.built
    await unbuilt(query())
    assert unbuilt.built


def str_upper(x) -> Answer:
    """A plain function that declares its output."""
    return Answer(answer=x["answer"].upper())


async def test_on_symbols_it_is_one_step():
    """A program holds the whole row as one module; functions without annotation are traced."""
    x = Input(Query)
    sequence = Sequential([Reply(), str_upper, lambda y: y.prefix("my")])
    program = Program(inputs=x, outputs=await sequence(x))
    assert len(program.steps) == 1
    assert (await program(query("a"))).get_json() == {"my_answer": "A"}


async def test_a_function_that_reads_a_field_of_a_symbol_names_the_remedies():
    """SymbolicValueError, as in any module."""
    from synmod.errors import SymbolicValueError

    with pytest.raises(SymbolicValueError):
        await Sequential([lambda x: Answer(answer=x["question"])])(Input(Query))


async def test_a_shared_member_stands_twice():
    """One module at two places is one child with two paths."""
    echo = Echo()
    sequence = Sequential([echo, echo])
    await sequence(query())
    assert echo.counters.nested == 2
    assert sequence.submodules == (echo,)


async def test_training_reaches_the_members():
    """As in any call."""
    seen = []

    class Look(Module):
        async def call(self, inputs, training=False):
            seen.append(training)
            return inputs

    await Sequential([Look()])(query(), training=True)
    assert seen == [True]


def test_a_subclass_may_set_its_members():
    """By `super().__init__`."""

    class Mine(Sequential):
        def __init__(self, loud, **kwargs):
            super().__init__([Reply(), Shout()] if loud else [Reply()], **kwargs)

    assert run(Mine(True), query("a"))["answer"] == "A"
    assert Mine(False).get_config() == {"loud": False}


@pytest.mark.slow
@pytest.mark.interpreter
def test_five_thousand_members():
    """Built, called and cloned in linear time, without recursion."""
    sequence = Sequential([Echo() for _ in range(5_000)])
    assert asyncio.run(sequence(query())) == query()
    assert len(sequence.clone().members) == 5_000


async def test_names_are_the_steps_of_paths(tmp_path):
    """In a mapping each member has a name: under it are its Variables; files, copies and configs keep it."""
    row = Sequential({"ask": Input(Query), "reply": Reply(), "shout": Shout(), "twice": lambda x: x})
    assert [type(member).__name__ for member in row.members] == ["Reply", "Shout", "Lambda"]
    assert row.get_module("shout") is row.members[1]
    assert (await row(query("a")))["answer"] == "A"
    copied, again = row.clone(), Sequential.from_config(row.get_config())
    assert paths_of(again, again.members[1]) == paths_of(copied, copied.members[1]) == [("shout",)]
    loaded = sm.load(Sequential({"first": sm.Prefix("a"), "second": sm.Suffix("b")}).save(tmp_path / "row.json"))
    assert list(sm.paths_of(loaded, loaded.members[1])) == [("second",)]
    assert list((await loaded(query("a"))).keys()) == ["a_question_b"]


def test_named_members_are_added_and_taken_out():
    """The name goes with the member, also in the config."""
    row = Sequential({"reply": Reply()})
    shout = Shout()
    row.add(shout, "shout")
    assert list(row.get_config()["members"]) == ["reply", "shout"]
    assert row.pop() is shout
    assert list(row.get_config()["members"]) == ["reply"]
    assert not hasattr(row, "shout")


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (
            lambda: Sequential({"summary": Reply()}),
            "the member name 'summary' is the name of an attribute of every Sequential",
        ),
        (lambda: Sequential({"reply": Reply()}).add(Shout()), "its members have names: write `add(member, 'name')`"),
        (lambda: Sequential([Reply()]).add(Shout(), "shout"), "its members have no names: write `add(member)`"),
        (lambda: Sequential({"a": Reply()}).add(Shout(), "a"), "the name 'a' is taken"),
    ],
)
def test_a_wrong_name_is_refused(make, shown):
    """One that hides something, one too many, one that lacks, one that is taken."""
    with pytest.raises(ConfigError, match=re.escape(shown)):
        make()


def test_a_name_is_an_identifier():
    """As all names are."""
    with pytest.raises(BadNameError, match="'a b' is not a valid member name"):
        Sequential({"a b": Reply()})
