"""Functions as modules: Identity, Constant, Lambda, and the functions of `sm.ops`; no model, no members."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Unpack

from synmod import data, registry
from synmod.errors import CallError, ConfigError
from synmod.leaves import check_type
from synmod.module import UNDECLARED, Module, ModuleOptions, read_outputs, resolve_annotations, without_none

from . import checks

# -- user-defined functions and constants ------------------------------------------------------------------------------


@registry.register_own()
class Identity(Module):
    """Returns its inputs unchanged.

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
        """Return the inputs, values or symbols."""
        return inputs


@registry.register_own()
class Constant(Module):
    """Returns one value, whatever its inputs are.

    Args:
        value: A data model.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: any data, or none
        outputs: the schema of the value

    Raises:
        ConfigError: The value is not a data model.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Style(sm.DataModel):
        ...     style: str
        >>> sm.run(sm.Constant(Style(style="brief")), Query(question="Who?")).get_json()
        {'style': 'brief'}

    Source: Keras' `Constant` initializer, as a module.
    """

    def __init__(self, value: data.DataModel | data.JsonDataModel[Any], **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        expected = "a data model, as in Constant(Style(style='brief'))"
        check_type("Constant: value", value, data.DataModel | data.JsonDataModel, expected, error=ConfigError)
        self.value: data.JsonDataModel[Any] = value if isinstance(value, data.JsonDataModel) else data.to_value(value)

    async def call(self, *inputs: Any) -> data.JsonDataModel[Any]:  # noqa: ARG002  # any inputs
        """Return the value."""
        return self.value

    async def compute_output_spec(self, *inputs: Any) -> Any:  # noqa: ARG002  # as above
        """Return a symbol of the value's schema."""
        return self.value.to_symbolic_data_model()


@registry.register_own()
class Lambda(Module):
    """Calls a function on data.

    Args:
        fn: A function, plain or async, that takes the inputs and returns data. To save the module, register it.
        output: Data model (or `Answer | None`), schema, or nest of them that the function returns; by default its
            return annotation. Without either the function runs once on symbols, when it is composed or built.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the arguments of the function
        outputs: `output`, or the declaration of the function

    Raises:
        ConfigError: `fn` is not callable, is a module, or has a return annotation with an unknown name.
        ArgumentError: `output` does not declare data.
        CallError: When called: the function returned None, and what declares its output does not include `| None`.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> shout = sm.Lambda(lambda x: Query(question=x.question.upper()), output=Query)
        >>> sm.run(shout, Query(question="who?"))["question"]
        'WHO?'

    Source: Keras' `Lambda`; differs: code is never saved.
    """

    graph_ignored: ClassVar[frozenset[str]] = frozenset({"output_spec", "_is_declared", "_may_return_none"})

    def __init__(self, fn: Callable[..., Any], *, output: Any = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        if isinstance(fn, Module):
            raise ConfigError("Lambda: fn is already a module; use it without Lambda.")
        self.fn = checks.function("Lambda", "fn", fn)
        function = fn if inspect.isroutine(fn) else type(fn).__call__
        annotation = resolve_annotations(function, ("return",)).get("return", UNDECLARED)
        declared = read_outputs(annotation if output is None else output)
        if declared is UNDECLARED and output is not None:
            declared = output
        optional = without_none(annotation)[1] or (output is not None and without_none(output)[1])
        self._is_declared = declared is not UNDECLARED
        self._may_return_none = optional or not self._is_declared
        if self._is_declared:
            self.output_spec = declared

    async def call(self, *inputs: Any) -> Any:
        """Call the function; its exceptions propagate unchanged. Where it declares its output, it gets no symbols."""
        if self._is_declared and data.is_symbolic(inputs):
            return await super().compute_output_spec(*inputs)
        outputs = self.fn(*inputs)
        outputs = await outputs if inspect.isawaitable(outputs) else outputs
        if outputs is None and not self._may_return_none:
            where = f"{self.path or self.name}: {getattr(self.fn, '__name__', 'the function')}"
            remedy = "is a `return` missing? If None is valid, declare `Answer | None`"
            raise CallError(f"{where} returned None, but declares data: {remedy}.")
        return outputs


# -- the functions of sm.ops -------------------------------------------------------------------------------------------


class _Merge(Module):
    """A function of several inputs, any of which may be None."""

    accepts_none: ClassVar[bool] = True
    operation: ClassVar[Callable[..., Any]]
    """The function of `sm.ops`."""

    async def call(self, *inputs: Any) -> Any:
        """Merge two or more inputs, values or symbols, or those in one list or tuple."""
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            inputs = tuple(inputs[0])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  (of data)
        return type(self).operation(*inputs)


@registry.register_own()
class Concat(_Merge):
    """Returns all fields of all inputs in one output: `sm.ops.concat` as a module.

    Schemas:
        inputs: two or more data models, or one list or tuple of them
        outputs: `C(A, B)`: the fields of A, then those of B, renamed if a name is taken

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Concat(), Query(question="Who?"), Query(question="Why?")).get_json()
        {'question': 'Who?', 'question_1': 'Why?'}

    Source: Keras' `Concatenate`, Synalinks' `Concat`.
    """

    operation = staticmethod(data.ops.concat)


@registry.register_own()
class And(_Merge):
    """Returns all inputs in one output, None if one of them is None: `sm.ops.logical_and` as a module.

    Schemas:
        inputs: two or more data models or None, or one list or tuple of them
        outputs: `C(A, B)`, or None

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.And(), Query(question="Who?"), None) is None
        True

    Source: Synalinks' `And`.
    """

    operation = staticmethod(data.ops.logical_and)


@registry.register_own()
class Or(_Merge):
    """Returns the inputs that are not None in one output: `sm.ops.logical_or` as a module.

    Schemas:
        inputs: two or more data models or None, or one list or tuple of them
        outputs: `C(A, B)`, the only input that is not None, or None if all are None

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Or(), None, Query(question="Who?")).get_json()
        {'question': 'Who?'}

    Source: Synalinks' `Or`.
    """

    operation = staticmethod(data.ops.logical_or)


@registry.register_own()
class Xor(_Merge):
    """Returns the only input that is not None: `sm.ops.logical_xor` as a module.

    Schemas:
        inputs: two or more data models or None, or one list or tuple of them
        outputs: `U` of the inputs: the only one that is not None; None if all are None, or several are not

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Xor(), Query(question="Who?"), Query(question="Why?")) is None
        True

    Source: Synalinks' `Xor`.
    """

    operation = staticmethod(data.ops.logical_xor)


@registry.register_own()
class Not(_Merge):
    """Returns None, whatever its input: `sm.ops.logical_not` as a module.

    Schemas:
        inputs: a data model or None
        outputs: None; as a symbol, the schema of the inputs

    Raises:
        ConfigError: An unknown keyword.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.blocks.Not(), Query(question="Who?")) is None
        True

    Source: Synalinks' `Not`.
    """

    operation = staticmethod(data.ops.logical_not)


@registry.register_own()
class InMask(Module):
    """Keeps only the named fields: `sm.ops.in_mask` as a module.

    Args:
        mask: A pattern such as "answer" or "sources/*/title", a list of patterns, or a data model (its field names).
        recursive: Short for `**/` before each pattern.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: a data model in which every pattern matches
        outputs: the matching fields, in their order

    Raises:
        ArgumentError: When composed or called: the mask has an invalid type.
        SchemaError: When composed or called: a pattern matches nothing, or no pattern is passed.

    Example:
        >>> import synmod as sm
        >>> class Cited(sm.DataModel):
        ...     answer: str
        ...     source: str
        >>> sm.run(sm.InMask("answer"), Cited(answer="Paris", source="atlas")).get_json()
        {'answer': 'Paris'}

    Source: Synalinks' `InMask`.
    """

    def __init__(self, mask: Any, *, recursive: bool = False, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.mask, self.recursive = mask, recursive

    async def call(self, inputs: Any) -> Any:
        """Return the fields that are kept."""
        return data.ops.in_mask(inputs, self.mask, recursive=self.recursive)


@registry.register_own()
class OutMask(InMask):
    """Removes the named fields: `sm.ops.out_mask` as a module.

    Args:
        mask: A pattern such as "answer" or "sources/*/title", a list of patterns, or a data model (its field names).
        recursive: Short for `**/` before each pattern.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: a data model in which every pattern matches
        outputs: the other fields, in their order

    Raises:
        ArgumentError: When composed or called: the mask has an invalid type.
        SchemaError: When composed or called: a pattern matches nothing, or no pattern is passed.

    Example:
        >>> import synmod as sm
        >>> class Cited(sm.DataModel):
        ...     answer: str
        ...     source: str
        >>> sm.run(sm.OutMask("source"), Cited(answer="Paris", source="atlas")).get_json()
        {'answer': 'Paris'}

    Source: Synalinks' `OutMask`.
    """

    async def call(self, inputs: Any) -> Any:
        """Return the fields that are left."""
        return data.ops.out_mask(inputs, self.mask, recursive=self.recursive)


@registry.register_own()
class Prefix(Module):
    """Renames every top-level field `k` to `prefix_k`: `sm.ops.prefix` as a module.

    Args:
        prefix: An identifier.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: any data model
        outputs: the same fields under their new names

    Raises:
        DataError: When composed or called: the prefix is not an identifier.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Prefix("first"), Query(question="Who?")).get_json()
        {'first_question': 'Who?'}

    Source: Synalinks' `prefix`.
    """

    def __init__(self, prefix: str, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.prefix = prefix

    async def call(self, inputs: Any) -> Any:
        """Return the fields under their new names."""
        return data.ops.prefix(inputs, self.prefix)


@registry.register_own()
class Suffix(Module):
    """Renames every top-level field `k` to `k_suffix`: `sm.ops.suffix` as a module.

    Args:
        suffix: Part of an identifier.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: any data model
        outputs: the same fields under their new names

    Raises:
        DataError: When composed or called: the suffix is not part of an identifier.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.Suffix("2"), Query(question="Who?")).get_json()
        {'question_2': 'Who?'}

    Source: Synalinks' `suffix`.
    """

    def __init__(self, suffix: str, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.suffix = suffix

    async def call(self, inputs: Any) -> Any:
        """Return the fields under their new names."""
        return data.ops.suffix(inputs, self.suffix)


@registry.register_own()
class Factorize(Module):
    """Gathers numbered repeats `k, k_1 .. k_n` into one array: `sm.ops.factorize` as a module.

    Args:
        names: For a field `k`, the name of its array; by default `k_list`.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: any data model
        outputs: the same with an array in place of each group

    Raises:
        ArgumentError: When composed or called: `names` is not a mapping of names.
        SchemaError: When called: a key of `names` is not the first field of a group.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> both = Query(question="Who?").to_json_data_model() + Query(question="Why?")
        >>> sm.run(sm.Factorize({"question": "questions"}), both).get_json()
        {'questions': ['Who?', 'Why?']}

    Source: Synalinks' `factorize`; differs: no plurals, no stemming.
    """

    def __init__(self, names: Mapping[str, str] | None = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.names = names

    async def call(self, inputs: Any) -> Any:
        """Return the fields, the repeats as arrays."""
        return data.ops.factorize(inputs, self.names)
