"""What a worker does: it reads the program once, then runs batches of rows. Dask calls these functions by name."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from synmod.errors import UnboundModelError
from synmod.flow import map_concurrently, run
from synmod.leaves import Json, current_clock
from synmod.lm import LanguageModel, NoConnection, SharedModel, default_language_model, use_language_models
from synmod.module import Module
from synmod.registry import lookup
from synmod.saving import loads
from synmod.scope import PHASES, BoundReward, track_usage
from synmod.train import OFFERED, Metrics, run_once
from synmod.tree import State, iter_graph, state, using

from .wire import ran_as_json, row_of


class Work(NamedTuple):
    """What runs, and what judges it.

    Attributes:
        program: As it was saved.
        first: Its values then.
        reward: What judges a row, or None.
        metrics: What measures it.
        paths: The modules whose calls are recorded.
        setup: The function that makes live models, or None.
    """

    program: Module
    first: State
    reward: BoundReward | None
    metrics: Metrics
    paths: frozenset[str]
    setup: str | None


def run_batch(work: str, batch: str) -> str:
    """Return the records of rows that run at once, with the seconds that they took; or why they cannot run here."""
    try:
        return json.dumps(run(_records, read(work), json.loads(batch)))
    except Exception as error:  # noqa: BLE001  # a worker's door: nothing of ours is pickled, errors neither
        return json.dumps({"fault": f"{type(error).__name__}: {error}"})


async def _records(work: Work, batch: Any) -> Json:
    """Run a batch under the models that are in force where it comes from."""

    async def record(row: Any) -> Json:
        with using(work.program, work.first.replace(row["values"])), track_usage() as usage:
            ran = await run_once(
                work.program,
                row_of(row["row"]),
                reward=work.reward,
                metrics=work.metrics,
                sample=row["sample"],
                paths=work.paths,
            )
        used = {phase: asdict(usage[phase]) for phase in PHASES}
        return {"ran": ran_as_json(ran), "usage": used}

    clock, models = current_clock(), _models_of(batch["models"], work.setup)
    began = clock.now()
    with ExitStack() as stack:
        if "default" in models:
            stack.enter_context(default_language_model(models["default"]))
        for block in reversed(models["blocks"]):
            stack.enter_context(use_language_models(block.get("all") or block["named"]))
        rows = batch["rows"]
        async with map_concurrently(record, rows, concurrency=len(rows) or 1, progress=False) as records:
            found = [each async for each in records]
    return {"records": found, "seconds": clock.now() - began}


@lru_cache(maxsize=4)
def read(text: str) -> Work:
    """Return the work of a text.

    Raises:
        ImportError: A module is missing here.
        LoadError: A class or function is not registered here.
        UnboundModelError: A model has no connection.
    """
    given: Any = json.loads(text)
    for module in given["imports"]:
        import_module(module)
    nodes = _loaded(given["nodes"], given["setup"])
    reward, functions = nodes.get("reward"), [*nodes.get("metrics", ()), *map(lookup, given["functions"])]
    bound = None if reward is None else BoundReward(reward, OFFERED)
    first = state(nodes["program"])
    return Work(nodes["program"], first, bound, Metrics(functions), frozenset(given["paths"]), given["setup"])


@lru_cache(maxsize=16)
def _models_of(text: str, setup: str | None) -> dict[str, Any]:
    """Return the default model, where there is one, and the blocks of stand-ins."""
    return {"blocks": [], **_loaded(text, setup)} if text else {"blocks": []}


@lru_cache(maxsize=4)
def _made_by(setup: str) -> Mapping[str, LanguageModel] | LanguageModel | None:
    """Return the live models that a function makes, once in a process."""
    module, _, name = setup.partition(":")
    return getattr(import_module(module), name)()


def _loaded(text: str, setup: str | None) -> dict[str, Any]:
    """Return what a text of saving holds, with its live models.

    Raises:
        UnboundModelError: A model has no connection; names the line to write.
    """
    given, named = None if setup is None else _made_by(setup), json.loads(text)["language_models"]
    if isinstance(given, Mapping):  # `loads` refuses names that are not in the file
        given = {
            name: model for name, model in given.items() if any(name in (key, key.partition("#")[0]) for key in named)
        }
    nodes: dict[str, Any] = loads(text, language_models=given)
    models: Iterator[tuple[Any, SharedModel]] = iter_graph(nodes, SharedModel)
    unbound = dict.fromkeys(model.name for _, model in models if isinstance(model.adapter, NoConnection))
    if unbound:
        raise UnboundModelError(
            f"no file holds the connection of {', '.join(map(repr, unbound))}. Pass setup=, an importable function "
            "that returns {saved name: LanguageModel(...)}; keys come from the worker's environment."
        )
    return nodes
