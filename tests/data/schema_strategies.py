"""Strategies of hypothesis for JSON values and for schemas, used by the tests of this room."""

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "ab", "x_1"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.0, -0.0, 1.0, 0.5, 1.5, 2.0, 1e300, 10**30])
    | st.sampled_from(["", "a", "b", "ab", "aab", "é"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
COUNTS = st.integers(0, 3)
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 1.5])
PATTERNS = st.sampled_from(["a", "^a", "b$", "^a+b?$", "^$", "_"])
REFERENCES = st.sampled_from(["#/$defs/one", "#/$defs/two"])

OF_SCALARS = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "const": VALUES,
    "enum": st.lists(VALUES, max_size=3),
    "minimum": NUMBERS,
    "maximum": NUMBERS,
    "exclusiveMinimum": NUMBERS,
    "exclusiveMaximum": NUMBERS,
    "multipleOf": st.sampled_from([1, 2, 3, 0.5, 0.1, 1.0]),
    "minLength": COUNTS,
    "maxLength": COUNTS,
    "pattern": PATTERNS,
    "minItems": COUNTS,
    "maxItems": COUNTS,
    "uniqueItems": st.booleans(),
    "minProperties": COUNTS,
    "maxProperties": COUNTS,
    "required": st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
    "title": st.just("T"),
    "default": VALUES,
}


def _of_schemas(inner):
    several = st.lists(inner, min_size=1, max_size=3)
    return {
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
        "propertyNames": inner,
        "unevaluatedProperties": inner,
        "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
        "items": inner,
        "prefixItems": several,
        "contains": inner,
        "minContains": COUNTS,
        "maxContains": COUNTS,
        "unevaluatedItems": inner,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }


def _picked(keywords, most):
    """Objects with some of the keywords."""
    return st.lists(st.sampled_from(sorted(keywords)), max_size=most, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: keywords[name] for name in names})
    )


def subschemas(keywords=None, references=REFERENCES):
    """Subschemas that use any keyword, or only the ones named."""
    simple = {name: made for name, made in OF_SCALARS.items() if keywords is None or name in keywords}
    leaf = st.booleans() | _picked(simple, 3)
    if references is not None:
        leaf = leaf | st.fixed_dictionaries({"$ref": references})

    def deeper(inner):
        made = {name: it for name, it in _of_schemas(inner).items() if keywords is None or name in keywords}
        return _picked(made | simple, 4)

    return st.recursive(leaf, deeper, max_leaves=8)


def schemas(keywords=None):
    """Whole schemas, with definitions, which refer to nothing or to themselves through a property."""
    inside = subschemas(keywords, None)
    recursive = st.fixed_dictionaries(
        {"properties": st.fixed_dictionaries({"a": st.just({"$ref": "#/$defs/two"}), "b": inside})}
    )
    return st.builds(
        lambda root, one, two: {
            **(root if isinstance(root, dict) else {"allOf": [root]}),
            "$defs": {"one": one, "two": two},
        },
        subschemas(keywords),
        inside,
        recursive,
    )
