"""Cached: a whole module remembered by its inputs and its state."""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack

from pydantic import BaseModel

from synmod.blocks.arguments import function, member
from synmod.blocks.structure_text import StructureText
from synmod.cache import Cache, checked_ttl, key_of
from synmod.data import model_of, schema_of
from synmod.errors import ConfigError, DataError
from synmod.flow import SingleFlight, classes_in, copied, leaves, nest_from
from synmod.flow.nest_json import nest_json
from synmod.leaves import aio
from synmod.leaves.frozen import frozen
from synmod.lm import current_sample, models_in_force
from synmod.module import Module, has_open_skips
from synmod.registry import lookup, register_own
from synmod.scope import current_call
from synmod.tree import class_text, state

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json
    from synmod.module import ModuleOptions

_FORMAT: Final = 1
_NOTHING: Final = object()


class _Process:
    """What a block and its copies know in this process alone: calls under way, classes of outputs, the structure."""

    def __init__(self) -> None:
        self.flights = SingleFlight()
        self.structure = StructureText()
        self.classes: weakref.WeakValueDictionary[str, type[Any]] = weakref.WeakValueDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Process, ()


@register_own()
class Cached(Module):
    """Remembers what a module gave, by the JSON of its inputs and the fingerprint of its state.

    Equal calls at the same time run the module once. Another state of the module (a Variable assigned, an overlay),
    another structure or constructor argument, another default model, sample or training mode has entries of its own;
    failures are never remembered. A call returns when its output is committed; a hit is a cancellation point. What
    takes a skip from outside the block, or leaves one, is no matter of inputs and outputs alone: it runs each time.

    Code counts by what it is called: registered classes and functions by their id, others by module and name, plain
    functions also by their code. After a change of what a class does, take another file.

    Args:
        module: What is remembered.
        cache: Where: a `Cache`, which several blocks may share; None for memory. No file of a program names it: after
            a load the block remembers in memory until its attribute `cache` is set. Copies share it.
        ttl_s: How many seconds an output is good for; None for as long as the cache says.
        key: Function of the inputs, plain or async, that gives the JSON they are told apart by; None for the inputs. A
            registered one can be saved.
        **options: Those of `Module`.

    Attributes:
        cache: The `Cache`.

    Schemas:
        inputs: what the module takes
        outputs: what the module gives; containers other than list, tuple, dict and namedtuple are not remembered

    Raises:
        ConfigError: `module` is no module, `cache` no Cache, `ttl_s` no number above 0, `key` no function.
        DataError: When called: `key` gave what is no JSON, or a dict of the inputs has a key that is none.
        CallError: When called: the module asks for the very output that it is about to give.

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

    Source: `functools.cache`, joblib's `Memory`, Go's singleflight; differs: keyed by state too, so that training is
    never stale.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"cache", "_process"})

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
        if cache is not None and not isinstance(cache, Cache):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise ConfigError(f"Cached: cache is {cache!r:.100}; give a Cache, sm.Cache('path'), or None for memory.")
        self.cache = Cache() if cache is None else cache
        self.ttl_s = checked_ttl("Cached", ttl_s)
        self.key = None if key is None else function("Cached", "key", key)
        self._process = _Process()

    async def call(self, *inputs: Any) -> Any:
        """Give what is remembered, else call the module and remember it."""
        if has_open_skips(self.module):
            return await self.module(*inputs)
        inputs_json = await self._told_inputs(inputs)
        key, structure = self._key(inputs_json)
        outputs = await self._found(key)
        if outputs is not _NOTHING:
            await aio.checkpoint()  # a cancelled task ends here too
            return outputs

        async def work() -> Any:
            outputs = await self._found(key)  # of one who has just landed
            if outputs is _NOTHING:
                outputs = await self.module(*inputs)
                if not has_open_skips(self.module):  # a first call may have built what has skips
                    await self._keep(key, outputs)
                    built_key, built = self._key(inputs_json)
                    if built != structure:  # or Variables: the next calls ask by those
                        await self._keep(built_key, outputs)
            return outputs

        return copied(await self._process.flights.run(key, work))

    async def compute_output_spec(self, *inputs: Any) -> Any:
        """What the module gives."""
        return await self.module(*inputs)

    async def _told_inputs(self, inputs: tuple[Any, ...]) -> Json:
        """What tells the inputs of calls apart."""
        if self.key is None:
            return nest_json(list(inputs))
        own = self.key(*inputs)
        return frozen(await own if inspect.isawaitable(own) else own)

    def _key(self, inputs: Json) -> tuple[str, str]:
        """What makes two calls equal, and what of it is the structure of the module."""
        structure = self._process.structure.of(self.module, self.key)
        frame = current_call()
        asked = {
            "cached": _FORMAT,
            "inputs": inputs,
            "structure": structure,
            "state": state(self.module).fingerprint,
            "models": models_in_force(),
            "sample": current_sample(),
            "training": frame is not None and frame.training,
        }
        return key_of(asked), structure

    async def _found(self, key: str) -> Any:
        """Give remembered outputs; `_NOTHING` where there are none that can be made again."""
        entry = await self.cache.find(key, ttl_s=self.ttl_s)
        if entry is None:
            return _NOTHING
        try:
            return nest_from(entry, self._class_of)
        except LookupError:
            return _NOTHING

    async def _keep(self, key: str, outputs: Any) -> None:
        """Remember outputs, unless JSON could not give them back."""
        try:
            json = nest_json(outputs, _name_of)
            self._process.classes.update((_name_of(each), each) for each in classes_in(outputs))
            await self.cache.keep(key, json)
        except DataError:
            return

    def _class_of(self, name: str) -> Any:
        """The class of a name: seen in this process, declared by the module, or registered; None if it is none of them.

        Raises:
            LookupError: It has other fields today.
        """
        classes = self._process.classes
        seen = classes.get(name)
        if seen is not None:
            return seen
        text = name.partition(" ")[0]
        declared = [model_of(leaf) for leaf in leaves(self.module.output_spec) if leaf is not None]
        found = next((model for model in declared if model is not None and class_text(model) == text), lookup(text))
        if not isinstance(found, type):
            return None
        if _name_of(found) != name:
            raise LookupError(name)
        classes[name] = found
        return found


def _name_of(cls: type[Any]) -> str:
    """Name a class, of a data model with what its fields are."""
    text = class_text(cls)
    return f"{text} {key_of(schema_of(cls))}" if issubclass(cls, BaseModel) else text
