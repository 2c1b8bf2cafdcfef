"""Nests as JSON: whatever modules take and give comes back."""

import json
from collections import OrderedDict, namedtuple

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.flow import classes_in, leaves, nest_from
from synmod.flow.nest_json import nest_json
from synmod.leaves.frozen import frozen
from synmod.tree import class_text


class Count(sm.DataModel):
    n: int


Pair = namedtuple("Pair", "first second")
CLASSES = {class_text(cls): cls for cls in (Count, Pair)}
SCHEMA = {"type": "object", "properties": {"x": {}}, "additionalProperties": False}

values = st.one_of(
    st.none(),
    st.integers().map(lambda n: sm.JsonDataModel(Count(n=n))),
    st.builds(lambda x, name: sm.JsonDataModel({"x": x}, schema=SCHEMA, name=name), st.text(), st.sampled_from("ab")),
)
keys = st.one_of(
    st.text(max_size=3), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
)
nests = st.recursive(
    values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Pair, inner, inner),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
    ),
    max_leaves=12,
)


@given(nests)
@settings(max_examples=60)
def test_what_is_written_is_read(nest):
    """Through the text of JSON: containers with their classes, order and keys, values with class, schema and label."""
    text = json.dumps(nest_json(nest, class_text))
    again = nest_from(frozen(json.loads(text)), CLASSES.get)
    assert repr(again) == repr(nest)
    told = [(x._schema, x._model, x._label) for x in leaves(nest) if x is not None]
    assert [(x._schema, x._model, x._label) for x in leaves(again) if x is not None] == told


@given(nests, nests)
@settings(max_examples=60)
def test_inputs_are_alike_only_if_they_look_alike(one, other):
    """Without names of classes: equal JSON means equal values and schemas, one for one."""
    if repr(nest_json(one)) == repr(nest_json(other)):
        assert [x and (x.get_json(), x.get_schema()) for x in leaves(one)] == [
            x and (x.get_json(), x.get_schema()) for x in leaves(other)
        ]


def test_schemas_stand_once():
    """However many values share one."""
    json_of = nest_json([sm.JsonDataModel(Count(n=n)) for n in range(100)], class_text)
    assert len(json_of["types"]) == 1
    assert len(json_of["parts"]) == 101


def test_what_cannot_come_back_is_refused():
    """Keys and containers that JSON does not have; an unknown named tuple when it is read."""

    class Bag(list):
        pass

    for nest in ({(1,): None}, Bag([None])):
        with pytest.raises(sm.DataError):
            nest_json(nest, class_text)
    with pytest.raises(LookupError):
        nest_from(nest_json(Pair(None, None), class_text), {}.get)
    circle = []
    circle.append(circle)
    with pytest.raises(sm.CallError):
        nest_json(circle)
    assert list(classes_in([Pair(None, sm.JsonDataModel(Count(n=1)))])) == [Pair, Count]
