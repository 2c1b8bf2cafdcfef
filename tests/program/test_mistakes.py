"""What mistakes in a first program say: each names what was meant, and what to write."""

import re

import pytest

import synmod as sm
from synmod.errors import ArgumentError, CallError, ConfigError, FieldError, GraphError


class Ticket(sm.DataModel):
    """What a customer writes."""

    text: str


class Team(sm.DataModel):
    """Who answers."""

    team: str


def sorter():
    """A program of one call."""
    return sm.Sequential([sm.Input(Ticket), sm.Generator(Team, language_model="embedded/nearest")])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sm.evaluate(sorter(), [], metric=[]), "evaluate: unknown keyword 'metric'. Did you mean 'metrics'?"),
        (lambda: sm.budget(usd=1), "budget: unknown keyword 'usd'. It takes calls, tokens, cost_usd, tool_calls."),
        (lambda: sm.deadline(second=1), "deadline: unknown keyword 'second'. Did you mean 'seconds'?"),
        (lambda: sm.map_concurrently(len, [], concurency=2), "Did you mean 'concurrency'?"),
        (lambda: sorter().fit([], epoch=2), "Program.fit: unknown keyword 'epoch'. Did you mean 'epochs'?"),
        (lambda: sorter().compile(rewards="exact_match"), "unknown keyword 'rewards'. Did you mean 'reward'?"),
        (lambda: sm.Limit(rmp=60), "Limit: unknown keyword 'rmp'. Did you mean 'rpm'?"),
        (lambda: sm.Cache(path=None, ttl=60), "Cache: unknown keyword 'ttl'. Did you mean 'ttl_s'?"),
        (lambda: sm.load("p.json", language_model="a/b"), "Did you mean 'language_models'?"),
        (lambda: sm.Input(Ticket, optinal=True), "Input: unknown keyword 'optinal'. Did you mean 'optional'?"),
        (lambda: sm.compose(nmae="x"), "compose: unknown keyword 'nmae'. Did you mean 'name'?"),
        (lambda: sm.save(sorter(), "p.json", limit=1), "save: unknown keyword 'limit'. Did you mean 'limits'?"),
        (lambda: sm.dumps(sorter(), limit=1), "dumps: unknown keyword 'limit'. Did you mean 'limits'?"),
        (lambda: sm.save_variables(sorter(), "p.json", limit=1), "Did you mean 'limits'?"),
        (lambda: sm.loads("{}", custom_object={}), "Did you mean 'custom_objects'?"),
        (lambda: sm.load_variables(sorter(), "p.json", stict=False), "Did you mean 'strict'?"),
        (lambda: sorter().plot(fromat="svg"), "Module.plot: unknown keyword 'fromat'. Did you mean 'format'?"),
        (lambda: sorter().predict([], verbose=0), "predict: unknown keyword 'verbose'. Did you mean 'progress'?"),
        (lambda: sorter().summary(dept=1), "Module.summary: unknown keyword 'dept'. Did you mean 'depth'?"),
        (lambda: sorter().add_variable(initialiser=1), "Did you mean 'initializer'?"),
        (lambda: sm.split(sorter(), sharing="error"), "Did you mean 'shared'?"),
        (lambda: sm.merge(*sm.split(sorter()), overwite=True), "Did you mean 'overwrite'?"),
        (lambda: sm.update(sorter(), {}, allow_extras=True), "Did you mean 'allow_extra'?"),
        (lambda: sm.using(sorter(), instructions="x"), "using: unknown keyword 'instructions'. It takes node, state."),
        (lambda: sm.load_examples([], target="team"), "unknown keyword 'target'. It takes source, y, program"),
    ],
)
def test_unknown_keywords_of_functions_are_named(call, says):
    """With what was meant, or what there is; a TypeError, as Python's own."""
    with pytest.raises(ArgumentError, match=re.escape(says)):
        call()


def test_unknown_keywords_of_optimizers_are_named():
    """Those of the class, and of all optimizers."""
    with pytest.raises(ConfigError, match="Gepa: unknown argument 'patiense'. Did you mean 'patience'"):
        sm.optimizers.Gepa(patiense=1)


@sm.compose
def echo(ticket: Ticket):
    """Return what it is given, under other names."""
    return ticket.prefix("my")


async def test_fields_as_keywords_name_the_data_model():
    """Other libraries take fields by keyword."""
    with pytest.raises(CallError, match=re.escape("Fields go in one data model: ticket=Ticket(text=...).")):
        await echo(text="hi")
    with pytest.raises(CallError, match="unknown keyword 'tickt'. Did you mean 'ticket'?"):
        await echo(tickt=Ticket(text="hi"))


def test_a_missing_return_is_asked_for():
    """In the body of a program; a `call` that declares nothing may return None."""
    with pytest.raises(GraphError, match="output is None, not a symbol: is a `return` missing?"):

        @sm.compose
        def forgetful(ticket: Ticket):
            ticket.prefix("my")


async def test_a_forgotten_await_inside_a_call_is_noted():
    """Python's own message does not say it."""

    class Hasty(sm.Module):
        def __init__(self):
            super().__init__()
            self.inner = sm.Identity()

        async def call(self, inputs: Ticket) -> Team:
            reply = self.inner(inputs)
            try:
                return Team(team=reply["text"])
            finally:
                reply.close()

    with pytest.raises(TypeError) as caught:
        await Hasty()(Ticket(text="hi"))
    assert any("is an `await` missing" in note for note in caught.value.__notes__)


def test_methods_of_other_types_name_ours():
    """A value is neither a dict nor an instance."""
    value = Ticket(text="hi").to_json_data_model()
    for name in ("items", "model_dump"):
        with pytest.raises(FieldError, match=r"write x.get_json\(\) for the dict, x.to\(\) for the instance"):
            getattr(value, name)


async def test_plain_rows_into_a_bare_generator_name_the_input():
    """A Generator declares nothing; an Input in front does."""
    generator = sm.Generator(Team, language_model="embedded/nearest")
    with pytest.raises(ArgumentError, match=re.escape("put an Input in front, sm.Sequential([sm.Input(Query), ...])")):
        await sm.evaluate(generator, [{"text": "hi"}], progress=False)


async def test_an_evaluation_of_failures_shows_the_first():
    """And no score over nothing."""

    def broken(outputs):
        return 1 / 0

    with pytest.raises(sm.EvaluationError, match="no score over 0 of 2 .2 failed, first: ZeroDivisionError") as caught:
        await sm.evaluate(sorter(), [Ticket(text="a"), Ticket(text="b")], reward=broken, progress=False)
    assert repr(caught.value.partial).startswith("Evaluation(no score over 0 of 2")


def test_a_missing_argument_lists_what_there_is():
    """By name; types would fill the screen."""
    with pytest.raises(ConfigError, match="missing a required argument: 'routes'. It takes module, routes, key,"):
        sm.Route(sm.Identity())


@pytest.mark.parametrize(
    "compare", [lambda x: x == Team(team="a"), lambda x: x in [Team(team="a").to_json_data_model()]]
)
def test_a_symbol_is_never_compared_with_a_value(compare):
    """It would be False whatever runs; symbols are compared by identity."""
    symbol = sm.Input(Team)
    with pytest.raises(sm.SymbolicValueError, match="the value of SymbolicDataModel\\('team': 'team'\\) was read"):
        compare(symbol)
    assert symbol == symbol != sm.Input(Team)
    assert symbol != "a"


def test_members_that_are_no_modules_are_refused():
    """Alone, in a list, and beside one; nor may a name hide a method."""
    for arguments in ([3], [None], ["abc"], [sm.Generator], [[sm.Identity()], sm.Identity()]):
        with pytest.raises(ConfigError, match=r"member \d is .*; members are modules \(instances\) or plain callables"):
            sm.Sequential(*arguments)
    for name in ("name", "summary"):
        with pytest.raises(ConfigError, match=f"the member name '{name}' is the name of an attribute of every Sequen"):
            sm.Sequential({name: sm.Identity()})


def test_a_sampling_parameter_of_another_type_is_refused():
    """Before any provider sees it."""
    with pytest.raises(ConfigError, match="Generator: temperature is 'hot'; give a number"):
        sm.Generator(Team, temperature="hot")


@pytest.mark.parametrize(
    ("keyword", "says"),
    [
        ({"tools": []}, "'tools' is an argument of sm.Agent"),
        ({"stream": True}, "'stream' is no keyword: stream any module by `async with sm.stream"),
        ({"n": 3}, "'n' is an argument of sm.BestOf and sm.Majority"),
    ],
)
def test_keywords_for_what_another_part_does_name_that_part(keyword, says):
    """Tools, streaming and samples are no work of a Generator."""
    with pytest.raises(ConfigError, match=says):
        sm.Generator(Team, **keyword)


def test_texts_in_place_of_types_are_refused():
    """A description is not a type."""
    with pytest.raises(ArgumentError, match=re.escape("{'answer': 'the answer'} has texts for types: write {'answer'")):
        sm.Generator({"answer": "the answer"})


def test_the_class_of_an_optimizer_asks_for_an_instance():
    """With the line to write."""
    with pytest.raises(sm.TrainerError, match=re.escape("write an instance, Gepa(...)")):
        sorter().compile(reward="exact_match", optimizer=sm.optimizers.Gepa)


@pytest.mark.parametrize(
    ("name", "format", "wanted"),
    [("x.svg", "mermaid", "format='svg', or leave it out"), ("x.png", "auto", "a path that ends in .svg")],
)
def test_a_picture_is_not_written_into_a_file_of_another_kind(name, format, wanted, tmp_path):
    """Its ending and the format agree, and there are no bitmaps."""
    with pytest.raises(ArgumentError, match=wanted):
        sorter().plot(tmp_path / name, format=format)
    assert not (tmp_path / name).exists()


async def test_rows_of_a_program_that_declares_no_input_name_it():
    """All their columns are its inputs, so that none is the target."""
    generator = sm.Generator(Team, language_model="embedded/nearest")
    with pytest.raises(sm.DataError, match=r"no row has one: .*declares no input .*: put sm\.Input\(Query\) in front"):
        await sm.evaluate(generator, [{"text": "a", "team": "b"}], reward="exact_match")


async def test_a_misspelt_input_of_a_row_is_named():
    """Fields that are no inputs are the target, so it would vanish there."""
    with pytest.raises(sm.DataError, match="row 0: there is no input 'text'. Did you mean 'txt'?"):
        await sm.load_examples([{"txt": "a", "team": "b"}], program=sorter())


async def test_keywords_of_other_libraries_name_ours():
    """Beside the list of all."""
    program = sorter()
    with pytest.raises(ArgumentError, match="unknown keyword 'loss'. Did you mean 'reward'?"):
        program.compile(loss="exact_match")
    with pytest.raises(ArgumentError, match="unknown keyword 'verbose'. Did you mean 'progress'?"):
        await program.evaluate([], verbose=0)


def test_names_of_other_libraries_name_ours():
    """As functions of the front door do."""
    with pytest.raises(AttributeError, match="no attribute 'Predict'. Did you mean 'Generator'?"):
        sm.Predict


async def test_an_instance_of_pydantic_names_the_base_class():
    """Inputs are data models; outputs may be any model."""
    from pydantic import BaseModel

    class Plain(BaseModel):
        text: str

    with pytest.raises(CallError, match="is a Plain, not data: derive Plain from sm.DataModel"):
        await sm.Generator(Team, language_model="embedded/nearest")(Plain(text="a"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sm.Input(str), "`class Query(sm.DataModel): field: str`"),
        (lambda: sm.Input(Ticket, "ticket"), "A name goes by keyword: name='ticket'."),
        (
            lambda: sm.Generator("question -> answer"),
            "the first argument declares the output, got the text 'question ->",
        ),
        (lambda: sm.Generator(sorter().__class__), "derive a class of your own from sm.DataModel"),
        (lambda: sm.Program(inputs=sm.Input(Ticket), outputs=Team), "an output what a module returns"),
        (lambda: sm.Program([sm.Input(Ticket), sm.Generator(Team)]), "modules in a row are an sm.Sequential([...])"),
    ],
)
def test_declarations_of_other_kinds_say_what_to_write(make, says):
    """A type, a name, a text, a class, modules where a data model or a symbol belongs."""
    with pytest.raises((ArgumentError, GraphError), match=re.escape(says)):
        make()


def test_a_keyword_of_ones_own_is_not_for_the_base_class():
    """It is kept as an attribute."""

    class Mine(sm.Module):
        def __init__(self, depth):
            super().__init__(depth=depth)

    with pytest.raises(
        ConfigError, match=r"leave it out of `super\(\).__init__\(...\)`, and keep it, `self.depth = depth`"
    ):
        Mine(3)


async def test_a_pool_that_is_awaited_shows_its_block():
    """`await` is the habit of gather."""
    with pytest.raises(sm.RunError, match=r"async with sm.map_concurrently\(fn, items\) as results"):
        await sm.map_concurrently(sorter(), [])


@pytest.mark.parametrize("name", ["compile", "fit", "evaluate", "predict", "save", "load"])
def test_a_method_of_programs_on_a_module_says_how_to_make_one(name):
    """A Generator alone has no data of its own to read."""
    with pytest.raises(AttributeError, match=f"'Generator' object has no attribute '{name}': .*sm.(Sequential|load)"):
        getattr(sm.Generator(Team), name)
    assert not hasattr(sm.Generator(Team), name)


async def test_a_call_without_its_input_is_named():
    """Of the Sequential, not of its first member."""
    with pytest.raises(CallError, match=r"'sequential' \(Sequential\): got no argument; it takes Ticket"):
        await sorter()()
    with pytest.raises(ArgumentError, match=r"missing a required argument: 'inputs'.* Pass a data model: Query"):
        await sm.Generator(Team, language_model="embedded/nearest")()
    with pytest.raises(CallError, match=r"argument 0 is a str, not data: write an instance .* Query\(text=...\)"):
        await sm.Generator(Team, language_model="embedded/nearest")("hello")


def test_media_of_a_path_say_how_they_are_made():
    """The data hold no path."""
    with pytest.raises(TypeError, match=r"made by from_path\(path\), from_bytes\(content\) or from_url\(url\)"):
        sm.Image("cat.png")
