"""Retrieve: the block that asks an index."""

from typing import Any, Final, Unpack

from synmod.data import DataModel, ops, parts_of, schema_of, symbol
from synmod.errors import ConfigError, SchemaError
from synmod.leaves import did_you_mean
from synmod.module import Module, ModuleOptions
from synmod.registry import register_own

from .index import FoundPassage, Index


@register_own()
class Passages(DataModel):
    """What a search found.

    Attributes:
        passages: The passages, the best first.
    """

    passages: list[FoundPassage]


_TEXT: Final = ("string", ["string", "null"])


@register_own()
class Retrieve(Module):
    """Finds the passages of an index that fit a text of the inputs.

    Args:
        index: A `KeywordIndex`, a `VectorIndex`, or an `Index` of your own. It is held by reference: a saved program
            has its name alone, and `sm.load(path, indexes={name: index})` hands over a live one.
        k: How many passages at most.
        field: The field of the inputs that is the query; None for the only text among them.
        return_inputs: Whether the output begins with the fields of the inputs.
        **options: Those of `Module`.

    Schemas:
        inputs: any data model with the query
        outputs: `passages`, a list of `id`, `text`, `metadata`, `score`; with `return_inputs` the inputs' fields first

    Raises:
        ConfigError: `index` is not an Index, or `k` not a whole number above 0. When called: the index was loaded by
            its name alone.
        SchemaError: The inputs have no such field ('Did you mean'), or several texts and `field` is None.

    Example:
        >>> class Question(sm.DataModel):
        ...     question: str
        >>> index = sm.KeywordIndex()
        >>> added = sm.run(index.add([{"id": "sea", "text": "The sea is deep."}]))
        >>> sm.run(Retrieve(index), Question(question="How deep is it?")).passages[0]["id"]
        'sea'

    Source: DSPy's `Retrieve`, Synalinks' knowledge retrieval; differs: no global retriever, scores come with the texts.
    """

    def __init__(
        self,
        index: Index,
        k: int = 5,
        *,
        field: str | None = None,
        return_inputs: bool = False,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        if not isinstance(index, Index):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"Retrieve: index is {index!r:.100}; write a KeywordIndex, a VectorIndex or an Index.")
        if type(k) is not int or k < 1:
            raise ConfigError(f"Retrieve: k is {k!r:.100}; write a whole number above 0.")
        self.index, self.k, self.field, self.return_inputs = index, k, field, return_inputs

    async def call(self, inputs: Any) -> Any:
        """Return what the index finds for the query in the inputs."""
        query = inputs[self._query_field(inputs)]
        self.index.check_bound()
        passages = Passages(passages=await self.index.search(query, self.k)).to_json_data_model()
        return ops.concat(inputs, passages) if self.return_inputs else passages

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the passages as a symbol, with `return_inputs` after the fields of the inputs."""
        self._query_field(inputs)
        passages = symbol(schema_of(Passages), Passages)
        return ops.concat(inputs, passages) if self.return_inputs else passages

    def _query_field(self, inputs: Any) -> str:
        """Return the name of the field that is the query.

        Raises:
            SchemaError: There is none, or it is not clear which.
        """
        fields = parts_of(schema_of(inputs)).fields
        texts = [name for name, schema in fields.items() if schema.get("type") in _TEXT]
        if self.field in texts or (self.field is None and len(texts) == 1):
            return self.field or texts[0]
        hint = "" if self.field is None else did_you_mean(self.field, texts)
        what = "no field=... says which text is the query" if self.field is None else f"no text {self.field!r}"
        raise SchemaError(f"{self.path or self.name}: {what}; the inputs have {', '.join(texts) or 'none'}.{hint}")
