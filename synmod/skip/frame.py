"""The skip frame: what is in the lane of one entry call, to look at, to write down and to go on with."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping
from typing import Any, cast

from synmod.data import DataModel, JsonDataModel, to_value
from synmod.errors import ArgumentError, DataError
from synmod.leaves.frozen import Json, frozen, is_object, thaw
from synmod.leaves.names import parse_path, path_str
from synmod.scope import current_call

from .lane import Block, Key, Lane, Namespace, Slot, lane_of, shown


class SkipFrame:
    """What is in the lane of an entry call.

    Inside a call it shows what that call sees: the frame, with the layers of the running call and its callers on top.

    Example:
        >>> frame = SkipFrame.from_json({"doc": {"json": "a text", "schema": None}})
        >>> list(frame.keys())
        [(None, 'doc')]

    Source: torchgpipe's skip tracker; differs: belongs to the entry call, and calls are transactions on it.
    """

    __slots__ = ("__weakref__", "lane")

    def __init__(self, lane: Lane | None = None) -> None:
        self.lane = lane or Lane()
        """Where the values are (internal)."""

    def keys(self) -> KeysView[Key]:
        """Return the `(namespace, name)` pairs in the lane; the default namespace is None."""
        return self._seen().keys()

    def __len__(self) -> int:
        return len(self._seen())

    def to_json(self) -> dict[str, Json]:
        """Return everything as `{name: {"json": value, "schema": schema or None}}`.

        A name in a Namespace is `namespace/name`, escaped like the steps of a path.

        Raises:
            DataError: A slot holds neither JSON nor a data model; or its Namespace has no name, or that of another one.
                The message names the slot.
        """
        written: dict[str, Json] = {}
        for key, slot in self._seen().items():
            namespace, name = key
            text = path_str((name,) if namespace is None else (namespace.name or "", name))
            if text in written or (namespace is not None and namespace.name is None):
                raise DataError(f"slot {shown(key)}: name each Namespace differently to write it: Namespace('one').")
            written[text] = _slot_json(key, slot.value)
        return written

    @classmethod
    def from_json(cls, json: Mapping[str, Json], namespaces: Iterable[Namespace] = ()) -> SkipFrame:
        """Return the frame that `to_json` wrote.

        Args:
            json: What `to_json` returned.
            namespaces: The Namespaces of the program that is to run on the frame; they are found by name.

        Raises:
            DataError: It does not have that form, a value is not JSON, or `namespaces` does not have the one
                Namespace of a slot.
            SchemaError: A value does not satisfy its schema.
        """
        if not isinstance(json, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
            raise DataError(f"SkipFrame.from_json takes the object that to_json returned, got {json!r:.100}.")
        frame, given = cls(), [*namespaces]
        if not all(isinstance(each, Namespace) for each in given):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"SkipFrame.from_json: namespaces is {given!r:.100}; wanted a list of Namespaces.")
        for text, entry in json.items():
            steps = parse_path(text) if isinstance(text, str) else ()  # pyright: ignore[reportUnnecessaryIsInstance]
            if not is_object(entry) or set(entry) != {"json", "schema"} or not 1 <= len(steps) <= 2:
                raise DataError(
                    f"slot {text!r:.100}: wanted `name` or `namespace/name`, with an object of the keys 'json' and "
                    f"'schema', got {entry!r:.100}."
                )
            *space, name = cast("tuple[str, ...]", steps)
            named = [each for each in given if [each.name] == space]
            if space and len(named) != 1:
                raise DataError(
                    f"slot {text!r}: {len(named)} Namespaces named {space[0]!r} are given, wanted one. Write "
                    f"SkipFrame.from_json(json, namespaces=[...]) with the Namespaces of the program; got {given}."
                )
            frame.lane.stashed[named[0] if space else None, name] = Slot(
                _value_of(text, entry), "a frame that was read"
            )
        return frame

    def _seen(self) -> dict[Key, Slot]:
        running = current_call()
        top: Any = None if running is None else running.layer
        if top is not None and any(lane is self.lane for lane in top.downwards()):
            return top.contents()
        return self.lane.contents()

    def __repr__(self) -> str:
        return f"SkipFrame({', '.join(map(shown, self._seen()))})"


def current_skip_frame() -> SkipFrame | None:
    """Return the skip frame of the running entry call, as the running call sees it; in a hook, the call of its event.

    Returns:
        The frame, None outside module calls.

    Example:
        >>> current_skip_frame() is None
        True

    Source: torchgpipe's `current_skip_tracker`.
    """
    frame = current_call()
    if frame is None:
        return None
    *_, bottom = lane_of(frame).downwards()
    return SkipFrame(bottom)


class use_skip_frame:  # noqa: N801  # read as a word: `with use_skip_frame(frame):`
    """Run the calls of a block on a given skip frame: for tests, or to go on where another run has stopped.

    Values that nobody pops stay in the frame.

    Args:
        frame: The frame.

    Raises:
        ArgumentError: It is not a SkipFrame.

    Example:
        >>> from synmod.skip import SkipFrame
        >>> with use_skip_frame(SkipFrame()) as frame:
        ...     len(frame)
        0

    Source: torchgpipe's `use_skip_tracker`; differs: a ContextVar, never a thread-local.
    """

    __slots__ = ("_blocks", "_frame")

    def __init__(self, frame: SkipFrame) -> None:
        if not isinstance(frame, SkipFrame):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
            raise ArgumentError(f"use_skip_frame takes a SkipFrame, got {frame!r:.100}.")
        frame.lane.in_hand = True
        self._frame = frame
        self._blocks: list[Block] = []

    def __enter__(self) -> SkipFrame:
        self._blocks.append(Block(self._frame.lane))
        return self._frame

    def __exit__(self, *_: object) -> None:
        self._blocks.pop().close()


def _slot_json(key: Key, value: Any) -> dict[str, Json]:
    if isinstance(value, DataModel):
        value = to_value(value)
    if isinstance(value, JsonDataModel):
        return {"json": thaw(value._json), "schema": thaw(value._schema)}
    try:
        return {"json": thaw(frozen(value)), "schema": None}
    except DataError as error:
        raise DataError(f"slot {shown(key)} cannot be written: {error}") from None


def _value_of(text: str, entry: Mapping[str, Json]) -> Any:
    """Return the value of a slot that was written down."""
    if entry["schema"] is None:
        try:
            return frozen(entry["json"])
        except DataError as error:
            raise DataError(f"slot {text!r}: {error}") from None
    if is_object(entry["json"]):
        return JsonDataModel(entry["json"], schema=entry["schema"])
    raise DataError(f"slot {text!r}: only an object can have a schema, got {entry['json']!r:.100}.")
