"""First values of Variables: plain callables that are given the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from synmod.data import declare, dump, model_of
from synmod.errors import SchemaError
from synmod.leaves.frozen import FrozenDict, Json, frozen

if TYPE_CHECKING:
    from pydantic import BaseModel

    from synmod.data import Schema

_FIRST = {"string": "", "integer": 0, "number": 0, "boolean": False}
_DEEPEST = 50


class Constant:
    """Starts a Variable at a fixed value.

    Args:
        json: JSON or a data model.

    Raises:
        DataError: It is no JSON.

    Example:
        >>> Constant("Answer briefly.")({})
        'Answer briefly.'

    Source: Keras `initializers.Constant`.
    """

    __slots__ = ("json",)

    def __init__(self, json: Json) -> None:
        self.json = frozen(json)

    def __call__(self, schema: Json) -> Json:  # noqa: ARG002  (every initializer is given it)
        """Give the value, whatever the schema."""
        return self.json

    def __repr__(self) -> str:
        return f"Constant({self.json!r:.200})"


class Empty:
    """Starts a Variable at the emptiest value of its schema.

    That is the JSON of `Model()` if all its fields have defaults, else the schema's default, else null if allowed, the
    first enum value, `""`, 0, false, `[]`, or an object of the required and the defaulted fields.

    Args:
        data_model: What the Variable holds, where the Variable itself declares nothing.

    Example:
        >>> Empty()({"type": "array"})
        []

    Source: Synalinks `initializers.Empty`; differs: serves every schema.
    """

    __slots__ = ("data_model",)

    def __init__(self, data_model: Any = None) -> None:
        self.data_model = data_model

    def __call__(self, schema: Json) -> Json:
        """Give the emptiest value of a schema.

        Raises:
            SchemaError: A default cannot be built.
        """
        return empty_value(schema, model_of(self.data_model) if self.data_model is not None else None)

    def __repr__(self) -> str:
        return "Empty()" if self.data_model is None else f"Empty(data_model={self.data_model!r})"


def empty_value(schema: Json, model: type[BaseModel] | None = None) -> Json:
    """Give the emptiest value of a schema, by way of the class where one is known.

    Raises:
        SchemaError: All fields of the class have defaults, but they do not make an instance.
    """
    if model is not None and not any(field.is_required() for field in model.model_fields.values()):
        try:
            return dump(model())
        except ValueError as error:
            raise SchemaError(f"{model.__name__}: its defaults make no instance: {error}") from error
    return _emptiest(schema, schema, _DEEPEST)


def _emptiest(root: Json, subschema: Json, deepest: int) -> Json:
    """Give the emptiest value of a subschema."""
    if not isinstance(subschema, dict) or not deepest:
        return None
    schema = cast("dict[str, Any]", subschema)
    if "default" in schema:
        return schema["default"]
    if allows_null(root, schema):
        return None
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    arm = _arm(root, schema)
    if arm is not None:
        return _emptiest(root, arm, deepest - 1)
    kind = _kind(schema)
    if kind == "object":
        return _emptiest_object(root, schema, deepest)
    return [] if kind == "array" else _FIRST.get(kind)


def _emptiest_object(root: Json, schema: Json, deepest: int) -> Json:
    """Give an object of the required and the defaulted fields, in the order of the schema."""
    fields: dict[str, Json] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    wanted = [name for name, field in fields.items() if name in required or _has_default(field)]
    wanted += [name for name in required if name not in fields]
    return {name: _emptiest(root, fields.get(name, {}), deepest - 1) for name in wanted}


def _has_default(field: Json) -> bool:
    return isinstance(field, dict) and "default" in field


def _arm(root: Json, schema: Json) -> Json:
    """Step to what a schema is only a door to: a reference, or the first of several forms."""
    if "$ref" in schema:
        return referred(root, schema["$ref"])
    if "type" not in schema and "properties" not in schema:
        for word in ("anyOf", "oneOf", "allOf"):
            if schema.get(word):
                return schema[word][0]
    return None


def _kind(schema: Json) -> str:
    kind = schema.get("type", "object" if "properties" in schema or "required" in schema else "null")
    return kind if isinstance(kind, str) else kind[0]


def allows_null(root: Json, schema: Json, deepest: int = _DEEPEST) -> bool:
    """Tell whether a subschema lets null in."""
    if schema is True or not deepest:
        return schema is True
    if schema is False:
        return False
    kinds = schema.get("type")
    if kinds is not None and kinds != "null" and not (isinstance(kinds, list) and "null" in kinds):
        return False
    if schema.get("const", None) is not None or ("enum" in schema and None not in schema["enum"]):
        return False
    if "$ref" in schema and not allows_null(root, referred(root, schema["$ref"]), deepest - 1):
        return False
    for word, rule in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        if word in schema and not rule(allows_null(root, arm, deepest - 1) for arm in schema[word]):
            return False
    return "not" not in schema and ("properties" not in schema or kinds is not None)


def referred(root: Json, reference: str) -> Json:
    """Follow a `#/...` reference; True (anything) where it leads nowhere, which the schema check has refused."""
    here: Any = root
    for step in reference.lstrip("#").split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list) and step.isdecimal() and int(step) < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[int(step)]
        elif isinstance(here, dict) and step in here:
            here = cast("dict[str, Any]", here)[step]
        else:
            return True
    return here


def schema_of_json(json: Json) -> Schema:
    """Give the JSON type of a value as its schema; `{}` for null.

    Example:
        >>> schema_of_json("hello")
        {'type': 'string'}
    """
    if json is None:
        return declare(True, root="any")
    for kind, word in (
        (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (FrozenDict, "object")
    ):  # fmt: skip
        if isinstance(json, kind):
            return declare({"type": word}, root="any")
    return declare({"type": "array"}, root="any")
