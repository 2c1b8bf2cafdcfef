"""Cached: a whole module remembered by its inputs and its state."""

from __future__ import annotations

import inspect
import os
import weakref
from collections.abc import Callable, Mapping
from itertools import count
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar, Final, Unpack, cast

from synmod.cache import Cache, checked_ttl, key_of
from synmod.data import JsonDataModel, model_of, schema_of, trusted_schema, wrap
from synmod.errors import ConfigError
from synmod.flow import SingleFlight, copied, leaves
from synmod.leaves import aio
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.names import new_run_id
from synmod.lm import current_sample, models_in_force
from synmod.module import Module, ModuleOptions, has_open_skips
from synmod.registry import lookup, register_own
from synmod.scope import current_call
from synmod.tree import class_text, graphdef, state, static_text

from .arguments import function, member

_PROCESS: Final = new_run_id()
_COUNT: Final = count()
_NUMBERS: Final[dict[int, tuple[int, Any]]] = {}
"""The numbers of objects without a name of their own, by id."""


class _Flights(SingleFlight):
    """Calls under way in this process; copies of a block have their own."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Flights, ()


@register_own()
class Cached(Module):
    """Remembers what a module returned, by the JSON of its inputs and the fingerprint of its structure and state.

    Equal calls at the same time run the module once. Another state of the module (a Variable assigned, an overlay),
    another structure or constructor argument, another default model, sample or training mode has entries of its own;
    failures are never remembered. A call returns when its output is committed; a hit is a cancellation point.

    An output that is one data model, or None, is remembered; a module with another output runs each time, and so does
    one that takes a skip from outside the block, or leaves one. Registered classes and functions count by their id,
    others by module and name; a lambda, a local function or another object counts by itself, within this process only.
    After a change of what a function or a class does, take another file.

    Args:
        module: What is remembered.
        cache: Where: a `Cache`, which several blocks may share; None for memory. Saved programs do not name it: after
            a load the block remembers in memory until its attribute `cache` is set. Copies share it.
        ttl_s: How many seconds an output is good for; None for the `ttl_s` of the cache.
        key: Function of the inputs, plain or async, that returns the JSON that counts in their place. A registered one
            can be saved.
        **options: Those of `Module`.

    Attributes:
        cache: The `Cache`.

    Schemas:
        inputs: what the module takes
        outputs: what the module returns

    Raises:
        ConfigError: `module` is not a module, `cache` not a Cache, `ttl_s` not a number above 0, `key` not a function.
        DataError: When called: `key` returned something that is not JSON.
        CallError: When called: the module needs the very output that it is about to return.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> asked = []
        >>> cached = sm.Cached(sm.Lambda(lambda query: asked.append(1) or query, output=Query), sm.Cache("asked.db"))
        >>> for _ in range(3):
        ...     reply = sm.run(cached, Query(question="Who?"))
        >>> len(asked)
        1

    Source: `functools.cache`, joblib's `Memory`, Go's singleflight; differs: keyed by state, too, so that training is
    never stale.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"cache", "_flights"})

    def __init__(
        self,
        module: Module,
        cache: Cache | None = None,
        *,
        ttl_s: float | None = None,
        key: Callable[..., Any] | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("Cached", "module", module)
        if cache is not None and not isinstance(cache, Cache):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"Cached: cache is {cache!r:.100}; write a Cache, sm.Cache('path'), or None for memory.")
        self.cache = Cache() if cache is None else cache
        self.ttl_s = checked_ttl("Cached", ttl_s)
        self.key = None if key is None else function("Cached", "key", key)
        self._flights = _Flights()

    async def call(self, *inputs: Any) -> Any:
        """Return what is remembered, else call the module and remember its output."""
        if has_open_skips(self.module):
            return await self.module(*inputs)
        counted: Json = [_content(each) for each in inputs]
        if self.key is not None:
            own = self.key(*inputs)
            counted = frozen(await own if inspect.isawaitable(own) else own)
        structure = self._structure()
        key = self._key(counted, structure)
        entry = await self.cache.find(key, ttl_s=self.ttl_s)
        if entry is not None:
            await aio.checkpoint()  # a cancelled task ends here, too
            return self._read(entry)

        async def work() -> Any:
            entry = await self.cache.find(key, ttl_s=self.ttl_s)  # an equal call may just have ended
            if entry is not None:
                return self._read(entry)
            output: Any = await self.module(*inputs)
            if (output is None or isinstance(cast("object", output), JsonDataModel)) and not has_open_skips(
                self.module
            ):
                await self.cache.keep(key, _entry(output))
                built = self._structure()
                if built != structure:  # the first call has built the module: the next ones look under this key
                    await self.cache.keep(self._key(counted, built), _entry(output))
            return output

        return copied(await self._flights.run(key, work))

    async def compute_output_spec(self, *inputs: Any) -> Any:
        """Return what the module returns."""
        return await self.module(*inputs)

    def _structure(self) -> Json:
        """Return what of the module counts beside its state; a declared output counts, annotations are in no graph."""
        declared = [None if leaf is None else schema_of(leaf) for leaf in leaves(self.module.output_spec)]
        return [graphdef(self.module).fingerprint_with(_name), declared, None if self.key is None else _name(self.key)]

    def _key(self, inputs: Json, structure: Json) -> str:
        """Return what makes two calls equal."""
        frame = current_call()
        return key_of(
            {
                "inputs": inputs,
                "structure": structure,
                "state": state(self.module).fingerprint,
                "models": models_in_force(),
                "sample": current_sample(),
                "training": frame is not None and frame.training,
            }
        )

    def _read(self, entry: Json) -> Any:
        """Return the output of an entry, of its class where the module declares that, or where it is registered."""
        if entry["output"] is None:
            return None
        schema = trusted_schema(entry["schema"])
        declared = [model_of(leaf) for leaf in leaves(self.module.output_spec) if leaf is not None]
        for model in (*declared, lookup(entry["class"] or "")):
            if isinstance(model, type) and class_text(model) == entry["class"] and schema_of(model) == schema:
                return wrap(entry["output"], schema, model, entry["label"])
        return wrap(entry["output"], schema, None, entry["label"])


def _entry(output: Any) -> Json:
    """Return an output as an entry of a cache."""
    if output is None:
        return {"output": None}
    model = model_of(output)
    return {
        "output": frozen(output),
        "schema": schema_of(output),
        "class": None if model is None else class_text(model),
        "label": output.name,
    }


def _content(x: Any) -> Json:
    """Return what counts of an input: JSON and schemas, in lists and mappings."""
    if isinstance(x, Mapping):
        return {"mapping": [[repr(key), _content(value)] for key, value in cast("Mapping[Any, Any]", x).items()]}
    if isinstance(x, (list, tuple)):
        return [_content(each) for each in cast("list[Any]", x)]
    return None if x is None else {"json": frozen(x), "schema": schema_of(x)}


def _name(x: Any) -> str:
    """Return the name of an object without an id: a function's module and name, or a number for this process."""
    if text := static_text(x):
        return text
    if isinstance(x, FunctionType | BuiltinFunctionType) and "<" not in x.__qualname__:
        return f"{x.__module__}:{x.__qualname__}"
    key = id(x)
    if key not in _NUMBERS:
        try:  # an id is used again once its object is gone
            kept = weakref.ref(x, lambda _: _NUMBERS.pop(key, None))
        except TypeError:
            kept = x
        _NUMBERS[key] = next(_COUNT), kept
    return f"object {_PROCESS} {os.getpid()} {_NUMBERS[key][0]}"
