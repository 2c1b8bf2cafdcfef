"""The cache of a model: what makes requests equal, what is stored, and who sends the one request."""

from dataclasses import replace

import pytest

import synmod as sm
from synmod.data import declare
from synmod.lm import LMRequest, request_key, turns
from synmod.testing import FunctionLM

ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
OTHER = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}

# -- keys ----------------------------------------------------------------------------------------------------------


def request(**given):
    """A request with every field that counts."""
    about = {
        "model": "openai/m", "messages": turns("Hi"), "schema": declare(ANSWER, root="any"),
        "tools": ({"name": "add"},), "tool_choice": "auto", "params": {"temperature": 0}, "sample": 1,
        "structured": "json", "reasoning_field": "why",
    }  # fmt: skip
    return LMRequest(**(about | given))


CHANGES = [
    {"model": "openai/n"}, {"messages": turns("Ho")}, {"messages": (*turns("Hi"), *turns("Hi"))},
    {"schema": declare(OTHER, root="any")}, {"schema": None}, {"tools": ({"name": "sub"},)}, {"tools": None},
    {"tool_choice": "none"}, {"params": {"temperature": 0.5}}, {"params": {"top_p": 0}}, {"params": {}}, {"sample": 2},
    {"structured": "prompt"}, {"structured": None}, {"reasoning_field": None},
]  # fmt: skip


class Adapter:
    """An adapter of the user's own."""

    def __init__(self, name="mine", version=1):
        self.name, self.version = name, version

    async def send(self, request):
        raise NotImplementedError


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_any_change_of_the_request_changes_its_key(change):
    """Promise C3, field by field."""
    lm = sm.LanguageModel("openai/m", api_key="k")
    assert request_key(lm, request(**change)) != request_key(lm, request())


def test_adapter_endpoint_and_extra_fields_are_in_the_key():
    """Promise C3: the same request elsewhere, or sent by another version of an adapter, is another one."""
    models = [
        sm.LanguageModel("openai/m"),
        sm.LanguageModel("openai/m", adapter="litellm"),
        sm.LanguageModel("openai/m", adapter=Adapter()),
        sm.LanguageModel("openai/m", adapter=Adapter("other")),
        sm.LanguageModel("openai/m", adapter=Adapter(version=2)),
        sm.LanguageModel("openai/m", api_base="http://localhost:1/v1"),
        sm.LanguageModel("openai/m", api_base="http://localhost:2/v1"),
        sm.LanguageModel("openai/m", extra_body={"min_p": 0.1}),
    ]
    assert len({request_key(lm, request()) for lm in models}) == len(models)


def test_keys_timeouts_and_names_are_not_in_the_key():
    """Promise C3: what does not reach the model does not count."""
    plain = sm.LanguageModel("openai/m")
    dressed = sm.LanguageModel(
        "openai/m", api_key="sk-1", timeout_s=3, attempts=1, attempt_timeout_s=2, name="n", price=(1, 1), repairs=0,
        headers={"x-team": "a"},
    )  # fmt: skip
    assert request_key(plain, request()) == request_key(dressed, request())


def test_a_fresh_request_of_the_same_content_is_equal():
    """Not the objects count but their JSON, and not the order of parameters."""
    one = request(params={"temperature": 0, "top_p": 1})
    two = replace(one, messages=turns([{"content": "Hi", "role": "user"}]), params={"top_p": 1, "temperature": 0})
    lm = FunctionLM(lambda request: "x")
    assert request_key(lm, one) == request_key(lm, two)
