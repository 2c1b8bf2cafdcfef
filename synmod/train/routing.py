"""Routing: which modules own the Variables that are trained, and what each of their calls is told."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from synmod.errors import TrainerError
from synmod.leaves import did_you_mean, parse_path, path_str
from synmod.module import Module
from synmod.scope import Feedback
from synmod.tree import Path, iter_graph, paths_of

from .optimizer import FeedbackItem, Target
from .rollouts import CallRecord, Rollout


class Routing:
    """Takes the feedback of rows to the calls that caused it: by call and path, never by order of completion.

    Args:
        program: A built program.
        targets: The Variables that are trained.

    Attributes:
        paths: The modules whose calls must be recorded: owners of targets, and those that route themselves.
    """

    def __init__(self, program: Module, targets: Iterable[Target]) -> None:
        self._targets = tuple(targets)
        modules = {path_str(path): value for path, value in iter_graph(program, Module)}
        self._modules = {path_str(alias): module for module in modules.values() for alias in paths_of(program, module)}
        self._owned: dict[str, list[str]] = {}
        for target in self._targets:
            owner = modules[target.module]
            for alias in paths_of(program, owner):
                self._owned.setdefault(path_str(alias), []).append(target.path)
        self._routers = {path: each for path, each in self._modules.items() if _routes(each)}
        self.paths = frozenset({*self._owned, *self._routers})

    def check(self, feedback: Feedback) -> None:
        """Raise for a part that addresses no module.

        Raises:
            TrainerError: A key of `parts` matches nothing.
        """
        for key in feedback.parts:
            if not any(_matches(key, path) for path in self._modules):
                raise TrainerError(
                    f"the reward gives a critique for {key!r}, and no module stands there."
                    f"{did_you_mean(key, self._modules)} There are: {', '.join(filter(None, self._modules))}."
                )

    async def items(self, rollouts: Iterable[Rollout]) -> dict[str, tuple[FeedbackItem, ...]]:
        """Return what the calls of each target's module are told, by path of the target, in (row, call) order.

        Raises:
            TrainerError: A key of `parts` matches no module.
        """
        found: dict[str, list[FeedbackItem]] = {target.path: [] for target in self._targets}
        for row, rollout in enumerate(rollouts):
            if rollout.feedback is None or rollout.void:
                continue
            self.check(rollout.feedback)
            told: dict[str | None, Feedback] = {None: rollout.feedback}
            for call in rollout.calls:
                feedback = told[call.parent_id]
                told[call.call_id] = await self._routed(call, feedback)
                for path in self._owned.get(call.path, ()):
                    mine = _for_module(feedback, call.path)
                    found[path].append(FeedbackItem(row, call.path, call.inputs, call.outputs, mine))
        return {path: tuple(items) for path, items in found.items()}

    async def _routed(self, call: CallRecord, feedback: Feedback) -> Feedback:
        """Return what the calls below a call get: the same, unless its module says otherwise."""
        module: Any = self._routers.get(call.path)
        if module is None:
            return feedback
        routed = module.route_feedback(call.inputs, call.outputs, feedback)
        if inspect.isawaitable(routed):
            routed = await routed
        if not isinstance(routed, Feedback):
            raise TrainerError(f"{call.path or type(module).__name__}: route_feedback returned {routed!r:.100}, "
                               "which is not a sm.Feedback.")  # fmt: skip
        return routed


def _routes(module: Module) -> bool:
    """Whether a module says what the calls below it are told."""
    return type(module).route_feedback is not Module.route_feedback


def _matches(key: str, path: str) -> bool:
    """Whether a key of `parts`, a path or a glob, means a module."""
    return key == path or Path(key).matches(parse_path(path), None, False)


def _for_module(feedback: Feedback, path: str) -> Feedback:
    """Return the feedback as one module is told it: a part that addresses it stands in place of the critique."""
    if not feedback.parts:
        return feedback
    own = [text for key, text in feedback.parts.items() if _matches(key, path)]
    return replace(feedback, critique="\n".join(own) if own else feedback.critique, parts={})


def blamed(items: Mapping[str, tuple[FeedbackItem, ...]], rollouts: Iterable[Rollout], best: float) -> dict[str, int]:
    """Return how many failing rows blame each target: those their `parts` address, without parts all that were reached.

    Args:
        items: What `Routing.items` returned for the rollouts.
        rollouts: The rows.
        best: The highest score there is; a row below it fails.
    """
    failing = {
        row: rollout.feedback
        for row, rollout in enumerate(rollouts)
        if rollout.score is not None and rollout.score < best
    }
    counts: dict[str, int] = {}
    for path, each in items.items():
        rows = {item.row for item in each if item.row in failing and _blames(failing[item.row], item.path)}
        if rows:
            counts[path] = len(rows)
    return counts


def _blames(feedback: Feedback | None, path: str) -> bool:
    """Whether a failing row's feedback blames a module."""
    return feedback is None or not feedback.parts or any(_matches(key, path) for key in feedback.parts)
