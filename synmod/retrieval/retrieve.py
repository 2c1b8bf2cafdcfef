"""`Retrieve`, the block that searches an index; the passages that it finds; and the base class of indexes.

An index is a graph node by reference, like a live model: programs share it, and no file holds its passages or its path.
"""

from typing import Any, Final, Self, Unpack

from pydantic import Field

from synmod import data, errors, tree
from synmod.leaves import check_int, did_you_mean, must_be
from synmod.module import Module, ModuleOptions, tool_inputs
from synmod.registry import register_own

_TEXT: Final = ("string", ["string", "null"])


@register_own()
class Passage(data.DataModel, defer_build=True):
    """A piece of text that an index holds.

    Attributes:
        id: Its id; adding another passage with this id replaces it.
        text: The text that is searched.
        metadata: Any JSON, returned with it.
    """

    id: str
    text: str
    metadata: dict[str, Any] = Field(default_factory=dict)


@register_own()
class FoundPassage(Passage, defer_build=True):
    """A passage that a search found.

    Attributes:
        id: Its id.
        text: Its text.
        metadata: The JSON that was added with it.
        score: How well it fits, the higher the better: BM25, or the cosine.
    """

    score: float


class Index:
    """Base class of what `Retrieve` searches: derive from it, set `name`, implement `search`.

    Attributes:
        name: The name in a saved file, under which `sm.load(..., indexes={name: index})` supplies a live index.
        is_bound: False for an index that was loaded by its name alone.

    Example:
        >>> class Fixed(Index):
        ...     name = "fixed"
        ...     async def search(self, query, k=5):
        ...         return [FoundPassage(id="1", text="Tea is a drink.", score=1.0)][:k]
        >>> sm.run(Fixed().search("tea"))[0].text
        'Tea is a drink.'

    Source: LlamaIndex's retrievers; differs: a node of the graph by reference, never part of a saved program.
    """

    name: str
    is_bound: bool = True

    @classmethod
    def unbound(cls, name: str) -> Self:
        """Return an index known only by its name: everything except a search works."""
        index = cls.__new__(cls)
        index.name, index.is_bound = name, False
        return index

    def check_bound(self) -> None:
        """Raise ConfigError, with the code to write, if only the name is known."""
        if not self.is_bound:
            remedy = f"Write load(..., indexes={{{self.name!r}: {type(self).__name__}(path)}})"
            raise errors.ConfigError(f"the index {self.name!r} was loaded by its name alone. {remedy}.")

    async def search(self, query: str, k: int = 5) -> list[FoundPassage]:
        """Return the passages that fit a query best.

        Args:
            query: Any text.
            k: How many at most.

        Returns:
            Passages with their scores, the best first.
        """
        raise NotImplementedError(f"{type(self).__name__} has no search.")

    def __copy__(self, memo: object = None) -> Self:
        return self

    __deepcopy__ = __copy__


tree.register_impl(
    tree.NodeImpl(Index, flatten=lambda index: ((), {"name": index.name}), by_reference=True, subclasses=True)
)


# -- the block ---------------------------------------------------------------------------------------------------------


@register_own()
class Passages(data.DataModel, defer_build=True):
    """The passages that a search found.

    Attributes:
        passages: The passages, the best first.
    """

    passages: list[FoundPassage]


@register_own()
class Retrieve(Module):
    """Finds the passages of an index that fit a text in the inputs.

    Args:
        index: A `KeywordIndex`, a `VectorIndex`, or an `Index` of your own. It is held by reference: a saved program
            holds only its name, and `sm.load(path, indexes={name: index})` supplies a live one.
        k: How many passages at most.
        field: The field of the inputs that holds the query; None for the only text among them.
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
            raise errors.ConfigError(must_be("Retrieve: index", "a KeywordIndex or another Index", index))
        self.k = check_int("Retrieve: k", k, error=errors.ConfigError)
        self.index, self.field, self.return_inputs = index, field, return_inputs

    async def call(self, inputs: Any) -> Any:
        """Return the passages that the index finds for the query in the inputs."""
        query = inputs[self._query_field(inputs)]
        self.index.check_bound()
        passages = Passages(passages=await self.index.search(query, self.k)).to_json_data_model()
        return data.ops.concat(inputs, passages) if self.return_inputs else passages

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the passages as a symbol; with `return_inputs` after the fields of the inputs."""
        self._query_field(inputs)
        passages = data.symbol(data.schema_of(Passages), Passages)
        return data.ops.concat(inputs, passages) if self.return_inputs else passages

    def _query_field(self, inputs: Any) -> str:
        """Return the name of the field that holds the query.

        Raises:
            SchemaError: There is none, or it is ambiguous.
        """
        fields = data.parts_of(data.schema_of(inputs)).fields
        texts = [name for name, schema in fields.items() if schema.get("type") in _TEXT]
        if self.field in texts or (self.field is None and len(texts) == 1):
            return self.field or texts[0]
        hint = "" if self.field is None else did_you_mean(self.field, texts)
        what = "no field=... names the text to search for" if self.field is None else f"no text {self.field!r}"
        has = f"the inputs have {', '.join(texts) or 'none'}"
        raise errors.SchemaError(f"{self.path or self.name}: {what}; {has}.{hint}")


@tool_inputs.register(Retrieve)
def tool_inputs_of_retrieve(retrieve: Retrieve) -> data.SymbolicDataModel:
    """Return the query, under the name of the field that holds it."""
    query = {"type": "string", "description": "what to search for"}
    field = retrieve.field or "query"
    return data.symbol(data.declare({"type": "object", "properties": {field: query}, "required": [field]}))
