"""Journal: the records of a run in its file, what they used, and the notes beside them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from glob import escape, glob
from io import FileIO
from typing import Any, cast

from synmod import lm
from synmod.cache import Cache, key_of
from synmod.data import JsonDataModel, Schema, schema_of
from synmod.errors import JournalError
from synmod.leaves import Json, current_clock, frozen, frozen_dict, is_object, remember_secrets, scrub_json
from synmod.scope import NO_USAGE, Usage


def as_json(nest: Any) -> Json:
    """Return a nest of data models as frozen JSON, tuples as lists; what is not JSON as its text."""
    if type(nest) is JsonDataModel:  # hot: the inputs and outputs of every call that is recorded
        return nest._json
    if isinstance(nest, tuple | list):
        return frozen([as_json(each) for each in cast("list[Any]", nest)])
    if is_object(nest):
        return frozen({str(key): as_json(each) for key, each in nest.items()})
    try:
        return frozen(nest)
    except ValueError:
        return repr(nest)


class Journal:
    """The records of a run: what each piece of work, a rollout or a proposal, returned and used; and further notes.

    Args:
        records: The file with the records; None where nothing is kept.
        paid: How many pieces the file has, their usage, and how long the run had taken at the last of them.
        lock: The lock file of the folder.

    Attributes:
        pieces: How many rollouts and proposals earlier processes have recorded.
        usage: The usage of these.
        live: How many pieces were run in this process, rather than found.
        asked: The ids of the questions that were asked in this process.
        durable_rows: Whether the calls of rows are recorded.

    Source: Temporal, DBOS (durable execution by replay); differs: records are keyed by content, not by position.
    """

    def __init__(
        self,
        records: Cache | None = None,
        paid: tuple[int, Usage, float] = (0, NO_USAGE, 0.0),
        lock: FileIO | None = None,
    ) -> None:
        self._records = records
        self._lock = lock
        if records is not None:
            remember_secrets(lm.environment_secrets())  # a provider may repeat a key
        self._noted: dict[int, tuple[Schema, str]] = {}
        """The schemas that are kept, by identity, and the digest of each."""
        self.pieces, self.usage, seconds = paid
        self.live = 0
        self.asked: set[str] = set()
        self.durable_rows = False
        self._clock = current_clock()
        self._began = self._clock.now() - seconds

    @property
    def is_kept(self) -> bool:
        """Whether there is a file."""
        return self._records is not None

    @property
    def elapsed_s(self) -> float:
        """How long the run has taken, in earlier processes too."""
        return self._clock.now() - self._began

    async def find(self, key: str) -> dict[str, Any] | None:
        """Return a piece as it was given to `keep`; None without one that can be read."""
        entry = await self.read(key) if self.pieces else None  # what this process ran, its callers know
        usage = None if entry is None else usage_of(entry.get("usage"))
        if entry is None or usage is None:
            return None
        piece: dict[str, Any] = {**entry, "usage": usage}
        try:
            piece["outputs"] = await self._rebuild_outputs(piece["outputs"], piece.pop("schema", None))
        except (LookupError, TypeError, ValueError):  # a schema that cannot be read, or is not one
            return None
        return piece

    async def _rebuild_outputs(self, json: Any, schemas: Any) -> Any:
        """Return outputs as `_note_schemas` was given them (KeyError where a schema is not there)."""
        match schemas:
            case str():
                return JsonDataModel[Any](json, schema=(await self.read(f"schema/{schemas}") or {})["schema"])
            case [kind, *parts]:
                found = [await self._rebuild_outputs(*each) for each in zip(json, parts, strict=True)]
                return tuple(found) if kind == "tuple" else found
            case {}:
                return {name: await self._rebuild_outputs(json[name], part) for name, part in schemas.items()}
            case _:
                return json

    async def keep(self, key: str, piece: Mapping[str, Any]) -> None:
        """Record a piece that was run, and when; what is not written would be paid for again.

        Args:
            key: A digest of all that it depends on.
            piece: JSON, but for `outputs`, which may be a data model, and `usage`; anything where nothing is kept.

        Raises:
            JournalError: It cannot be written.
        """
        self.live += 1
        if self._records is None:
            return
        usage: Usage = piece["usage"]
        entry = {**piece, "outputs": as_json(piece["outputs"]), "usage": used_of(usage), "at": self.elapsed_s}
        if schemas := await self._note_schemas(piece["outputs"]):
            entry["schema"] = as_json(schemas)
        await self.write(key, frozen_dict(entry))  # hot: all in it has been checked

    async def _note_schemas(self, outputs: Any) -> Any:
        """Return the nest of outputs with digests of schemas: each schema is written once, not in each record."""
        if isinstance(outputs, tuple | list):
            parts = [await self._note_schemas(part) for part in cast("list[Any]", outputs)]
            return ["tuple" if isinstance(outputs, tuple) else "list", *parts]
        if is_object(outputs):
            return {name: await self._note_schemas(part) for name, part in outputs.items()}
        if not isinstance(outputs, JsonDataModel):
            return None
        schema = schema_of(cast("Any", outputs))
        if id(schema) not in self._noted:
            digest = key_of(schema)
            await self.write(f"schema/{digest}", {"schema": schema})
            self._noted[id(schema)] = schema, digest
        return self._noted[id(schema)][1]

    async def read(self, key: str) -> Mapping[str, Any] | None:
        """Return a note.

        Raises:
            JournalError: Another program keeps the file busy, or the block has ended.
        """
        if self._records is None:
            return None
        self._check_open(self._records)
        try:
            return await self._records.find(key)
        except OSError as error:
            raise unusable(self._records.path, error, "read") from error

    async def write(self, key: str, note: dict[str, Any]) -> None:
        """Write a note.

        Raises:
            JournalError: It cannot be written, or the block has ended.
        """
        if self._records is None:
            return
        self._check_open(self._records)
        is_kept = await self._records.keep(key, scrub_json(note))
        is_held = self._lock is None or self._lock.closed or os.fstat(self._lock.fileno()).st_nlink > 0
        if not (is_kept and is_held):
            fault = None if is_kept else self._records.fault
            why = "its lock file was removed, and another process may write to it" if is_kept else fault or "not kept"
            raise unusable(self._records.path, why) from fault

    def _check_open(self, records: Cache) -> None:
        """Raise JournalError once the block has ended: another process may hold the folder."""
        if self._lock is not None and self._lock.closed:
            raise unusable(records.path, "its block has ended before this call; wait inside for all that it starts")

    def remove(self, keys: Iterable[str]) -> None:
        """Delete notes, in place.

        Raises:
            JournalError: The file cannot be written.
        """
        if self._records is None:
            return
        self._check_open(self._records)
        try:
            self._records.change({}, keys)
        except OSError as error:
            raise unusable(self._records.path, error) from error

    def refuse_damage(self) -> None:
        """Refuse to go on where the file was found damaged: what it recorded would be done again.

        Raises:
            JournalError: It was moved aside.
        """
        file = None if self._records is None else self._records.path
        if file is not None and (moved := glob(f"{escape(file)}.corrupt-*")):
            raise JournalError(
                f"{file}: the journal is damaged, and was moved to {min(moved)}: calls that were paid for, and tools "
                "that ran, would run again. Restore it from a copy; or remove that file, and all begins anew."
            )

    def drop_questions(self) -> None:
        """Delete the questions without an answer that this process has not asked: the code no longer asks them."""
        if self._records is not None:
            names = [key.removeprefix("question/") for key, _ in self._records.items("question/")]
            answered = {key.removeprefix("answer/") for key, _ in self._records.items("answer/")}
            if stale := [f"question/{name}" for name in names if name not in self.asked | answered]:
                self.remove(stale)


def unusable(path: object, why: object, use: str = "written") -> JournalError:
    """Return the error for a journal that cannot be written, or read."""
    return JournalError(
        f"{path}: the journal cannot be {use}: {why}. Mend that or make room, and run the same line again: what is "
        "in the journal is not paid for again."
    )


def sum_paid(records: Cache) -> tuple[int, Usage, float]:
    """Return how many pieces a journal has, their usage, and how long the run had taken at the last of them."""
    count, total, longest = 0, NO_USAGE, 0.0
    for at, used in records.pairs("at", "usage"):
        usage = usage_of(used)
        if _is_number(at) and usage is not None:
            count, total, longest = count + 1, total + usage, max(longest, at)
    return count, total, longest


def _is_number(json: Any) -> bool:
    """Whether a value is a JSON number."""
    return isinstance(json, int | float) and not isinstance(json, bool)


def used_of(usage: Usage) -> dict[str, Any]:
    """Return usage as JSON, without the fields that are zero."""
    return {name: number for name, number in vars(usage).items() if number != getattr(NO_USAGE, name)}


def usage_of(json: Any) -> Usage | None:
    """Return the usage in a record, without the fields that a later release has added; None where it is not one."""
    if not is_object(json):
        return None
    known = {name: json[name] for name in vars(NO_USAGE) if name in json}
    numbers = [number for name, number in known.items() if (name, number) != ("cost_usd", None)]
    return Usage(**known) if all(isinstance(number, int | float) for number in numbers) else None
