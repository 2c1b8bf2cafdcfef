"""Decision, Branch, Route and Guard: labels chosen by a model, which module gets the inputs, and whether any does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, Unpack, cast

from synmod.data import ops, symbol, trusted_schema
from synmod.errors import CallError, ConfigError, GuardError
from synmod.flow import together
from synmod.leaves.frozen import Json
from synmod.lm import sampling_params
from synmod.module import Attempt, Child, Execution, Module, ModuleOptions, attempt, execution_of
from synmod.registry import register_own

from .arguments import field_name, member, must_have, must_return, one_of, one_value, returned
from .generator import Form, Generator, GeneratorOptions, keywords_of

# -- Decision ----------------------------------------------------------------------------------------------------------

_THINKING: Final = {"type": "string", "title": "Thinking", "description": "the reasoning, step by step"}


@register_own()
class Decision(Generator[Any]):
    """A `Generator` that chooses among labels.

    Args:
        labels: A list of distinct labels, or a mapping from label to what it means. Any text may be a label.
        question: What is to be decided.
        multiple: Whether several labels may be chosen.
        with_thinking: Whether the model reasons first.
        **options: Those of `Generator`; the default of `instructions` is written from question and labels.

    Schemas:
        inputs: any data model
        outputs: `thinking` if asked, then `choice`, one of the labels; with `multiple` instead `choices`, distinct,
            at least one

    Raises:
        ConfigError: No labels, one twice, one that is not a string; names it. Also as `Generator`.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     text: str
        >>> decision = sm.Decision({"spam": "prize, lottery", "ham": "lunch"}, language_model="embedded/nearest")
        >>> sm.run(decision, Mail(text="You won the lottery!"))["choice"]
        'spam'

    Source: Synalinks' `Decision`; differs: labels may carry descriptions, and several may be chosen.
    """

    def __init__(
        self,
        labels: Sequence[str] | Mapping[str, str],
        *,
        question: str | None = None,
        multiple: bool = False,
        with_thinking: bool = False,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        for name in ("data_model", "schema"):
            if name in options:
                raise ConfigError(f"{type(self).__name__}: unknown keyword {name!r}: the labels make the output.")
        if question is not None and not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"{type(self).__name__}: question is a {type(question).__name__}; it must be a string.")
        meanings = _meanings(labels, type(self).__name__)
        if options.get("instructions") is None:
            options["instructions"] = _instructions(meanings, question, multiple)
        decision = symbol(trusted_schema(_schema(meanings, question, multiple, with_thinking)))
        form: Any = Form(decision, decision, reasoning="thinking" if with_thinking else None)
        super().__init__(form, **options)


def _meanings(labels: Any, kind: str) -> dict[str, str]:
    """Return each label with its meaning, `""` where none is given."""
    if isinstance(labels, Mapping):
        given: list[tuple[Any, Any]] = list(labels.items())  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(labels, (list, tuple)):
        given = [(label, "") for label in labels]  # pyright: ignore[reportUnknownVariableType]
    else:
        raise ConfigError(
            f"{kind}: labels is a {type(labels).__name__}; write a list of strings, or a mapping from label to meaning."
        )
    if not given:
        raise ConfigError(f"{kind}: labels is empty; there must be something to choose.")
    meanings: dict[str, str] = {}
    for label, meaning in given:
        if not isinstance(label, str):
            raise ConfigError(f"{kind}: the label {label!r} is a {type(label).__name__}; labels are strings.")
        if not isinstance(meaning, str):
            raise ConfigError(f"{kind}: the meaning of {label!r} is a {type(meaning).__name__}; it must be a string.")
        if label in meanings:
            raise ConfigError(f"{kind}: the label {label!r} is there twice; labels are distinct.")
        meanings[label] = meaning
    return meanings


def _instructions(meanings: Mapping[str, str], question: str | None, multiple: bool) -> str:
    """Return what to decide, and the labels with their meaning, one per line."""
    asked = question or f"Decide which {'labels fit' if multiple else 'label fits'} the inputs."
    lines = [f"- {label}: {meaning}" if meaning else f"- {label}" for label, meaning in meanings.items()]
    return "\n".join([asked, "", "Labels:", *lines])


def _schema(meanings: Mapping[str, str], question: str | None, multiple: bool, with_thinking: bool) -> dict[str, Any]:
    """Return the schema of a decision."""
    label = {"type": "string", "enum": list(meanings)}
    description = question or ("the labels that fit" if multiple else "the label that fits")
    if explained := "; ".join(f"{label} ({meaning})" for label, meaning in meanings.items() if meaning):
        description = f"{description}: {explained}"  # instructions may be trained away, the schema stays
    if multiple:
        name, chosen = "choices", {"type": "array", "items": label, "minItems": 1, "uniqueItems": True}
    else:
        name, chosen = "choice", label
    fields: dict[str, Json] = {"thinking": _THINKING} if with_thinking else {}
    fields[name] = {"title": name.capitalize(), "description": description, **chosen}
    return {
        "title": "Decision",
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


# -- Branch, Route and Guard -------------------------------------------------------------------------------------------

_OF_MODULES: Final = ("name", "description", "trainable", "hooks")


@register_own()
class Branch(Module):
    """A model decides which of several modules gets the inputs.

    Args:
        branches: Mapping from label to module, or to `(description, module)`.
        question: What is to be decided.
        inject: Whether the branches get the decision, too, merged behind the inputs.
        return_decision: Whether the decision comes first in the result.
        multiple: Whether several branches may be taken; they run at once.
        merge: Whether the result is the output of the branch taken (with `multiple` the merge of those taken); else it
            is a tuple with one entry per branch.
        with_thinking: Whether the model reasons before it decides.
        **options: Those of `Generator` for the decision; `name`, `description`, `trainable` and `hooks` are of the
            branch itself.

    Schemas:
        inputs: what every branch takes
        outputs: the output of the branch taken, of schema `U` of the branches' outputs (with `multiple` their
            `sm.ops.logical_or`); without `merge` a tuple with one entry per branch, None where it was not taken. With
            `return_decision` the decision comes first, in one tuple.

    Raises:
        ConfigError: No branches, a label that is not a string, a branch that is not a module, an unknown keyword.

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

    def __init__(
        self,
        branches: Mapping[str, Module | tuple[str, Module]],
        *,
        question: str | None = None,
        inject: bool = False,
        return_decision: bool = False,
        multiple: bool = False,
        merge: bool = True,
        with_thinking: bool = False,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        own: Any = {key: options.pop(key) for key in _OF_MODULES if key in options}
        super().__init__(**own)
        known = keywords_of(Branch)
        sampling_params({key: options[key] for key in options if key not in known}, "Branch", known)
        modules, meanings = _apart(branches)
        self.inject, self.return_decision, self.multiple, self.merge = inject, return_decision, multiple, merge
        self.decision: Module = Decision(
            meanings, question=question, multiple=multiple, with_thinking=with_thinking, **options
        )
        self.branches = modules

    async def call(self, inputs: Any) -> Any:
        """Decide, then run what was chosen."""
        decision: Any = await self.decision(inputs)
        taken: Any = ()
        if decision is not None:
            taken = returned(decision, "choices") if self.multiple else (returned(decision, "choice"),)
        given = ops.concat(inputs, decision) if self.inject and taken else inputs
        return self._result(decision, await _take(self.branches, taken, given))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what stands for the output of any branch, or one symbol per branch."""
        decision: Any = await self.decision(inputs)
        given = ops.concat(inputs, decision) if self.inject else inputs
        return self._result(decision, await side_by_side(self.branches.values(), given))

    def _result(self, decision: Any, outputs: Sequence[Any]) -> Any:
        """Return the outputs in the form that was asked for."""
        if not self.merge:
            return (decision, *outputs) if self.return_decision else tuple(outputs)
        one = _merged(outputs, several=self.multiple)
        return (decision, one) if self.return_decision else one


@execution_of.register(Branch)
def execution_of_branch(branch: Branch) -> Execution:
    """Return the decision, then one branch or another."""
    first = Child(("decision",), branch.decision)
    return Execution("in order", (first, _alternatives("branches", branch.branches)))


@register_own()
class Route(Module):
    """A module returns a value, one field of which selects the module that gets the inputs.

    Args:
        module: What returns the value; a model is not needed.
        routes: Mapping from the field's value to module.
        key: The field.
        default: The route for values that have none.
        inject: Whether the routes get the value, too, merged behind the inputs.
        merge: Whether the result is the output of the route taken; else it is a tuple with one entry per route.
        **options: Those of `Module`.

    Schemas:
        inputs: what `module` and every route takes
        outputs: the output of the route taken, of schema `U` of the routes' outputs; without `merge` a tuple with one
            entry per route, None where it was not taken

    Raises:
        ConfigError: No routes, a member that is not a module, a `default` that is not a route ('Did you mean'), a
            `key` that is not a string.
        SchemaError: When composed: the value has no such field ('Did you mean').
        CallError: When called: the value names no route, and there is no default.

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

    def __init__(
        self,
        module: Module,
        routes: Mapping[str, Module],
        *,
        key: str = "choice",
        default: str | None = None,
        inject: bool = False,
        merge: bool = True,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("Route", "module", module)
        self.routes = _checked_routes("Route", "routes", routes)
        self.key = field_name("Route", "key", key)
        self.default = None if default is None else one_of("Route", "default", default, tuple(self.routes))
        self.inject, self.merge = inject, merge

    async def call(self, inputs: Any) -> Any:
        """Get the value, then run the route that it selects."""
        value = await self.module(inputs)
        given = inputs if value is None or not self.inject else ops.concat(inputs, value)
        outputs = await _take(self.routes, () if value is None else (self._selected(value),), given)
        return _merged(outputs) if self.merge else tuple(outputs)

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what stands for the output of any route, or one symbol per route."""
        value = await self.module(inputs)
        must_have("Route", "the value of its module", value, self.key)
        outputs = await side_by_side(self.routes.values(), ops.concat(inputs, value) if self.inject else inputs)
        return _merged(outputs) if self.merge else tuple(outputs)

    def _selected(self, value: Any) -> str:
        """Return the route that a value selects.

        Raises:
            CallError: It selects none, and there is no default.
        """
        label = one_value(value, self.key).get(self.key)
        route = label if isinstance(label, str) and label in self.routes else self.default
        if route is None:
            raise CallError(
                f"Route: {self.key!r} is {label!r:.100}, which selects no route; there are {', '.join(self.routes)}. "
                "Name one of them as `default`, or add a route."
            )
        return route


@execution_of.register(Route)
def execution_of_route(route: Route) -> Execution:
    """Return the module that selects, then one route or another."""
    return Execution("in order", (Child(("module",), route.module), _alternatives("routes", route.routes)))


@register_own()
class Guard(Module):
    """Returns its inputs where a check allows them; None, or an error, where it does not.

    Args:
        check: A module that returns `allowed` (a bool) and optionally `reason`.
        on_block: `"none"`: blocked inputs become None, and what follows is skipped. `"error"`: a `GuardError`.
        **options: Those of `Module`.

    Schemas:
        inputs: what the check takes
        outputs: the inputs, or None

    Raises:
        ConfigError: `check` is not a module, `on_block` another word.
        SchemaError: When composed: the check does not return `allowed`.
        GuardError: When called: blocked, with `on_block="error"`; the message has the reason.
        CallError: When called: the check returned nothing, or `allowed` is not a bool. Nothing passes unchecked.

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
        self, check: Module, *, on_block: Literal["none", "error"] = "none", **options: Unpack[ModuleOptions]
    ) -> None:
        super().__init__(**options)
        self.check = member("Guard", "check", check)
        self.on_block = one_of("Guard", "on_block", on_block, ("none", "error"))

    async def call(self, inputs: Any) -> Any:
        """Check the inputs, and let them pass."""
        verdict = await self.check(inputs)
        if verdict is None:
            raise CallError("Guard: the check returned None; it must return whether the inputs are `allowed`.")
        allowed = returned(verdict, "allowed")
        if not isinstance(allowed, bool):
            raise CallError(f"Guard: the check's `allowed` is {allowed!r:.100}; it must be true or false.")
        if allowed:
            return inputs
        if self.on_block == "error":
            raise GuardError(
                f"Guard: the inputs are blocked: {returned(verdict, 'reason') or 'the check returned no reason'}"
            )
        return None

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return the inputs, once the check has declared whether they are allowed."""
        must_return("Guard", "check", await self.check(inputs), "allowed")
        return inputs


def _checked_routes(kind: str, name: str, routes: Any) -> dict[str, Module]:
    """Return the modules by label.

    Raises:
        ConfigError: Not a mapping, an empty one, a label that is not a string, a member that is not a module.
    """
    if not isinstance(routes, Mapping) or not routes:
        raise ConfigError(f"{kind}: {name} is {routes!r:.100}; write a mapping from label to module, not empty.")
    checked: dict[str, Module] = {}
    for label, module in routes.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(label, str) or not label:
            raise ConfigError(f"{kind}: the label {label!r:.100} is not a text; labels are strings that are not empty.")
        checked[label] = member(kind, f"{name}[{label!r}]", module)
    return checked


def _apart(branches: Any) -> tuple[dict[str, Module], dict[str, str]]:
    """Return the modules, and the descriptions, by label."""
    if not isinstance(branches, Mapping):
        return _checked_routes("Branch", "branches", branches), {}
    modules: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    for label, branch in cast("Mapping[Any, Any]", branches).items():
        pair = cast("tuple[Any, ...]", tuple(branch) if isinstance(branch, (tuple, list)) else ("", branch))  # pyright: ignore[reportUnknownArgumentType]  (users)
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise ConfigError(f"Branch: branches[{label!r:.100}] must be a module, or (description, module).")
        meanings[label], modules[label] = pair
    return _checked_routes("Branch", "branches", modules), meanings


def _alternatives(attribute: str, routes: Mapping[str, Module]) -> Execution:
    """Return how routes run: some of them, which is not known before."""
    return Execution("one of", tuple(Child((attribute, label), module) for label, module in routes.items()))


async def _take(routes: Mapping[str, Module], taken: Collection[str], inputs: Any) -> list[Any]:
    """Return the outputs of the routes that are taken, called at once; None for the others."""
    outputs = await together(*(partial(module, inputs) for label, module in routes.items() if label in taken))
    given = iter(outputs)
    return [next(given) if label in taken else None for label in routes]


async def side_by_side(modules: Iterable[Module], inputs: Any) -> list[Any]:
    """Return the outputs of alternatives on symbols: none sees what another one does to skip connections."""
    outputs: list[Any] = []
    attempts: list[Attempt] = []
    for module in modules:
        with attempt() as one:
            outputs.append(await module(inputs))
        attempts.append(one)
    for one in attempts:
        one.keep()
    return outputs


def _merged(outputs: Sequence[Any], *, several: bool = False) -> Any:
    """Return the one output that is there; where there may be several, the merge of those."""
    if len(outputs) == 1:
        return outputs[0]
    return ops.logical_or(*outputs) if several else ops.logical_xor(*outputs)
