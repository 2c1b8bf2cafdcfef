"""What a block limits and sums: time (`sm.deadline`), budgets, usage, and the rewards and feedback of its calls.

A module adds rewards inside its call; they go to the open `track_rewards` blocks when the entry call ends, and are not
stored on modules.
"""

import inspect
import math
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from numbers import Real
from typing import Any, Final, Self

from synmod import errors, leaves

from .frame import Ambient, Block, CallFrame, Owner, Reward, Usage, UsageMeter, ambient, current_call, phase, place_name

# -- time --------------------------------------------------------------------------------------------------------------

_TICK_S: Final = time.get_clock_info("monotonic").resolution + 1e-6


class Deadline:
    """A point in time, on the clock that applied where its block was entered.

    Attributes:
        seconds: The time that the block allows.
        plain: Whether it was entered outside a task, so that it has no scope that cancels waiting code.
        scope: The scope that cancels the waiting code of the block, None for a plain or an endless deadline.
        waiting: Path of the call that was waiting when the time was over, None while none is noted.
        partial: What was finished when the time was over, for the error.
    """

    __slots__ = ("_clock", "_ends", "partial", "plain", "scope", "seconds", "waiting")

    def __init__(self, seconds: float, *, plain: bool) -> None:
        self.seconds = seconds
        self.plain = plain
        self.waiting: str | None = None
        self.partial: object = None
        self._clock: leaves.Clock = leaves.current_clock()
        self._ends = self._clock.now() + seconds
        self.scope = None if plain or math.isinf(seconds) else LimitedWait(self)

    def left(self) -> float:
        """Return the seconds until the deadline, negative afterwards; may be called from any thread."""
        return self._ends - self._clock.now()

    @property
    def is_over(self) -> bool:
        """Whether it has passed; a loop may wake its tasks one tick early."""
        return self.left() <= _TICK_S

    def exceeded(self, where: str) -> errors.DeadlineExceeded:
        """Return the error; `where` is the path that was waiting, or that could not begin."""
        place = f"{where!r}" if where else "code outside module calls"
        error = errors.DeadlineExceeded(
            f"the deadline of {self.seconds:g} s passed in {place}. "
            "Allow more with sm.deadline(seconds), or do less inside."
        )
        error.partial = self.partial
        return error


class LimitedWait:
    """A `with` block in a task whose waiting code is cancelled at a deadline; it then raises `DeadlineExceeded`."""

    __slots__ = ("_limit", "_scope")

    def __init__(self, limit: Deadline) -> None:
        self._limit = limit
        self._scope = leaves.deadline_scope(limit.left())

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(self, *failure: object) -> None:
        self._scope.__exit__(*failure)
        if self._scope.expired:
            where = place_name(current_call()) if self._limit.waiting is None else self._limit.waiting
            raise self._limit.exceeded(where) from None


class deadline(Block):  # noqa: N801  # read as a word: `with sm.deadline(2):`
    """Limit the time of a block.

    In a task, code that waits in the block is cancelled when the time is over. Where no loop runs, each `sm.run` and
    entry call begun inside is limited alike; plain code is never interrupted. Of nested deadlines the earliest applies.

    Args:
        seconds: Time from entry, zero or more.

    Raises:
        ArgumentError: Not a number, or a negative one.
        DeadlineExceeded: The time is over (on leaving, and where a call would begin afterwards); names the seconds
            and the path that was waiting.

    Example:
        >>> with deadline(10):
        ...     time_left() > 9
        True

    Source: trio.fail_after; differs: calls that other tasks begin after the time raise as well.
    """

    @leaves.checks_keywords
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = float(leaves.check_number("deadline: seconds", seconds, 0))

    def __enter__(self) -> None:
        limit = Deadline(self._seconds, plain=not leaves.in_task())
        self.enter(deadline=limit)
        if limit.scope is not None:
            limit.scope.__enter__()

    def __exit__(self, *failure: object) -> None:
        limit: Deadline = self.entry().adds["deadline"]
        try:
            if limit.scope is not None:
                limit.scope.__exit__(*failure)
        finally:
            self.leave(keep=limit.is_over)


def plain_limit(record: Ambient | None) -> LimitedWait | None:
    """Return the block that an entry call, or the main code of `sm.run`, must run in; None in the common case.

    A deadline that was set outside any loop has no scope that cancels waiting code; this block is that scope, and
    raises `DeadlineExceeded`.

    Args:
        record: The open blocks, from `ambient()`.
    """
    limit: Deadline | None = None if record is None else record.deadline
    if limit is None or not limit.plain or math.isinf(limit.seconds) or not leaves.in_task():
        return None
    return LimitedWait(limit)


def _limit_here() -> Deadline | None:
    """Return the deadline that applies here."""
    record = ambient()
    return None if record is None else record.deadline


def note_waiting(where: CallFrame | str) -> None:
    """Note the call or path that a cancellation reached; the error names the first one."""
    limit = _limit_here()
    if limit is not None and limit.waiting is None and limit.is_over:
        limit.waiting = place_name(where)


def keep_partial(partial: object) -> None:
    """Keep finished work for the error of the deadline that is cancelling this code, if there is one."""
    limit = _limit_here()
    if limit is not None and limit.is_over:
        limit.partial = partial


def check_deadline(where: CallFrame | str, record: Ambient | None = None) -> None:
    """Raise if the time is over, before a call begins.

    Args:
        where: The call, or the path, that would begin.
        record: The open blocks, where the caller has them at hand.

    Raises:
        DeadlineExceeded: The deadline that applies here has passed.
    """
    limit: Deadline | None = _limit_here() if record is None else record.deadline
    if limit is not None and limit.is_over:
        raise limit.exceeded(place_name(where))


def time_left() -> float | None:
    """Return how much time is left until the nearest deadline.

    Returns:
        Seconds, zero when it is over, None without a deadline.

    Example:
        >>> time_left() is None
        True

    Source: Go's context deadlines.
    """
    limit = _limit_here()
    return None if limit is None else max(0.0, limit.left())


def is_of_block_around(error: BaseException) -> bool:
    """Whether an error comes from a budget or deadline that applies here, not from the code that raised it."""
    record = ambient()
    if record is None:
        return False
    if isinstance(error, errors.BudgetExceeded):
        return any(error.account is account for account in record.budgets)
    return isinstance(error, errors.DeadlineExceeded) and record.deadline is not None and record.deadline.is_over


# -- money, tokens and calls -------------------------------------------------------------------------------------------

_ROUNDING: Final = 1e-12  # sums of dollars are floats: ten times 0.1 must fit into 1


@dataclass(frozen=True, slots=True)
class Spent:
    """Model calls, tokens, dollars, and runs of tools by agents."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    tool_calls: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        calls, tool_calls = self.calls + other.calls, self.tool_calls + other.tool_calls
        return Spent(calls, self.tokens + other.tokens, self.cost_usd + other.cost_usd, tool_calls)

    def __sub__(self, other: "Spent") -> "Spent":
        calls, tool_calls = self.calls - other.calls, self.tool_calls - other.tool_calls
        return Spent(calls, self.tokens - other.tokens, self.cost_usd - other.cost_usd, tool_calls)


_LOCK: Final = leaves.aio.lock()
"""Held while budgets are read or changed: a request reserves in all that enclose it, or in none. Re-entrant, since the
collector may close a coroutine in here, which ends a request."""


class Account:
    """What one budget block allows and has spent; reservations are counted separately until they are settled.

    Attributes:
        limits: The given limits, by name.
        settled: What was actually spent.
        held: What is reserved for requests under way.
    """

    __slots__ = ("held", "limits", "settled")

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits = limits
        self.settled = self.held = Spent()

    @property
    def used(self) -> Spent:
        """What was spent so far, including what is reserved for requests under way."""
        with _LOCK:
            return self.settled + self.held

    def refusal(self, wanted: Spent) -> str | None:
        """Return a text about the first limit without room, None if all have room."""
        for name, limit in self.limits.items():
            taken, more = getattr(self.used, name), getattr(wanted, name)
            if taken + more > limit * (1 + _ROUNDING):
                return f"the budget allows {name}={limit:g}; {taken:g} used, {more:g} more needed"
        return None

    def __repr__(self) -> str:
        return f"Account({self.limits}, used={self.used})"


class Reservation:
    """Room in all enclosing budgets for one request under way: settle it with the usage, or release it.

    Only the first call of either has an effect. A context manager that releases it on leaving if neither was called.
    """

    __slots__ = ("_accounts", "_held")

    def __init__(self, accounts: tuple[Account, ...], held: Spent) -> None:
        self._accounts = accounts
        self._held = held

    def settle(self, usage: Usage) -> None:
        """Spend what a request used: the reserved calls, its tokens, and its cost if that is known."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        self._close(Spent(self._held.calls, tokens, usage.cost_usd or 0.0, self._held.tool_calls))

    def release(self) -> None:
        """Give the reservation back: nothing was spent."""
        self._close(Spent())

    def _close(self, spent: Spent) -> None:
        """Replace the reservation with what was actually spent, once."""
        with _LOCK:
            accounts, self._accounts = self._accounts, ()
            for account in accounts:
                account.held -= self._held
                account.settled += spent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class budget(Block):  # noqa: N801  # read as a word: `with sm.budget(calls=10) as budget:`
    """Limit what the model calls of a block may spend, and how many tools its agents run.

    A call reserves what it needs before its request is sent, so that concurrent calls cannot overdraw together; all
    enclosing budgets must have room.

    Args:
        calls: Model calls.
        tokens: Tokens, of prompts and completions.
        cost_usd: US dollars.
        tool_calls: Runs of tools by agents.

    Raises:
        ArgumentError: No limit is given, or one is negative, not a number, or a fraction of a call or token.
        BudgetExceeded: A model call, or the tools that one reply calls, have no room (where they begin); names limit,
            used and path.

    Example:
        >>> with budget(calls=10) as spending:
        ...     spending.used.calls
        0

    Source: cloud quotas; differs: reserve and settle, so that nothing is overdrawn in flight.
    """

    @leaves.checks_keywords
    def __init__(
        self,
        calls: int | None = None,
        tokens: int | None = None,
        cost_usd: float | None = None,
        tool_calls: int | None = None,
    ) -> None:
        super().__init__()
        given = {"calls": calls, "tokens": tokens, "cost_usd": cost_usd, "tool_calls": tool_calls}
        self._limits = {name: _limit(name, value) for name, value in given.items() if value is not None}
        if not self._limits:
            raise errors.ArgumentError("budget() got no limit: give calls=, tokens=, cost_usd= or tool_calls=.")

    def __enter__(self) -> Account:
        account = Account(self._limits)
        self.enter(budgets=account)
        return account


def _limit(name: str, value: object) -> float:
    """Return one limit, checked."""
    check = leaves.check_number if name == "cost_usd" else leaves.check_int
    return check(f"budget: {name}", value, 0)


def reserve(
    calls: int = 1, tokens: int = 0, cost_usd: float = 0.0, *, tool_calls: int = 0, where: str = ""
) -> Reservation:
    """Reserve room for a request in all budgets that enclose it, or in none.

    Args:
        calls: Model calls; a request that continues a counted call takes 0.
        tokens: The most tokens that it may use, as far as known.
        cost_usd: The most dollars that it may cost, as far as known.
        tool_calls: Runs of tools.
        where: Path for the error; the running call's if left out.

    Returns:
        A reservation, to be settled or released.

    Raises:
        BudgetExceeded: A budget has no room; nothing is reserved. `.account` is the account of that budget.

    Example:
        >>> reserve().release()

    Source: two-phase accounting.
    """
    record, wanted = ambient(), Spent(calls, tokens, cost_usd, tool_calls)
    accounts: tuple[Account, ...] = () if record is None else record.budgets
    with _LOCK:
        for account in reversed(accounts):
            if refusal := account.refusal(wanted):
                place = place_name(where) or "outside module calls"
                error = errors.BudgetExceeded(f"{place}: {refusal}. Raise the limit in sm.budget(...).")
                error.account = account
                raise error
        for account in accounts:
            account.held += wanted
    return Reservation(accounts, wanted)


# -- usage -------------------------------------------------------------------------------------------------------------


class track_usage(Block):  # noqa: N801  # read as a word: `with sm.track_usage() as usage:`
    """Measure the model calls that begin in a block.

    Example:
        >>> with track_usage() as usage:
        ...     pass
        >>> usage.calls
        0

    Source: DSPy's usage tracker.
    """

    def __enter__(self) -> UsageMeter:
        meter = UsageMeter()
        self.enter(usages=meter)
        return meter


def open_meters(frame: CallFrame | None) -> tuple[UsageMeter, ...]:
    """Return the meters for a model call that begins here: get them when it begins, add to them when it ends.

    Args:
        frame: The running module call, whose run has a meter too.
    """
    record = ambient()
    of_blocks: tuple[UsageMeter, ...] = () if record is None else record.usages
    return of_blocks if frame is None else (*of_blocks, frame.root.meter)


# -- rewards -----------------------------------------------------------------------------------------------------------

_ROUNDINGS: Final = 8
_PRECISION: Final = {2: 2**-10, 4: 2**-23}
"""The distance from 1 to the next number, by the bytes of a number of numpy or torch."""
_ALIASES: Final = {"y_pred": "outputs", "y_true": "target"}


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a reward returns for one output: a score, and what would make it better.

    Attributes:
        score: Higher is better, inside the reward's `range`; None where there is nothing to score.
        critique: What is wrong, in words.
        target: The output that was expected.
        parts: Critique by module path or glob, for these modules alone.
        objectives: Further numbers by name; a keyword.

    Example:
        >>> Feedback(0.5, critique="No source is given.").to_json()["score"]
        0.5

    Source: textual gradients (TextGrad), GEPA's feedback functions.
    """

    score: float | None
    critique: str | None = None
    target: Any = None
    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    objectives: Mapping[str, float] = field(default_factory=dict[str, float], kw_only=True)

    def record(self) -> dict[str, Any]:
        """Return the feedback as a dict of its fields, with the target as it is."""
        return {
            "score": self.score,
            "critique": self.critique,
            "target": self.target,
            "objectives": dict(self.objectives),
            "parts": dict(self.parts),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the feedback as plain JSON.

        Raises:
            DataError: The target is not JSON.
        """
        return leaves.thaw(self.record())


class BoundReward:
    """A reward or metric whose parameters are read once; each call passes the values that they name, in any order.

    Args:
        reward: A function, plain or async, or an object with a method `call`, such as a module. One whose `call` passes
            on its arguments (`**offered`) lists the names that it takes in `asks_for`.
        offered: The names that it may take; `y_pred` and `y_true` are other names for `outputs` and `target`.
        what: Its name in messages.
        range: The lowest and the highest score; None for the attribute `range` of the reward, or any score.

    Attributes:
        asks_for: The names of `offered` that it takes.
        lowest: The lowest score of its `range`; 0.0 where there is none.

    Raises:
        ArgumentError: It cannot be called, or requires a parameter that is not offered.
    """

    __slots__ = ("_by_name", "_by_place", "_function", "_needs_target", "_range", "_what", "asks_for", "lowest")

    def __init__(
        self,
        reward: Any,
        offered: Iterable[str],
        *,
        what: str = "the reward",
        range: tuple[float, float] | None = None,  # noqa: A002  # the attribute of a reward
    ) -> None:
        self._what = what
        asked: Any = getattr(reward, "call", reward)  # the parameters of a module are those of its `call`
        needs_target: bool | None = getattr(reward, "needs_target", None)
        is_reward = needs_target is not None  # a reward, unlike a module, has no frame of its own
        self._function = reward if callable(reward) and not is_reward else asked
        names = tuple(offered)
        if not callable(self._function):
            raise errors.ArgumentError(f"{what} is a {type(reward).__name__}; write a function of {', '.join(names)}.")
        wanted: Iterable[str] | None = getattr(reward, "asks_for", None)
        try:
            parameters = [*inspect.signature(asked).parameters.values()]
        except (TypeError, ValueError):
            raise errors.ArgumentError(
                f"{what}: the parameters of {reward!r:.80} cannot be read: wrap it in a function."
            ) from None
        if wanted is not None:
            parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(wanted)]
        self._by_place: list[str] = []
        """The offered names that positional-only parameters take."""
        self._by_name: dict[str, str] = {}
        """The offered name that each other parameter takes."""
        for parameter in parameters:
            source = _ALIASES.get(parameter.name, parameter.name)
            if source in names and parameter.kind is parameter.POSITIONAL_ONLY:
                self._by_place.append(source)
            elif source in names:
                self._by_name[parameter.name] = source
            elif parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                words = [*names, *(alias for alias, name in _ALIASES.items() if name in names)]
                raise errors.ArgumentError(
                    f"{what} takes a parameter {parameter.name!r}, but it may take {', '.join(words)}, in any "
                    f"order.{leaves.did_you_mean(parameter.name, words)}"
                )
        self.asks_for = frozenset((*self._by_place, *self._by_name.values()))
        self._range: tuple[float, float] = range or getattr(reward, "range", (-math.inf, math.inf))
        self.lowest = self._range[0] if math.isfinite(self._range[0]) else 0.0
        self._needs_target = needs_target

    async def __call__(self, **offered: Any) -> Feedback:
        """Return the feedback on one output, computed in phase `reward`; a number becomes a Feedback.

        Args:
            offered: A value for each name that it may take.

        Raises:
            CallError: It needs a target and there is none; it returned neither a finite number, a bool nor a Feedback
                with such scores; or its score is outside its `range`.
            Exception: What it raised.
        """
        if self._needs_target and offered.get("target") is None:
            raise errors.CallError(f"{self._what} needs a target, and example {offered.get('example_id')!r} has none.")
        with phase("reward"):
            result = self.call(offered)
            if not isinstance(result, float | int | Feedback) and inspect.isawaitable(result):  # hot: nearly all are
                result = await result
        return self.feedback(result)

    def feedback(self, result: Any) -> Feedback:
        """Return what the function returned as a Feedback.

        Raises:
            CallError: As for a call.
        """
        if not isinstance(result, Feedback):
            return Feedback(self._in_range(result))
        words = [result.critique or "", *result.parts.values()]
        if not all(isinstance(each, str) for each in words):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.CallError(f"{self._what} returned {result!r:.200}; critique and parts of a Feedback are text.")
        return replace(
            result,
            score=None if result.score is None else self._in_range(result.score),
            objectives={name: self._finite(value) for name, value in result.objectives.items()},
        )

    def call(self, offered: Mapping[str, Any]) -> Any:
        """Call the function with the values that it takes; return its result unchecked, an awaitable if it is async."""
        named = {name: offered[source] for name, source in self._by_name.items()}
        return self._function(*[offered[source] for source in self._by_place], **named)

    def _in_range(self, value: Any) -> float:
        """Return a score as a float."""
        score, (low, high) = self._finite(value), self._range
        if low <= score <= high:
            return score
        end = low if score < low else high  # a sum or a cosine may be off by a rounding error of its type
        precision = _PRECISION.get(getattr(getattr(value, "dtype", None), "itemsize", 8), 2**-52)
        if abs(score - end) > _ROUNDINGS * precision * max(abs(bound) for bound in (low, high) if math.isfinite(bound)):
            raise errors.CallError(f"{self._what} is {score!r}, outside its range from {low} to {high}.")
        return end

    def _finite(self, value: Any) -> float:
        """Return a number as a float."""
        number = _finite(value)
        if number is None:
            raise errors.CallError(
                f"{self._what} is {value!r:.100}; it must be a finite number, a bool, or a Feedback with such scores."
            )
        return number


# -- what a block has collected ----------------------------------------------------------------------------------------


def add_reward(owner: Owner, value: object, name: str | None = None) -> None:
    """Give a reward to the running entry call, under the path of a module; in a symbolic call it is only checked.

    Args:
        owner: The module that gives it.
        value: A finite number.
        name: A label.

    Raises:
        CallError: No call is running, or the value is not a finite number.
    """
    frame = current_call()
    if frame is None:
        raise errors.CallError(f"{owner.name}.add_reward: no call is running; give rewards inside `call`.")
    number = _finite(value)
    if number is None:
        raise errors.CallError(f"{frame.path or owner.name}: add_reward got {value!r}; a reward is a finite number.")
    if frame.symbolic:
        return
    giver = _frame_of(owner, frame) or frame
    frame.root.keep_reward(giver, (_path_of(owner, frame), name, number))


def _frame_of(owner: Owner, frame: CallFrame | None) -> CallFrame | None:
    """Return the innermost running call of a module."""
    while frame is not None and frame.owner is not owner:
        frame = frame.parent
    return frame


def _path_of(owner: Owner, frame: CallFrame) -> str:
    """Return the path of a module below the entry module of a running call."""
    running = _frame_of(owner, frame)
    if running is not None:
        return running.path
    known = frame.root.paths.get(id(owner))
    return known if known is not None else f"{frame.path}/{owner.name}".lstrip("/")


def _finite(value: Any) -> float | None:
    """Return a number as a float, None for anything else.

    What has `__float__` or `__bool__` is a number, as those of numpy and torch are, but for texts, data models,
    containers and arrays of several dimensions.
    """
    if not isinstance(value, Real) and (
        value is None
        or isinstance(value, str | bytes | bytearray | complex | date | timedelta)
        or getattr(value, "shape", ()) != ()
        or hasattr(value, "__synmod_json__")
    ):
        return None
    try:
        if isinstance(value, Real) or hasattr(value, "__float__"):
            number = float(value)
        else:
            number = float(bool(value)) if hasattr(value, "__bool__") and not hasattr(value, "__len__") else math.nan
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def rewards_of(owner: Owner) -> tuple[float, ...]:
    """Return the rewards of a module and those below it in the running entry call, by the start of the calls, or ()."""
    frame = current_call()
    if frame is None or not frame.root.given_rewards:
        return ()
    path = _path_of(owner, frame)
    below = f"{path}/"
    return tuple(value for at, _, value in frame.rewards if not path or at == path or at.startswith(below))


class RewardTrack:
    """The list that one `track_rewards` block fills, by the start of the calls."""

    __slots__ = ("_keys", "_lock", "rewards")

    def __init__(self) -> None:
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine in here, which ends a call
        self._keys: list[tuple[float, int]] = []
        self.rewards: list[Reward] = []

    def extend(self, frame: CallFrame) -> None:
        """Add the rewards of an entry call."""
        with self._lock:
            for given in frame.kept_rewards():
                key = (frame.root.started, given.call)
                place = bisect_right(self._keys, key)
                self._keys.insert(place, key)
                self.rewards.insert(place, given.reward)


class track_rewards(Block):  # noqa: N801  # read as a word: `with sm.track_rewards() as rewards:`
    """Collect the rewards of the entry calls that end in a block.

    Entering the block returns a list of `(path, name, value)`, by the start of the calls.

    Example:
        >>> with track_rewards() as rewards:
        ...     pass
        >>> rewards
        []

    Source: Keras' `add_loss`; differs: nothing is stored on modules, so that samples never mix.
    """

    def __enter__(self) -> list[Reward]:
        track = RewardTrack()
        self.enter(reward_tracks=track)
        return track.rewards


def hand_up(frame: CallFrame) -> None:
    """Pass the rewards of an entry call that returned to the open `track_rewards` blocks."""
    record = ambient()
    if record is not None and frame.root.given_rewards:
        for track in record.reward_tracks:
            track.extend(frame)
