"""Route inputs to modules: to one selected by a model or a value, to the first that succeeds, to all, or to none.

Branch, Route, Guard, Fallback, Choose; Parallel, and Map for the items of a list.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar, Unpack, overload

from synmod import data, flow, registry, scope, tree
from synmod.errors import ArgumentError, CallError, ConfigError, GuardError, ModelError, Paused, SchemaError, add_note
from synmod.leaves import aio, did_you_mean, frozen, is_mapping, is_object, is_sequence
from synmod.module import CallAttempt, ChildAt, Execution, Module, ModuleOf, ModuleOptions, attempt, execution_of

from . import checks
from .checks import Around, R, Returning
from .decision import Decision
from .generator import GeneratorOptions, check_params, object_schema, split_definitions

A = TypeVar("A")
B = TypeVar("B")

# -- Branch, Route, Guard, Fallback, Choose ----------------------------------------------------------------------------


class BranchOptions(GeneratorOptions, total=False):
    """Keywords of a Branch that do not change the type of its outputs."""

    question: str | None
    inject: bool
    with_thinking: bool


@registry.register_own()
class Branch(Returning[R]):
    """Passes its inputs to one of several modules, chosen by a model.

    Args:
        branches: Mapping from label to module, or to `(description, module)`.
        question: The question to decide.
        inject: Whether the branches also get the decision, merged after the inputs.
        return_decision: Whether the decision comes first in the result.
        multiple: Whether several branches may be taken; they run concurrently.
        merge: Whether the result is the output of the branch taken (with `multiple` their merge); if not, it is a tuple
            with one entry per branch.
        with_thinking: Whether the model reasons before it decides.
        **options: Keyword arguments of `Generator` for the decision; `name`, `description`, `trainable` and `hooks`
            apply to this block itself.

    Schemas:
        inputs: the inputs of every branch
        outputs: the output of the branch taken, with schema `U` of the branches' outputs (with `multiple` their
            `sm.ops.logical_or`); without `merge` a tuple with one entry per branch, None for branches not taken. With
            `return_decision` the decision comes first, in one tuple.

    Raises:
        ConfigError: There are no branches, a label is not a string, a branch is not a module, or a keyword is unknown.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> branch = sm.Branch(
        ...     {"spam": ("prize, lottery", sm.Constant(Mail(text="junk"))), "ham": ("lunch", sm.Identity())},
        ...     language_model="embedded/nearest",
        ... )
        >>> sm.run(branch, Mail(text="You won the lottery prize!")).get_json()
        {'text': 'junk'}

    Source: Synalinks' `Branch`; differs: several branches may be taken, and the outputs merged.
    """

    @overload
    def __init__(
        self, branches: Mapping[str, ModuleOf[R] | tuple[str, ModuleOf[R]]], **options: Unpack[BranchOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: "Branch[Any]",
        branches: Mapping[str, ModuleOf[Any] | tuple[str, ModuleOf[Any]]],
        *,
        return_decision: bool = False,
        multiple: bool = False,
        merge: bool = True,
        **options: Unpack[BranchOptions],
    ) -> None: ...

    def __init__(
        self,
        branches: Mapping[str, ModuleOf[Any] | tuple[str, ModuleOf[Any]]],
        *,
        question: str | None = None,
        inject: bool = False,
        return_decision: bool = False,
        multiple: bool = False,
        merge: bool = True,
        with_thinking: bool = False,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        own: Any = {key: options.pop(key) for key in ModuleOptions.__annotations__ if key in options}
        super().__init__(**own)
        check_params(Branch, options)
        modules, meanings = _split_descriptions(branches)
        self.inject, self.return_decision, self.multiple, self.merge = inject, return_decision, multiple, merge
        self.decision: Module = Decision(
            meanings, question=question, multiple=multiple, with_thinking=with_thinking, **options
        )
        self.branches = modules

    async def call(self, inputs: Any) -> Any:
        """Decide, then run the chosen branches."""
        decision: Any = await self.decision(inputs)
        labels: Any = ()
        if decision is not None:
            labels = checks.field_of(decision, "choices") if self.multiple else (checks.field_of(decision, "choice"),)
        passed = data.ops.concat(inputs, decision) if self.inject and labels else inputs
        return self._result(decision, await _take(self.branches, labels, passed))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return a symbol for the output of any branch, or one symbol per branch."""
        decision: Any = await self.decision(inputs)
        passed = data.ops.concat(inputs, decision) if self.inject else inputs
        return self._result(decision, await side_by_side(self.branches.values(), passed))

    def _result(self, decision: Any, outputs: Sequence[Any]) -> Any:
        """Return the outputs in the requested form."""
        if not self.merge:
            return (decision, *outputs) if self.return_decision else tuple(outputs)
        output = merge_outputs(outputs, several=self.multiple)
        return (decision, output) if self.return_decision else output


@execution_of.register(Branch)
def execution_of_branch(branch: Branch[Any]) -> Execution:
    """Return the order: the decision, then one branch or another."""
    first = ChildAt(("decision",), branch.decision)
    return Execution("in order", (first, _alternatives("branches", branch.branches)))


class RouteOptions(ModuleOptions, total=False):
    """Keywords of a Route that do not change the type of its outputs."""

    key: str
    default: str | None
    inject: bool


@registry.register_own()
class Route(Around[R]):
    """Passes its inputs to one of several modules, selected by a field of another module's output.

    Args:
        module: The module that returns the value with the field; it need not call a model.
        routes: Mapping from a value of the field to a module.
        key: The field.
        default: The route for values of the field without a route.
        inject: Whether the routes also get the value, merged after the inputs.
        merge: Whether the result is the output of the route taken; if not, it is a tuple with one entry per route.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of `module` and of every route
        outputs: the output of the route taken, with schema `U` of the routes' outputs; without `merge` a tuple with one
            entry per route, None for routes not taken

    Raises:
        ConfigError: There are no routes, a member is not a module, `default` is not a route ('Did you mean'), or `key`
            is not a string.
        SchemaError: The value has no such field ('Did you mean'), as far as `module` declares its output; else when
            composed or called.
        CallError: When called: the field selects no route, and no default is set.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     language: str
        >>> class Reply(sm.DataModel):
        ...     greeting: str
        >>> routes = {"fr": sm.Constant(Reply(greeting="Bonjour")), "en": sm.Constant(Reply(greeting="Hello"))}
        >>> sm.run(sm.Route(sm.Identity(), routes, key="language", default="en"), Mail(language="fr")).get_json()
        {'greeting': 'Bonjour'}

    Source: semantic routers; LangGraph's conditional edges.
    """

    @overload
    def __init__(
        self, module: ModuleOf[Any], routes: Mapping[str, ModuleOf[R]], **options: Unpack[RouteOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: "Route[tuple[Any, ...]]",
        module: ModuleOf[Any],
        routes: Mapping[str, ModuleOf[Any]],
        *,
        merge: bool,
        **options: Unpack[RouteOptions],
    ) -> None: ...

    def __init__(
        self,
        module: ModuleOf[Any],
        routes: Mapping[str, ModuleOf[Any]],
        *,
        key: str = "choice",
        default: str | None = None,
        inject: bool = False,
        merge: bool = True,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        self.routes = _check_routes("Route", "routes", routes)
        self.key = checks.field_name("Route", "key", key)
        self.default = None if default is None else checks.one_of("Route", "default", default, tuple(self.routes))
        self.inject, self.merge = inject, merge
        if data.is_symbolic(self.module.output_spec):
            self._check_key(checks.one_value(self.module.output_spec, self.key))

    async def call(self, inputs: Any) -> Any:
        """Call the module, then run the route that its value selects."""
        value = await self.module(inputs)
        passed = inputs if value is None or not self.inject else data.ops.concat(inputs, value)
        outputs = await _take(self.routes, () if value is None else (self._select(value),), passed)
        return merge_outputs(outputs) if self.merge else tuple(outputs)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return a symbol for the output of any route, or one symbol per route."""
        value = await self.module(inputs)
        self._check_key(value)
        outputs = await side_by_side(self.routes.values(), data.ops.concat(inputs, value) if self.inject else inputs)
        return merge_outputs(outputs) if self.merge else tuple(outputs)

    def _check_key(self, value: Any) -> None:
        checks.must_have("Route", "the value of its module", value, self.key)

    def _select(self, value: Any) -> str:
        """Return the route that a value selects.

        Raises:
            CallError: The value selects no route, and no default is set.
            SchemaError: The value has no field `key`.
        """
        label = checks.one_value(value, self.key).get(self.key)
        if label is None:
            self._check_key(value)
        route = label if isinstance(label, str) and label in self.routes else self.default
        if route is None:
            what = f"{self.key!r} is {label!r:.100}, which selects no route; the routes are {', '.join(self.routes)}"
            raise CallError(f"Route: {what}. Pass one of them as `default`, or add a route.")
        return route


@execution_of.register(Route)
def execution_of_route(route: Route[Any]) -> Execution:
    """Return the order: the module that selects, then one route or another."""
    return Execution("in order", (ChildAt(("module",), route.module), _alternatives("routes", route.routes)))


@registry.register_own()
class Guard(Module):
    """Returns its inputs if a check allows them; else returns None or raises an error.

    Args:
        check: A module that returns `allowed` (a bool) and optionally `reason`.
        on_block: `"none"`: blocked inputs become None, and the following modules are skipped. `"error"`: a
            `GuardError`.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of the check
        outputs: the inputs, or None

    Raises:
        ConfigError: `check` is not a module, or `on_block` is unknown.
        SchemaError: When composed: the check does not return `allowed`.
        GuardError: When called: the inputs are blocked, with `on_block="error"`; the message has the reason.
        CallError: When called: the check returned None, or `allowed` is not a bool.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> class Verdict(sm.DataModel):
        ...     allowed: bool
        >>> short = sm.Lambda(lambda mail: Verdict(allowed=len(mail.text) < 80), output=Verdict)
        >>> sm.run(sm.Guard(short), Mail(text="x" * 100)) is None
        True

    Source: guardrails of agent frameworks; differs: the check is a module like any other.
    """

    def __init__(
        self, check: ModuleOf[Any], *, on_block: Literal["none", "error"] = "none", **options: Unpack[ModuleOptions]
    ) -> None:
        super().__init__(**options)
        self.check = checks.member("Guard", "check", check)
        self.on_block = checks.one_of("Guard", "on_block", on_block, ("none", "error"))

    async def call(self, inputs: Any) -> Any:
        """Check the inputs, and return them if allowed."""
        verdict = await self.check(inputs)
        if verdict is None:
            raise CallError("Guard: the check returned None; it must return whether the inputs are `allowed`.")
        allowed = checks.field_of(verdict, "allowed")
        if not isinstance(allowed, bool):
            raise CallError(f"Guard: the check's `allowed` is {allowed!r:.100}; it must be true or false.")
        if allowed or self.on_block == "none":
            return inputs if allowed else None
        reason = checks.field_of(verdict, "reason") or "the check returned no reason"
        raise GuardError(f"Guard: the inputs are blocked: {reason}")

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the inputs, after a check that the member declares `allowed`."""
        checks.must_return("Guard", "check", await self.check(inputs), "allowed")
        return inputs


@registry.register_own()
class Fallback(Returning[R]):
    """Calls its members in turn until one succeeds.

    Args:
        *modules: The members, in order of preference.
        on: Exception classes after which the next member is called; all others are raised at once.
        unless: A plain function of the output; where it returns false, the next member is called, too. It is not asked
            about the last member. If it accepts no output, that of the last member that had one is returned.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of every member
        outputs: one data model or None; with schema `U` of the members' outputs if they differ

    Raises:
        ConfigError: There are no members, one is not a module, or `on` is not exception classes.
        SchemaError: When composed: a member returns several data models.
        Exception: When called: all members failed; the first failure, with the others as notes.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> def fail(query):
        ...     raise ConnectionError("down")
        >>> spare = sm.Fallback(sm.Lambda(fail, output=Query), sm.Identity(), on=(ConnectionError,))
        >>> sm.run(spare, Query(question="Who?"))["question"]
        'Who?'

    Source: LangChain's `with_fallbacks`; differs: only for the named exceptions.
    """

    def __init__(
        self,
        *modules: ModuleOf[R],
        on: type[Exception] | tuple[type[Exception], ...] = (ModelError,),
        unless: Callable[[Any], object] | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.modules = checks.members("Fallback", modules)
        self.on = checks.exceptions("Fallback", on)
        self.unless = None if unless is None else checks.function("Fallback", "unless", unless)

    async def call(self, inputs: Any) -> Any:
        """Call the members until one succeeds."""
        first: list[Exception] = []
        outputs: list[Any] = []
        for number, module in enumerate(self.modules, start=1):
            try:
                outputs.append(await module(inputs))
            except Paused:  # waits for a person, and has not failed
                raise
            except self.on as error:
                if first:
                    add_note(first[0], f"then {module.name!r} failed too: {type(error).__name__}: {error}")
                else:
                    first.append(error)
                continue
            if self.unless is None or number == len(self.modules) or self.unless(outputs[-1]):
                break
        if not outputs:
            aio.reraise(first.pop())  # popped: its traceback and this frame would hold each other
        first.clear()
        return outputs[-1]

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return a symbol for the output of any member."""
        outputs = await side_by_side(self.modules, inputs)
        for module, output in zip(self.modules, outputs, strict=True):
            if isinstance(output, (list, tuple, dict)):
                raise SchemaError(f"Fallback: {module.name!r} returns {output!r:.200}; it must return one data model.")
        return merge_outputs(outputs)


@execution_of.register(Fallback)
def execution_of_fallback(fallback: Fallback[Any]) -> Execution:
    """Return the members as alternatives: the stashes and pops of a failed member are undone."""
    return _alternatives("modules", dict(enumerate(fallback.modules)))


@registry.register_own()
class Choose(Returning[R]):
    """Runs the one of several modules that a `Choice` names.

    Args:
        choice: A `Choice` among the names of the modules.
        modules: The modules by name.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of every module
        outputs: one data model or None; with schema `U` of the modules' outputs if they differ

    Raises:
        ConfigError: `choice` is not a Choice, its options are not the keys of `modules`, or one is not a module.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> way = sm.Choice(["plain", "thinking"])
        >>> answer = {"answer": str}
        >>> ask = sm.Choose(way, {"plain": sm.Identity(), "thinking": sm.ChainOfThought(answer)})
        >>> sm.run(ask, Query(question="Why?"))["question"]
        'Why?'

    Source: KerasTuner's conditional choices.
    """

    def __init__(
        self, choice: tree.Choice, modules: Mapping[str, ModuleOf[R]], **options: Unpack[ModuleOptions]
    ) -> None:
        super().__init__(**options)
        if not isinstance(choice, tree.Choice):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"Choose: choice is a {type(choice).__name__}; write sm.Choice([...]).")
        if not isinstance(modules, Mapping) or {*modules} != {*choice.options}:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            names = ", ".join(map(repr, modules))
            near = "".join(did_you_mean(name, choice.options) for name in modules if name not in choice.options)
            expected = ", ".join(map(repr, choice.options))
            raise ConfigError(f"Choose: the modules are {names}, and the options of the choice {expected}.{near}")
        self.choice = choice
        self.modules = {name: checks.member("Choose", f"modules[{name!r}]", modules[name]) for name in modules}

    async def call(self, inputs: Any) -> Any:
        """Run the module that is chosen now."""
        return await self.modules[str(self.choice.value)](inputs)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return a symbol for the output of any of the modules."""
        return merge_outputs(await side_by_side(self.modules.values(), inputs))


@execution_of.register(Choose)
def execution_of_choose(choose: Choose[Any]) -> Execution:
    """Return the modules, one of which runs."""
    return _alternatives("modules", choose.modules)


def _check_routes(kind: str, name: str, routes: Any) -> dict[str, Module]:
    """Return the modules by label, checked.

    Raises:
        ConfigError: `routes` is not a mapping or is empty, a label is not a string, or a member is not a module.
    """
    if not isinstance(routes, Mapping) or not routes:
        raise ConfigError(f"{kind}: {name} is {routes!r:.100}; write a non-empty mapping from label to module.")
    checked: dict[str, Module] = {}
    for label, module in routes.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(label, str) or not label:
            raise ConfigError(f"{kind}: the label {label!r:.100} is invalid; labels must be non-empty strings.")
        checked[label] = checks.member(kind, f"{name}[{label!r}]", module)
    return checked


def _split_descriptions(branches: Any) -> tuple[dict[str, Module], dict[str, str]]:
    """Return the modules, and the descriptions, by label."""
    if not is_mapping(branches):
        return _check_routes("Branch", "branches", branches), {}
    modules: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    for label, branch in branches.items():
        pair = tuple(branch) if is_sequence(branch) else ("", branch)
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise ConfigError(f"Branch: branches[{label!r:.100}] must be a module, or (description, module).")
        meanings[label], modules[label] = pair
    return _check_routes("Branch", "branches", modules), meanings


def _alternatives(attribute: str, routes: Mapping[Any, Module]) -> Execution:
    """Return how routes run: as alternatives, of which some may not run."""
    return Execution("one of", tuple(ChildAt((attribute, key), module) for key, module in routes.items()))


async def _take(routes: Mapping[str, Module], labels: Collection[str], inputs: Any) -> list[Any]:
    """Return the outputs of the routes taken, which run concurrently; None for the others."""
    outputs = await flow.together(*(partial(module, inputs) for label, module in routes.items() if label in labels))
    results = iter(outputs)
    return [next(results) if label in labels else None for label in routes]


async def side_by_side(modules: Iterable[Module], inputs: Any) -> list[Any]:
    """Return the outputs of alternatives on symbols; none sees the stashes and pops of another."""
    outputs: list[Any] = []
    attempts: list[CallAttempt] = []
    for module in modules:
        with attempt() as trial:
            outputs.append(await module(inputs))
        attempts.append(trial)
    for trial in attempts:
        trial.keep()
    return outputs


def merge_outputs(outputs: Sequence[Any], *, several: bool = False) -> Any:
    """Return the only output that is not None; if there may be several, their merge."""
    if len(outputs) == 1:
        return outputs[0]
    return data.ops.logical_or(*outputs) if several else data.ops.logical_xor(*outputs)


# -- Parallel and Map --------------------------------------------------------------------------------------------------

Merge: TypeAlias = Literal["concat", "and", "or"]

_MERGES: Final = {"concat": data.ops.concat, "and": data.ops.logical_and, "or": data.ops.logical_or}

_NULL: Final = {"type": "null"}
_TEXT: Final = {"type": "string"}
_ERROR: Final = {"anyOf": [object_schema(type=_TEXT, message=_TEXT), _NULL]}


@registry.register_own()
class Parallel(Returning[R]):
    """Calls all its members on the same inputs concurrently.

    The first failure cancels the other members, waits until they have ended, and is raised unchanged.

    Args:
        *modules: The members.
        merge: None for a tuple of their outputs, in order; "concat", "and" or "or" for one output.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: the inputs of every member
        outputs: a tuple of the members' outputs, or their merge by `sm.ops.concat`, `logical_and` or `logical_or`

    Raises:
        ConfigError: There are no members, one is not a module, or `merge` is unknown ('Did you mean').

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

    @overload
    def __init__(
        self: "Parallel[tuple[A, B]]",
        first: ModuleOf[A],
        second: ModuleOf[B],
        /,
        *,
        merge: None = None,
        **options: Unpack[ModuleOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "Parallel[tuple[A, ...]]", *modules: ModuleOf[A], merge: None = None, **options: Unpack[ModuleOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: "Parallel[Any]", *modules: ModuleOf[Any], merge: Merge | None, **options: Unpack[ModuleOptions]
    ) -> None: ...

    def __init__(self, *modules: ModuleOf[Any], merge: Merge | None = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.modules = checks.members("Parallel", modules)
        checks.one_of("Parallel", "merge", merge, (None, *_MERGES))
        if merge is not None:
            self.merge = merge

    async def call(self, inputs: Any) -> Any:
        """Call all members concurrently.

        Raises:
            DataError: A member returned None, with `merge="concat"`.
            Exception: The first failure of a member, unchanged.
        """
        if data.is_symbolic(inputs):
            return await self.compute_output_spec(inputs)
        return self.merge_outputs(await flow.together(*(partial(module, inputs) for module in self.modules)))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the outputs of the members, merged."""
        return self.merge_outputs([await module(inputs) for module in self.modules])

    def merge_outputs(self, outputs: list[Any]) -> Any:
        """Return the outputs as a tuple, or merged; a single output needs no merge."""
        if self.merge is None:
            return tuple(outputs)
        return outputs[0] if len(outputs) == 1 else _MERGES[self.merge](*outputs)


@registry.register_own()
class Map(Around[R]):
    """Calls a module on every item of a list, with bounded concurrency; results are in the order of the items.

    Args:
        module: The module to call on each item.
        field: The list field whose items are mapped; the results replace them. Strings, numbers and booleans are passed
            as `{"value": item}`. None maps a list of data models.
        concurrency: Maximum number of concurrent items.
        on_error: `"raise"`: the first failure cancels the others and is raised, with its index as a note. `"collect"`:
            every result is `{"value": item or null, "error": null or {"type", "message"}}`.
        **options: Keyword arguments of `Module`.

    Schemas:
        inputs: a data model with the list field, or a list of data models
        outputs: the same data model with other items in the field, or a list

    Raises:
        ConfigError: `module` is not a module, `field` not a name, `concurrency` not a count, or `on_error` unknown.
        ArgumentError: `field` is not given, and the input is not a list of data models.
        SchemaError: The field does not exist ('Did you mean'), or is not a list of objects or plain values.
        CallError: When called: the module returned None for an item of a field, which a list of data cannot hold.

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

    @overload
    def __init__(
        self: "Map[list[A]]",
        module: ModuleOf[A],
        field: None = None,
        *,
        concurrency: int = 64,
        on_error: Literal["raise"] = "raise",
        **options: Unpack[ModuleOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "Map[list[data.JsonDataModel[Any]]]",
        module: ModuleOf[Any],
        field: None = None,
        *,
        concurrency: int = 64,
        on_error: Literal["collect"],
        **options: Unpack[ModuleOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "Map[data.JsonDataModel[Any]]",
        module: ModuleOf[Any],
        field: str,
        *,
        concurrency: int = 64,
        on_error: Literal["raise", "collect"] = "raise",
        **options: Unpack[ModuleOptions],
    ) -> None: ...

    def __init__(
        self,
        module: ModuleOf[Any],
        field: str | None = None,
        *,
        concurrency: int = 64,
        on_error: Literal["raise", "collect"] = "raise",
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(module, **options)
        self.field = None if field is None else checks.field_name("Map", "field", field)
        self.concurrency = checks.whole("Map", "concurrency", concurrency)
        self.on_error: Literal["raise", "collect"] = checks.one_of("Map", "on_error", on_error, ("raise", "collect"))

    async def call(self, inputs: Any) -> Any:
        """Call the module on every item."""
        if self.field is None:
            return await self._map_items(self._list(inputs))
        schema = data.items_of(data.schema_of(inputs), self.field)
        items = inputs.get(self.field)
        objects: list[Any] = [item if is_object(item) else frozen({"value": item}) for item in items or ()]
        results = await self._map_items([data.wrap(item, schema) for item in objects])
        for index, result in enumerate(results):
            if result is None:
                remedy = "map a list of data models, or collect with on_error='collect'"
                raise CallError(f"Map: the module returned None for item {index} of {self.field!r}; {remedy}.")
        json = frozen(inputs)
        if items is not None:  # else an optional list that is absent
            json = frozen({**json, self.field: results})
        return data.wrap(json, data.with_items(data.schema_of(inputs), self.field, common_schema(results)))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the inputs with the new items; for a list of symbols, the output of the module for each."""
        if self.field is None:
            return [self._result_symbol(await self.module(item)) for item in self._list(inputs)]
        output = self._result_symbol(await self.module(data.symbol(data.items_of(data.schema_of(inputs), self.field))))
        return data.symbol(data.with_items(data.schema_of(inputs), self.field, data.schema_of(output)))

    async def _map_items(self, items: list[Any]) -> list[Any]:
        """Return the result for each item."""
        with scope.Pauses() as pauses:
            options: Any = {"concurrency": self.concurrency, "on_error": self.on_error, "progress": False}
            async with flow.map_concurrently(lambda item: pauses.run(self.module(item)), items, **options) as results:
                outputs = [result async for result in results]
        return _collect(outputs) if self.on_error == "collect" else outputs

    def _list(self, inputs: Any) -> list[Any]:
        """Return the inputs as a list of items."""
        if not isinstance(inputs, (list, tuple)):
            remedy = "name the field to map, Map(module, 'documents'), or pass a list of data models"
            raise ArgumentError(f"Map: the input is one {type(inputs).__name__}, and `field` is not given; {remedy}.")
        return list(inputs)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def _result_symbol(self, output: Any) -> Any:
        """Return the symbol of one result."""
        return data.symbol(_schema_of_collect(data.schema_of(output))) if self.on_error == "collect" else output


def common_schema(values: Iterable[Any]) -> data.Schema | None:
    """Return the common schema of values: theirs if they agree, else `U` of their schemas; None for no values."""
    schemas = list({id(schema): schema for schema in map(data.schema_of, values)}.values())
    if len(schemas) > 1:
        return data.schema_of(data.ops.logical_xor(*map(data.symbol, schemas)))
    return schemas[0] if schemas else None


def _schema_of_collect(item: data.Schema | None) -> data.Schema:
    """Return the schema of `{"value": item or null, "error": null or {"type", "message"}}`; `item` is None for none."""
    value, definitions = split_definitions(item) if item is not None else (_NULL, {})
    return data.intern_schema({**object_schema(value={"anyOf": [value, _NULL]}, error=_ERROR), **definitions})


def _collect(results: list[Any]) -> list[Any]:
    """Return results, including None and `Failed`, as data with one schema."""
    schema = _schema_of_collect(common_schema(x for x in results if x is not None and not isinstance(x, flow.Failed)))
    return [data.wrap(frozen(_record(result)), schema) for result in results]


def _record(result: Any) -> dict[str, Any]:
    """Return one result as JSON."""
    if isinstance(result, flow.Failed):
        return {"value": None, "error": {"type": type(result.error).__name__, "message": str(result.error)}}
    return {"value": result, "error": None}
