"""Recorded calls: a call with a record in the journal is not made again, any other is recorded when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Self

from synmod import scope
from synmod.cache import key_of
from synmod.errors import Paused, ToolError
from synmod.leaves import Json, aio, frozen, frozen_dict, wall_time
from synmod.scope import NO_USAGE, Usage

from .journal import Journal, usage_of, used_of

if TYPE_CHECKING:
    from synmod.scope import Account

CALL, BEGUN = "call/", "begun/"
"""What the keys of records begin with, and those of runs that must not be repeated."""
_DEEPEST: Final = 300  # a schema has at most 200 levels, a value 50


class Part(scope.Block):
    """The part of a journal that belongs to a block of code: to a durable block, or to one row of a run.

    Args:
        journal: Where the records stand.
        row: The key of the row; "" outside of rows.
        records_calls: Whether model calls, embedding calls and runs of tools are recorded.

    Attributes:
        asked: The ids of the questions that were asked.
        usage: The usage of the calls that were found here instead of made.
    """

    def __init__(self, journal: Journal, row: str = "", *, records_calls: bool) -> None:
        super().__init__()
        self.journal, self.row, self.records_calls = journal, row, records_calls
        self.asked = journal.asked
        self.usage = NO_USAGE
        self.outer: tuple[Account, ...] = ()
        """The budgets around the block, which do not count what is found."""
        self._lock = aio.lock()
        self._next: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}
        self._numbering = scope.Numbering(None, lambda: row)

    def __enter__(self) -> Self:
        self.outer = scope.ambient().budgets
        self.enter(journal=self)
        self._numbering.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._numbering.__exit__()
        super().__exit__(*failure)

    def take_number(self, call: str) -> int:
        """Return the lowest number that no equal call has."""
        with self._lock:
            if free := self._free.get(call):
                return heappop(free)
            number = self._next.get(call, 0)
            self._next[call] = number + 1
            return number

    def give_back(self, call: str, number: int) -> None:
        """Free the number of a call that failed."""
        with self._lock:
            heappush(self._free.setdefault(call, []), number)

    async def holds(self, kind: str, path: str, content: str) -> bool:
        """Whether the next call of this kind and content at a path is recorded."""
        call = self.id_of(kind, path, content)
        number = self.take_number(call)
        self.give_back(call, number)
        return await self.read(f"{CALL}{call}/{number}") is not None

    def id_of(self, kind: str, path: str, content: str) -> str:
        """Return what equal calls have in common."""
        return key_of(f"{self.row} {kind} {content} {path}")  # a text takes a fifth of the time of a list

    def record(self, kind: str, path: str, name: str, content: str, arguments: Json = None) -> CallRecording:
        """Return the record of the next call of this kind and content at a path.

        Args:
            kind: "model", "embedding" or "tool".
            path: The module that calls.
            name: The model, or the tool.
            content: A digest of all that the result depends on.
            arguments: Those of a tool, to be shown.
        """
        return CallRecording(self, self.id_of(kind, path, content), kind, path, name, arguments)

    async def read(self, key: str) -> Mapping[str, Any] | None:
        """Return a note, such as the id of a job at a provider, or None."""
        return await self.journal.read(key)

    async def write(self, key: str, note: dict[str, Any]) -> None:
        """Commit a note."""
        await self.journal.write(key, note)


class CallRecording:
    """The record of one call, an `async with` block around it.

    A call that leaves the block without a record, by an error or a cancellation, takes no number.
    """

    def __init__(self, part: Part, call: str, kind: str, path: str, name: str, arguments: Json) -> None:
        self.value: Mapping[str, Any] | None = None
        """What was recorded before; None if the call is to be made."""
        self._part, self._call = part, call
        self._place = {"path": path, "kind": kind, "name": name}
        if arguments is not None:
            self._place["arguments"] = arguments
        self._usage = NO_USAGE
        self._has_begun = self._is_kept = False
        self._numbering = scope.Numbering(scope.NUMBERING.get(), lambda: self._number) if kind == "tool" else None

    async def __aenter__(self) -> Self:
        self._number = self._part.take_number(self._call)
        try:
            record = await self._part.read(self._key(CALL))
        except BaseException:
            self._part.give_back(self._call, self._number)
            raise
        if record is not None:
            self.value, self._usage = record.get("value"), usage_of(record.get("usage")) or NO_USAGE
        if self._numbering is not None:
            self._numbering.__enter__()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._numbering is not None:
            self._numbering.__exit__()
        if self._is_kept:
            return
        if not isinstance(error, Paused):  # else it goes on, and an equal call beside it is another one
            self._part.give_back(self._call, self._number)
        if self._has_begun and isinstance(error, Exception):  # the function has ended by itself
            self._part.journal.remove([self._key(BEGUN)])

    def _key(self, prefix: str) -> str:
        """Return the key of a record or note of this call."""
        return f"{prefix}{self._call}/{self._number}"

    def accept(self) -> None:
        """Take the value that was recorded: count it as paid in the budgets that were opened inside the block.

        Raises:
            BudgetExceeded: One of them has no room.
        """
        self._is_kept = True
        self._part.usage = self._part.usage + self._usage
        scope.count_paid(self._usage, self._part.outer, self._place["path"])

    async def begin(self) -> None:
        """Note that a run which must not be repeated begins.

        Raises:
            ToolError: An earlier one began and did not end (contains 'may have run').
        """
        self._part.journal.refuse_damage()
        if await self._part.read(self._key(BEGUN)) is not None:
            raise self.abandon()
        await self._part.write(self._key(BEGUN), {**self._place, "when": wall_time()})
        self._has_begun = True

    def abandon(self) -> ToolError:
        """Return the error for a run that began and was left before its end: it may have run."""
        self._has_begun = False
        error = ToolError(
            f"{self._place['path'] or self._place['name']}: a run of this tool with once=True began and did not end, "
            "so that it may have run. See what came of it; then sm.Run(folder).settle(call, result) records that, or "
            "sm.Run(folder).forget([call]) lets it run again, with the call from sm.Run(folder).calls."
        )
        error.report = False
        return error

    async def keep(self, value: Mapping[str, Any], usage: Usage = NO_USAGE) -> None:
        """Record what came of the call; it is committed when this returns."""
        self._has_begun = False  # the function has run: if its result cannot be written, it may not run again
        note: dict[str, Any] = {**self._place, "when": wall_time(), "value": frozen(value, _DEEPEST)}
        if usage is not NO_USAGE:
            note["usage"] = frozen_dict(used_of(usage))
        if self._part.row:
            note["row"] = self._part.row
        await self._part.write(self._key(CALL), frozen_dict(note))  # hot: all in it has been checked
        self._is_kept = True
