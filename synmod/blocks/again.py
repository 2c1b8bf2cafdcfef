"""Call a module again: Repeat, Retry, Cached; or several times to pick the best output: BestOf, Majority, Refine."""

import inspect
import os
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeGuard, Unpack, cast

from pydantic import Field

from synmod import data, flow, leaves, lm, registry, scope, tree
from synmod.cache import Cache, key_of
from synmod.errors import CallError, ConfigError, Paused, SchemaError, add_note
from synmod.leaves import Json, aio, frozen
from synmod.module import CallAttempt, Module, ModuleOf, ModuleOptions, attempt, has_open_skips

from . import checks
from .checks import Around, R
from .generator import object_schema
from .tools import Tool

# -- Repeat and Retry --------------------------------------------------------------------------------------------------


@registry.register_own()
class Repeat(Around[R]):
    """Calls a module on its own output, a number of times or until a condition holds.

    An output of None ends the loop.

    Args:
        module: The module to call.
        times: The number of rounds.
        until: Function of the output, plain or async; a true result ends the loop. A registered function can be saved.
        max_times: The maximum number of rounds with `until`.
        on_limit: `"raise"`: reaching `max_times` is a CallError. `"return"`: the last output is the result.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of the module
        outputs: the outputs of the module, which must be valid inputs too

    Raises:
        ConfigError: Neither or both of `times` and `until` are given, an argument has the wrong type, or `on_limit` is
            unknown.
        SchemaError: When composed: the module does not accept its own output, or returns another schema for it.
        CallError: When called: `until` did not hold after `max_times` rounds.

    Example:
        >>> import synmod as sm
        >>> class Count(sm.DataModel):
        ...     n: int
        >>> double = sm.Lambda(lambda count: Count(n=2 * count.n), output=Count)
        >>> sm.run(sm.Repeat(double, until=lambda count: count.n > 100), Count(n=7))["n"]
        112

    Source: `jax.lax.fori_loop` and `while_loop`; differs: there is always a limit.
    """

    def __init__(
        self,
        module: ModuleOf[R],
        times: int | None = None,
        *,
        until: Callable[[Any], Any] | None = None,
        max_times: int = 10,
        on_limit: Literal["raise", "return"] = "raise",
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        if (times is None) == (until is None):
            raise ConfigError("Repeat: pass either `times` or `until`: a number of rounds, or a condition to stop.")
        self.times = None if times is None else checks.whole("Repeat", "times", times)
        self.until = None if until is None else checks.function("Repeat", "until", until)
        self.max_times = checks.whole("Repeat", "max_times", max_times)
        self.on_limit = checks.one_of("Repeat", "on_limit", on_limit, ("raise", "return"))

    async def call(self, inputs: Any) -> Any:
        """Call the module on its output, for `times` rounds or until the condition holds."""
        value = inputs
        for _ in range(self.times or self.max_times):
            value = await self.module(value)
            if value is None:
                return None
            is_done = self.until is not None and self.until(value)
            if await is_done if inspect.isawaitable(is_done) else is_done:
                return value
        if self.until is not None and self.on_limit == "raise":
            remedy = "raise max_times, or return the last output with on_limit='return'"
            raise CallError(f"Repeat: `until` did not hold after max_times={self.max_times} rounds; {remedy}.")
        return value

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the outputs of the module, after a check that it accepts them as inputs."""
        outputs = await self.module(inputs)
        if self.times == 1:
            return outputs
        again = await self.module(outputs)
        if not _fits(again, outputs):
            what = f"the second round returned {again!r:.200}, the first {outputs!r:.200}"
            raise SchemaError(f"Repeat: {what}; a repeated module must return the schema that it takes.")
        return outputs


def _fits(again: Any, outputs: Any) -> bool:
    """Whether symbols, or nests of them, have the schemas of others."""
    pairs = leaves.align_nests(outputs, again)
    return pairs is not None and all(
        new is None or (old is not None and data.is_subschema(data.schema_of(new), data.schema_of(old)))
        for _, old, new in pairs
    )


@registry.register_own()
class Retry(Around[R]):
    """Calls a module again if it fails, each time with a new sample of its model calls.

    Language models retry their requests themselves; this is for failures that another sample may not have.

    Args:
        module: The module to call.
        attempts: The maximum number of calls, including the first.
        on: Exception classes after which the module is called again; all others are raised at once.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of the module
        outputs: the outputs of the module

    Raises:
        ConfigError: `module` is not a module, `attempts` is not a count, or `on` is not exception classes.
        Exception: When called: the last failure, with the earlier failures as notes.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> write = sm.Generator(Answer, language_model=ScriptedLM(["no JSON", "again none", {"answer": "Paris"}]))
        >>> sm.run(sm.Retry(write, 2, on=sm.BadReplyError), Answer(answer="?"))["answer"]
        'Paris'

    Source: tenacity; differs: attempts are independent samples, and only the named exceptions are retried.
    """

    def __init__(
        self,
        module: ModuleOf[R],
        attempts: int = 2,
        *,
        on: type[Exception] | tuple[type[Exception], ...],
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        self.attempts = checks.whole("Retry", "attempts", attempts)
        self.on = checks.exceptions("Retry", on)

    async def call(self, inputs: Any) -> Any:
        """Call the module until it succeeds."""
        first, failures = lm.current_sample() * self.attempts, list[str]()
        while True:
            try:
                with lm.sample_number(first + len(failures)):
                    return await self.module(inputs)
            except Paused:  # waits for a person, and has not failed
                raise
            except self.on as error:
                if len(failures) == self.attempts - 1:
                    for failure in failures:
                        add_note(error, failure)
                    raise
                failures.append(f"attempt {len(failures) + 1} failed: {type(error).__name__}: {error}")


# -- Cached ------------------------------------------------------------------------------------------------------------

_NAMES: Final[dict[tuple[int, int], tuple[str, Any]]] = {}
"""Generated names for objects that have none, by process and id."""


@registry.register_own()
class Cached(Around[R]):
    """Caches the outputs of a module, by the JSON of its inputs and the fingerprint of its structure and state.

    Equal concurrent calls run the module once. Another state of the module (a Variable assigned, an overlay), another
    structure or constructor argument, another default model, sample, training mode or value that `sm.inject` supplies
    to a tool below has separate entries; failures are never cached. A call returns when its output is committed; a hit
    is a cancellation point.

    Only an output that is one data model or None is cached; a module with another output runs each time, and so does
    one with a skip connection into or out of the block. In the key, registered classes and functions are identified by
    their id, others by module and name; lambdas, local functions and classes, and other objects by identity, within
    this process only. After a change to the code of a function or a class, use another file.

    Args:
        module: The module whose outputs are cached.
        cache: A `Cache`, which several blocks may share; None for memory. It is not saved: after a load the block
            caches in memory until its attribute `cache` is set. Copies share it.
        ttl_s: Seconds for which an output is valid; None for the `ttl_s` of the cache.
        key: Function of the inputs, plain or async, that returns JSON to use in the key in their place. A registered
            function can be saved.
        **options: Keyword arguments of `Module`.

    Attributes:
        cache: The `Cache`.

    Schemas:
        inputs: the inputs of the module
        outputs: the outputs of the module

    Raises:
        ConfigError: `module` is not a module, `cache` not a Cache, `ttl_s` not a number above 0, or `key` not a
            function.
        DataError: When called: the result of `key` is not JSON.
        CallError: When called: the call depends on its own output.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> asked = []
        >>> cached = sm.Cached(sm.Lambda(lambda query: asked.append(1) or query, output=Query), sm.Cache("asked.db"))
        >>> for _ in range(3):
        ...     reply = sm.run(cached, Query(question="Who?"))
        >>> len(asked)
        1

    Source: `functools.cache`, joblib's `Memory`, Go's singleflight; differs: keyed by state, too, so training never
    reads stale outputs.
    """

    graph_ignored: ClassVar[frozenset[str]] = frozenset({"cache"})

    def __init__(
        self,
        module: ModuleOf[R],
        cache: Cache | None = None,
        *,
        ttl_s: float | None = None,
        key: Callable[..., Any] | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        if cache is not None and not isinstance(cache, Cache):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"Cached: cache is {cache!r:.100}; write a Cache, sm.Cache('path'), or None for memory.")
        self.cache = Cache() if cache is None else cache
        self.ttl_s = None if ttl_s is None else leaves.check_seconds("Cached: ttl_s", ttl_s, error=ConfigError)
        self.key = None if key is None else checks.function("Cached", "key", key)

    async def call(self, *inputs: Any) -> Any:
        """Return the cached output, else call the module and cache its output."""
        if has_open_skips(self.module):
            return await self.module(*inputs)
        counted: Json = [_content(value) for value in inputs]
        if self.key is not None:
            own = self.key(*inputs)
            counted = frozen(await own if inspect.isawaitable(own) else own)
        structure = self._structure()
        key = self._key(counted, structure)
        entry = await self.cache.find(key, ttl_s=self.ttl_s)
        if entry is not None:
            await aio.checkpoint()  # so that a cancelled task ends on a hit too
            return self._read(entry)

        async def work() -> Any:
            entry = await self.cache.find(key, ttl_s=self.ttl_s)  # an equal call may just have ended
            if entry is not None:
                return self._read(entry)
            output: Any = await self.module(*inputs)
            if (output is None or isinstance(cast("object", output), data.JsonDataModel)) and not has_open_skips(
                self.module
            ):
                await self.cache.keep(key, _entry(output))
                built = self._structure()
                if built != structure:  # the first call has built the module: later calls use this key
                    await self.cache.keep(self._key(counted, built), _entry(output))
            return output

        return leaves.copy_nest(await self.cache.flights.run(key, work, scope.is_from_enclosing_limit))

    def _structure(self) -> Json:
        """Return the part of the key for the structure; with the declared output, since annotations are in no graph."""
        declared = [None if leaf is None else data.schema_of(leaf) for leaf in leaves.leaves(self.module.output_spec)]
        graphdef = tree.graphdef(self.module)
        classes = {definition.type for definition in graphdef.definitions.values()}
        local = (cls for cls in classes if "<locals>" in cls.__qualname__ and not registry.id_of(cls))
        identities = sorted(map(_identity, local))  # they may close over anything
        return [graphdef.fingerprint_with(_name), identities, declared, None if self.key is None else _name(self.key)]

    def _key(self, inputs: Json, structure: Json) -> str:
        """Return the cache key of a call."""
        frame = scope.current_call()
        return key_of(
            {
                "inputs": inputs,
                "structure": structure,
                "state": tree.state(self.module).fingerprint,
                "models": lm.models_in_force(),
                "sample": lm.current_sample(),
                "training": frame is not None and frame.training,
                **self._injected(),
            }
        )

    def _injected(self) -> dict[str, Json]:
        """Return the part of the key for what `sm.inject` supplies to the tools below."""
        if not scope.ambient().injected:
            return {}
        tools = [tool for _, tool in tree.iter_graph(self.module) if isinstance(tool, Tool)]
        values = [value for tool in tools for value in tool.injected().values()]
        return {"injected": [_injected_content(value) for value in values]} if values else {}

    def _read(self, entry: Json) -> Any:
        """Return the output of an entry, with its class if the module declares it or it is registered."""
        if entry["output"] is None:
            return None
        schema = data.intern_schema(entry["schema"])
        declared = [data.model_of(leaf) for leaf in leaves.leaves(self.module.output_spec) if leaf is not None]
        for model in (*declared, registry.lookup(entry["class"] or "")):
            if isinstance(model, type) and tree.class_text(model) == entry["class"] and data.schema_of(model) == schema:
                return data.wrap(entry["output"], schema, model, entry["label"])
        return data.wrap(entry["output"], schema, None, entry["label"])


def _entry(output: Any) -> Json:
    """Return the cache entry for an output."""
    if output is None:
        return {"output": None}
    model = data.model_of(output)
    name = None if model is None else tree.class_text(model)
    return {"output": frozen(output), "schema": data.schema_of(output), "class": name, "label": output.name}


def _content(x: Any) -> Json:
    """Return the part of the key for an input: JSON and schemas, in lists and mappings."""
    if leaves.is_mapping(x):
        return {"mapping": [[repr(key), _content(value)] for key, value in x.items()]}
    if leaves.is_sequence(x):
        return [_content(item) for item in x]
    return None if x is None else {"json": frozen(x), "schema": data.schema_of(x)}


def _injected_content(value: Any) -> Json:
    """Return the part of the key for an injected value: the JSON of a data model; else a number for this process."""
    return [_name(type(value)), frozen(value)] if hasattr(value, "__synmod_json__") else _identity(value)


def _name(x: Any) -> str:
    """Return the name of an object without an id: a function's module and name, or a number for this process."""
    if text := tree.static_text(x):
        return text
    if (inspect.isfunction(x) or inspect.isbuiltin(x)) and "<" not in x.__qualname__:
        return f"{x.__module__}:{x.__qualname__}"
    return _identity(x)


def _identity(x: Any) -> str:
    """Return a number of an object for this process, as text."""
    key = os.getpid(), id(x)
    if key not in _NAMES:
        try:  # the id may be reused after the object is freed
            reference = weakref.ref(x, lambda _: _NAMES.pop(key, None))
        except TypeError:
            reference = x
        _NAMES[key] = f"object {leaves.new_run_id()}", reference
    return _NAMES[key][0]


# -- independent samples -----------------------------------------------------------------------------------------------

_ANY: Final = {"type": "object"}


class _Sample(NamedTuple):
    """One output, its value (a score or an answer), and its attempt."""

    output: Any
    value: Any
    attempt: CallAttempt


def _samples(
    module: Module,
    inputs: Any,
    n: int,
    value_of: Callable[[Any], Awaitable[Any]],
    concurrency: int | None = None,
    on_error: Literal["raise", "collect"] = "raise",
) -> flow.map_concurrently[_Sample | None]:
    """Return samples 0 to n - 1 of a module, drawn concurrently, in order; None for an output of None.

    Inside another sampling block the sample numbers continue, so that no two samples are the same. Use it with
    `async with`, which cancels the remaining samples at the end.
    """
    first = lm.current_sample() * n

    async def draw(number: int) -> _Sample | None:
        with lm.sample_number(first + number), attempt() as trial:
            output = await module(inputs)
            return None if output is None else _Sample(output, await value_of(output), trial)

    return flow.map_concurrently(draw, range(n), concurrency=concurrency or n, on_error=on_error, progress=False)


@registry.register_own()
class BestOf(Around[R]):
    """Draws `n` independent samples of a module concurrently, and returns the one with the highest reward.

    Among equal rewards, the lowest sample wins. With a threshold, the first sample in order that reaches it wins, and
    the rest are cancelled; so the result does not depend on which sample is ready first. A failed sample fails the
    call, unless one before it reaches the threshold.

    Args:
        module: The module to sample; its model calls are samples 0 to n - 1.
        n: Number of samples.
        reward: A function or a Reward, plain or async, that takes `inputs` and `outputs` (or `y_pred`) by name and
            returns a number or a `Feedback`; run in phase `reward`. A registered function can be saved. Or a module
            that takes `C(inputs, outputs)` and returns `score`.
        threshold: A sufficient reward: the first sample in order that reaches it is the result.
        concurrency: Maximum number of concurrent samples; None for all.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of the module
        outputs: the outputs of the module; None if every sample is None

    Raises:
        ConfigError: `module` is not a module, `n` or `concurrency` not a count, `threshold` not a number; or `reward`
            is not a function, or takes other arguments, such as a target.
        CallError: When called: the reward is not a finite number.
        Exception: When called: the first failure of a sample.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> write = sm.Generator(Answer, language_model=ScriptedLM([{"answer": "Hm."}, {"answer": "Paris, France."}]))
        >>> best = sm.BestOf(write, 2, reward=lambda inputs, outputs: len(outputs["answer"]))
        >>> sm.run(best, Query(question="Capital of France?"))["answer"]
        'Paris, France.'

    Source: DSPy's `BestOfN`; differs: concurrent samples, deterministic in any order of completion.
    """

    def __init__(
        self,
        module: ModuleOf[R],
        n: int | tree.Choice,
        *,
        reward: Callable[..., Any],
        threshold: float | None = None,
        concurrency: int | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        self.n = checks.whole_or_choice("BestOf", "n", n)
        self.reward = reward
        checks.bound_reward("BestOf", "reward", reward)
        self.threshold = checks.number("BestOf", "threshold", threshold)
        self.concurrency = None if concurrency is None else checks.whole("BestOf", "concurrency", concurrency)

    async def call(self, inputs: Any) -> Any:
        """Return the output of the best sample."""
        judge = checks.bound_reward("BestOf", "reward", self.reward)

        async def score(output: Any) -> float:
            score = (await judge(inputs=inputs, outputs=output)).score
            return float("-inf") if score is None else score

        best: _Sample | None = None
        on_error = "raise" if self.threshold is None else "collect"  # a sample before the failed one may suffice
        async with _samples(self.module, inputs, tree.chosen(self.n), score, self.concurrency, on_error) as samples:
            async for sample in samples:
                if isinstance(sample, flow.Failed):  # pyright: ignore[reportUnnecessaryIsInstance]  # collected
                    add_note(sample.error, f"item {sample.index} of map_concurrently")
                    failure, sample = [sample.error], None
                    aio.reraise(failure.pop())  # popped: its traceback and this frame would hold each other
                if sample is not None and (best is None or sample.value > best.value):
                    best = sample
                    if self.threshold is not None and sample.value >= self.threshold:
                        break
        if best is None:
            return None
        best.attempt.keep()
        return best.output


_SHARE: Final = data.intern_schema(object_schema(share={"type": "number"}))


@registry.register_own()
class Majority(Around[R]):
    """Draws `n` independent samples of a module concurrently, and returns the most frequent answer.

    Answers are compared with `sm.data.json_equal`. Among equally frequent answers, the first in sample order wins.

    Args:
        module: The module to sample; its model calls are samples 0 to n - 1.
        n: Number of samples.
        field: The field to compare; None for the whole output.
        return_share: Whether the output has a field `share`, the share of the samples that agree.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of the module
        outputs: the outputs of the module, from the first of the samples that agree; None if every sample is None;
            with `return_share` followed by `share`, a number

    Raises:
        ConfigError: `module` is not a module, `n` not a count, `field` not a name.
        SchemaError: When composed, or called: the module's output has no such field ('Did you mean').
        Exception: When called: the first failure of a sample.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> replies = [{"answer": "Lyon"}, {"answer": "Paris"}, {"answer": "Paris"}]
        >>> vote = sm.Majority(sm.Generator(Answer, language_model=ScriptedLM(replies)), 3)
        >>> sm.run(vote, Query(question="Capital of France?"))["answer"]
        'Paris'

    Source: self-consistency (Wang et al. 2022), DSPy's `majority`; differs: no normalisation of texts.
    """

    def __init__(
        self,
        module: ModuleOf[R],
        n: int | tree.Choice,
        *,
        field: str | None = None,
        return_share: bool = False,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        self.n = checks.whole_or_choice("Majority", "n", n)
        self.field = None if field is None else checks.field_name("Majority", "field", field)
        self.return_share = return_share

    async def call(self, inputs: Any) -> Any:
        """Return the most frequent output."""

        async def answer(output: Any) -> data.JsonDataModel[Any]:
            """Return the answer to count, as a value, which compares by its JSON."""
            self._check_field(output)
            counted = leaves.leaves(output) if self.field is None else output.get(self.field)
            return data.JsonDataModel({"answer": counted}, schema=_ANY)

        agreeing: dict[data.JsonDataModel[Any], list[_Sample]] = {}
        async with _samples(self.module, inputs, tree.chosen(self.n), answer) as samples:
            async for sample in samples:
                if sample is not None:
                    agreeing.setdefault(sample.value, []).append(sample)
        if not agreeing:
            return None
        most = max(agreeing.values(), key=len)
        most[0].attempt.keep()
        if not self.return_share:
            return most[0].output
        share = len(most) / sum(map(len, agreeing.values()))
        return data.ops.concat(most[0].output, data.JsonDataModel({"share": share}, schema=_SHARE))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the outputs of the module."""
        outputs = await self.module(inputs)
        self._check_field(outputs)
        return data.ops.concat(outputs, data.symbol(_SHARE)) if self.return_share else outputs

    def _check_field(self, outputs: Any) -> None:
        """Raise a SchemaError for a misspelt field."""
        if self.field is not None:
            checks.must_have("Majority", "the output of its module", outputs, self.field)


# -- Refine ------------------------------------------------------------------------------------------------------------


class _Remark(
    data.DataModel, title="", defer_build=True
):  # without title and description, so that the inputs keep theirs when merged with it
    critique: str = Field(description="what is wrong with an earlier answer to these inputs; write a better one")


@registry.register_own()
class Refine(Around[R]):
    """Runs a module, critiques its output, and runs it again with the critique as an input.

    Args:
        module: The module to run; from the second round on, its inputs have the field `critique` from the last round.
        critic: A module that takes one argument, `C(inputs, output)`, and returns `critique` (a string) and `score` (a
            number), such as `sm.SelfCritique`; or a reward as for `BestOf`, whose `Feedback` has both (with a plain
            number, the critique is empty).
        rounds: Maximum number of rounds.
        threshold: A sufficient score, which ends the rounds.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of the module, which must accept them with and without `critique`
        outputs: the outputs of the module, from the round with the highest score, the earliest of equal ones

    Raises:
        ConfigError: `module` is not a module, `critic` neither a module nor a reward, `rounds` not a count, or
            `threshold` not a number.
        SchemaError: When composed: the module does not accept a critique, or the critic does not return one.
        CallError: When called: critique or score have the wrong type.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> write = sm.Generator(Answer, language_model=ScriptedLM([{"answer": "Lyon"}, {"answer": "Paris"}]))
        >>> judge = ScriptedLM([{"critique": "Too small.", "score": 0.1}, {"critique": "Yes.", "score": 1.0}])
        >>> refine = sm.Refine(write, sm.SelfCritique(language_model=judge))
        >>> sm.run(refine, Query(question="Capital of France?"))["answer"]
        'Paris'

    Source: self-refine (Madaan et al. 2023), DSPy's `Refine`; differs: the critique is a field of the inputs.
    """

    def __init__(
        self,
        module: ModuleOf[R],
        critic: Module | Callable[..., Any],
        *,
        rounds: int = 2,
        threshold: float | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        self.critic = critic
        if not _is_critic(critic):
            checks.bound_reward("Refine", "critic", critic)
        self.rounds = checks.whole("Refine", "rounds", rounds)
        self.threshold = checks.number("Refine", "threshold", threshold)

    async def call(self, inputs: Any) -> Any:
        """Return the output of the best round."""
        best: tuple[float, Any, CallAttempt] | None = None
        question = inputs
        for _ in range(self.rounds):
            with attempt() as trial:
                output = await self.module(question)
                if output is None or self.rounds == 1:
                    best = best or (0.0, output, trial)
                    break
                critique, score = await self._judge(inputs, output)
            if best is None or score > best[0]:
                best = score, output, trial
            if self.threshold is not None and score >= self.threshold:
                break
            question = _with_critique(inputs, _Remark(critique=critique).to_json_data_model())
        assert best is not None  # there is at least one round
        _, output, best_trial = best
        best_trial.keep()
        return output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the outputs of the module, after a check that it accepts inputs with and without a critique."""
        outputs = await self.module(inputs)
        if self.rounds == 1:
            return outputs
        if _is_critic(self.critic):
            verdict = await self.critic(data.ops.concat(inputs, outputs))
            for name in ("critique", "score"):
                checks.must_return("Refine", "critic", verdict, name)
        again = await self.module(_with_critique(inputs, _Remark.to_symbolic_data_model()))
        if isinstance(outputs, data.SymbolicDataModel) and data.schema_of(again) != data.schema_of(outputs):
            return data.ops.logical_xor(outputs, again)
        return outputs

    async def _judge(self, inputs: Any, output: Any) -> tuple[str, float]:
        """Return the critique and the score of an output.

        Raises:
            CallError: One of them has the wrong type.
        """
        if not _is_critic(self.critic):
            feedback = await checks.bound_reward("Refine", "critic", self.critic)(inputs=inputs, outputs=output)
            critique, score = feedback.critique or "", feedback.score
        else:
            verdict = await self.critic(data.ops.concat(inputs, output))
            if verdict is None:
                raise CallError("Refine: the critic returned None; it must return a critique and a score.")
            critique, score = checks.field_of(verdict, "critique"), checks.field_of(verdict, "score")
        if not isinstance(critique, str):
            raise CallError(f"Refine: the critic's critique is {critique!r:.100}; it must be a string.")
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            raise CallError(f"Refine: the critic's score is {score!r:.100}; it must be a number.")
        return critique, score


def _is_critic(critic: object) -> TypeGuard[Module]:
    """Whether a critic is a module to call with one argument; a module with a `range` is a reward instead."""
    return isinstance(critic, Module) and not hasattr(critic, "range")


def _with_critique(inputs: Any, critique: Any) -> Any:
    """Return the inputs with a new critique, which replaces an earlier one; for values and symbols."""
    bare = data.ops.out_mask(inputs, "critique") if "critique" in inputs else inputs
    return data.ops.concat(bare, critique)
