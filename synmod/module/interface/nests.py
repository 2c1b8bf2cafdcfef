"""Nests of data and of declarations: what arguments, `input_spec`, `output_spec` and `sm.build` are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, declare, model_of, schema_of, symbol
from synmod.errors import ArgumentError
from synmod.flow import LEAF, MAPPING, NestPath, kind_of, leaves, map_leaves

DATA = (JsonDataModel, SymbolicDataModel)


def is_datum(leaf: Any) -> TypeGuard[JsonDataModel[Any] | SymbolicDataModel]:
    """Tell whether a leaf is a value or a symbol."""
    return isinstance(leaf, DATA)


def title_of(datum: JsonDataModel[Any] | SymbolicDataModel) -> str:
    """The class or title that a value or symbol is known by, else its label."""
    return str(datum._schema.get("title") or datum.name)


def title_of_schema(schema: Mapping[str, Any]) -> str:
    """The title of a schema, else its fields."""
    return str(schema.get("title") or f"an object with {', '.join(schema.get('properties', {})) or 'no field'}")


def each_leaf(nest: Any) -> Iterator[Any]:
    """Yield the leaves of anything, each container once, so that one that holds itself is no trap."""
    todo = [nest]
    seen: set[int] = set()
    while todo:
        part = todo.pop()
        kind = kind_of(part)
        if kind == LEAF:
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            todo.extend(reversed(list(part.values()) if kind == MAPPING else part))


def is_data(nest: Any) -> bool:
    """Tell whether a nest holds nothing but values, symbols and None."""
    return all(leaf is None or isinstance(leaf, DATA) for leaf in each_leaf(nest))


def is_nothing(nest: Any) -> bool:
    """Tell whether a nest is None, or not empty and holds nothing but None."""
    if nest is None:
        return True
    if kind_of(nest) == LEAF:
        return False
    found = False
    for leaf in each_leaf(nest):
        if leaf is not None:
            return False
        found = True
    return found


def paired(wanted: Any, nest: Any) -> list[tuple[NestPath, Any, Any]] | None:
    """Pair what is wanted with what stands there.

    Args:
        wanted: A nest of symbols; None fits anything.
        nest: A nest of data; None fits anywhere, a list and a tuple count as one.

    Returns:
        (path, symbol, leaf) where there are both, in the order of `wanted`; None where the structures differ.
    """
    pairs: list[tuple[NestPath, Any, Any]] = []
    todo: list[tuple[NestPath, Any, Any]] = [((), wanted, nest)]
    while todo:
        path, left, right = todo.pop()
        if left is None or right is None:
            continue
        kind = kind_of(left)
        if kind != kind_of(right):
            return None
        if kind == LEAF:
            pairs.append((path, left, right))
            continue
        keys = list(left) if kind == MAPPING else range(len(left))
        if len(left) != len(right) or (kind == MAPPING and any(key not in right for key in keys)):
            return None
        todo.extend(((*path, key), left[key], right[key]) for key in reversed(keys))
    return pairs


def symbols_of(spec: Any, where: str) -> Any:
    """Turn a nest of declarations into the same nest of fresh symbols.

    Args:
        spec: Data model classes, instances or values, symbols, schemas, None; lists, tuples and dicts of them. A dict
            that holds a data model or a symbol at any depth is a nest, any other dict is a schema.
        where: What is declared, for messages.

    Returns:
        The nest with a fresh symbol for each declaration, None for None.

    Raises:
        ArgumentError: A leaf declares nothing.
        SchemaError: A schema cannot be used.
    """
    if spec is None:
        return None
    kind = kind_of(spec)
    if kind == LEAF or (kind == MAPPING and not any(is_declaration(leaf) for leaf in leaves(spec))):
        return _symbol(spec, where)
    if kind == MAPPING:
        return {key: symbols_of(item, where) for key, item in spec.items()}
    items = [symbols_of(item, where) for item in spec]
    return type(spec)(*items) if hasattr(spec, "_fields") else type(spec)(items)


def is_declaration(x: Any) -> bool:
    """Tell whether something other than a schema declares data."""
    if isinstance(x, type):
        return hasattr(x, "model_fields")
    return isinstance(x, JsonDataModel | SymbolicDataModel | DataModel)


def _symbol(x: Any, where: str) -> SymbolicDataModel:
    if isinstance(x, JsonDataModel | SymbolicDataModel):
        return symbol(schema_of(x), x._model, x._label)
    if isinstance(x, dict | bool) or is_declaration(x):
        return symbol(declare(x), model_of(x))
    raise ArgumentError(
        f"{where}: {x!r:.200} declares no data; give a data model, a schema, a symbol, or a nest of them."
    )


def step_text(step: str | int) -> str:
    """How messages write a step into a nest."""
    return f", key {step!r}" if isinstance(step, str) else f", index {step}"


def fresh(nest: Any) -> Any:
    """Stand a fresh symbol in the place of every value and symbol of a nest: schemas, never data."""
    return map_leaves(_fresh_leaf, nest)


def _fresh_leaf(leaf: Any) -> Any:
    return symbol(leaf._schema, leaf._model, leaf._label) if is_datum(leaf) else leaf
