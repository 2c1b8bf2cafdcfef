"""`Nearest`: a block around a generator, which shows it those examples of a pool that are nearest to its inputs."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Unpack

from synmod import data, errors, lm, tree
from synmod.cache import SingleFlight
from synmod.leaves import Json, check_int, frozen, must_be
from synmod.module import Module, ModuleOptions
from synmod.registry import register_own

from .vectors import cosine_to, pack_vector

POOL: Final = "is_pool"
"""The metadata of an examples Variable that no optimizer bounds: a call shows only some of its examples."""

_MOST_VECTORS: Final = 20_000  # that are kept in memory


@register_own()
class Nearest(Module):
    """Shows a generator, at each call, the `k` examples of a pool whose inputs are nearest to its own.

    Training fills the pool: an optimizer's `max_examples` bounds sets of examples, but not pools. The generator's own
    `examples` are no longer trained, and are shown only while the pool is empty. No train row is shown an example that
    was made from it. The order of the pool has no effect; the nearest example is shown last.

    Args:
        generator: A `Generator`, or another module with a Variable `examples`.
        k: How many examples are shown.
        embedding_model: The model that compares inputs, or its name.
        field: The field of the inputs that is compared; None for all of them.
        pool: Initial examples, as those of a `Generator`.
        **options: Those of `Module`.

    Schemas:
        inputs: those of the generator
        outputs: those of the generator

    Raises:
        ConfigError: `generator` has no examples, `k` is not a whole number above 0, or `embedding_model` not a model.
        SchemaError: An example does not satisfy the schema of the generator's examples. When called: the inputs have no
            such field.
        ModelError: When called: raised by the embedding model or the generator.

    Example:
        >>> class Ticket(sm.DataModel):
        ...     text: str
        >>> pool = [
        ...     {"inputs": {"text": text}, "outputs": {"desk": desk}}
        ...     for text, desk in [("the invoice is wrong", "billing"), ("the parcel is late", "shipping")]
        ... ]
        >>> sort = sm.Generator({"desk": str}, language_model="embedded/nearest")
        >>> nearest = Nearest(sort, k=1, embedding_model="embedded/hash", pool=pool)
        >>> sm.run(nearest, Ticket(text="where is the parcel?"))["desk"]
        'shipping'

    Source: DSPy's `KNNFewShot` (Liu et al. 2022); differs: the pool is a Variable, a row never sees its own example.
    """

    graph_ignored: ClassVar[frozenset[str]] = frozenset({"_vectors", "_flights"})

    def __init__(
        self,
        generator: Module,
        k: int = 4,
        *,
        embedding_model: lm.EmbeddingModel | str = "embedded/hash",
        field: str | None = None,
        pool: Sequence[Mapping[str, Any]] | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        examples = getattr(generator, "examples", None)
        if not isinstance(generator, Module) or not isinstance(examples, tree.Variable):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise errors.ConfigError(must_be("Nearest: generator", "a Generator", generator))
        self.k, self.field = check_int("Nearest: k", k, error=errors.ConfigError), field
        self.embedding_model = lm.resolve_embedding_model(embedding_model, "Nearest: embedding_model")
        self.generator = generator
        examples.trainable = False
        self.pool = self.add_variable(
            [frozen(example) for example in pool or ()],
            schema=examples.schema,
            name="pool",
            description="Examples, the nearest of which each call shows.",
        )
        self.pool.set_metadata({POOL: True})
        self._vectors: dict[str, bytes] = {}
        self._flights = SingleFlight()

    async def call(self, inputs: Any) -> Any:
        """Call the generator with the nearest examples."""
        pool: Any = self.pool.value
        if not pool or data.is_symbolic(inputs):
            return await self.generator(inputs)
        with tree.using(self.generator, {"examples": await self._nearest(frozen(inputs), pool)}):
            return await self.generator(inputs)

    async def _nearest(self, inputs: Json, pool: Sequence[Json]) -> list[Json]:
        """Return the nearest examples of a pool, the nearest last."""
        texts = [self._text(example["inputs"]) for example in pool]
        vectors = await self._vectors_of(tuple(dict.fromkeys(texts)))
        (vector,) = (await self.embedding_model([self._text(inputs)])).vectors
        cosine = cosine_to(vector)
        ranked = [(cosine(vectors[text]), data.dump_json(example)) for text, example in zip(texts, pool, strict=True)]
        order = sorted(range(len(pool)), key=lambda at: (-round(ranked[at][0], 12), ranked[at][1]))
        return [pool[at] for at in reversed(order[: self.k])]

    async def _vectors_of(self, texts: tuple[str, ...]) -> Mapping[str, bytes]:
        """Return the packed vector of each text; calls at once embed new texts once."""
        missing = tuple(text for text in texts if text not in self._vectors)

        async def embed() -> dict[str, bytes]:
            vectors = (await self.embedding_model(missing)).vectors
            return {text: pack_vector(vector) for text, vector in zip(missing, vectors, strict=True)}

        vectors = {text: self._vectors[text] for text in texts if text not in missing}
        if missing:
            new: dict[str, bytes] = await self._flights.run(missing, embed)
            if len(self._vectors) + len(new) > _MOST_VECTORS:
                self._vectors = {}
            self._vectors |= new
            vectors |= new
        return vectors

    def _text(self, inputs: Json) -> str:
        """Return what is compared of inputs.

        Raises:
            SchemaError: They have no such field.
        """
        if self.field is not None and self.field not in inputs:
            has = ", ".join(inputs) or "none"
            raise errors.SchemaError(f"{self.path or self.name}: no field {self.field!r} to compare; there are {has}.")
        values = list(inputs.values()) if self.field is None else [inputs[self.field]]
        value = values[0] if len(values) == 1 else inputs
        return value if isinstance(value, str) else data.dump_json(value)
