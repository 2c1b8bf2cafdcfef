"""Frozen JSON: nothing changes it, and nothing that is no JSON gets in."""

import copy
import json
import operator
import pickle
from decimal import Decimal
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from synmod.errors import DataError
from synmod.leaves.frozen import FrozenDict, FrozenList, depth_of, frozen, json_equal, thaw

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


def nested(levels, inside=None):
    """Lists inside one another, `levels` of them."""
    value = [] if inside is None else [inside]
    for _ in range(levels - 1):
        value = [value]
    return value


class Colour(str, Enum):  # noqa: UP042  (the older way is the one to refuse)
    RED = "red"


class Scalar:
    """Looks like a scalar of numpy."""

    dtype = "int64"

    def item(self):
        return 1


class Model:
    """Stands for JSON as a data model does."""

    def __init__(self, json):
        self.json = json

    def __synmod_json__(self):
        return frozen(self.json)


@given(JSON)
def test_freezing_keeps_the_content_to_the_letter(value):
    """The text of what is frozen is the text of what went in: kinds, digits, signs and order of keys."""
    assert json.dumps(frozen(value)) == json.dumps(value)
    assert frozen(value) == value


@given(JSON)
def test_freezing_again_gives_the_same_object(value):
    """What is frozen is returned as it is, and nothing of it is copied."""
    once = frozen(value)
    assert frozen(once) is once
    assert frozen([once])[0] is once


@given(JSON)
def test_thaw_gives_a_plain_deep_copy(value):
    """Thawing undoes freezing, with plain dicts and lists at every level."""
    plain = thaw(frozen(value))
    assert json.dumps(plain) == json.dumps(value)
    pending = [plain]
    while pending:
        part = pending.pop()
        assert type(part) not in (FrozenDict, FrozenList)
        pending.extend(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())


def test_thawed_copies_share_nothing():
    """Two thawed copies, and two places of one shared part, can be changed apart."""
    part = frozen({"a": [1]})
    both = frozen([part, part])
    copy_ = thaw(both)
    copy_[0]["a"].append(2)
    assert copy_ == [{"a": [1, 2]}, {"a": [1]}]
    assert both == [{"a": [1]}, {"a": [1]}]


@given(JSON)
def test_copies_and_pickles_are_the_value(value):
    """A frozen value is its own copy and deepcopy, and survives a pickle frozen."""
    once = frozen(value)
    assert copy.copy(once) is once or not isinstance(once, dict | list)
    assert copy.deepcopy(once) is once or not isinstance(once, dict | list)
    again = pickle.loads(pickle.dumps(once))
    assert json.dumps(again) == json.dumps(once)
    assert type(again) is type(once)


@given(st.dictionaries(TEXT, JSON, max_size=5))
@pytest.mark.slow
def test_hash_does_not_depend_on_the_order_of_keys(value):
    """Equal objects have equal hashes, whatever the order in which their keys came."""
    turned = dict(reversed(list(value.items())))
    assert hash(frozen(value)) == hash(frozen(turned))
    assert frozen(value) == frozen(turned)


def test_hash_follows_the_equality_of_python():
    """Where Python takes 1, 1.0 and True for equal, the hashes are equal too."""
    assert frozen([1]) == frozen([1.0]) == frozen([True])
    assert hash(frozen([1])) == hash(frozen([1.0])) == hash(frozen([True]))
    assert hash(frozen({"a": 0.0})) == hash(frozen({"a": -0.0}))


MUTATIONS_OF_OBJECT = {
    "set": lambda d: operator.setitem(d, "k", 1),
    "delete": lambda d: operator.delitem(d, "a"),
    "ior": lambda d: operator.ior(d, {"k": 1}),
    "update": lambda d: d.update(k=1),
    "update with nothing": lambda d: d.update(),
    "setdefault": lambda d: d.setdefault("k", 1),
    "setdefault there": lambda d: d.setdefault("a", 1),
    "pop": lambda d: d.pop("a"),
    "pop default": lambda d: d.pop("k", None),
    "popitem": lambda d: d.popitem(),
    "clear": lambda d: d.clear(),
    "init": lambda d: d.__init__({"k": 1}),
    "empty init": lambda d: d.__init__(),
}
MUTATIONS_OF_ARRAY = {
    "set": lambda x: operator.setitem(x, 0, 5),
    "set slice": lambda x: operator.setitem(x, slice(0, 1), [5]),
    "delete": lambda x: operator.delitem(x, 0),
    "delete slice": lambda x: operator.delitem(x, slice(None)),
    "iadd": lambda x: operator.iadd(x, [1]),
    "imul": lambda x: operator.imul(x, 2),
    "append": lambda x: x.append(1),
    "extend": lambda x: x.extend([]),
    "insert": lambda x: x.insert(0, 1),
    "pop": lambda x: x.pop(),
    "remove": lambda x: x.remove(3),
    "clear": lambda x: x.clear(),
    "sort": lambda x: x.sort(),
    "reverse": lambda x: x.reverse(),
    "init": lambda x: x.__init__([1]),
    "empty init": lambda x: x.__init__(),
}


@pytest.mark.parametrize("mutation", MUTATIONS_OF_OBJECT.values(), ids=MUTATIONS_OF_OBJECT)
def test_objects_refuse_every_change(mutation):
    """Each mutating method and operator of dict is a TypeError that says 'frozen', and changes nothing."""
    value = frozen({"a": 1, "b": [2]})
    with pytest.raises(TypeError, match="frozen"):
        mutation(value)
    assert value == {"a": 1, "b": [2]}


@pytest.mark.parametrize("mutation", MUTATIONS_OF_ARRAY.values(), ids=MUTATIONS_OF_ARRAY)
def test_arrays_refuse_every_change(mutation):
    """Each mutating method and operator of list is a TypeError that says 'frozen', and changes nothing."""
    value = frozen([3, 1, 2])
    with pytest.raises(TypeError, match="frozen"):
        mutation(value)
    assert value == [3, 1, 2]


def test_no_method_of_dict_or_list_is_forgotten():
    """Every method of dict and list either only reads, or is refused."""
    reading = {"copy", "fromkeys", "get", "items", "keys", "values", "count", "index"}
    for kind, plain in ((FrozenDict, dict), (FrozenList, list)):
        for name in dir(plain):
            if not name.startswith("_") and name not in reading:
                assert getattr(kind, name) is not getattr(plain, name), name


def test_new_attributes_are_refused():
    """A frozen value has no room for attributes."""
    with pytest.raises(AttributeError):
        frozen({}).extra = 1
    with pytest.raises(AttributeError):
        frozen([]).extra = 1


def test_a_missing_attribute_tells_how_to_read_a_key():
    """`x.price` on a frozen object names `x['price']` and `.to()`."""
    with pytest.raises(AttributeError, match=r"JSON object: write x\['price'\], or take the typed value with \.to\(\)"):
        _ = frozen({"price": 1}).price


def test_results_of_reading_operators_are_plain():
    """`|`, `+`, slices and copy() give plain mutable containers."""
    assert type(frozen({"a": 1}) | {"b": 2}) is dict
    assert type({"b": 2} | frozen({"a": 1})) is dict
    assert type(operator.add(frozen([1]), [2])) is list
    assert type(operator.add([1], frozen([2]))) is list
    assert type(frozen([1]) * 2) is list
    assert type(frozen([1])[:]) is list
    assert type(frozen({}).copy()) is dict
    assert type(frozen([]).copy()) is list


@pytest.mark.parametrize(
    ("value", "pointer", "said"),
    [
        ({"a": (1,)}, "/a", "list(x)"),
        ({"a": [{1}]}, "/a/0", "list(x)"),
        ([frozenset()], "/0", "list(x)"),
        ([{"a/b~": {"x": Colour.RED}}], "/0/a~1b~0/x", "x.value"),
        ([type("D", (dict,), {})()], "/0", "dict(x)"),
        ([type("L", (list,), {})()], "/0", "list(x)"),
        ([type("S", (str,), {})()], "/0", "str(x)"),
        ([type("I", (int,), {})()], "/0", "int(x)"),
        ([type("F", (float,), {})()], "/0", "float(x)"),
        ([Scalar()], "/0", "x.item()"),
        ({"a": float("nan")}, "/a", "None or a string"),
        ([float("inf")], "/0", "None or a string"),
        ([-float("inf")], "/0", "None or a string"),
        ([10**1000], "/0", "1,000"),
        ([-(10**1000)], "/0", "1,000"),
        ([b"x"], "/0", "bytes"),
        ([Path("x")], "/0", "DataModel"),
        ([Decimal(1)], "/0", "Decimal"),
        ([object()], "/0", "object"),
        ([int], "/0", "class int"),
        ({"a": {1: 2}}, "/a", "str(key)"),
        ({"a": {None: 2}}, "/a", "NoneType"),
        (["\ud800"], "/0", "surrogate"),
        ({"x": {"\udfff": 1}}, "/x", "surrogate"),
    ],
)
def test_what_is_no_json_is_named_with_place_and_remedy(value, pointer, said):
    """A DataError names the JSON Pointer and what to write instead; nothing is converted."""
    with pytest.raises(DataError) as caught:
        frozen(value)
    assert str(caught.value).startswith(f"{pointer}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize("value", [(), float("nan"), b"", 10**1000, "\ud800", object(), {1: 1}.keys()])
def test_a_whole_value_that_is_no_json_is_refused(value):
    """The same holds for the value itself."""
    with pytest.raises(DataError):
        frozen(value)
    with pytest.raises(DataError):
        thaw(value)
    with pytest.raises(DataError):
        json_equal(value, None)


def test_limits_hold_to_the_letter():
    """1,000 digits and 50 levels are allowed, one more is not."""
    assert frozen(10**1000 - 1) == 10**1000 - 1
    assert depth_of(frozen(nested(50))) == 50
    with pytest.raises(DataError, match="50"):
        frozen(nested(51))


def test_depth_counts_what_was_frozen_before():
    """A frozen part takes its depth with it, so that no value grows beyond the limit layer by layer."""
    assert depth_of(frozen({"a": frozen(nested(49))})) == 50
    with pytest.raises(DataError, match="50"):
        frozen([[], {"a": frozen(nested(50))}])
    assert depth_of(frozen([nested(3), 1, {"a": 1}])) == 4
    assert depth_of(frozen(1)) == 0


@pytest.mark.slow
@pytest.mark.interpreter
def test_very_deep_input_is_refused_without_recursion():
    """Input a million levels deep is a DataError, never a RecursionError."""
    value = nested(1_000_000)
    with pytest.raises(DataError, match="nesting"):
        frozen(value)
    with pytest.raises(DataError, match="nesting"):
        json_equal(value, value)


def test_a_container_inside_itself_is_refused():
    """A cycle is a DataError that names its place, also where it branches at every level."""
    value = {"a": []}
    value["a"] += [value, value]
    with pytest.raises(DataError, match=r"^/a/0/.*a container inside itself"):
        frozen(value)


def test_a_shared_container_is_frozen_once():
    """One list in two places is one frozen list in two places, however often that doubles."""
    shared = ["x"]
    assert (pair := frozen([shared, shared]))[0] is pair[1]
    doubling = ["x"]
    for _ in range(49):
        doubling = [doubling, doubling]
    assert depth_of(frozen(doubling)) == 50
    with pytest.raises(DataError, match="50"):
        frozen([[[doubling, 1]]])


def test_a_shared_container_is_measured_where_it_stands_deepest():
    """A part that fits near the root may stand too deep further down."""
    part = nested(40)
    with pytest.raises(DataError, match="50"):
        frozen([part, nested(11, part)])


def test_data_models_stand_for_their_json():
    """An object with `__synmod_json__` is taken at any depth, and its class is not."""
    assert json.dumps(frozen([{"a": Model({"b": 1})}])) == '[{"a": {"b": 1}}]'
    assert frozen(Model([1])) == [1]
    assert thaw(Model({"a": 1})) == {"a": 1}
    assert json_equal(Model([1]), [1])
    with pytest.raises(DataError, match="class Model"):
        frozen([Model])
    with pytest.raises(DataError, match="50"):
        frozen(nested(11, Model(nested(40))))


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, 1.0), (1, True), (0, False), (0.0, -0.0), (1.0, True), ("1", 1), (None, False), ({}, []), ("", None)],
)
def test_json_equal_tells_kinds_apart(a, b):
    """What Python takes for equal is different JSON, alone and inside."""
    assert not json_equal(a, b)
    assert not json_equal([{"x": a}], [{"x": b}])
    assert json_equal([{"x": a}], [{"x": a}])


@given(JSON, JSON)
def test_json_equal_is_equality_of_sorted_texts(a, b):
    """Two values are equal exactly if their texts with sorted keys are."""
    assert json_equal(a, b) == (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))
    assert json_equal(a, copy.deepcopy(a))


def test_json_equal_sees_keys_and_lengths():
    """A missing key, another key, or one item more makes a difference; the order of keys makes none."""
    assert json_equal({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not json_equal({"a": 1}, {"b": 1})
    assert not json_equal({"a": 1}, {"a": 1, "b": 1})
    assert not json_equal([1], [1, 1])
    assert not json_equal([1, 2], [2, 1])


def test_freeze_takes_another_limit():
    """Schemas may nest deeper than values."""
    assert depth_of(frozen(nested(120), 120)) == 120
    with pytest.raises(DataError, match="120"):
        frozen(nested(121), 120)
    assert pickle.loads(pickle.dumps(frozen(nested(120), 120))) == nested(120)
