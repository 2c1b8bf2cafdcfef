"""Strategies for data models: a schema with an object at its root, and values that satisfy it."""

from hypothesis import strategies as st

from synmod.data import JsonDataModel, is_valid, schema_from, schema_of, symbol

NAMES = ["k", "k_1", "k_2", "k_1_1", "note", "a"]
EXTRAS = ["k", "k_1", "k_3", "note", "z", "a_1"]

INT = {"type": "integer"}
TEXT = {"type": "string", "title": "Text"}
SCALARS = [(INT, st.integers(-3, 3)), (TEXT, st.sampled_from(["", "x", "é"])), ({"type": "boolean"}, st.booleans())]


def doc(draw):
    """One of two definitions of the same name, with a value for it."""
    if draw(st.booleans()):
        fields = {"note": INT, "k": TEXT}
        value = {"note": draw(st.integers(0, 3)), "k": "t"}
    else:
        fields = {"note": TEXT, "deep": {"type": "array", "items": {"type": "object", "properties": {"note": INT}}}}
        value = {"note": "n", "deep": [{"note": 1, "other": 2}]}
    required = ["note"]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}, value


@st.composite
def schemas_with_values(draw, count=1, names=NAMES):
    """A schema, and `count` values valid for it."""
    definition, definition_value = doc(draw)
    fields, makers = {}, {}
    for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=5)):
        kind = draw(st.integers(0, 6))
        if kind < 3:
            fields[name], makers[name] = SCALARS[kind]
        elif kind == 3:
            fields[name], makers[name] = {"$ref": "#/$defs/Doc"}, st.just(definition_value)
        elif kind == 4:
            fields[name] = {"type": "array", "items": {"$ref": "#/$defs/Doc"}}
            makers[name] = st.lists(st.just(definition_value), max_size=2)
        elif kind == 5:
            fields[name] = {"anyOf": [{"$ref": "#/$defs/Doc"}, {"type": "null"}], "default": None}
            makers[name] = st.just(definition_value) | st.none()
        else:
            fields[name] = {"type": "object", "additionalProperties": INT}
            makers[name] = st.dictionaries(st.sampled_from(["note", "z"]), st.integers(0, 2), max_size=2)
    extra = draw(st.sampled_from([False, False, True, None, INT]))
    schema = {"type": "object", "properties": fields}
    if extra is not None:
        schema["additionalProperties"] = extra
    if draw(st.booleans()):
        schema["title"] = draw(st.sampled_from(["A", "B"]))
    schema["$defs"] = {"Doc": definition}
    schema["required"] = [name for name in fields if draw(st.booleans())]
    values = []
    for _ in range(count):
        value = {name: draw(makers[name]) for name in fields if name in schema["required"] or draw(st.booleans())}
        if extra is not False:
            for name in draw(st.lists(st.sampled_from(EXTRAS), unique=True, max_size=3)):
                if name not in fields:
                    value[name] = draw(st.integers(0, 9))
        values.append(value)
    return schema_from(schema), values


@st.composite
def values(draw, names=NAMES):
    """A JsonDataModel."""
    schema, (value,) = draw(schemas_with_values(names=names))
    return JsonDataModel(value, schema=schema)


def symbol_of(value):
    """The symbol that stands for values of the same schema."""
    return symbol(schema_of(value))


def is_sound(value):
    """Whether a value satisfies the schema it carries."""
    return is_valid(schema_of(value), value.get_json())
