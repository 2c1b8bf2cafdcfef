"""Initializers: what a Variable starts at, a fixed value or the emptiest one of its schema."""

from typing import Any

from synmod import data, errors, leaves

_EMPTY: tuple[leaves.Json, ...] = (None, "", 0, False, leaves.frozen([]), leaves.frozen({}))


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
