"""Build config: the schemas a module was built on, out and in again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from synmod.data import SymbolicDataModel, declare, schema_of, symbol
from synmod.errors import BuildError, ConfigError
from synmod.flow import MAPPING, kind_of
from synmod.leaves.aio import Suspended, drive
from synmod.leaves.frozen import thaw
from synmod.leaves.names import did_you_mean
from synmod.module.building.building import ensure_built, mark_built
from synmod.module.frames import SymbolicFrame
from synmod.module.interface.signatures import POSITIONAL
from synmod.module.interface.where import where
from synmod.module.notes import note_failure

if TYPE_CHECKING:
    from synmod.module.module import Module


def build_config_json(module: Module) -> dict[str, Any] | None:
    """The schemas a module was built on: one `input_schema`, or `schemas_dict` by parameter."""
    built_on = module._record.build_config
    if built_on is None:
        return None
    if is_single(module._record.declaration.build, built_on):
        return {"input_schema": thaw(schema_of(next(iter(built_on.values()))))}
    return {"schemas_dict": {name: _to_json(nest) for name, nest in built_on.items()}}


def is_single(signature: inspect.Signature, built_on: Mapping[str, Any]) -> bool:
    """Tell whether a module was built on one data model, which goes to the first parameter of its `build`."""
    first = next(iter(signature.parameters.values()), None)
    if first is None or first.kind not in POSITIONAL:
        return False
    return list(built_on) == [first.name] and isinstance(built_on[first.name], SymbolicDataModel)


def _to_json(nest: Any) -> Any:
    if nest is None:
        return None
    if isinstance(nest, SymbolicDataModel):
        return thaw(schema_of(nest))
    if kind_of(nest) == MAPPING:
        return {"dict": {key: _to_json(item) for key, item in nest.items()}}
    return [_to_json(item) for item in nest]


def _from_json(json: Any) -> Any:
    if json is None:
        return None
    if isinstance(json, list | tuple):
        return [_from_json(item) for item in cast("list[Any]", json)]
    if isinstance(json, dict) and list(cast("dict[str, Any]", json)) == ["dict"]:
        return {key: _from_json(item) for key, item in cast("dict[str, dict[str, Any]]", json)["dict"].items()}
    if not isinstance(json, dict):
        raise ConfigError(
            f"a build config says a schema, null, a list or {{'dict': ...}} for an input, not {json!r:.100}."
        )
    return symbol(declare(json))


def read_build_config(module: Module, config: Mapping[str, Any]) -> dict[str, Any]:
    """The symbols by parameter of `build` that a config describes.

    Raises:
        ConfigError: It is no build config of this class.
        SchemaError: A schema in it cannot be used.
    """
    parameters = list(module._record.declaration.build.parameters)
    if set(config) == {"input_schema"}:
        return {parameters[0] if parameters else "inputs": _from_json(config["input_schema"])}
    if set(config) == {"schemas_dict"} and isinstance(config["schemas_dict"], Mapping):
        by_parameter = cast("Mapping[str, Any]", config["schemas_dict"])
        return {name: _from_json(json) for name, json in by_parameter.items()}
    raise ConfigError(
        f"{where(module)}: {sorted(config)} is no build config; it has one key, 'input_schema' or 'schemas_dict'."
    )


def build_from_config(module: Module, config: Mapping[str, Any] | None) -> None:
    """Bring an unbuilt module to the state that a build config describes.

    Where what its `build` made is there already (a load restored it) the module is only marked as built; otherwise
    `build` runs on symbols, to its end.

    Raises:
        BuildError: The `build` waits for something; everything is undone.
        ConfigError: It is no build config of this class.
    """
    record = module._record
    if config is None or record.built:
        return
    built_on = read_build_config(module, config)
    if record.restored:
        mark_built(module, built_on)
        return
    args, kwargs = _arguments(module, built_on)
    try:
        drive(_built(module, args, kwargs))
    except Suspended:
        raise BuildError(
            f"{where(module)}: its build waits for something, which plain code cannot: "
            "use `await sm.build(module, Schema)`, or `await sm.aload(path)` for a file."
        ) from None


async def _built(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own build, and no more: what is below it has a config of its own."""
    with SymbolicFrame(module) as frame:
        try:
            await ensure_built(module, args, kwargs)
        except BaseException as error:
            note_failure(error, frame, module, args)
            raise


def _arguments(module: Module, built_on: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a call would have been given so that `build` receives these symbols.

    Raises:
        ConfigError: A name that `build` does not take.
    """
    signature = module._record.declaration.build
    unknown = [name for name in built_on if name not in signature.parameters]
    if unknown:
        raise ConfigError(
            f"{where(module)}: build{signature} takes no {unknown[0]!r}, which its build config names."
            f"{did_you_mean(unknown[0], signature.parameters)}"
        )
    bound = inspect.BoundArguments(signature, built_on)  # pyright: ignore[reportArgumentType]  # a dict is in order
    return bound.args, bound.kwargs
