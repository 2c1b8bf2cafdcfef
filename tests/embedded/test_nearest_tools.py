"""`embedded/nearest` calls tools: the nearest by words, with arguments of the input, until one has answered."""

import pytest

import synmod as sm

STATUS = {
    "name": "order_status",
    "description": "Return the status of an order by its number.",
    "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
}
STOCK = {
    "name": "stock",
    "description": "Return how many pieces of a product are in stock.",
    "parameters": {
        "type": "object",
        "properties": {"product": {"type": "string"}, "size": {"type": "integer"}, "colour": {"type": "string"}},
        "required": ["product"],
    },
}
LM = sm.LanguageModel("embedded/nearest")


async def called(question, *, system="Help.", **options):
    """The calls that the model makes for a question."""
    messages = [sm.ChatMessage("system", system), sm.ChatMessage("user", question)]
    reply = await LM(messages, tools=[STATUS, STOCK], **options)
    return [(call.name, call.arguments) for call in reply.tool_calls]


async def test_the_nearest_tool_is_called():
    """By the words of its name and description; a missing argument is read from the input as a reply would be."""
    assert await called("What is the status of order 17?") == [("order_status", {"order": 17})]
    assert await called("Is the mug in stock?") == [("stock", {"product": "Is the mug in stock?"})]


async def test_fields_of_the_input_are_arguments_by_name():
    """Where they fit the schema; optional ones, too."""
    question = '<inputs>{"question": "Is it in stock?", "product": "mug", "size": 3, "colour": 7, "other": 1}</inputs>'
    assert await called(question) == [("stock", {"product": "mug", "size": 3})]


async def test_a_far_question_is_answered():
    """No tool is called for it."""
    assert await called("Tell me a joke about cats") == []


async def test_a_rule_of_a_tool_brings_it_near():
    """So that better instructions make a better agent."""
    assert await called("Did parcel 5 leave?") == []
    rules = "<instructions>order_status: where is, parcel</instructions>"
    assert await called("Did parcel 5 leave?", system=rules) == [("order_status", {"order": 5})]


@pytest.mark.parametrize(
    ("choice", "names"),
    [("none", []), ("required", ["stock"]), ("order_status", ["order_status"]), ("auto", ["stock"])],
)
async def test_a_choice_is_kept_to(choice, names):
    """Also against nearness."""
    assert [name for name, _ in await called("Is it in stock?", tool_choice=choice)] == names


async def test_a_result_leads_the_input_of_the_answer():
    """After it comes the answer, from the words and numbers of the result; a rule of a tool is no label of a field."""
    system = "<instructions>stock: in stock</instructions>"
    talk = [sm.ChatMessage("system", system), sm.ChatMessage("user", "How many of size 3 are in stock?")]
    first = await LM(talk, tools=[STATUS, STOCK])
    talk += [
        first.message,
        sm.ChatMessage("tool", '{"pieces": 12, "note": "In aisle 4."}', tool_call_id=first.tool_calls[0].id),
    ]
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    text = {"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]}
    assert (await LM(talk, number, [STATUS, STOCK])).json == {"n": 12}
    assert (await LM(talk, text, [STATUS, STOCK])).json == {"t": "12"}
    assert (await LM(talk, tools=[STATUS, STOCK])).text == "12"


async def test_a_value_that_the_input_names_is_an_argument():
    """Of an enum; of several the first in the schema."""
    properties = {"product": {"enum": ["mug", "plate", "tea pot"]}, "size": {"enum": ["small", "large"]}}
    tool = {"name": "stock", "parameters": {"type": "object", "properties": properties, "required": ["product"]}}
    reply = await LM("Is a Tea Pot in stock, a large one?", tools=[tool])
    assert reply.tool_calls[0].arguments == {"product": "tea pot", "size": "large"}
