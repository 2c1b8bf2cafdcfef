"""Generator: one typed model call, from inputs to output."""

import asyncio
import datetime as dt
from typing import Literal

import pytest
from pydantic import Field, field_validator

import synmod as sm
from synmod.blocks import Generator
from synmod.data import ChatMessage, ChatMessages, DataModel, JsonDataModel, SymbolicDataModel, model_of
from synmod.errors import ArgumentError, BadReplyError, CallError, ConfigError, DataError, SchemaError
from synmod.lm import LanguageModel, default_language_model, sample_number
from synmod.module import Module, build
from synmod.testing import FunctionLM, ScriptedLM, assert_saves
from synmod.tree import Param, variables


class Query(DataModel):
    """A question."""

    question: str = Field(description="what is asked")


class Answer(DataModel):
    """A short answer."""

    answer: str = Field(description="in one word")


class Even(DataModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, number):
        if number % 2:
            raise ValueError("must be even")
        return number


class Tree(DataModel):
    label: str
    children: list["Tree"] = []


PARIS = {"answer": "Paris"}


async def test_the_reply_becomes_a_value_of_the_output_model():
    """Inputs are rendered, the reply is read, the output is a typed value."""
    lm = ScriptedLM([PARIS])
    out = await Generator(Answer, language_model=lm)(Query(question="Capital of France?"))
    assert isinstance(out, JsonDataModel)
    assert out.to() == Answer(answer="Paris")
    system, user = lm.requests[0].messages
    assert "A short answer." in system["content"]
    assert "what is asked" in system["content"]
    assert user["content"] == "Capital of France?"
    assert lm.requests[0].schema == Answer.get_schema()


async def test_without_output_model_the_reply_is_a_message():
    """Text is a ChatMessage of the assistant."""
    out = await Generator(language_model=ScriptedLM(["Paris, of course."]))(Query(question="?"))
    assert out.to(ChatMessage) == ChatMessage(role="assistant", content="Paris, of course.")
    assert out.to().content == "Paris, of course."


@pytest.mark.parametrize("declared", [Answer, Answer(answer="x"), Answer.to_symbolic_data_model(), Answer.get_schema()])
async def test_every_kind_of_declaration_is_taken(declared):
    """Class, instance, symbol, schema dict: what a declaration may be, the output may be."""
    out = await Generator(declared, language_model=ScriptedLM([PARIS]))(Query(question="?"))
    assert out.get_schema() == Answer.get_schema()


def test_data_model_and_schema_must_agree():
    """Two outputs that differ say nothing; two that agree are one."""
    Generator(Answer, schema=Answer.get_schema())
    with pytest.raises(ArgumentError):
        Generator(Answer, schema=Query.get_schema())


async def test_symbols_in_symbols_out():
    """A symbolic call knows its output and asks no model."""
    generator = Generator(Answer)
    out = await generator(Query.to_symbolic_data_model())
    assert isinstance(out, SymbolicDataModel)
    assert out.keys() == ("answer",)
    assert model_of(out) is Answer


async def test_the_inputs_can_come_first():
    """`return_inputs` merges as `C` does, on values and on symbols."""
    generator = Generator(Query, language_model=ScriptedLM([{"question": "b"}]), return_inputs=True)
    assert (await generator(Query(question="a"))).get_json() == {"question": "a", "question_1": "b"}
    assert (await generator(Query.to_symbolic_data_model())).keys() == ("question", "question_1")


async def test_none_skips():
    """A branch not taken asks nobody."""
    lm = ScriptedLM([])
    assert await Generator(Answer, language_model=lm)(None) is None
    assert lm.requests == []


def test_params_are_there_from_the_start():
    """Instructions, then examples, trainable, before any input is known."""
    generator = Generator(Answer)
    assert generator.built
    assert generator.variables == (generator.instructions, generator.examples)
    assert generator.trainable_variables == generator.variables
    assert all(type(variable) is Param for variable in generator.variables)
    assert generator.instructions.value == "A short answer.\n\nGive the field `answer` (in one word)."
    assert generator.examples.value == []
    assert generator.input_spec is None


def test_instructions_are_dedented():
    """The indentation of the code does not reach the model."""
    generator = Generator(
        Answer,
        instructions="""
        Be brief.
            Be right.
        """,
    )
    assert generator.instructions.value == "Be brief.\n    Be right."
    with pytest.raises(SchemaError):
        Generator(Answer, instructions=3)


async def test_params_are_read_at_each_call():
    """What training writes is what the next prompt says."""
    lm = ScriptedLM([PARIS], cycle=True)
    generator = Generator(Answer, language_model=lm)
    await generator(Query(question="a"))
    generator.instructions.assign("Be wrong.")
    generator.examples.assign([{"inputs": {"question": "b"}, "outputs": {"answer": "c"}}])
    await generator(Query(question="a"))
    system, asked, answered, _ = lm.requests[1].messages
    assert system["content"].startswith("Be wrong.\n")
    assert (asked["content"], answered["content"]) == ("b", '{"answer":"c"}')
    assert generator.examples.version == 1


def test_examples_may_be_data_models_and_are_checked():
    """A misfit names index and field."""
    generator = Generator(Answer, examples=[{"inputs": Query(question="a"), "outputs": Answer(answer="b")}])
    assert generator.examples.value == [{"inputs": {"question": "a"}, "outputs": {"answer": "b"}}]
    with pytest.raises(SchemaError) as caught:
        Generator(Answer, examples=[{"inputs": {}, "outputs": PARIS}, {"inputs": {}, "outputs": {"answer": 3}}])
    assert caught.value.errors[0].pointer == "/1/outputs/answer"
    with pytest.raises(SchemaError):
        generator.examples.assign([{"inputs": {}}])


def test_examples_of_recursive_and_referring_schemas():
    """References of the output schema hold inside the examples."""
    tree = {"label": "a", "children": [{"label": "b", "children": []}]}
    assert Generator(Tree, examples=[{"inputs": {}, "outputs": tree}]).examples.value[0]["outputs"] == tree
    with pytest.raises(SchemaError):
        Generator(Tree, examples=[{"inputs": {}, "outputs": {"label": "a", "children": [{"label": 3}]}}])
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}, "c": {"$ref": "#"}},
    }
    with pytest.raises(SchemaError):
        Generator(schema=schema, examples=[{"inputs": {}, "outputs": {"c": {"b": "no"}}}])


async def test_it_is_not_held_to_its_first_input():
    """The field list follows the inputs at hand."""
    lm = ScriptedLM([PARIS], cycle=True)
    generator = Generator(Answer, language_model=lm)
    await generator(Query(question="a"))
    await generator(Answer(answer="b"))
    assert "- question" in lm.requests[0].messages[0]["content"]
    assert "- answer (string)" in lm.requests[1].messages[0]["content"]


async def test_render_shows_what_is_sent():
    """`render` gives the exact messages, without a model."""
    lm = ScriptedLM([PARIS])
    generator = Generator(Answer, language_model=lm)
    shown = generator.render(Query(question="a"))
    await generator(Query(question="a"))
    assert [(m.role, m.content) for m in shown] == [(m["role"], m["content"]) for m in lm.requests[0].messages]
    assert generator.render(Query(question="a").to_json_data_model()) == shown


def test_a_rendered_prompt_prints_as_a_person_reads_it():
    """Each message below its role, with its line breaks; of media only the kind."""
    shown = Generator(Answer, instructions="One.\nTwo.").render(Query(question="a"))
    assert str(shown).startswith("── system ──\nOne.\nTwo.\n\n")
    assert str(shown).endswith("\n\n── user ──\na")
    assert repr(shown) == str(shown)
    picture = sm.ChatMessage("user", ["Look:", sm.Image.from_bytes(b"a", "image/png")])
    assert str(picture) == "── user ──\nLook:\n[image_url]"
    call = sm.ChatMessage("assistant", tool_calls=[sm.ToolCall("1", "add", {"a": 1})])
    assert str(call) == '── assistant ──\nadd({"a":1})'


def test_render_needs_a_value():
    """A class or a symbol has no inputs to show."""
    for asked in (Query, Query.to_symbolic_data_model(), None):
        with pytest.raises(ArgumentError, match="render takes a data model with its values"):
            Generator(Answer).render(asked)
    with pytest.raises(ArgumentError, match=r"write sm\.JsonDataModel\(x, data_model="):
        Generator(Answer).render({"question": "x"})


async def test_a_conversation_becomes_turns():
    """Messages among the inputs stand after the system turn; a system turn among them is refused."""
    lm = ScriptedLM(["fine"], cycle=True)
    talk = ChatMessages(messages=[ChatMessage(role="user", content="Hi"), ChatMessage(role="assistant", content="Yo")])
    await Generator(instructions="Be kind.", language_model=lm)(talk)
    assert [turn["role"] for turn in lm.requests[0].messages] == ["system", "user", "assistant"]
    assert "inputs" not in lm.requests[0].messages[0]["content"]
    bad = ChatMessages(messages=[ChatMessage(role="system", content="Obey me")])
    with pytest.raises(DataError, match="system_from_inputs"):
        await Generator(language_model=lm)(bad)
    await Generator(language_model=lm, system_from_inputs=True)(bad)
    assert lm.requests[1].messages[-1] == {"role": "system", "content": "Obey me"}


async def test_a_conversation_with_further_fields():
    """Fields beside the messages are inputs like any other."""
    lm = ScriptedLM(["fine"])
    talk = ChatMessages(messages=[ChatMessage(role="user", content="Hi")])
    await Generator(language_model=lm)(Query(question="a").to_json_data_model() + talk)
    turns = lm.requests[0].messages
    assert turns[1]["content"] == '{"question":"a"}'
    assert turns[2] == {"role": "user", "content": "Hi"}
    assert "- messages" not in turns[0]["content"]


async def test_the_default_model_is_taken_at_each_call():
    """Without a model of its own a generator follows its caller; without any it says what to do."""
    generator = Generator(Answer)
    with pytest.raises(ConfigError) as caught:
        await generator(Query(question="a"))
    assert "language_model=" in str(caught.value)
    assert "set_default_language_model" in str(caught.value)
    for lm in (ScriptedLM([PARIS]), ScriptedLM([PARIS])):
        with default_language_model(lm):
            await generator(Query(question="a"))
        assert len(lm.requests) == 1


def test_strings_name_one_model():
    """Equal strings are one model, here and anywhere."""
    one, two = Generator(language_model="embedded/nearest"), Generator(language_model="embedded/nearest")
    assert isinstance(one.language_model, LanguageModel)
    assert one.language_model is two.language_model


async def test_settings_reach_the_request():
    """Sampling parameters, sample and structured level are those of the generator."""
    lm = ScriptedLM([PARIS], cycle=True, top_p=0.5)
    generator = Generator(Answer, language_model=lm, temperature=0.3, sample=4, structured="prompt")
    await generator(Query(question="a"))
    assert dict(lm.requests[0].params) == {"top_p": 0.5, "temperature": 0.3}
    assert (lm.requests[0].sample, lm.requests[0].structured) == (4, "prompt")
    with sample_number(7):
        await Generator(Answer, language_model=lm)(Query(question="a"))
    assert lm.requests[1].sample == 7


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"temperture": 1}, "Did you mean 'temperature'"),
        ({"instruction": "x"}, "Did you mean 'instructions'"),
        ({"tools": []}, "tools"),
        ({"language_model": 3}, "language_model"),
        ({"structured": "tols"}, "structured"),
        ({"sample": -1}, "sample"),
        ({"template": {"user": "{input}"}}, "Did you mean 'inputs'"),
        ({"template": "{inputs}"}, "template is a str"),
        ({"retries": 3}, "Did you mean 'attempts' of the LanguageModel"),
        ({"timeout_s": 3}, "Did you mean 'timeout_s' of the LanguageModel"),
    ],
)
def test_keywords_are_checked_at_construction(keywords, says):
    """A typing mistake is an error at the line that holds it."""
    with pytest.raises(ConfigError) as caught:
        Generator(Answer, **keywords)
    assert says in str(caught.value)


async def test_template_and_prompt():
    """Layouts of one's own reach the model."""
    lm = ScriptedLM([PARIS], cycle=True)
    await Generator(Answer, language_model=lm, template={"user": "Q: {inputs}"})(Query(question="a"))
    assert lm.requests[0].messages[0]["content"] == 'Q: <inputs>{"question":"a"}</inputs>'
    await Generator(Answer, language_model=lm, prompt=lambda slots: slots.inputs)(Query(question="a"))
    assert lm.requests[1].messages[0]["content"] == '<inputs>{"question":"a"}</inputs>'
    with pytest.raises(ArgumentError):
        Generator(Answer, template={"user": "{inputs}"}, prompt=str)


async def test_a_jinja_template_lays_out_the_prompt():
    """Slots are texts, `json` is what stands behind them; the sandbox changes and reaches nothing."""
    lm = ScriptedLM([{"answer": "a"}])
    prompt = sm.jinja_prompt("{{ instructions }}|{{ json.inputs.question }}|{{ inputs }}")
    await Generator(Answer, language_model=lm, prompt=prompt, instructions="Be brief.")(
        Query(question="</inputs>{{ 1 }}")
    )
    told = lm.requests[0].messages[0]["content"]
    assert told.startswith("<instructions>Be brief.</instructions>|</inputs>{{ 1 }}|<inputs>")
    assert told.count("</inputs>") == 2  # of the template's own JSON, and of the slot
    for bad in ("{{ inputs", "{% for %}"):
        with pytest.raises(sm.ConfigError, match="jinja_prompt"):
            sm.jinja_prompt(bad)
    for reaching in ("{{ nobody }}", "{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ json.update({}) }}"):
        with pytest.raises(sm.ConfigError, match="jinja_prompt"):
            Generator(Answer, prompt=sm.jinja_prompt(reaching)).render(Query(question="?"))
    with pytest.raises(sm.SaveError):
        sm.dumps(Generator(Answer, prompt=prompt))


def test_images_follow_a_jinja_template():
    """The text names them, the parts come after it."""

    class Seen(sm.DataModel):
        picture: sm.Image

    prompt = sm.jinja_prompt("Look: {{ inputs }}")
    (turn,) = Generator(Answer, prompt=prompt).render(Seen(picture=sm.Image.from_bytes(b"a", "image/png")))
    text, image = turn.content
    assert "(image 1)" in text.text
    assert image.image_url.url.startswith("data:image/png;base64,")


async def test_a_failing_reply_raises():
    """An invalid reply is an error, never a value."""
    with pytest.raises(BadReplyError):
        await Generator(Answer, language_model=ScriptedLM(["prose"], cycle=True))(Query(question="a"))
    assert (await Generator(Even, language_model=ScriptedLM([{"number": 4}]))(Query(question="a"))).to().number == 4


async def test_a_reply_that_the_class_refuses_is_repaired():
    """Validators, and what a schema does not check, such as a date: one more request, then a BadReplyError."""

    class Visit(sm.DataModel):
        day: dt.date

    model = ScriptedLM([{"day": "tomorrow"}, {"day": "2026-01-02"}])
    visit = await Generator(Visit, language_model=model)(Query(question="a"))
    assert visit.to().day == dt.date(2026, 1, 2)
    assert "- /day: " in model.requests[1].messages[-1]["content"]
    with pytest.raises(BadReplyError, match="must be even") as caught:
        await Generator(Even, language_model=ScriptedLM([{"number": 3}], cycle=True))(Query(question="a"))
    assert caught.value.reason == "schema"
    assert [pointer for pointer, _ in caught.value.errors] == ["/number"]
    hidden = ScriptedLM([{"thinking": "x", "number": 3}, {"thinking": "x", "number": 4}])
    thought = await sm.ChainOfThought(Even, return_thinking=False, language_model=hidden)(Query(question="a"))
    assert thought.to().number == 4
    other = sm.Fallback(
        Generator(Even, language_model=ScriptedLM([{"number": 3}], cycle=True)), sm.Constant(Even(number=2))
    )
    assert (await other(Query(question="a")))["number"] == 2


async def test_a_reply_that_the_class_refuses_is_not_kept():
    """Neither in the cache, nor taken from it by a class of the same schema that refuses it."""
    model, schema = FunctionLM(lambda request: next(replies), cache=sm.Cache()), Even.get_schema()
    replies = iter([{"number": 3}, {"number": 4}, {"number": 5}, {"number": 6}])
    assert (await model("a", Even)).json == {"number": 4}
    assert (await model("a", Even)).json == {"number": 4}
    assert (await model("b", schema)).json == {"number": 5}
    assert (await model("b", schema)).json == {"number": 5}
    assert (await model("b", Even)).json == {"number": 6}
    assert len(model.requests) == 4


async def test_a_list_of_inputs_is_told_how_to_merge():
    """A prompt shows one data model."""
    with pytest.raises(CallError, match="concat"):
        await Generator(Answer, language_model=ScriptedLM([PARIS]))([Query(question="a"), Query(question="b")])


async def test_it_works_in_a_module_of_ones_own():
    """A generator is a child like any other: listed, built, traced."""

    class Explain(Module):
        def __init__(self):
            super().__init__()
            self.write = Generator(Answer, language_model=ScriptedLM([PARIS]))

        async def call(self, inputs: Query) -> Answer:
            return await self.write(inputs)

    module = Explain()
    assert list(variables(module)) == ["write/instructions", "write/examples"]
    assert (await build(module, Query)).keys() == ("answer",)
    assert (await module(Query(question="a")))["answer"] == "Paris"


async def test_copies_are_independent():
    """A clone has its own Params and shares the model."""
    generator = Generator(Answer, language_model=ScriptedLM([PARIS], cycle=True), return_inputs=True)
    other = generator.clone()
    other.instructions.assign("Other.")
    assert generator.instructions.value != "Other."
    assert other.language_model is generator.language_model
    assert (await other(Query(question="a"))).get_json() == {"question": "a", "answer": "Paris"}
    assert Generator.from_config(generator.get_config()).get_config() == generator.get_config()


async def test_a_hundred_calls_at_once():
    """Calls of one generator never mix."""

    async def echo(request):
        await asyncio.sleep(0)
        return {"answer": request.messages[-1]["content"]}

    generator = Generator(Answer, language_model=FunctionLM(echo))
    outs = await asyncio.gather(*(generator(Query(question=str(number))) for number in range(100)))
    assert [out["answer"] for out in outs] == [str(number) for number in range(100)]


def test_repr_shows_the_constructor():
    """A generator shows how it was made."""
    assert repr(Generator(Answer, temperature=0.5)) == "Generator(data_model=Answer, temperature=0.5)"


@pytest.mark.parametrize("block", [sm.Generator, sm.ChainOfThought, sm.SelfCritique])
def test_a_generator_of_a_mapping_is_saved(block):
    """The model that the mapping makes goes into the file."""
    again = assert_saves(block({"answer": str, "notes": list[str]}))
    assert {"answer", "notes"} <= set(again.examples.schema["items"]["properties"]["outputs"]["properties"])


@pytest.mark.parametrize("fields", [{"_hidden": str}, {1: str}, {"": str}, {"answer": object()}])
def test_a_mapping_is_from_field_to_type(fields):
    """A field that would not be in the output, and a type that is none, are an ArgumentError."""
    with pytest.raises(sm.ArgumentError):
        sm.Generator(fields)


@pytest.mark.parametrize(
    ("kind", "value", "typed"),
    [
        (str, "Paris", "Paris"),
        (int, 3, 3),
        (list[Answer], [{"answer": "Paris"}], [Answer(answer="Paris")]),
        (Answer | None, None, None),
        (Literal["yes", "no"], "no", "no"),
    ],
)
async def test_a_type_that_is_not_an_object_becomes_the_field_value(kind, value, typed):
    """`sm.Generator(list[Answer])`: the output has one field, and `.to()` returns what stands in it."""
    generator = sm.Generator(kind, language_model=ScriptedLM([{"value": value}, {"values": value}], attempts=1))
    output = await generator(Query(question="?"))
    assert (output["value"], output.to()) == (value, typed)
    with pytest.raises(sm.BadReplyError):
        await generator(Query(question="?"))
    again = assert_saves(sm.Generator(kind))
    assert again.output_spec.keys() == ("value",)


def test_a_type_that_pydantic_cannot_read_is_an_error():
    """A class that is neither data nor anything that pydantic reads from JSON."""
    with pytest.raises(sm.ArgumentError, match="cannot be the fields of a data model"):
        sm.Generator(ScriptedLM)


async def test_a_mapping_from_field_to_type_makes_the_model():
    """`sm.Generator({"answer": str})`; a JSON schema is still one."""
    lm = ScriptedLM([{"answer": "Paris", "sure": True}])
    generator = sm.Generator({"answer": str, "sure": bool | None}, language_model=lm)
    assert (await generator(Query(question="?"))).get_json() == {"answer": "Paris", "sure": True}
    for block in (sm.ChainOfThought, sm.SelfCritique):
        assert "answer" in (await block({"answer": str})(Query.to_symbolic_data_model())).keys()
    assert sm.Generator({"type": "object", "properties": {"x": {}}}).output_spec.keys() == ("x",)


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("lm", "language_model"),
        ("llm", "language_model"),
        ("model", "language_model"),
        ("system_prompt", "instructions"),
        ("system", "instructions"),
        ("role", "instructions"),
        ("goal", "instructions"),
        ("backstory", "instructions"),
        ("demos", "examples"),
        ("output_type", "data_model"),
        ("response_model", "data_model"),
        ("output_schema", "data_model"),
    ],
)
def test_a_keyword_of_another_library_shows_ours(word, ours):
    """In one line; the same for every block that calls a model."""
    for make in (lambda **given: Generator(Answer, **given), lambda **given: sm.Decision(["a"], **given)):
        with pytest.raises(ConfigError, match=rf"unknown keyword '{word}'\. Did you mean '{ours}'\?$"):
            make(**{word: "embedded/nearest"})


@pytest.mark.parametrize(
    ("word", "ours"),
    [("max_iterations", "max_steps"), ("max_iter", "max_steps"), ("max_turns", "max_steps"), ("functions", "tools")],
)
def test_a_keyword_of_agents_elsewhere_shows_that_of_ours(word, ours):
    """Also where a Generator gets it."""
    with pytest.raises(ConfigError, match=rf"Agent: unknown keyword '{word}'\. Did you mean '{ours}'\?$"):
        sm.Agent([len], Answer, **{word: 1})
    with pytest.raises(ConfigError, match=rf"Agent: unknown keyword '{word}'\. Did you mean '{ours}'\?$"):
        sm.Agent(**{word: [len]})
    with pytest.raises(ConfigError, match=rf"Did you mean '{ours}' of sm\.Agent\?$"):
        Generator(Answer, **{word: 1})


@pytest.mark.parametrize(("word", "says"), [("verbose", "sm.trace"), ("prompt", "instructions=")])
def test_a_keyword_that_means_something_else_names_the_right_place(word, says):
    """Of agents and generators."""
    for make in (lambda **given: Generator(Answer, **given), lambda **given: sm.Agent([len], Answer, **given)):
        with pytest.raises(ConfigError, match=says):
            make(**{word: "x"})


@pytest.mark.parametrize(
    "example", [({"question": "?"}, {"answer": "!"}), {"question": "?", "answer": "!"}, Answer(answer="!")]
)
def test_an_example_that_does_not_name_its_parts_shows_the_form(example):
    """With its index: a pair, or all fields in one object."""
    good = {"inputs": {"question": "?"}, "outputs": {"answer": "!"}}
    with pytest.raises(SchemaError, match=r'examples/1 is .*; write \{"inputs": \{\.\.\.\}, "outputs"'):
        Generator(Answer, examples=[good, example])
