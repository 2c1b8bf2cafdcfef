"""Records of a call: frozen, and a reply that reads like its JSON."""

import dataclasses

import pytest

from synmod.errors import DataError, FieldError
from synmod.lm import Attempt, LMReply, LMRequest


def test_a_reply_reads_its_json():
    """`reply["key"]` and `reply.get` read the value."""
    reply = LMReply("{}", json={"answer": "Paris"})
    assert reply["answer"] == reply.get("answer") == "Paris"
    assert reply.get("other", 3) == 3
    assert LMReply("[]", json=[7])[0] == 7


def test_a_text_reply_says_how_to_get_json():
    """Reading a key of a text is a DataError that shows schema=."""
    with pytest.raises(DataError, match="schema="):
        LMReply("hello")["answer"]
    with pytest.raises(DataError, match="schema="):
        LMReply("hello").get("answer")


def test_a_missing_key_names_what_was_meant():
    """A FieldError with 'Did you mean', which is a KeyError."""
    with pytest.raises(FieldError, match="Did you mean 'answer'"):
        LMReply("{}", json={"answer": 1})["anwser"]
    with pytest.raises(KeyError):
        LMReply("[]", json=[7])[3]


def test_scalar_replies_say_where_the_value_is():
    """A reply that is a number has no keys."""
    with pytest.raises(DataError, match=r"reply\.json"):
        LMReply("3", json=3)["a"]


@pytest.mark.parametrize("record", [LMReply("x"), LMRequest("a/b", ()), Attempt()])
def test_records_are_frozen(record):
    """Nobody changes a record that others hold."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, dataclasses.fields(record)[0].name, "other")


def test_fields_stand_in_the_order_of_the_contract():
    """Records have the fields of the contract, in its order."""
    names = [field.name for field in dataclasses.fields(LMReply)]
    assert (
        names
        == (
            "text json message tool_calls reasoning finish_reason usage model request_id cached attempts elapsed_s"
            " first_chunk_s logprobs media citations"
        ).split()
    )
    names = [field.name for field in dataclasses.fields(LMRequest)]
    assert names[:7] == "model messages schema tools tool_choice params sample".split()
    assert [field.name for field in dataclasses.fields(Attempt)] == "status error elapsed_s waited_s".split()
