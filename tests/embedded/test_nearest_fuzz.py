"""`embedded/nearest` on prompts that nobody wrote by hand: it always answers, and in the schema."""

import json

import jsonschema
from hypothesis import example, given, settings, strategies as st

from synmod.embedded import NearestAdapter
from synmod.leaves.frozen import frozen
from synmod.lm import LMRequest

BOUND = st.integers(-5, 5)


def _between(make, kind):
    return st.builds(lambda a, b: {"type": kind, "minimum": min(a, b), "maximum": max(a, b)}, make, make)


LEAVES = st.one_of(
    st.just({"type": "string"}),
    st.builds(lambda n: {"type": "string", "maxLength": n}, st.integers(0, 20)),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"type": ["string", "null"]}),
    st.builds(lambda values: {"enum": values}, st.lists(st.text() | BOUND, min_size=1, max_size=4, unique_by=repr)),
    _between(BOUND, "integer"),
    _between(st.floats(-5, 5), "number"),
    st.builds(lambda step: {"type": "integer", "multipleOf": step}, st.integers(1, 7)),
    st.builds(lambda low: {"type": "number", "exclusiveMinimum": low}, BOUND),
)


def _containers(inner):
    fields = st.dictionaries(st.text(max_size=4), inner, max_size=3)
    return st.one_of(
        st.builds(lambda items, n: {"type": "array", "items": items, "minItems": n}, inner, st.integers(0, 2)),
        st.builds(lambda arm: {"anyOf": [{"type": "null"}, arm]}, inner),
        st.builds(
            lambda properties, n: {
                "type": "object",
                "properties": properties,
                "required": list(properties)[:n],
                "additionalProperties": False,
            },
            fields,
            st.integers(0, 3),
        ),
    )


SCHEMAS = st.recursive(LEAVES, _containers, max_leaves=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def answered(schema, turns, **params):
    """The text of a reply; the adapter never waits."""
    request = LMRequest("embedded/nearest", tuple(turns), schema, params=params)
    return NearestAdapter().send(request).text


@given(SCHEMAS, st.lists(st.tuples(JSON, JSON), max_size=4), JSON, st.text(max_size=60), st.floats(0, 2))
@example({"type": "string", "maxLength": 0}, [], None, "0=0", 0.0)
@example({"type": "string", "maxLength": 1}, [(None, "no"), (1, "no")], None, "", 0.0)
@settings(deadline=None)
def test_every_reply_is_valid(schema, examples, inputs, instructions, temperature):
    """Whatever examples, rules and inputs say, the reply satisfies the schema."""
    lines = "\n".join(json.dumps({"inputs": i, "outputs": o}) for i, o in examples)
    turns = [
        {"role": "system", "content": f"<instructions>{instructions}</instructions>"},
        {"role": "user", "content": f"<examples>{lines}</examples><inputs>{json.dumps(inputs)}</inputs>"},
    ]
    reply = answered(frozen(schema), turns, temperature=temperature)
    jsonschema.Draft202012Validator(schema).validate(json.loads(reply))
    assert reply == answered(frozen(schema), turns, temperature=temperature)


TEXT = st.lists(
    st.sampled_from(
        ["<inputs>", "</inputs>", "<examples>", "</examples>", "<output_schema>", "{", "}", '"inputs"', ":"]
    )
    | st.text(max_size=9)
).map("".join)


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), TEXT), max_size=5))
@settings(deadline=None)
def test_every_prompt_is_answered(turns):
    """No text of a prompt breaks the reader."""
    messages = [{"role": role, "content": content} for role, content in turns]
    assert isinstance(answered(None, messages), str)
    json.loads(
        answered(frozen({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}), messages)
    )
