"""The skip frame: what is in the lane of one entry call, to look at, to write down and to go on with."""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from typing import Any

from synmod.data import DataModel, JsonDataModel, to_value
from synmod.errors import DataError
from synmod.leaves.frozen import Json, frozen, is_object, thaw
from synmod.leaves.names import parse_path, path_str
from synmod.scope import CallFrame, current_call
from synmod.skip.namespace import Key, Namespace, shown
from synmod.skip.slots import Journal, Slot, write


class SkipFrame:
    """What is in the lane of an entry call.

    Inside a call it shows what that call sees: the frame, with the layers of the running call and its callers on top.

    Attributes:
        retain: How often the consumer of a popped value may pop it again, in critic loops or after a crash; 0 at first.

    Example:
        >>> frame = SkipFrame.from_json({"doc": {"json": "a text", "schema": None}})
        >>> list(frame.keys())
        [(None, 'doc')]

    Source: torchgpipe's skip tracker; differs: belongs to the entry call, and calls are transactions on it.
    """

    __slots__ = ("__weakref__", "_numbers", "is_given", "retain", "slots", "spent")

    def __init__(self) -> None:
        self.retain = 0
        self.slots: dict[Key, Slot] = {}
        self.spent: dict[Key, Slot] = {}
        self.is_given = False
        """Whether somebody has it in hand: then what nobody pops stays."""
        self._numbers: dict[Namespace, int] = {}

    def keys(self) -> KeysView[Key]:
        """The `(namespace, name)` pairs in the lane; the default namespace is None."""
        return self._seen().keys()

    def __len__(self) -> int:
        return len(self._seen())

    def __contains__(self, key: object) -> bool:
        return key in self._seen() or (isinstance(key, str) and (None, key) in self._seen())

    def to_json(self) -> dict[str, Json]:
        """Write everything down as `{name: {"json": value, "schema": schema or None}}`.

        A name in a Namespace is `namespace/name`: the Namespace's name with its number in the program (`one-0/doc`).

        Raises:
            DataError: A slot holds neither JSON nor a data model; names the slot.
        """
        seen = self._seen()
        self._learn({namespace: 0 for namespace, _ in seen if isinstance(namespace, Namespace)})
        return {self._text(key): _slot_json(key, slot.value) for key, slot in seen.items()}

    @classmethod
    def from_json(cls, json: Mapping[str, Json]) -> SkipFrame:
        """Read what `to_json` wrote.

        Namespaces are found again by name and number, in the program that is run on the frame.

        Raises:
            DataError: It is not of that form, or a value is no JSON.
            SchemaError: A value does not satisfy its schema.
        """
        if not isinstance(json, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
            raise DataError(f"SkipFrame.from_json takes what to_json wrote, an object, got {json!r:.100}.")
        frame = cls()
        for text, entry in json.items():
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DataError(f"slot {text!r:.100}: its name is no text.")
            if not is_object(entry) or set(entry) != {"json", "schema"}:
                raise DataError(f"slot {text!r}: wanted an object of the keys 'json' and 'schema', got {entry!r:.100}.")
            steps = parse_path(text)
            if not 1 <= len(steps) <= 2:
                raise DataError(f"slot {text!r}: wanted a name, or a namespace and a name with a slash between them.")
            namespace: Any = _Named(steps[0]) if len(steps) == 2 else None
            frame.slots[namespace, steps[-1]] = Slot(_value_of(text, entry), "a frame that was read")
        return frame

    def adopt(self, numbers: Mapping[Namespace, int]) -> None:
        """Learn the Namespaces of a program that runs on this frame; those of other stages keep their text."""
        self._learn(numbers)
        if any(isinstance(namespace, _Named) for namespace, _ in self.slots):
            self.slots = {(_found(namespace, numbers), name): slot for (namespace, name), slot in self.slots.items()}

    def _learn(self, numbers: Mapping[Namespace, int]) -> None:
        """Number Namespaces as their program does, but so that no two have one text."""
        taken = {_numbered(namespace, number) for namespace, number in self._numbers.items()}
        for namespace, wanted in numbers.items():
            if namespace not in self._numbers:
                number = wanted
                while _numbered(namespace, number) in taken:
                    number += 1
                self._numbers[namespace] = number
                taken.add(_numbered(namespace, number))

    def unplaced(self, name: str) -> list[str]:
        """The slots of a name whose Namespace the programs that ran on this frame have not."""
        return [shown(key) for key in self.slots if isinstance(key[0], _Named) and key[1] == name]

    @property
    def base(self) -> SkipFrame:
        """Itself: it lies at the bottom."""
        return self

    # -- what layers do -----------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Slot | None:
        """The slot of a key."""
        return self.slots.get(key)

    def take(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be gone."""
        if self.slots.get(key) is slot:
            write(self.slots, key, None, journal)
        if slot.consumer is not None and self.retain:
            write(self.spent, key, slot, journal)

    def put(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be seen."""
        write(self.slots, key, slot, journal)

    # -- what is seen -------------------------------------------------------------------------------------------------

    def _seen(self) -> dict[Key, Slot]:
        from synmod.skip.layers import Layer

        frame = here()
        layer = None if frame is None else frame.layer
        return layer.contents() if isinstance(layer, Layer) and layer.base is self else self.slots

    def _text(self, key: Key) -> str:
        namespace, name = key
        if namespace is None:
            return path_str((name,))
        if isinstance(namespace, _Named):
            return path_str((namespace.text, name))
        return path_str((_numbered(namespace, self._numbers[namespace]), name))

    def __repr__(self) -> str:
        return f"SkipFrame({', '.join(map(shown, self._seen()))})"


class _Named:
    """A Namespace of which only the text is known."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"the namespace {self.text!r}"


def _found(namespace: Any, numbers: Mapping[Namespace, int]) -> Any:
    """The Namespace of a program that a text names: by name and number, else by a name that is there once; else it."""
    if not isinstance(namespace, _Named):
        return namespace
    by_text = {_numbered(one, number): one for one, number in numbers.items()}
    if namespace.text in by_text:
        return by_text[namespace.text]
    word = namespace.text.rpartition("-")[0]
    alike = [one for one in numbers if word and one.name == word]
    return alike[0] if len(alike) == 1 else namespace


def _numbered(namespace: Namespace, number: int) -> str:
    """The name of a Namespace with its number in the program."""
    return str(number) if namespace.name is None else f"{namespace.name}-{number}"


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
    """The value of a slot that was written down."""
    if entry["schema"] is None:
        try:
            return frozen(entry["json"])
        except DataError as error:
            raise DataError(f"slot {text!r}: {error}") from None
    if is_object(entry["json"]):
        return JsonDataModel(entry["json"], schema=entry["schema"])
    raise DataError(f"slot {text!r}: only an object can have a schema, got {entry['json']!r:.100}.")


def here() -> CallFrame | None:
    """The running call; in a hook the one that it is told of."""
    return current_call()
