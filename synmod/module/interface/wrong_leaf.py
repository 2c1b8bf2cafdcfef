"""The error for an argument that is no data: the place, the type, and what to write instead."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from synmod.data import DataModel
from synmod.errors import CallError, DataError
from synmod.flow import LEAF, MAPPING, NestPath, kind_of, leaves_with_path
from synmod.leaves.frozen import frozen
from synmod.module.interface.nests import DATA, each_leaf, step_text
from synmod.module.interface.where import kind_text, where

if TYPE_CHECKING:
    from synmod.module.module import Module


def wrong_leaf(module: Module, place: str, parameter: int | str, argument: Any) -> CallError:
    """Make the error for an argument of which some leaf is no data.

    Args:
        module: The module that was called.
        place: How the message names the argument.
        parameter: Its index, or the name of a keyword argument.
        argument: All of it.
    """
    path, leaf = next((p, x) for p, x in leaves_with_path(argument) if not _may_stand(x))
    table = _plain_object(argument, path)
    if table is not None:
        path = table
    at = f"{where(module)}: {place}{''.join(map(step_text, path))} is"
    model = _demanded_model(module, parameter, path)
    if table is not None:
        name = "..." if model is None else model.__name__
        return CallError(
            f"{at} a dict of plain JSON; inputs are data models. Write sm.JsonDataModel(x, data_model={name})."
        )
    if inspect.iscoroutine(leaf):
        leaf.close()  # nobody can run it any more, so nobody is warned that it never ran
    return CallError(f"{at} {kind_text(leaf)}; {_remedy(leaf, model, _has_further(module))}")


def _may_stand(leaf: Any) -> bool:
    return leaf is None or isinstance(leaf, (*DATA, DataModel))


def _plain_object(argument: Any, path: NestPath) -> NestPath | None:
    """Where on the way to a wrong leaf the first dict of plain JSON stands, None where there is none."""
    part = argument
    for depth in range(len(path) + 1):
        if kind_of(part) == MAPPING and _is_json(part):
            return path[:depth]
        if kind_of(part) == LEAF:
            return None
        part = part[path[depth]]
    return None


def _is_json(mapping: Any) -> bool:
    if any(isinstance(leaf, (*DATA, DataModel)) for leaf in each_leaf(mapping)):
        return False
    try:
        frozen(mapping)
    except DataError:
        return False
    return True


def _demanded_model(module: Module, parameter: int | str, path: NestPath) -> type[BaseModel] | None:
    """The class that the contract demands at a place: by annotation, by the graph, by `input_spec`."""
    call, flow = module._record.declaration.call, module._record.flow
    declared = call.parameter(parameter) if isinstance(parameter, int) else call.keyword(parameter)
    if declared is not None and declared.model is not None:
        return declared.model
    if flow is not None:
        return flow.input_model(parameter) if isinstance(parameter, int) else None
    spec = module.input_spec
    ways = [path, (parameter, *path)]  # of one argument, or of all of them in order or by name
    if declared is not None:
        ways.append((declared.name, *path))
    return next((model for model in (_model_at(spec, way) for way in ways) if model is not None), None)


def _model_at(spec: Any, path: NestPath) -> type[BaseModel] | None:
    for step in path:
        try:
            spec = spec[step]
        except (LookupError, TypeError, ValueError):
            return None
    return getattr(spec, "_model", None)


def _remedy(leaf: Any, model: type[BaseModel] | None, has_further: bool) -> str:
    """What to write instead of a leaf that is no data."""
    if inspect.isawaitable(leaf):
        return "await it first: `await module(await other(x))`."
    if isinstance(leaf, type) and issubclass(leaf, DataModel):
        name = leaf.__name__
        return f"pass an instance, {name}(...), or for composition sm.Input(data_model={name})."
    if isinstance(leaf, BaseModel) or (isinstance(leaf, type) and issubclass(leaf, BaseModel)):
        return "derive it from sm.DataModel."
    by_keyword = " Anything that is no data goes by keyword." if has_further else ""
    if isinstance(leaf, str | int | float):
        return f"inputs are data models. Write {_example(leaf, model)}.{by_keyword}"
    return f"inputs are data models, symbols, None, or lists, tuples and dicts of them.{by_keyword}"


def _has_further(module: Module) -> bool:
    """Tell whether `call` has a parameter besides its first one and `training`; the keywords of a graph are data."""
    if module._record.flow is not None:
        return False
    call = module._record.declaration.call
    return len([name for name in call.signature.parameters if name != "training"]) > 1


def _example(leaf: str | float, model: type[BaseModel] | None) -> str:
    if model is None:
        return f"sm.ChatMessage(role='user', content={leaf[:40]!r})" if isinstance(leaf, str) else _ANY_MESSAGE
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    texts = [name for name in required if model.model_fields[name].annotation is str]
    if len(texts) != 1:
        return f"{model.__name__}(...)"
    return f"{model.__name__}({texts[0]}='...'{', ...' if len(required) > 1 else ''})"


_ANY_MESSAGE = "sm.ChatMessage(role='user', content=...)"
