"""Credit: the feedback of rows goes to the calls that caused it, by call and path."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from synmod.errors import TrainerError
from synmod.leaves import Json, check_choice, parse_path, path_str
from synmod.module import Module
from synmod.scope import Feedback
from synmod.tree import Path, iter_graph, paths_of

from .candidates import Target
from .rollouts import CallRecord, Rollout


@dataclass(frozen=True, slots=True)
class FeedbackItem:
    """One call of a module: its inputs, its outputs, and the feedback on it.

    Attributes:
        row: Number of the row in its batch.
        path: The module, below the program.
        inputs: As JSON.
        outputs: As JSON; None where the call failed.
        feedback: The part of it that concerns this call.

    Example:
        >>> FeedbackItem(0, "writer", {"q": "?"}, {"a": "!"}, Feedback(0.0, "Too short.")).feedback.critique
        'Too short.'

    Source: TextGrad; differs: credit goes by call id and path.
    """

    row: int
    path: str
    inputs: Json
    outputs: Json
    feedback: Feedback

    def to_json(self) -> dict[str, Json]:
        """Return the item as plain JSON."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "feedback": self.feedback.to_json()}


FeedbackByPath: TypeAlias = Mapping[str, tuple[FeedbackItem, ...]]
"""The items of each target, by its path text, in (row, call) order."""


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
        self._modules: dict[str, Module] = {}
        self._aliases: dict[str, list[str]] = {}
        """All paths of the module at a path."""
        for _, module in iter_graph(program, Module):
            aliases = [path_str(alias) for alias in paths_of(program, module)]
            self._modules.update((alias, module) for alias in aliases)
            self._aliases.update((alias, aliases) for alias in aliases)
        self._owned: dict[str, list[str]] = {}
        for target in self._targets:
            for alias in self._aliases[target.module]:
                self._owned.setdefault(alias, []).append(target.path)
        default = Module.route_feedback
        modules = self._modules.items()
        self._routers = {path: module for path, module in modules if type(module).route_feedback is not default}
        self.paths = frozenset({*self._owned, *self._routers})

    def check(self, feedback: Feedback) -> None:
        """Raise for a part that addresses no module.

        Raises:
            TrainerError: A key of `parts` matches nothing.
        """
        for key in feedback.parts:
            if not any(matches(key, path) for path in self._modules):
                check_choice("a part of a Feedback", key, [*filter(None, self._modules)], error=TrainerError)

    async def items(self, rollouts: Iterable[Rollout]) -> dict[str, tuple[FeedbackItem, ...]]:
        """Return the feedback of the calls of each target's module, by path of the target, in (row, call) order.

        Raises:
            TrainerError: A key of `parts` matches no module.
        """
        items_by_path: dict[str, list[FeedbackItem]] = {target.path: [] for target in self._targets}
        for row, rollout in enumerate(rollouts):
            if rollout.feedback is None or rollout.void:
                continue
            self.check(rollout.feedback)
            feedback_by_call: dict[str | None, Feedback] = {None: rollout.feedback}
            for call in rollout.calls:
                feedback = feedback_by_call[call.parent_id]
                feedback_by_call[call.call_id] = await self._route(call, feedback)
                if feedback.parts:  # a part for a module replaces the critique
                    own = self._parts(feedback, call.path)
                    feedback = replace(feedback, critique="\n".join(own) if own else feedback.critique, parts={})
                item = FeedbackItem(row, call.path, call.inputs, call.outputs, feedback)
                for path in self._owned.get(call.path, ()):
                    items_by_path[path].append(item)
        return {path: tuple(items) for path, items in items_by_path.items()}

    def _parts(self, feedback: Feedback, path: str) -> list[str]:
        """Return the critiques that address a module, by whichever of its paths."""
        aliases = self._aliases.get(path, [path])
        return [text for key, text in feedback.parts.items() if any(matches(key, alias) for alias in aliases)]

    def count_blame(
        self, items: Mapping[str, tuple[FeedbackItem, ...]], rollouts: Iterable[Rollout], best: float
    ) -> dict[str, int]:
        """Return how many failing rows blame each target: those their `parts` address, without parts all reached.

        Args:
            items: The result of `items` for the rollouts.
            rollouts: The rows.
            best: The highest score there is; a row below it fails.
        """
        failing = {
            row: rollout.feedback or Feedback(rollout.score)
            for row, rollout in enumerate(rollouts)
            if rollout.score is not None and rollout.score < best
        }
        counts: dict[str, int] = {}
        for path, items_of_path in items.items():
            failures = [(item, failing[item.row]) for item in items_of_path if item.row in failing]
            rows = {item.row for item, feedback in failures if not feedback.parts or self._parts(feedback, item.path)}
            if rows:
                counts[path] = len(rows)
        return counts

    async def _route(self, call: CallRecord, feedback: Feedback) -> Feedback:
        """Return the feedback for the calls below a call: the same, unless its module routes it."""
        module: Any = self._routers.get(call.path)
        if module is None:
            return feedback
        routed = module.route_feedback(call.inputs, call.outputs, feedback)
        if inspect.isawaitable(routed):
            routed = await routed
        if not isinstance(routed, Feedback):
            raise TrainerError(
                f"{call.path or type(module).__name__}: route_feedback returned {routed!r:.100}, "
                "which is not a sm.Feedback."
            )
        return routed


def matches(key: str, path: str) -> bool:
    """Whether a path or a glob means the path of a module or Variable."""
    return key == path or Path(key).matches(parse_path(path), None, False)
