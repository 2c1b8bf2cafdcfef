"""The declaration `@skippable`, the commands `stash`, `pop` and `peek`, and the checks of a call against them.

The commands are plain functions that act on the lane of the running call.
"""

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from synmod import data, errors, flow, leaves, scope
from synmod.module import DeclaredSkips, Module, declaration_of

from .lane import TAKEN, Key, Lane, Slot, key_text, lane_of, schema_of_value

_REQUIRED: Final[Any] = object()
_UNKNOWN: Final[Any] = object()
"""A placeholder in the lane for a value with an unknown schema."""

ADJECTIVES: Final = {"stash": "stashable", "pop": "poppable", "peek": "peekable"}


class _UnknownSchemaError(errors.SkipError, errors.SymbolicValueError):
    """The schema of a value in the lane is needed, but not declared."""


_UnknownSchemaError.__name__ = _UnknownSchemaError.__qualname__ = "SkipError"


# -- the declaration ---------------------------------------------------------------------------------------------------

C = TypeVar("C", bound=type)
Names = Iterable[str] | Mapping[str, Any]


def skippable(
    *, stash: Names = (), pop: Names = (), peek: Names = (), optional: Iterable[str] = ()
) -> Callable[[C], C]:
    """Declare the skip connections of a class of modules.

    The class is not wrapped; a subclass inherits the declarations and may add to them.

    Args:
        stash: Names that each call stashes; or a mapping from name to data model or schema (a typed skip).
        pop: Names that each call pops, as names or a mapping.
        peek: Names that a call may read without removing them, as names or a mapping.
        optional: Names from `pop` and `peek` that may be absent, if their producer may not run.

    Returns:
        A decorator that returns the class.

    Raises:
        ConfigError: The decorated object is not a Module class, a name is empty or not a string, or `optional` has a
            name that is neither in `pop` nor in `peek`.

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
    arguments: dict[str, Any] = {"stash": stash, "pop": pop, "peek": peek, "optional": optional}
    names = {word: _names(word, argument) for word, argument in arguments.items()}
    may_be_absent = names["pop"] | names["peek"]
    if not names["optional"] <= may_be_absent:
        extra = ", ".join(map(repr, sorted(names["optional"] - may_be_absent)))
        raise errors.ConfigError(f"skippable: optional has {extra}, which is neither in pop nor in peek.")
    schemas: dict[str, data.Schema] = {}
    models: dict[str, Any] = {}
    for word, argument in arguments.items():
        if leaves.is_mapping(argument):
            for name, declared in argument.items():
                if declared is not None:
                    schemas[name], models[name] = _read_type(word, name, declared)
    skips = DeclaredSkips(names["stash"], names["pop"], names["peek"], names["optional"], schemas, models, SKIPPABLE)

    def decorate(cls: C) -> C:
        target: Any = cls
        if not (isinstance(target, type) and issubclass(target, Module)):
            what = f"the class {target.__name__}" if isinstance(target, type) else repr(target)
            raise errors.ConfigError(f"skippable must decorate a Module class; {what:.100} is not one.")
        declaration_of(target).declare_skips(skips)
        return cls

    return decorate


def _names(word: str, argument: Any) -> frozenset[str]:
    """Return the names of one argument."""
    if isinstance(argument, str) or not isinstance(argument, Iterable):
        raise errors.ConfigError(f"skippable: {word}={argument!r:.50}; write a list of names, {word}=['doc'].")
    names = list(cast("Iterable[Any]", argument))
    for name in names:
        if not isinstance(name, str) or not name:
            raise errors.ConfigError(f"skippable: {word} has {name!r:.100}; a name must be a non-empty string.")
    return frozenset(names)


def _read_type(word: str, name: str, declared: Any) -> tuple[data.Schema, Any]:
    """Return the schema of a typed skip, and its class if it has one."""
    try:
        return data.declare(declared, root="any"), data.model_of(declared)
    except (errors.ArgumentError, errors.SchemaError) as error:
        raise errors.ConfigError(f"skippable: {word}[{name!r}] is {declared!r:.100}: {error}") from None


# -- the commands ------------------------------------------------------------------------------------------------------


def stash(name: str, value: Any, replace: bool = False) -> None:
    """Put a value into the lane, for a later module to pop.

    Args:
        name: A name that the class of the running module declares with `@skippable(stash=...)`.
        value: A data model, JSON, or None, which is a value like any other. It is stored by reference.
        replace: Whether the value may replace one that was not popped (in loops).

    Raises:
        SkipError: The name is not declared, the slot is occupied, or no skippable call is running.
        SchemaError: The skip is typed, and the value does not satisfy its schema.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(stash=["doc"])
        ... class Retrieve(sm.Module):
        ...     async def call(self, inputs):
        ...         stash("doc", inputs)
        ...         return inputs

    Source: torchgpipe's `stash`; differs: a plain function, and a second value is an error.
    """
    lane, skips = _lane_for("stash", name)
    key = lane.key(name)
    if not replace:
        occupant = None if lane.symbolic else lane.find(key)  # on symbols, all alternatives are called
        if occupant is not None or ("stash", name) in lane.done:
            by = "in this call" if occupant is None else f"by {occupant.producer!r}"
            remedy = "Pop it first, isolate the pair in a Namespace, or stash(..., replace=True) in a loop."
            raise _fault(lane, "stash", name, f"has already been stashed {by}", remedy)
    schema = skips.schemas.get(name)
    if schema is not None and value is not None:
        value = _check_stashed(value, schema, skips.models.get(name), f"{lane.label}: stash({name!r})")
    if lane.symbolic:
        value = _as_symbol(value, schema, skips.models.get(name))
    lane.stashed[key] = Slot(value, lane.place, replaces=replace)
    lane.done.add(("stash", name))


def pop(name: str, default: Any = _REQUIRED) -> Any:
    """Remove a value from the lane and return it.

    Args:
        name: A name that the class of the running module declares with `@skippable(pop=...)`.
        default: The result if an optional name is absent.

    Returns:
        The value; on symbols, a symbol with its schema.

    Raises:
        SkipError: The name is not declared, was popped before in this call, or is absent without a default; or
            no skippable call is running.
        SchemaError: The consumer declares a schema that the value does not satisfy.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(pop=["doc"])
        ... class Cite(sm.Module):
        ...     async def call(self, inputs):
        ...         return inputs + pop("doc")

    Source: torchgpipe's `pop`; differs: checked before the module runs.
    """
    lane, skips = _lane_for("pop", name)
    if ("pop", name) in lane.done:
        raise _fault(lane, "pop", name, "has already been popped", "Keep the value of the first pop in a variable.")
    key = lane.key(name)
    slot = lane.entry_slots.get(key)
    if slot is None and name in skips.optional and lane.find(key) is not None and lane.reserve(key):
        slot = lane.entry_slots[key]
    lane.done.add(("pop", name))
    if slot is not None:
        lane.take(key, slot)
    return _value_of(lane, skips, "pop", name, slot, default)


def peek(name: str, default: Any = _REQUIRED) -> Any:
    """Return a value in the lane without removing it.

    Args:
        name: A name that the class of the running module declares with `@skippable(peek=...)`.
        default: The result if an optional name is absent.

    Returns:
        The value; on symbols, a symbol with its schema.

    Raises:
        SkipError: The name is not declared, or is absent without a default; or no skippable call is running.
        SchemaError: The consumer declares a schema that the value does not satisfy.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(peek=["doc"])
        ... class Judge(sm.Module):
        ...     async def call(self, inputs):
        ...         return inputs + peek("doc")

    Source: none; torchgpipe's `pop` without the removal.
    """
    lane, skips = _lane_for("peek", name)
    key = lane.key(name)
    slot = None if ("pop", name) in lane.done else lane.entry_slots.get(key)
    return _value_of(lane, skips, "peek", name, slot or lane.find(key), default)


def _lane_for(word: str, name: str) -> tuple[Lane, DeclaredSkips]:
    """Return the lane of the running call, and the skips of its module; raise unless it declares this command."""
    frame = scope.current_call()
    lane: Any = None if frame is None else frame.layer
    if lane is None or lane.skips is None:
        where = "no module call is running" if frame is None else f"the running call is {frame.path or frame.name!r}"
        remedy = f"write it in `call` of a class decorated with @skippable({word}=[{name!r}])"
        raise errors.SkipError(f"{word}({name!r}) outside a skippable call: {where}; {remedy}.")
    skips: DeclaredSkips = lane.skips
    if name not in getattr(skips, word):
        declared = ", ".join(f"{command}={sorted(getattr(skips, command))}" for command in ADJECTIVES)
        remedy = f"It declares {declared}: write @skippable({word}=[{name!r}])."
        raise _fault(lane, word, name, f"has not been declared as {ADJECTIVES[word]}", remedy)
    return lane, skips


def _fault(lane: Lane, word: str, name: str, what: str, remedy: str) -> errors.SkipError:
    """Return the error for a command, with the place of the call and the slot."""
    return errors.SkipError(f"{lane.label}: {word}({name!r}): {key_text(lane.key(name))} {what}. {remedy}")


def _value_of(lane: Lane, skips: DeclaredSkips, word: str, name: str, slot: Slot | None, default: Any) -> Any:
    """Return the value of a slot for its consumer, checked against the schema that the consumer declares."""
    if slot is None:
        if default is not _REQUIRED:
            return default
        raise _fault(lane, word, name, "has not been stashed", f"If it may be absent, write {word}({name!r}, None).")
    value, schema = slot.value, skips.schemas.get(name)
    if value is _UNKNOWN:
        if schema is None:
            raise _unknown_schema_error(lane, name, f"its producer {slot.producer!r} does not declare it")
        return data.symbol(schema, skips.models.get(name))
    if schema is not None and value is not None:
        _check_declared(value, schema, f"{lane.label}: {word}({name!r}), stashed by {slot.producer!r}")
    return _as_symbol(value, None, None) if lane.symbolic else value


def _unknown_schema_error(lane: Lane, name: str, why: str) -> _UnknownSchemaError:
    """Return the error for a skip whose schema is needed, but not known."""
    return _UnknownSchemaError(
        f"{lane.label}: the schema of {name!r} is not known: {why}. Type the skip: "
        f"@skippable(pop={{{name!r}: Model}}), or stash={{{name!r}: Model}} at its producer."
    )


def _as_symbol(value: Any, schema: data.Schema | None, model: Any) -> Any:
    """Return the symbol for a value, of the declared schema, else of its own; return plain JSON unchanged."""
    if value is None:
        return None
    if schema is not None:
        return data.symbol(schema, model)
    own_schema = schema_of_value(value)
    return (
        value if own_schema is None else data.symbol(own_schema, data.model_of(value), getattr(value, "_label", None))
    )


# -- the schemas of typed skips ----------------------------------------------------------------------------------------


def _check_stashed(value: Any, schema: data.Schema, model: Any, place: str) -> Any:
    """Return a value checked against the schema of a typed skip; plain JSON objects become data.

    Raises:
        SchemaError: The value does not satisfy the schema.
        DataError: The value is not JSON.
    """
    own_schema = schema_of_value(value)
    if own_schema is not None and data.is_subschema(own_schema, schema):
        return value
    if isinstance(value, data.SymbolicDataModel):
        got = flow.fields_text(value._schema)
        raise errors.SchemaError(f"{place}: the skip is declared as {flow.fields_text(schema)}, got {got}.")
    json: Any = leaves.frozen(value)
    data.validate(schema, json, place)
    return data.wrap(json, schema, model) if own_schema is None and isinstance(json, leaves.FrozenDict) else value


def _check_declared(value: Any, schema: data.Schema, place: str) -> None:
    """Check that a value has the fields that its consumer declares; it may have more.

    Raises:
        SchemaError: A field is missing, or the value does not satisfy the schema.
    """
    own_schema = schema_of_value(value)
    if own_schema is not None and data.includes(own_schema, schema):
        return
    lacking = [] if own_schema is None else missing_fields(own_schema, schema)
    if lacking:
        needed = f"{flow.fields_text(schema)} needs the field {', '.join(lacking)}"
        raise errors.SchemaError(f"{place}: {needed}, which is missing.")
    json = leaves.frozen(value)
    fields = schema.get("properties")
    if fields and leaves.is_object(json):
        json = leaves.frozen({key: part for key, part in json.items() if key in fields})
    data.validate(schema, json, place)


def missing_fields(schema: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Return the fields, quoted, that `expected` requires and `schema` does not."""
    required = schema.get("required", ())
    return [repr(name) for name in expected.get("required", ()) if name not in required]


# -- one call: entry, body, completeness; its lane commits or drops it -------------------------------------------------


class Skippable:
    """Runs the calls of modules that declare skips; a singleton."""

    __slots__ = ()

    async def run(
        self, module: Module, frame: scope.CallFrame, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Reserve the values to pop, run `call`, and check that it performed the declared commands.

        Raises:
            SkipError: A value has not been stashed, or `call` did not perform a declared command.
        """
        lane, skips = _begin(module, frame)
        lacking = [key for name in skips.required if not lane.reserve(key := lane.key(name))]
        for name in skips.peeks:
            key = lane.key(name)
            if (slot := lane.find(key)) is not None:
                lane.entry_slots.setdefault(key, slot)
            elif name not in skips.optional:
                lacking.append(key)
        if lane.symbolic:
            _look_in_history(lane, skips, lacking, [args, dict(kwargs)])
        elif lacking:
            raise _missing_error(lane, lacking)
        output = module.call(*args, **kwargs)
        if inspect.isawaitable(output):
            output = await output
        word, left = _find_omitted(lane, skips)
        if left:
            done, value = ("stashed", ", ...") if word == "stash" else ("popped", "")
            what = f"{', '.join(map(repr, left))} must be {done} but have not been in this call"
            raise errors.SkipError(f"{lane.label}: {what}; each call writes `{word}({left[0]!r}{value})`.")
        return output

    def assume(self, module: Module, frame: scope.CallFrame) -> None:
        """Apply the declared stashes and pops to the lane, unless a trace of `call` has performed all of them."""
        layer: Any = frame.layer
        if layer is not None and layer.skips is not None and not _find_omitted(layer, layer.skips)[1]:
            return
        lane, skips = _begin(module, frame)
        for name in skips.pop:
            if (slot := lane.find(lane.key(name))) is not None:
                lane.take(lane.key(name), slot)
        for name in skips.stash:
            value = _as_symbol(_UNKNOWN, skips.schemas.get(name), skips.models.get(name))
            lane.stashed[lane.key(name)] = Slot(value, lane.place, replaces=True)


SKIPPABLE: Final = Skippable()


def _begin(module: Module, frame: scope.CallFrame) -> tuple[Lane, DeclaredSkips]:
    """Return the lane for a new call, and the skips that its class declares."""
    lane = lane_of(frame)
    if lane.skips is not None:  # `call` is traced again
        lane.drop()
    record = module._record
    skips: Any = record.declaration.skips
    lane.skips, lane.isolated = skips, record.isolated
    return lane, skips


def _find_omitted(lane: Lane, skips: DeclaredSkips) -> tuple[str, list[str]]:
    """Return the declared commands that a call has not performed: `stash` or `pop`, and the names."""
    left = sorted(name for name in skips.stash if ("stash", name) not in lane.done)
    return ("stash", left) if left else ("pop", [name for name in skips.required if ("pop", name) not in lane.done])


def _missing_error(lane: Lane, lacking: list[Key]) -> errors.SkipError:
    """Return the error for a consumer whose values are missing."""
    takers = [slot.reserved_by.label for key in lacking if (slot := lane.find(key)) and slot.reserved_by]
    why = "The module that stashes it must return first; verify_skippables(program) checks the wiring."
    if takers:
        why = f"It is reserved by {', '.join(takers)}, which pops it."
    return errors.SkipError(f"{lane.label}: {', '.join(map(key_text, lacking))} has not been stashed. {why}")


def _look_in_history(lane: Lane, skips: DeclaredSkips, lacking: list[Key], inputs: Any) -> None:
    """Find values on symbols that are not in the lane: in the history of the inputs, else by their declared schema.

    When modules are called on symbols one by one, no enclosing call has a lane. Then the step that a call records keeps
    its stashes, and the history of the symbols leads to that step.

    Raises:
        SkipError: A required value is neither found nor typed.
    """
    absent = [lane.key(name) for name in sorted(skips.optional)]
    popped = {key for ancestor in lane.ancestors() for key in ancestor.popped}
    for key in [*lacking, *(key for key in absent if lane.find(key) is None and key not in popped)]:
        name = key[1]
        value = _find_in_history(key, leaves.leaves(inputs), popped_too=name not in skips.optional)
        if value is TAKEN:
            if name in skips.optional:
                continue
            if name not in skips.schemas:
                raise _unknown_schema_error(lane, name, "it has not been stashed before")
            value = data.symbol(skips.schemas[name], skips.models.get(name))
        lane.entry_slots[key] = Slot(value, "a step before")


def _find_in_history(key: Key, inputs: Iterable[Any], *, popped_too: bool) -> Any:
    """Return the nearest stash of a key among the steps that led to these symbols; else TAKEN.

    With `popped_too`, a stash counts even if a later step has popped it: verification reports that for a program.
    """
    pending: deque[flow.Step] = deque(_steps_of(inputs))
    visited: set[int] = set()
    while pending:
        step = pending.popleft()
        if id(step) in visited:
            continue
        visited.add(id(step))
        side_effects = step.side_effects or {}
        if key in side_effects and (side_effects[key] is not TAKEN or not popped_too):
            return side_effects[key]
        pending.extend(_steps_of(step.inputs))
    return TAKEN


def _steps_of(inputs: Iterable[Any]) -> list[flow.Step]:
    """Return the steps that made these symbols."""
    steps = [flow.step_of(symbol) for symbol in inputs if isinstance(symbol, data.SymbolicDataModel)]
    return [step for step in steps if step is not None]
