"""Parallel and Map: many calls at once, of several modules or on several items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal, TypeAlias, Unpack

from synmod.data import (
    JsonDataModel,
    Schema,
    SymbolicDataModel,
    is_symbolic,
    items_of,
    ops,
    parts_of,
    schema_of,
    symbol,
    trusted_schema,
    with_items,
    wrap,
)
from synmod.errors import ArgumentError, CallError, SchemaError
from synmod.flow import Failed, map_concurrently, together
from synmod.leaves.frozen import frozen
from synmod.module import Module, ModuleOptions
from synmod.registry import register_own

from .arguments import field_name, member, members, one_of, whole

Merge: TypeAlias = Literal["concat", "and", "or"]

_MERGES: Final[Mapping[Merge, Callable[..., Any]]] = {
    "concat": ops.concat,
    "and": ops.logical_and,
    "or": ops.logical_or,
}

_ERROR: Final = {
    "anyOf": [
        {
            "additionalProperties": False,
            "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
            "required": ["type", "message"],
            "type": "object",
        },
        {"type": "null"},
    ]
}


@register_own()
class Parallel(Module):
    """Calls all its members on the same inputs at once.

    The first failure cancels the other members, waits until they have ended, and is raised as itself.

    Args:
        *modules: The members.
        merge: None for a tuple of their outputs, in order; "concat", "and" or "or" for one output.
        **options: Those of `Module`.

    Schemas:
        inputs: what every member takes
        outputs: a tuple of the members' outputs, or their merge by `sm.ops.concat`, `logical_and`, `logical_or`

    Raises:
        ConfigError: No members, one that is not a module, or an unknown `merge` ('Did you mean').

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> both = sm.Parallel(sm.Identity(), sm.Prefix("other"), merge="concat")
        >>> sm.run(both, Query(question="Who?")).get_json()
        {'question': 'Who?', 'other_question': 'Who?'}

    Source: LangChain's `RunnableParallel`; differs: structured concurrency, merges by schema.
    """

    merge: Merge | None = None
    """How the outputs are merged; None for a tuple."""

    def __init__(self, *modules: Module, merge: Merge | None = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.modules = members("Parallel", modules)
        one_of("Parallel", "merge", merge, (None, *_MERGES))
        if merge is not None:
            self.merge = merge

    async def call(self, inputs: Any) -> Any:
        """Call all members at once.

        Raises:
            DataError: `merge="concat"`, and a member gave None.
            Exception: The first failure of a member, as itself.
        """
        if is_symbolic(inputs):
            return await self.compute_output_spec(inputs)
        return self._merged(await together(*(partial(module, inputs) for module in self.modules)))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what the members return, merged."""
        return self._merged([await module(inputs) for module in self.modules])

    def _merged(self, outputs: list[Any]) -> Any:
        """Return a tuple, or the merge; of one output, that output."""
        if self.merge is None:
            return tuple(outputs)
        return outputs[0] if len(outputs) == 1 else _MERGES[self.merge](*outputs)


@register_own()
class Map(Module):
    """Calls a module on every item of a list, a bounded number at once; results in the order of the items.

    Args:
        module: What is called on each item.
        field: The list field whose items are mapped; the list of results takes its place. None maps a list of data
            models.
        concurrency: How many items are at work at once.
        on_error: `"raise"`: the first failure ends the others and is raised, its index as a note. `"collect"`: every
            result is `{"value": item or null, "error": null or {"type", "message"}}`.
        **options: Those of `Module`.

    Schemas:
        inputs: a data model with the list field, or a list of data models
        outputs: the same data model with other items in the field, or a list

    Raises:
        ConfigError: `module` is not a module, `field` not a name, `concurrency` not a count, `on_error` another word.
        ArgumentError: No `field`, and the input is not a list of data models.
        SchemaError: The field is not there ('Did you mean'), or is not a list of objects.
        CallError: When called: the module gave None for an item of a field, where nothing stands for "not there".

    Example:
        >>> import synmod as sm
        >>> class Doc(sm.DataModel):
        ...     title: str
        >>> class Shelf(sm.DataModel):
        ...     docs: list[Doc]
        >>> loud = sm.Lambda(lambda doc: Doc(title=doc.title.upper()), output=Doc)
        >>> sm.run(sm.Map(loud, "docs"), Shelf(docs=[Doc(title="a"), Doc(title="b")])).get_json()
        {'docs': [{'title': 'A'}, {'title': 'B'}]}

    Source: Dask bags, LangChain's `RunnableEach`; differs: bounded, and a failure may be data.
    """

    def __init__(
        self,
        module: Module,
        field: str | None = None,
        *,
        concurrency: int = 64,
        on_error: Literal["raise", "collect"] = "raise",
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("Map", "module", module)
        self.field = None if field is None else field_name("Map", "field", field)
        self.concurrency = whole("Map", "concurrency", concurrency)
        self.on_error: Literal["raise", "collect"] = one_of("Map", "on_error", on_error, ("raise", "collect"))

    async def call(self, inputs: Any) -> Any:
        """Call the module on every item."""
        if self.field is None:
            return await self._mapped(self._list(inputs))
        schema = self._items(inputs)
        items = inputs.get(self.field)
        if items is None:  # an optional list that is not there
            return wrap(frozen(inputs), with_items(schema_of(inputs), self.field, None))
        results = await self._mapped([wrap(item, schema) for item in items])
        return self._replaced(inputs, self._all_there(results))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the inputs with other items; for a list of symbols, what the module returns for each."""
        if self.field is None:
            return [self._result_symbol(await self.module(item)) for item in self._list(inputs)]
        output = self._result_symbol(await self.module(symbol(self._items(inputs))))
        return symbol(with_items(schema_of(inputs), self.field, schema_of(output)))

    async def _mapped(self, items: list[Any]) -> list[Any]:
        """Return the result for each item."""
        pool = map_concurrently(
            self.module, items, concurrency=self.concurrency, on_error=self.on_error, progress=False
        )
        async with pool as results:
            found = [result async for result in results]
        return _collected(found) if self.on_error == "collect" else found

    def _list(self, inputs: Any) -> list[Any]:
        """Return the inputs as a list of items."""
        if not isinstance(inputs, (list, tuple)):
            kind = "symbol" if isinstance(inputs, SymbolicDataModel) else type(inputs).__name__
            raise ArgumentError(
                f"Map: the input is one {kind}, and `field` is not given; name the list to map, "
                "Map(module, 'documents'), or pass a list of data models."
            )
        return list(inputs)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def _items(self, inputs: Any) -> Schema:
        """Return the schema of an item of the field."""
        if isinstance(inputs, (list, tuple)):
            raise ArgumentError(f"Map: the input is a list; `field` {self.field!r} is that of one data model.")
        try:
            return items_of(schema_of(inputs), str(self.field))
        except SchemaError as error:
            raise SchemaError(f"Map: {error}") from None

    def _all_there(self, results: list[Any]) -> list[Any]:
        """Return the results, none of which is None."""
        for index, result in enumerate(results):
            if result is None:
                raise CallError(
                    f"Map: the module gave None for item {index} of {self.field!r}, and a list of data has no place "
                    "for it; map a list of data models, or collect with on_error='collect'."
                )
        return results

    def _replaced(self, inputs: Any, results: list[Any]) -> Any:
        """Return the inputs with the results in place of the items."""
        json = frozen({key: results if key == self.field else inputs[key] for key in inputs.keys()})  # noqa: SIM118
        return wrap(json, with_items(schema_of(inputs), str(self.field), common_schema(results)))

    def _result_symbol(self, output: Any) -> Any:
        """Return the symbol of one result."""
        return symbol(_collecting_schema(schema_of(output))) if self.on_error == "collect" else output


def common_schema(values: Iterable[Any]) -> Schema | None:
    """Return the one schema of several values: theirs if they agree, else `U` of them; None without any."""
    schemas = list({id(schema): schema for schema in map(schema_of, values)}.values())
    if len(schemas) > 1:
        return schema_of(ops.logical_xor(*map(symbol, schemas)))
    return schemas[0] if schemas else None


def _collecting_schema(item: Schema | None) -> Schema:
    """Return the schema of `{"value": item or null, "error": null or {"type", "message"}}`; None for no item at all."""
    value: dict[str, Any] = {"type": "null"}
    definitions: dict[str, Any] = {}
    if item is not None:
        written = parts_of(item).schema
        value = {"anyOf": [{key: part for key, part in written.items() if key != "$defs"}, {"type": "null"}]}
        definitions = {"$defs": written["$defs"]} if "$defs" in written else {}
    return trusted_schema(
        {
            **definitions,
            "additionalProperties": False,
            "properties": {"value": value, "error": _ERROR},
            "required": ["value", "error"],
            "type": "object",
        }
    )


def _collected(results: list[Any]) -> list[JsonDataModel[Any]]:
    """Return results, None and `Failed` as data of one schema."""
    schema = _collecting_schema(common_schema(x for x in results if x is not None and not isinstance(x, Failed)))
    return [wrap(frozen(_record(result)), schema) for result in results]


def _record(result: Any) -> dict[str, Any]:
    """Return one result as JSON."""
    if isinstance(result, Failed):
        return {"value": None, "error": {"type": type(result.error).__name__, "message": str(result.error)}}
    return {"value": result, "error": None}
