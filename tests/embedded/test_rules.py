"""`embedded/rules`: what it writes for the records that it is shown."""

import json

import pytest

import synmod as sm
from synmod.embedded import RulesAdapter
from synmod.errors import ConfigError
from synmod.leaves.frozen import frozen
from synmod.lm import LMRequest


def record(text, expected, **outputs):
    """A record as a proposer shows it."""
    return {"inputs": {"text": text}, "outputs": outputs or {"label": "?"}, "expected": expected}


def rules(current, *records, **others):
    """Return the value that it answers, as lines where it is text."""
    asked = {"task": "", "current": current, "records": records, "tried": [], **others}
    turns = [{"role": "user", "content": f"<inputs>{json.dumps(asked)}</inputs>"}]
    value = json.loads(RulesAdapter().send(LMRequest("embedded/rules", tuple(map(frozen, turns)))).text)["value"]
    return value.split("\n") if isinstance(value, str) else value


LATE = record("the parcel is late", {"label": "shipping"})
BILL = record("the invoice is odd", {"label": "billing"})


def test_words_of_one_value_alone_become_its_rule():
    """What occurs with two values says nothing; the most frequent words come first, then the longest."""
    twice = record("late at night", {"label": "shipping"})
    assert rules("Sort it.", LATE, twice, BILL) == [
        "Sort it.",
        "shipping: late, parcel, night, at",
        "billing: invoice, odd",
    ]


def test_a_rule_that_stands_there_is_kept_and_mended():
    """Its words stay unless they occur with another value; other lines and rules of other values stay as they are."""
    before = "Sort it.\nshipping: the courier, odd\nother: thing\nBe kind."
    assert rules(before, LATE, BILL) == [
        "Sort it.",
        "other: thing",
        "Be kind.",
        "shipping: the courier, parcel, late",
        "billing: invoice, odd",
    ]


def test_only_fields_of_the_module_count():
    """Of a target with several fields those are read that the module gives."""
    both = [
        record("late", {"label": "shipping", "urgent": True}, urgent=False),
        record("soon", {"label": "billing", "urgent": False}, urgent=False),
    ]
    assert rules("", *both) == ["true: late", "false: soon"]


def test_open_fields_get_no_rules():
    """A sentence, a number or nothing is not a value of a closed field."""
    free = [{"a b c d e f"}, {"so: what"}, {3}, {None}]
    records = [record("late", {"label": value}) for each in free for value in each]
    assert rules("Sort it.", *records, {"inputs": {}, "outputs": None, "expected": "text"}) == ["Sort it."]


def test_targets_count_where_nothing_is_expected():
    """Records name it `target`, too; a module that only failed may give any field."""
    assert rules("", {"inputs": "late", "outputs": None, "target": {"label": "ham"}}) == ["ham: late"]


def test_what_was_tried_is_not_repeated():
    """Fewer or more words, where the first choice was tried."""
    many = record("one two three four five six seven eight", {"label": "ham"})
    first = rules("", many)
    second = rules("", many, tried=["\n".join(first)])
    assert first == ["ham: eight, seven, three, five, four, one"]
    assert second == ["ham: eight, seven, three"]


def test_other_values_than_text_stay():
    """It knows nothing better for them."""
    assert rules(["a"], LATE) == ["a"]


def test_it_answers_proposers_alone():
    """Another prompt is a mistake of the configuration."""
    with pytest.raises(ConfigError, match=r"only answers a synmod\.train\.Proposer"):
        RulesAdapter().send(LMRequest("embedded/rules", ({"role": "user", "content": "Hi"},)))
    for records in (None, [None], 5):
        question = json.dumps({"current": "a", "records": records})
        turns = ({"role": "user", "content": f"<inputs>{question}</inputs>"},)
        with pytest.raises(ConfigError, match=r"only answers a synmod\.train\.Proposer"):
            RulesAdapter().send(LMRequest("embedded/rules", turns))
    with pytest.raises(ConfigError, match="Did you mean 'rules'"):
        sm.LanguageModel("embedded/rule")
