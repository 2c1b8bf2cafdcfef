"""Build config: the schemas a module was built on, out and in again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from synmod.data.declare import declare, schema_of
from synmod.data.symbol import SymbolicDataModel, symbol
from synmod.errors import BuildError, ConfigError
from synmod.flow.nest import MAPPING, kind_of
from synmod.leaves.aio import Suspended, drive
from synmod.leaves.frozen import thaw
from synmod.module.inputs import where
from synmod.module.sealing import seal

if TYPE_CHECKING:
    from synmod.module.module import Module


def build_config_json(module: Module) -> dict[str, Any] | None:
    """The schemas a module was built on: one `input_schema`, or `schemas_dict` by parameter."""
    built_on = module._record.build_config
    if built_on is None:
        return None
    nests = list(built_on.values())
    if len(nests) == 1 and isinstance(nests[0], SymbolicDataModel):
        return {"input_schema": thaw(schema_of(nests[0]))}
    return {"schemas_dict": {name: _to_json(nest) for name, nest in built_on.items()}}


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
    return symbol(declare(json))


def read_build_config(module: Module, config: Mapping[str, Any]) -> dict[str, Any]:
    """The symbols by parameter of `build` that a config describes.

    Raises:
        ConfigError: It is no build config of this class.
        SchemaError: A schema in it cannot be used.
    """
    parameters = list(module._record.declaration.build.parameters.values())
    if set(config) == {"input_schema"}:
        return {parameters[0].name if parameters else "inputs": _from_json(config["input_schema"])}
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
    from synmod.module.sm_build import build

    record = module._record
    if config is None or record.built:
        seal(module)
        return
    built_on = read_build_config(module, config)
    if record.restored:
        record.build_config = built_on
        record.built = True
        record.contract = None
        seal(module)
        return
    signature = module._record.declaration.build
    star = next((n for n, p in signature.parameters.items() if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    positional = tuple(built_on.pop(star, ())) if star is not None else ()
    try:
        drive(build(module, *positional, *(nest for nest in built_on.values())))
    except Suspended:
        raise BuildError(
            f"{where(module)}: its build waits for something, which plain code cannot: "
            "use `await sm.build(module, Schema)`, or `await sm.aload(path)` for a file."
        ) from None
