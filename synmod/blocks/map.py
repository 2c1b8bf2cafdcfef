"""Map: one module over every item of a list, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from synmod.blocks.arguments import field_name, member, one_of, whole
from synmod.blocks.collecting import collected, collecting_schema
from synmod.blocks.uniting import common_schema
from synmod.data import SymbolicDataModel, items_of, schema_of, symbol, with_items, wrap
from synmod.errors import ArgumentError, CallError, SchemaError
from synmod.flow import map_concurrently
from synmod.leaves.frozen import frozen
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from synmod.data import Schema
    from synmod.module import ModuleOptions


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
        ConfigError: `module` is no module, `field` no name, `concurrency` no count, `on_error` another word.
        ArgumentError: No `field`, and the input is no list of data models.
        SchemaError: The field is not there ('Did you mean'), or is no list of objects.
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
        """The inputs with other items; of a list of symbols, what the module gives for each."""
        if self.field is None:
            return [self._result_symbol(await self.module(item)) for item in self._list(inputs)]
        output = self._result_symbol(await self.module(symbol(self._items(inputs))))
        return symbol(with_items(schema_of(inputs), self.field, schema_of(output)))

    async def _mapped(self, items: list[Any]) -> list[Any]:
        """The result for each item."""
        pool = map_concurrently(
            self.module, items, concurrency=self.concurrency, on_error=self.on_error, progress=False
        )
        async with pool as results:
            found = [result async for result in results]
        return collected(found) if self.on_error == "collect" else found

    def _list(self, inputs: Any) -> list[Any]:
        """The inputs as a list of items."""
        if not isinstance(inputs, (list, tuple)):
            kind = "symbol" if isinstance(inputs, SymbolicDataModel) else type(inputs).__name__
            raise ArgumentError(
                f"Map: the input is one {kind}, and `field` is not given; say which list is mapped, "
                "Map(module, 'documents'), or give a list of data models."
            )
        return list(inputs)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def _items(self, inputs: Any) -> Schema:
        """The schema of an item of the field."""
        if isinstance(inputs, (list, tuple)):
            raise ArgumentError(f"Map: the input is a list; `field` {self.field!r} is that of one data model.")
        try:
            return items_of(schema_of(inputs), str(self.field))
        except SchemaError as error:
            raise SchemaError(f"Map: {error}") from None

    def _all_there(self, results: list[Any]) -> list[Any]:
        """The results, none of which is None."""
        for index, result in enumerate(results):
            if result is None:
                raise CallError(
                    f"Map: the module gave None for item {index} of {self.field!r}, and a list of data has no place "
                    "for it; map a list of data models, or collect with on_error='collect'."
                )
        return results

    def _replaced(self, inputs: Any, results: list[Any]) -> Any:
        """The inputs with the results in place of the items."""
        json = frozen({key: results if key == self.field else inputs[key] for key in inputs.keys()})  # noqa: SIM118
        return wrap(json, with_items(schema_of(inputs), str(self.field), common_schema(results)))

    def _result_symbol(self, output: Any) -> Any:
        """The symbol of one result."""
        return symbol(collecting_schema(schema_of(output))) if self.on_error == "collect" else output
