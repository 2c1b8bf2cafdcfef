"""What crosses between processes comes out as it went in."""

from hypothesis import given, strategies as st

import synmod as sm
from synmod.data import dump_json, parse_json
from synmod.distribute.executor import (
    outcome_from_json,
    outcome_to_json,
    pack_nest,
    row_from_json,
    row_to_json,
    unpack_nest,
)
from synmod.train import CallRecord, Example, ExampleError, PositionalInputs, RunOutcome
from tests.distribute.parts import Ticket

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=3)
MODELS = st.sampled_from([Ticket(text=text).to_json_data_model() for text in ("", "é", "\u2028")])
NESTS = st.recursive(
    JSON | MODELS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.tuples(inner).map(PositionalInputs)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)


def crossed(json_value):
    """The value after it was text."""
    return parse_json(dump_json(json_value))


@given(NESTS)
def test_a_nest_crosses(nest):
    """Data models, tuples, lists, dicts and JSON, in any nest, with their types."""
    again = unpack_nest(crossed(pack_nest(nest)))
    assert again == nest
    assert type(again) is type(nest)


def test_a_typed_data_model_becomes_a_value_of_its_schema():
    """The class stays at home."""
    again = unpack_nest(crossed(pack_nest(Ticket(text="a"))))
    assert again == Ticket(text="a").to_json_data_model()
    assert again.get_schema() == Ticket.get_schema()


@given(NESTS, JSON, st.dictionaries(st.text(max_size=3), JSON, max_size=2))
def test_a_row_crosses(inputs, target, extra):
    """Every field of an example."""
    row = Example("1", inputs, target, extra, "group")
    assert row_from_json(crossed(row_to_json(row))) == row


def test_what_became_of_a_run_crosses():
    """All that an evaluation or a rollout is made of; a failure keeps its text."""
    outcome = RunOutcome(
        outputs=Ticket(text="a").to_json_data_model(),
        feedback=sm.scope.Feedback(0.1 + 0.2, "so", {"text": "a"}, {"writer": "shorter"}, objectives={"zeal": 0.5}),
        failure=ValueError("no"),
        error=ExampleError("ValueError", "no", "writer", ("a note",)),
        fault="reward",
        usage=sm.Usage(calls=1, requests=2, prompt_tokens=3, cost_usd=None),
        elapsed_s=1.5,
        call_id="c-1",
        calls=(CallRecord("0", None, "writer", {"text": "a"}, None, "ValueError: no"),),
        values={"length": 3.0},
    )
    again = outcome_from_json(crossed(outcome_to_json(outcome)))
    assert str(again.failure) == "ValueError: no"
    again.failure = outcome.failure
    assert again == outcome


def test_an_empty_run_crosses():
    """What was not there is not there."""
    assert outcome_from_json(crossed(outcome_to_json(RunOutcome()))) == RunOutcome()
