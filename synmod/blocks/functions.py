"""Identity, Constant and Lambda: what takes no model and no members."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Unpack

from synmod.data import DataModel, JsonDataModel, to_value
from synmod.errors import ConfigError
from synmod.module import UNDECLARED, Module, ModuleOptions, read_outputs, resolved_annotations
from synmod.registry import register_own

from .arguments import function


@register_own()
class Identity(Module):
    """Returns its inputs as they are.

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
        """Return the inputs."""
        return inputs

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the symbols."""
        return inputs


@register_own()
class Constant(Module):
    """Returns one value, whatever its inputs are.

    Args:
        value: A data model.
        **options: Those of `Module`.

    Schemas:
        inputs: any data, or none
        outputs: the schema of the value

    Raises:
        ConfigError: It is not a data model.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Style(sm.DataModel):
        ...     style: str
        >>> sm.run(sm.Constant(Style(style="brief")), Query(question="Who?")).get_json()
        {'style': 'brief'}

    Source: Keras' `Constant` initializer, as a step.
    """

    def __init__(self, value: DataModel | JsonDataModel[Any], **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        if not isinstance(value, (DataModel, JsonDataModel)):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"Constant: {value!r:.200} is not a data model; write Constant(Style(style='brief')).")
        self.value: JsonDataModel[Any] = value if isinstance(value, JsonDataModel) else to_value(value)

    async def call(self, *inputs: Any) -> JsonDataModel[Any]:  # noqa: ARG002  # any inputs
        """Return the value."""
        return self.value

    async def compute_output_spec(self, *inputs: Any) -> Any:  # noqa: ARG002  # as above
        """Return a symbol of the value's schema."""
        return self.value.to_symbolic_data_model()


@register_own()
class Lambda(Module):
    """Calls a function on data.

    Args:
        fn: A function, plain or async, that takes the inputs and returns data. A registered one can be saved; a
            lambda works until then.
        output: Data model, schema, or nest of them that the function returns; else its return annotation declares it,
            else it is traced on symbols.
        **options: Those of `Module`.

    Schemas:
        inputs: what the function takes
        outputs: `output`, or as the function declares

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
    """Return what the return annotation of a function declares, None for nothing."""
    hints = resolved_annotations(fn if inspect.isroutine(fn) else type(fn).__call__)
    declared = read_outputs(hints.get("return", UNDECLARED))
    return None if declared is UNDECLARED else declared
