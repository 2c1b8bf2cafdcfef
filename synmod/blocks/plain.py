"""Identity, Constant and Lambda: plain functions as modules."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from synmod.blocks.arguments import function
from synmod.blocks.inferred import inferred_schema
from synmod.data import JsonDataModel, model_of, schema_of, symbol, wrap
from synmod.errors import ConfigError
from synmod.leaves.frozen import FrozenDict, frozen
from synmod.module import UNDECLARED, Module, read_outputs, resolved_annotations
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json
    from synmod.module import ModuleOptions


@register_own()
class Identity(Module):
    """Gives its inputs as they are.

    Schemas:
        inputs: any data, nests included
        outputs: the same

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Identity(), Query(question="Who?"))["question"]
        'Who?'

    Source: Keras' `Identity`.
    """

    async def call(self, inputs: Any) -> Any:
        """Give the inputs."""
        return inputs

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Give the inputs' schemas."""
        return inputs


@register_own()
class Constant(Module):
    """Gives one value, whatever its inputs are.

    Args:
        json: A data model, or a JSON object, whose schema is then read from it.
        **options: Those of `Module`.

    Schemas:
        inputs: any data, or none
        outputs: the schema of the value

    Raises:
        ConfigError: It is no JSON object.
        DataError: Something in it is no JSON.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Constant({"style": "brief"}), Query(question="Who?")).get_json()
        {'style': 'brief'}

    Source: Keras' `Constant` initializer, as a step.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"_value", "output_spec"})

    def __init__(self, json: Json, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        content: Any = frozen(json)
        if not isinstance(content, FrozenDict):
            raise ConfigError(f"Constant: {json!r:.200} is no JSON object; data models hold objects, {{'field': ...}}.")
        if type(json) is dict or content is json:
            schema, model = inferred_schema(content), None
        else:
            schema, model = schema_of(json), model_of(json)
        self._value = wrap(content, schema, model)
        self.output_spec = symbol(schema, model)

    async def call(self, *inputs: Any) -> JsonDataModel[Any]:  # noqa: ARG002  # they only say when
        """Give the value."""
        return self._value


@register_own()
class Lambda(Module):
    """Calls a function of yours on data.

    Args:
        fn: A function, plain or async, that takes the inputs and returns data. A registered one can be saved; a
            lambda works until then.
        output: Data model, schema, or nest of them that the function returns; else its return annotation says so,
            else it is traced on symbols.
        **options: Those of `Module`.

    Schemas:
        inputs: what the function takes
        outputs: `output`, or as the function says

    Raises:
        ConfigError: `fn` cannot be called, or is a module.
        ArgumentError: `output` declares no data.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> shout = sm.Lambda(lambda x: Query(question=x.question.upper()), output=Query)
        >>> sm.run(shout, Query(question="who?"))["question"]
        'WHO?'

    Source: Keras' `Lambda`; differs: no code is ever saved.
    """

    _graph_ignored: ClassVar[frozenset[str]] = frozenset({"output_spec"})

    def __init__(self, fn: Callable[..., Any], *, output: Any = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        if isinstance(fn, Module):
            raise ConfigError("Lambda: fn is a module, which is a step by itself; use it without Lambda.")
        self.fn = function("Lambda", "fn", fn)
        declared = _returned(fn) if output is None else output
        if declared is not None:
            self.output_spec = declared

    async def call(self, *inputs: Any) -> Any:
        """Call the function; what it raises surfaces as itself."""
        outputs = self.fn(*inputs)
        return await outputs if inspect.isawaitable(outputs) else outputs


def _returned(fn: Any) -> Any:
    """What the return annotation of a function declares; None for nothing."""
    hints = resolved_annotations(fn if inspect.isroutine(fn) else type(fn).__call__)
    declared = read_outputs(hints.get("return", UNDECLARED))
    return None if declared is UNDECLARED else declared
