"""First values and schemas of Variables: from a value, an initializer, a data model or a schema."""

from inspect import iscoroutine
from typing import Any

from synmod import data, errors, leaves

_EMPTY: tuple[leaves.Json, ...] = (None, "", 0, False, leaves.frozen([]), leaves.frozen({}))
_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (leaves.FrozenDict, "object"))


class Constant:
    """Start a Variable at a fixed value.

    Args:
        json: JSON or a data model.

    Raises:
        DataError: The value is not JSON.

    Example:
        >>> Constant("Answer briefly.")({})
        'Answer briefly.'

    Source: Keras `initializers.Constant`.
    """

    __slots__ = ("json",)

    def __init__(self, json: leaves.Json) -> None:
        self.json = leaves.frozen(json)

    def __call__(self, schema: leaves.Json) -> leaves.Json:  # noqa: ARG002  (the interface of initializers)
        """Return the value, whatever the schema."""
        return self.json

    def __repr__(self) -> str:
        return f"Constant({self.json!r:.200})"


class Empty:
    """Start a Variable at the emptiest value of its schema.

    This is the JSON of `Model()` if all fields of the data model have defaults, else the schema's default, else the
    first of null, `""`, 0, false, `[]`, `{}` that the schema accepts.

    Args:
        data_model: The data model of the Variable, if the Variable does not declare one itself.

    Example:
        >>> Empty()({"type": "array"})
        []

    Source: Synalinks `initializers.Empty`; differs: serves every schema.
    """

    __slots__ = ("data_model",)

    def __init__(self, data_model: Any = None) -> None:
        self.data_model = data_model

    def __call__(self, schema: leaves.Json) -> leaves.Json:
        """Return the emptiest value of a schema.

        Raises:
            SchemaError: The schema accepts no empty value.
        """
        return empty_value(data.declare(schema, root="any"), self.data_model)

    def __repr__(self) -> str:
        return "Empty()" if self.data_model is None else f"Empty(data_model={self.data_model!r})"


def empty_value(schema: data.Schema, data_model: Any = None) -> leaves.Json:
    """Return the emptiest value of a schema, frozen; from the defaults of the data model if it is known.

    Raises:
        SchemaError: The defaults of the class do not make an instance, or the schema accepts no empty value.
    """
    model = None if data_model is None else data.model_of(data_model)
    if model is not None and not any(field.is_required() for field in model.model_fields.values()):
        try:
            return leaves.frozen(data.dump(model()))
        except ValueError as error:
            raise errors.SchemaError(f"{model.__name__}: its defaults do not make an instance: {error}") from error
    if "default" in schema:
        return schema["default"]
    for value in _EMPTY:
        if data.is_valid(schema, value):
            return value
    name = schema.get("title", "the schema")
    raise errors.SchemaError(f"{name} accepts no empty value (null, '', 0, false, [] or {{}}): pass a first value.")


def schema_of_json(json: leaves.Json) -> data.Schema:
    """Return the JSON type of a frozen value as its schema; `{}` for null.

    Example:
        >>> schema_of_json("hello")
        {'type': 'string'}
    """
    if json is None:
        return data.declare(True, root="any")
    name = next((name for cls, name in _TYPES if isinstance(json, cls)), "array")
    return data.declare({"type": name}, root="any")


def resolve_schema(kind: str, data_model: Any, schema: Any, initializer: Any) -> data.Schema | None:
    """Return the declared schema of a Variable; None if nothing declares one.

    Raises:
        ArgumentError: `schema` and `data_model` differ.
    """
    if data_model is None and isinstance(initializer, Empty):
        data_model = initializer.data_model
    if data_model is None:
        return None if schema is None else data.declare(schema, root="any")
    declared = data.declare(data_model, root="any")
    if schema is not None and not leaves.json_equal(data.declare(schema, root="any"), declared):
        raise errors.ArgumentError(f"{kind}: `schema` and `data_model` differ: pass only one of them.")
    return declared


def first_value(
    kind: str, value: leaves.Json, initializer: Any, data_model: Any, declared: data.Schema | None
) -> leaves.Json:
    """Return the first value of a Variable, frozen.

    Raises:
        ArgumentError: `value` and `initializer` are both given, or the initializer is async.
    """
    if value is not None:
        if initializer is not None:
            raise errors.ArgumentError(f"{kind}: `value` and `initializer` are both given: pass only one of them.")
        return leaves.frozen(value)
    if initializer is not None and not isinstance(initializer, Empty):
        result = initializer({} if declared is None else declared) if callable(initializer) else initializer
        if iscoroutine(result):
            result.close()
            raise errors.ArgumentError(f"{kind}: the initializer is async; it must be a plain function.")
        return leaves.frozen(result)
    if initializer is None and not isinstance(data_model, type) and hasattr(data_model, "__synmod_json__"):
        return leaves.frozen(data_model)
    model = data_model if initializer is None or initializer.data_model is None else initializer.data_model
    return None if declared is None else empty_value(declared, model)
