"""`@skippable`: which values a class of modules stashes and pops, and one call of a module that declares them."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from synmod.data import Schema, SymbolicDataModel, declare, model_of, symbol
from synmod.errors import ArgumentError, ConfigError, SchemaError, SkipError
from synmod.flow import Step, leaves, step_of
from synmod.module import DeclaredSkips, Module, declaration_of
from synmod.scope import CallFrame

from .commands import UNKNOWN, as_symbol, untyped
from .lane import TAKEN, Key, Lane, Slot, lane_of, shown

# -- one call: entry, body, completeness; how it ends is up to its lane ------------------------------------------------


class Skippable:
    """Runs the calls of modules that declare skips; one for all."""

    __slots__ = ()

    async def run(self, module: Module, frame: CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Reserve what is to be popped, run `call`, and check that it did what its class declares.

        Raises:
            SkipError: A value has not been stashed, or `call` left out a declared command.
        """
        lane, skips = _begin(module, frame)
        lacking = [key for name in skips.required if not lane.reserve(key := (lane.isolated.get(name), name))]
        for name in skips.peeks:
            key = lane.isolated.get(name), name
            slot = lane.find(key)
            if slot is not None:
                lane.held.setdefault(key, slot)
            elif name not in skips.optional:
                lacking.append(key)
        if lane.symbolic:
            _look_in_history(lane, skips, lacking, [args, dict(kwargs)])
        elif lacking:
            raise _never_stashed(lane, lacking)
        output = module.call(*args, **kwargs)
        if inspect.isawaitable(output):
            output = await output
        word, left = _left_out(lane, skips)
        if left:
            done, value = ("stashed", ", ...") if word == "stash" else ("popped", "")
            raise SkipError(
                f"{lane.label}: {', '.join(map(repr, left))} must be {done} but have not been, in this call. Each call "
                f"must perform every declared command: `{word}({left[0]!r}{value})`."
            )
        return output

    def assume(self, module: Module, frame: CallFrame) -> None:
        """Do to the lane what the class declares, for a call on symbols whose `call` was not followed to its end."""
        known: Any = frame.layer
        if known is not None and known.skips is not None and not _left_out(known, known.skips)[1]:
            return
        lane, skips = _begin(module, frame)
        for name in skips.pop:
            key = lane.isolated.get(name), name
            slot = lane.find(key)
            if slot is not None:
                lane.take(key, slot)
        for name in skips.stash:
            value = as_symbol(UNKNOWN, skips.schemas.get(name), skips.models.get(name))
            lane.stashed[lane.isolated.get(name), name] = Slot(value, lane.place, replaces=True)


SKIPPABLE: Final = Skippable()


def _begin(module: Module, frame: CallFrame) -> tuple[Lane, DeclaredSkips]:
    """Return the lane of a call that begins, and what its class declares."""
    lane = lane_of(frame)
    if lane.skips is not None:  # `call` is followed once more, on symbols
        lane.drop()
    record = module._record
    skips: Any = record.declaration.skips
    lane.skips, lane.isolated = skips, record.isolated
    return lane, skips


def _left_out(lane: Lane, skips: DeclaredSkips) -> tuple[str, list[str]]:
    """Return the declared commands that a call has not performed: stashes, or else pops."""
    left = sorted(name for name in skips.stash if ("stash", name) not in lane.done)
    return ("stash", left) if left else ("pop", [name for name in skips.required if ("pop", name) not in lane.done])


def _never_stashed(lane: Lane, lacking: list[Key]) -> SkipError:
    """Return the error of a consumer whose values are not there."""
    takers = [slot.taker.label for key in lacking if (slot := lane.find(key)) is not None and slot.taker is not None]
    why = (
        f"It is reserved by {', '.join(takers)}, which pops it."
        if takers
        else ("The module that stashes it must have returned before; verify_skippables(program) checks the wiring.")
    )
    return SkipError(f"{lane.label}: {', '.join(map(shown, lacking))} has not been stashed. {why}")


def _look_in_history(lane: Lane, skips: DeclaredSkips, lacking: list[Key], inputs: Any) -> None:
    """Find on symbols what the lane does not have: in the history of the inputs, else as it is declared.

    Where modules are called on symbols one by one, there is no call around them that has a lane. A stash is remembered
    by the step that its call records, and found again along the symbols.

    Raises:
        SkipError: A value that may not be absent is not declared.
    """
    absent = [(lane.isolated.get(name), name) for name in sorted(skips.optional)]
    lacking = [*lacking, *(key for key in absent if lane.find(key) is None and not lane.has_popped(key))]
    for key in lacking:
        name = key[1]
        is_optional = name in skips.optional
        value = _in_history(key, leaves(inputs), popped_too=not is_optional)
        if value is TAKEN and is_optional:
            continue
        if value is TAKEN:
            if name not in skips.schemas:
                raise untyped(lane, name, "it has not been stashed before")
            value = symbol(skips.schemas[name], skips.models.get(name))
        lane.held[key] = Slot(value, "a step before")


def _in_history(key: Key, inputs: Iterable[Any], *, popped_too: bool) -> Any:
    """Return the nearest stash of a key among the steps that led to these symbols, TAKEN where there is none.

    With `popped_too` one counts that a later step has popped: verification reports it when the program is made.
    """
    pending: deque[Step] = deque(_steps_of(inputs))
    seen: set[int] = set()
    while pending:
        step = pending.popleft()
        if id(step) in seen:
            continue
        seen.add(id(step))
        aside = step.aside or {}
        if key in aside and (aside[key] is not TAKEN or not popped_too):
            return aside[key]
        pending.extend(_steps_of(step.inputs))
    return TAKEN


def _steps_of(inputs: Iterable[Any]) -> list[Step]:
    """Return the steps that made these symbols."""
    steps = (step_of(each) for each in inputs if isinstance(each, SymbolicDataModel))
    return [step for step in steps if step is not None]


# -- the declaration ---------------------------------------------------------------------------------------------------

C = TypeVar("C", bound=type)
Names = Iterable[str] | Mapping[str, Any]


def skippable(
    *, stash: Names = (), pop: Names = (), peek: Names = (), optional: Iterable[str] = ()
) -> Callable[[C], C]:
    """Declare the skip connections of a class of modules.

    The class stays what it is; a subclass inherits the declarations and may add to them.

    Args:
        stash: Names that each call puts into the lane; or a mapping from name to data model or schema (a typed skip).
        pop: Names that each call takes out, as names or a mapping.
        peek: Names that a call may read without taking them, as names or a mapping.
        optional: Those of `pop` and `peek` that may be absent, since their producer may not have run.

    Returns:
        A decorator that returns the class.

    Raises:
        ConfigError: It decorates something else, a name is empty or not a string, or `optional` has a name that
            is neither in `pop` nor in `peek`.

    Example:
        >>> from synmod.skip import pop, stash
        >>> @skippable(stash=["doc"])
        ... class Retrieve(sm.Module):
        ...     async def call(self, inputs):
        ...         stash("doc", inputs)
        ...         return inputs
        >>> sorted(Retrieve.stashable_names)
        ['doc']

    Source: torchgpipe's `skippable`; differs: records the names on the class instead of wrapping it.
    """
    given: dict[str, Any] = {"stash": stash, "pop": pop, "peek": peek, "optional": optional}
    names = {word: _names(word, each) for word, each in given.items()}
    may_be_absent = names["pop"] | names["peek"]
    if not names["optional"] <= may_be_absent:
        extra = ", ".join(map(repr, sorted(names["optional"] - may_be_absent)))
        raise ConfigError(f"skippable: optional names {extra}, which is neither in pop nor in peek.")
    schemas: dict[str, Schema] = {}
    models: dict[str, Any] = {}
    for word, each in given.items():
        if isinstance(each, Mapping):
            for name, declared in cast("Mapping[str, Any]", each).items():
                if declared is not None:
                    schemas[name], models[name] = _typed(word, name, declared)
    skips = DeclaredSkips(names["stash"], names["pop"], names["peek"], names["optional"], schemas, models, SKIPPABLE)

    def decorate(cls: C) -> C:
        target: Any = cls
        if not (isinstance(target, type) and issubclass(target, Module)):
            what = f"the class {target.__name__}" if isinstance(target, type) else repr(target)
            raise ConfigError(f"skippable decorates a Module class; {what:.100} is not one.")
        declaration_of(target).declare_skips(skips)
        return cls

    return decorate


def _names(word: str, given: Any) -> frozenset[str]:
    """Return the names of one argument."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(f"skippable: {word}={given!r:.100}; write a list of names, {word}=[{given!r:.50}].")
    names = list(cast("Iterable[Any]", given))
    for name in names:
        if not isinstance(name, str) or not name:
            raise ConfigError(f"skippable: {word} holds {name!r:.100}; a name is a string that is not empty.")
    return frozenset(names)


def _typed(word: str, name: str, declared: Any) -> tuple[Schema, Any]:
    """Return the schema of a typed skip, and the class behind it."""
    try:
        return declare(declared, root="any"), model_of(declared)
    except (ArgumentError, SchemaError) as error:
        raise ConfigError(f"skippable: {word}[{name!r}] is {declared!r:.100}: {error}") from None
