"""`Retrieve`, the block that searches an index; the passages that it finds; the base class of indexes; `HybridIndex`.

An index is a graph node by reference, like a live model: programs share it, and no file holds its passages or its path.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, Unpack, cast

from pydantic import Field

from synmod import data, errors, flow, tree
from synmod.leaves import check_int, check_type, did_you_mean, must_be
from synmod.module import Module, ModuleOptions, tool_inputs
from synmod.registry import register_own

from .filters import Where, check_where

_TEXT: Final = ("string", ["string", "null"])
_RANK: Final = 60  # the constant of reciprocal rank fusion
_DEPTH: Final = 50  # how many passages of each index are fused at least
_RERANKED: Final = 3  # times k passages


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
            remedy = f"Write load(..., indexes={{{self.name!r}: {type(self).__name__}(...)}})"
            raise errors.ConfigError(f"the index {self.name!r} was loaded by its name alone. {remedy}.")

    async def search(self, query: str, k: int = 5, *, where: Where | None = None) -> list[FoundPassage]:
        """Return the passages that fit a query best.

        Args:
            query: Any text.
            k: How many at most.
            where: A filter of their metadata; an index without filters may leave the parameter out.

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


@register_own()
class HybridIndex(Index):
    """Searches several indexes at once, such as one by words and one by meaning, and fuses their rankings.

    A passage has the score 1 / (60 + rank), summed over the indexes that find it among their first `max(50, 5 * k)`.

    Args:
        *indexes: Two or more indexes of the same passages.
        name: The name in a saved file, which is one for all of them; by default their names, joined with "+".

    Raises:
        ConfigError: There are fewer than two, one is not an Index, or `name` is empty.

    Example:
        >>> index = HybridIndex(sm.KeywordIndex(), sm.VectorIndex("embedded/hash"))
        >>> added = sm.run(index.add([{"id": "tea", "text": "Tea is a drink."}, {"id": "sea", "text": "It is deep."}]))
        >>> [passage.id for passage in sm.run(index.search("a drink", k=1))]
        ['tea']

    Source: reciprocal rank fusion (Cormack et al. 2009).
    """

    def __init__(self, *indexes: Index, name: str | None = None) -> None:
        for index in indexes:
            check_type("HybridIndex", index, Index, "a KeywordIndex or another Index", error=errors.ConfigError)
        if len(indexes) < 2:
            raise errors.ConfigError(f"HybridIndex: got {len(indexes)} index, wanted two or more.")
        self.indexes = indexes
        self.name = "+".join(index.name for index in indexes) if name is None else name
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise errors.ConfigError(must_be("HybridIndex: name", "a text", name))

    def __repr__(self) -> str:
        indexes = getattr(self, "indexes", ())  # none if it was loaded by its name alone
        return f"HybridIndex({', '.join([*map(repr, indexes), f'name={self.name!r}'])})"

    async def add(self, passages: Iterable[Passage | Mapping[str, Any]]) -> int:
        """Add passages to every index, as `KeywordIndex.add` does; return how many were new or changed in any."""
        return max(await self._in_all("add", list_of(passages, "passages")))

    async def remove(self, ids: Iterable[str] | None = None, *, where: Where | None = None) -> int:
        """Remove passages from every index, as `KeywordIndex.remove` does; return how many there were."""
        return max(await self._in_all("remove", None if ids is None else list_of(ids, "ids"), where=where))

    async def search(self, query: str, k: int = 5, *, where: Where | None = None) -> list[FoundPassage]:
        """Return the passages that rank highest over all indexes.

        Args:
            query: Any text.
            k: How many at most.
            where: A filter of their metadata, as for `KeywordIndex.search`.

        Returns:
            Passages with their fused scores, the best first; ties in the order of the indexes and their rankings.

        Raises:
            ArgumentError, ConfigError, DataError, ModelError: As for the indexes.
        """
        self.check_bound()
        depth = max(_DEPTH, 5 * check_int("search: k", k))
        filters = {} if where is None else {"where": where}
        scores, passages = defaultdict[str, float](float), dict[str, FoundPassage]()
        for ranking in await self._in_all("search", query, depth, **filters):
            for rank, passage in enumerate(ranking, start=1):
                scores[passage.id] += 1 / (_RANK + rank)
                passages.setdefault(passage.id, passage)
        best = sorted(scores, key=lambda key: -scores[key])[:k]
        return [passages[key].model_copy(update={"score": scores[key]}) for key in best]

    async def get(self, id: str) -> Passage | None:  # noqa: A002  # the name of the field
        """Return the passage with this id, as `KeywordIndex.get` does."""
        return next((passage for passage in await self._in_all("get", id) if passage), None)

    def __len__(self) -> int:
        """Return the number of passages in the largest of the indexes, as `KeywordIndex` does."""
        self.check_bound()
        indexes: tuple[Any, ...] = self.indexes
        return max(map(len, indexes))

    async def _in_all(self, method: str, *args: Any, **options: Any) -> list[Any]:
        """Return the results of one method of every index, which run at once."""
        self.check_bound()
        return await flow.together(*[lambda i=index: getattr(i, method)(*args, **options) for index in self.indexes])


def list_of(items: Any, what: str) -> list[Any]:
    """Return passages or ids as a list; raise DataError for a text or a single passage."""
    if isinstance(items, str | bytes | Mapping | Passage) or not isinstance(items, Iterable):
        raise errors.DataError(must_be(what, "a list of them", cast("object", items)))
    return list(cast("Iterable[Any]", items))


# -- the block ---------------------------------------------------------------------------------------------------------


@register_own()
class Passages(data.DataModel, defer_build=True):
    """The passages that a search found.

    Attributes:
        passages: The passages, the best first.
    """

    passages: list[FoundPassage]


@register_own()
class QueryPassage(data.DataModel, defer_build=True):
    """A query and a passage: the inputs of a module that gives the passage its `score`.

    Attributes:
        query: The query.
        passage: The passage.
    """

    query: str
    passage: Passage


@register_own()
class Retrieve(Module):
    """Finds the passages of an index that fit a text in the inputs.

    Args:
        index: A `KeywordIndex`, a `VectorIndex`, or an `Index` of your own. It is held by reference: a saved program
            holds only its name, and `sm.load(path, indexes={name: index})` supplies a live one.
        k: How many passages at most.
        field: The field of the inputs that holds the query; None for the only text among them.
        return_inputs: Whether the output begins with the fields of the inputs.
        where: A filter of their metadata, such as `{"lang": "en"}`, as for `KeywordIndex.search`.
        rerank: A module that is called for each of the first `3 * k` passages at once, with `query` and `passage`, and
            whose output has a number `score`: the passages are sorted by it.
        **options: Those of `Module`.

    Schemas:
        inputs: any data model with the query
        outputs: `passages`, a list of `id`, `text`, `metadata`, `score`; with `return_inputs` the inputs' fields first

    Raises:
        ConfigError: `index` is not an Index, `k` not a whole number above 0, `where` not a filter, or `rerank` not a
            module. When called: the index was loaded by its name alone.
        SchemaError: The inputs have no such field ('Did you mean'), or several texts and `field` is None; or the output
            of `rerank` has no number `score`.

    Example:
        >>> class Question(sm.DataModel):
        ...     question: str
        >>> index = sm.KeywordIndex()
        >>> added = sm.run(index.add([{"id": "sea", "text": "The sea is deep."}]))
        >>> sm.run(Retrieve(index), Question(question="How deep is it?")).passages[0]["id"]
        'sea'

    Source: DSPy's `Retrieve`, Synalinks' knowledge retrieval; differs: no global retriever, scores come with the texts.
    """

    where: Where | None = None
    rerank: Module | None = None

    def __init__(
        self,
        index: Index,
        k: int | tree.Choice = 5,
        *,
        field: str | None = None,
        return_inputs: bool = False,
        where: Where | None = None,
        rerank: Module | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        check_type("Retrieve: index", index, Index, "a KeywordIndex or another Index", error=errors.ConfigError)
        for option in k.options if isinstance(k, tree.Choice) else (k,):
            check_int("Retrieve: k", option, error=errors.ConfigError)
        self.k = k
        self.index, self.field, self.return_inputs = index, field, return_inputs
        if check_where("Retrieve", where, errors.ConfigError):
            self.where = dict(where or {})
        expected = "a module whose output has `score`"
        check_type("Retrieve: rerank", rerank, Module | None, expected, error=errors.ConfigError)
        if rerank is not None:
            self.rerank = rerank

    async def call(self, inputs: Any) -> Any:
        """Return the passages that the index finds for the query in the inputs."""
        query = inputs[self._query_field(inputs)] or ""
        self.index.check_bound()
        k = tree.chosen(self.k)
        depth = k if self.rerank is None else _RERANKED * k
        filters = {} if self.where is None else {"where": self.where}
        passages = await self.index.search(query, depth, **filters)
        if self.rerank is not None:
            passages = await self._rerank(self.rerank, query, passages)
        output = Passages(passages=passages).to_json_data_model()
        return data.ops.concat(inputs, output) if self.return_inputs else output

    async def _rerank(self, module: Module, query: str, passages: list[FoundPassage]) -> list[FoundPassage]:
        """Return the best passages, with the scores that a module gives them."""

        async def score(passage: FoundPassage) -> FoundPassage:
            plain = Passage(id=passage.id, text=passage.text, metadata=passage.metadata)
            output = await module(QueryPassage(query=query, passage=plain))
            return passage.model_copy(update={"score": self._score_in(output)})

        scored = await flow.together(*[lambda p=passage: score(p) for passage in passages])
        return sorted(scored, key=lambda passage: -passage.score)[: tree.chosen(self.k)]

    def _score_in(self, output: Any) -> float:
        """Return the score in an output of `rerank`.

        Raises:
            SchemaError: It has no number `score`.
        """
        score = output.get_json().get("score") if isinstance(output, (data.JsonDataModel, data.DataModel)) else None
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            what = f"the output of rerank has no number `score`: {output!r:.100}"
            raise errors.SchemaError(f"{self.path or self.name}: {what}")
        return float(score)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the passages as a symbol; with `return_inputs` after the fields of the inputs."""
        self._query_field(inputs)
        if self.rerank is not None:
            output = await self.rerank(data.symbol(data.schema_of(QueryPassage), QueryPassage))
            fields = list(data.parts_of(data.schema_of(output)).fields) if data.is_symbolic(output) else []
            if "score" not in fields:
                what = f"the output of rerank has no `score`; it has {', '.join(fields) or 'none'}"
                raise errors.SchemaError(f"{self.path or self.name}: {what}.")
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
