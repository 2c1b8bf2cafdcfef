"""The algebra on schemas that use any keyword: what comes out is valid for the schema it carries."""

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from synmod.data import OPERATIONS, JsonDataModel, is_valid, ops, schema_from, schema_of, thaw
from synmod.errors import SchemaError
from tests.data.model_strategies import is_sound
from tests.data.schema_strategies import NAMES, VALUES, schemas

PATTERNS = ["a", "b", "a/b", "**/a", "*", "a/*", "*/b", "a*", "**", "b/**", "x_1", "?"]
slow = settings(max_examples=15, suppress_health_check=list(HealthCheck))


@st.composite
def models(draw):
    """Values of one object schema."""
    try:
        schema = schema_from({**draw(schemas()), "type": "object"})
        made = [draw(st.dictionaries(NAMES, VALUES, max_size=4)) for _ in range(4)]
        valid = [json for json in made if is_valid(schema, json)]
    except SchemaError:
        assume(False)
    assume(valid)
    return [JsonDataModel(json, schema=schema) for json in valid]


@slow
@given(models(), models())
@pytest.mark.slow
def test_merging(left, right):
    """`C` and `U` admit what they are made of, and lose nothing."""
    a, b = left[0], right[0]
    schemas = (schema_of(a), schema_of(b))
    either = OPERATIONS["logical_or"].plan(schemas)
    only = OPERATIONS["logical_xor"].plan(schemas)
    for a in left:
        for b in right:
            merged = a + b
            assert is_sound(merged)
            assert len(merged.keys()) == len(a.keys()) + len(b.keys())
            for pair in ((a, b), (a, None), (None, b)):
                assert is_sound(either.apply(pair))
            assert is_sound(only.apply((a, None)))
            assert is_sound(only.apply((None, b)))
    for plan in (either, only, OPERATIONS["concat"].plan(schemas)):
        schema_from(thaw(plan.schema))


@slow
@given(models(), st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3))
def test_masks_and_names(values, patterns):
    """Masks, prefix, suffix and factorize."""
    for value in values:
        for made in (ops.prefix(value, "p"), ops.suffix(value, "s"), ops.factorize(value)):
            assert is_sound(made)
        for mask in (ops.in_mask, ops.out_mask):
            try:
                masked = mask(value, patterns)
            except SchemaError:
                continue
            assert is_sound(masked)
            schema_from(thaw(schema_of(masked)))
