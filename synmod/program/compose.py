"""`compose`: a functional program of a function, whose parameters are the Inputs and whose body is the wiring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any, overload

from synmod.data import JsonDataModel, SymbolicDataModel, contains
from synmod.errors import ArgumentError, BuildError, SchemaError
from synmod.flow import aligned
from synmod.leaves.aio import Suspended, drive
from synmod.leaves.names import check_name
from synmod.module import (
    UNDECLARED,
    Build,
    first_paragraph,
    model_of_annotation,
    read_outputs,
    resolved_annotations,
    without_none,
)

from .graph import Input
from .program import M, Program

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@overload
def compose(
    fn: Callable[..., Coroutine[Any, Any, JsonDataModel[M]] | JsonDataModel[M]],
    *,
    name: str | None = None,
    description: str | None = None,
) -> Program[M]: ...
@overload
def compose(fn: Callable[..., Any], *, name: str | None = None, description: str | None = None) -> Program: ...
@overload
def compose(
    fn: None = None, *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], Program]: ...
def compose(fn: Callable[..., Any] | None = None, *, name: str | None = None, description: str | None = None) -> Any:
    """Make a functional program of a function, at once, inside a running loop or without one.

    The body runs once, on symbols. The function itself is not saved; the flow is.

    Args:
        fn: Async or plain; each parameter is annotated with a data model and becomes an Input of that name. A default
            None, or `| None`, makes it optional.
        name: Label; default is the function's name.
        description: Label; default is the first paragraph of the function's docstring.

    Returns:
        The program.

    Raises:
        ArgumentError: A parameter of another kind, or `fn` is not such a function.
        BuildError: The body waits for something (contains 'compose').
        SchemaError: The outputs do not contain what the return annotation declares.
        GraphError: The wiring is faulty.
        Exception: Whatever the body raises, as itself.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> @sm.compose
        ... def mine(query: Query):
        ...     return query.prefix("my")
        >>> sm.run(mine, Query(question="Who?")).get_json()
        {'my_question': 'Who?'}

    Source: Keras functional models, JAX's tracing of functions.
    """
    if fn is None:
        return partial(compose, name=name, description=description)
    if not callable(fn) or isinstance(fn, type) or inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ArgumentError(f"compose takes an async or plain function; got {fn!r:.100}.")
    label = check_name(getattr(fn, "__name__", None) if name is None else name)
    positional, named = _inputs(fn, label)
    outputs = copy_context().run(_wired, fn, label, positional, named)
    _hold_to_annotation(fn, label, outputs)
    inputs = [*positional, *named.values()]
    return Program(
        inputs=inputs[0] if len(inputs) == 1 else inputs,
        outputs=outputs,
        name=label,
        description=first_paragraph(fn.__doc__) if description is None else description,
    )


def _inputs(fn: Callable[..., Any], label: str) -> tuple[list[SymbolicDataModel], dict[str, SymbolicDataModel]]:
    """Make an Input of each parameter: those that go by position, and those that go by keyword only."""
    hints = resolved_annotations(fn)
    positional: list[SymbolicDataModel] = []
    named: dict[str, SymbolicDataModel] = {}
    for parameter in inspect.signature(fn).parameters.values():
        inner, optional = without_none(hints.get(parameter.name, UNDECLARED))
        model = model_of_annotation(inner)
        defaulted = parameter.default is not parameter.empty
        if parameter.kind not in _NAMED or model is None or (defaulted and parameter.default is not None):
            raise ArgumentError(
                f"compose: the parameter `{parameter}` of {label!r} cannot be an Input: annotate it with a data model, "
                f"`{parameter.name}: Query`, and give it no default but None."
            )
        made = Input(model, name=parameter.name, optional=optional or defaulted)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = made
        else:
            positional.append(made)
    return positional, named


def _wired(
    fn: Callable[..., Any], label: str, positional: list[SymbolicDataModel], named: dict[str, SymbolicDataModel]
) -> Any:
    """Run the body on symbols, to its end; if it fails, or waits, whatever it built is unbuilt again."""

    async def body() -> Any:
        with Build():
            outputs = fn(*positional, **named)
            return await outputs if inspect.isawaitable(outputs) else outputs

    try:
        return drive(body())
    except Suspended:
        raise BuildError(
            f"compose: the body of {label!r} waits for something, which wiring a program does not need. (Branches "
            "already run at the same time: write `a = await first(x)`, `b = await second(x)`, no gather.) Where a "
            "module's build must wait, compose inside a loop: `x = sm.Input(Query)`, `y = await module(x)`, "
            "`sm.Program(inputs=x, outputs=y)`."
        ) from None


def _hold_to_annotation(fn: Callable[..., Any], label: str, outputs: Any) -> None:
    """Check that the outputs contain what a return annotation declares."""
    declared = read_outputs(resolved_annotations(fn).get("return", UNDECLARED))
    if declared is UNDECLARED:
        return
    pairs = aligned(declared, outputs)
    if pairs is None:
        raise SchemaError(
            f"compose: {label!r} returns another structure than its annotation {declared!r:.200} declares."
        )
    for path, model, given in pairs:
        if isinstance(given, SymbolicDataModel) and not contains(given, model):
            place = f", output {'/'.join(map(str, path))}," if path else ""
            raise SchemaError(
                f"compose: {label!r}{place} declares `-> {model.__name__}`, but returns {given._label!r} with the "
                f"fields ({', '.join(given.keys())}), which does not contain it."
            )
