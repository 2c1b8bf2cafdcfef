"""Ready-made data models: messages of a conversation in the shape of chat completions, and the scales of a judge."""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from math import isfinite
from mimetypes import MimeTypes
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, cast, get_args
from urllib.parse import unquote_to_bytes

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from synmod import leaves, registry
from synmod.errors import DataError

from .models import DataModel

_Fault: TypeAlias = tuple[str, str, Any]
"""Field, what is wrong with it, its value."""

_FOR_PEOPLE: Final = re.compile(r"\n\n(?:Args|Attributes|Example|Raises|Source):")
_MEDIA_TYPE: Final = r"[\w.+-]+/[\w.+-]+(;.*)?"
_ADDRESS: Final = ("http://", "https://")


def _cut_description(schema: dict[str, Any]) -> None:
    """Cut a description for language models: arguments, errors and examples are for people."""
    if "description" in schema:
        schema["description"] = _FOR_PEOPLE.split(schema["description"], maxsplit=1)[0]


TOLD_BRIEFLY: Final = ConfigDict(json_schema_extra=_cut_description, defer_build=True)
"""Configuration of a ready-made class: its schema has a short description, and is made when it is first needed."""

_OPEN: Final[ConfigDict] = {**TOLD_BRIEFLY, "extra": "allow"}
"""Configuration of what a provider writes: keys of its own stay as they are, and are sent back to it."""


class _ReadyMade(DataModel):
    """A data model of ours: takes its first fields by position, writes a constant `type`, and checks the whole.

    Keys that the class does not declare, where it takes any, come in by dicts only: a misspelt keyword is an error.
    """

    model_config = TOLD_BRIEFLY

    _positions: ClassVar[tuple[str, ...]] = ()
    _made_by: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**self._named(args, fields))

        __init__.__pydantic_base_init__ = True  # for pydantic: it need not be called for a dict inside another

    @classmethod
    def _named(cls, args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        """Return all arguments by name (TypeError for too many, or one given twice)."""
        if len(args) > len(cls._positions):
            most = f"at most {len(cls._positions)} positional arguments {cls._positions}"
            raise TypeError(f"{cls.__name__} takes {most}, got {len(args)}.{cls._made_by}")
        given = dict(zip(cls._positions, args, strict=False))
        for name in given.keys() & fields.keys():
            raise TypeError(f"{cls.__name__} got {name!r} twice, by position and by keyword.")
        if unknown := [name for name in fields if name not in cls._keywords()]:
            raise ValidationError.from_exception_data(
                cls.__name__,
                [InitErrorDetails(type="extra_forbidden", loc=(name,), input=fields[name]) for name in unknown],
            )
        return {**given, **fields}

    @classmethod
    def _keywords(cls) -> Iterable[str]:
        """Return the names of the keywords."""
        return cls.model_fields

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Write the constant `type` where it is missing."""
        kind = cls.model_fields.get("type")
        if kind is None or not isinstance(value, Mapping):
            return value
        return {"type": get_args(kind.annotation)[0], **cast("Mapping[str, Any]", value)}

    def _faults(self) -> Iterator[_Fault]:
        """Yield the faults of the fields taken together."""
        yield from ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Raise pydantic's ValidationError, with each fault at its field."""
        errors = [
            InitErrorDetails(
                type=PydanticCustomError("field_fault", "{what}", {"what": what}), loc=(field,), input=value
            )
            for field, what, value in self._faults()
        ]
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)
        return self


@registry.register_own()
class TextPart(_ReadyMade):
    """A text among other parts: `{"type": "text", "text": ...}`.

    Args:
        text: The text.

    Raises:
        pydantic.ValidationError: It is not a text.

    Example:
        >>> TextPart("Hi").get_json()
        {'type': 'text', 'text': 'Hi'}

    Source: OpenAI's chat completions.
    """

    _positions: ClassVar[tuple[str, ...]] = ("text",)

    type: Literal["text"]
    text: str

    if TYPE_CHECKING:

        def __init__(self, text: str) -> None: ...


class ImageAddress(DataModel):
    """Where an image is: a `data:` address that holds it, or one to fetch it from."""

    model_config = TOLD_BRIEFLY

    url: str
    detail: Literal["auto", "low", "high"] | None = None


@registry.register_own()
class ImagePart(_ReadyMade):
    """An image: `{"type": "image_url", "image_url": {"url": ...}}`.

    Args:
        image_url: The address, and how closely to look.

    Raises:
        pydantic.ValidationError: The address is missing or wrong.

    Example:
        >>> ImagePart({"url": "https://example.com/a.png"}).image_url.url
        'https://example.com/a.png'

    Source: OpenAI's chat completions.
    """

    _positions: ClassVar[tuple[str, ...]] = ("image_url",)

    type: Literal["image_url"]
    image_url: ImageAddress

    if TYPE_CHECKING:

        def __init__(self, image_url: ImageAddress | dict[str, Any]) -> None: ...


class AudioBytes(DataModel):
    """Sound in base64, and its format, such as `wav` or `mp3`."""

    model_config = TOLD_BRIEFLY

    data: str
    format: str


@registry.register_own()
class AudioPart(_ReadyMade):
    """Sound: `{"type": "input_audio", "input_audio": {"data": ..., "format": ...}}`.

    Args:
        input_audio: The sound in base64 and its format.

    Raises:
        pydantic.ValidationError: One of them is missing or wrong.

    Example:
        >>> AudioPart({"data": "AAAA", "format": "wav"}).input_audio.format
        'wav'

    Source: OpenAI's chat completions.
    """

    _positions: ClassVar[tuple[str, ...]] = ("input_audio",)

    type: Literal["input_audio"]
    input_audio: AudioBytes

    if TYPE_CHECKING:

        def __init__(self, input_audio: AudioBytes | dict[str, Any]) -> None: ...


class FileContent(DataModel):
    """A file: a `data:` address that holds it, or the id or address by which the provider finds it."""

    model_config = TOLD_BRIEFLY

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None
    format: str | None = None


@registry.register_own()
class FilePart(_ReadyMade):
    """A file: `{"type": "file", "file": {"file_data": ...}}`.

    Args:
        file: What it holds, or where it is.

    Raises:
        pydantic.ValidationError: It is wrong.

    Example:
        >>> FilePart({"file_id": "file-1"}).file.file_id
        'file-1'

    Source: OpenAI's chat completions.
    """

    _positions: ClassVar[tuple[str, ...]] = ("file",)

    type: Literal["file"]
    file: FileContent

    if TYPE_CHECKING:

        def __init__(self, file: FileContent | dict[str, Any]) -> None: ...


ContentPart = Annotated[TextPart | ImagePart | AudioPart | FilePart, Field(discriminator="type")]
"""Any part."""


def _as_text(arguments: Any) -> Any:
    """Return the text of arguments given as an object; a text is kept to the letter."""
    if isinstance(arguments, Mapping):
        plain = leaves.frozen(dict(cast("Mapping[str, Any]", arguments)))
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return arguments


class ToolFunction(DataModel):
    """Name and arguments of a tool call, as they stand on the wire."""

    model_config = _OPEN

    name: str
    arguments: Annotated[str, BeforeValidator(_as_text)]


@registry.register_own()
class ToolCall(_ReadyMade):
    """One call of a tool; its JSON is `{"id", "type": "function", "function": {"name", "arguments"}}`.

    Args:
        id: Identifies the call; the `tool` message that answers has it as `tool_call_id`.
        name: Name of the tool.
        arguments: JSON text, kept to the letter, or a dict, written compactly.

    Raises:
        pydantic.ValidationError: A field is missing or wrong.

    Example:
        >>> ToolCall("1", "add", {"a": 1}).function.arguments
        '{"a":1}'

    Source: OpenAI's chat completions; differs: keys of a provider's own, such as thought signatures, stay.
    """

    model_config = _OPEN

    _positions: ClassVar[tuple[str, ...]] = ("id", "name", "arguments")

    id: str
    type: Literal["function"]
    function: ToolFunction

    if TYPE_CHECKING:

        def __init__(self, id: str, name: str, arguments: str | Mapping[str, Any]) -> None: ...  # noqa: A002

    @classmethod
    def _keywords(cls) -> Iterable[str]:
        """Return the names of the keywords."""
        return (*cls.model_fields, *cls._positions)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Put name and arguments in their place on the wire."""
        if not isinstance(value, Mapping):
            return value
        fields: dict[str, Any] = {"type": "function", **cast("Mapping[str, Any]", value)}
        if "function" not in fields and not fields.keys().isdisjoint({"name", "arguments"}):
            fields["function"] = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
        return fields

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.function.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, parsed.

        Raises:
            DataError: The text is not a JSON object; it is in the message.
        """
        text = self.function.arguments
        try:
            parsed, why = leaves.parse_json(text), "are not a JSON object."
        except DataError as error:
            parsed, why = None, f"are not JSON: {error}"
        if not leaves.is_object(parsed):
            raise DataError(f"The arguments of tool call {self.name!r} {why} The text: {text}")
        return parsed


class Media(_ReadyMade):
    """What images, sound and files share: a media type, and either data in base64 or an address."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None

    _family: ClassVar[str] = ""
    _made_by: ClassVar[str] = " It is made by from_path(path), from_bytes(content) or from_url(url)."

    @classmethod
    def from_bytes(cls, content: bytes, media_type: str | None = None) -> Self:
        """Return an instance made from bytes.

        Args:
            content: The content of a file.
            media_type: Such as `image/png`; may be left out for a `File` only.

        Raises:
            DataError: The media type is missing.
            pydantic.ValidationError: The media type is of another kind.
        """
        return cls(media_type=cls._known(media_type), data=base64.b64encode(bytes(content)).decode("ascii"), url=None)

    @classmethod
    def from_path(cls, path: str | PathLike[str], media_type: str | None = None) -> Self:
        """Read a file at once, and return an instance; the path is not part of the data.

        Args:
            path: The file.
            media_type: Such as `image/png`; guessed from the name if None.

        Raises:
            ArgumentError: It is not a path.
            OSError: The file cannot be read.
            DataError: The media type cannot be guessed.
            pydantic.ValidationError: The media type is of another kind.
        """
        file = PurePath(leaves.path_text(path))
        with open(file, "rb") as opened:
            content = opened.read()
        known = MimeTypes().types_map[True]  # Python's own table alone: the same everywhere
        return cls.from_bytes(content, media_type or known.get(file.suffix.lower()))

    @classmethod
    def from_url(cls, url: str, media_type: str | None = None) -> Self:
        """Return an instance with an address; a `data:` address is decoded.

        Args:
            url: `http`, `https` or `data`.
            media_type: Such as `image/png`, where the address does not name it.

        Raises:
            DataError: The address is of another kind, or a `data:` address that cannot be read.
            pydantic.ValidationError: The media type is of another kind.
        """
        if url[:5].lower() == "data:":
            stated, content = _inside(url)
            return cls.from_bytes(content, media_type or stated)
        if not url.lower().startswith(_ADDRESS):
            raise DataError(f"The address {url!r:.100} is neither http, https nor data: read a file with from_path.")
        return cls(media_type=media_type, data=None, url=url)

    @classmethod
    def _known(cls, media_type: str | None) -> str:
        if media_type is None:
            raise DataError(f"{cls.__name__}: the media type is not known: write media_type='{cls._family}/...'.")
        return media_type

    def _faults(self) -> Iterator[_Fault]:
        """Yield why no message part can be made from it."""
        if (self.data is None) == (self.url is None):
            yield "data", "exactly one of data and url must be given", self.data
        if self.data is not None and not _is_base64(self.data):
            yield "data", "is not base64", self.data[:100]
        if self.url is not None and not self.url.lower().startswith(_ADDRESS):
            yield "url", "must begin with http:// or https://; a data: address goes through from_url", self.url
        stated = self.media_type
        if stated is None and self.data is not None:
            yield "media_type", "is required with data", None
        if stated is not None and not (re.fullmatch(_MEDIA_TYPE, stated, re.ASCII) and stated.startswith(self._family)):
            yield "media_type", f"must be a media type such as {self._family or 'text'}/...", stated

    def _data_address(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"


@registry.register_own()
class Image(Media):
    """An image: `{"media_type", "data": base64 or null, "url": address or null}`.

    Attributes:
        media_type: Such as `image/png`; may be None if there is a url.
        data: The image in base64, or None.
        url: Where it is (http, https), or None.

    Raises:
        pydantic.ValidationError: Not exactly one of data and url is given, or it is wrong; names the field.

    Example:
        >>> Image.from_url("https://example.com/a.png").url
        'https://example.com/a.png'

    Source: Synalinks' multimodal data models; differs: no file path in the data.
    """

    _family: ClassVar[str] = "image"

    def __synmod_part__(self) -> ImagePart:
        return ImagePart({"url": self.url or self._data_address()})


@registry.register_own()
class Audio(Media):
    """Sound: `{"media_type", "data": base64 or null, "url": address or null}`.

    Attributes:
        media_type: Such as `audio/wav`; may be None if there is a url.
        data: The sound in base64, or None.
        url: Where it is (http, https), or None; a message can only hold sound itself.

    Raises:
        pydantic.ValidationError: Not exactly one of data and url is given, or it is wrong; names the field.

    Example:
        >>> Audio.from_bytes(b"RIFF", "audio/wav").data
        'UklGRg=='

    Source: Synalinks' multimodal data models; differs: no file path in the data.
    """

    _family: ClassVar[str] = "audio"

    def __synmod_part__(self) -> AudioPart:
        if self.data is None or self.media_type is None:
            raise ValueError("sound at an address cannot be sent in a message: fetch it and use Audio.from_bytes")
        return AudioPart({"data": self.data, "format": _sound_format(self.media_type)})


@registry.register_own()
class File(Media):
    """A file of any kind: `{"media_type", "data": base64 or null, "url": address or null}`.

    Attributes:
        media_type: Such as `application/pdf`; may be None if there is a url.
        data: The file in base64, or None.
        url: Where it is (http, https), or None.

    Raises:
        pydantic.ValidationError: Not exactly one of data and url is given, or it is wrong; names the field.

    Example:
        >>> File.from_bytes(b"text").media_type
        'application/octet-stream'

    Source: Synalinks' multimodal data models; differs: no file path in the data.
    """

    @classmethod
    def _known(cls, media_type: str | None) -> str:
        return media_type or "application/octet-stream"

    def __synmod_part__(self) -> FilePart:
        if self.url is not None:
            return FilePart({"file_id": self.url, "format": self.media_type})
        return FilePart({"file_data": self._data_address(), "format": self.media_type})


def content_part(x: Any) -> Any:
    """Return the message part for an item of a content list: a str, image, sound or file; any other item as it is."""
    if isinstance(x, str):
        return TextPart(x)
    make: Any = getattr(x, "__synmod_part__", None)
    return make() if make and not isinstance(x, type) else x


_MEDIA_FIELDS: Final = frozenset(Media.model_fields)


def media_part(json: Any) -> ContentPart | None:
    """Return the part of a message for the JSON of an image, sound or a file; None for any other JSON.

    The media type decides which part it is, else the file name in the address; without either it is an image.

    Raises:
        ValueError: Sound at an address, which no message can hold.
    """
    if not leaves.is_object(json) or json.keys() != _MEDIA_FIELDS:
        return None
    stated = json["media_type"]
    family = stated if isinstance(stated, str) else MimeTypes().guess_type(str(json["url"]))[0] or Image._family
    kind = next((kind for kind in (Image, Audio) if family.startswith(kind._family)), File)
    try:
        media = kind(**json)
    except ValidationError:
        return None
    return media.__synmod_part__()


def _sound_format(media_type: str) -> str:
    kind = media_type.partition(";")[0].partition("/")[2].removeprefix("x-")
    return {"mpeg": "mp3", "wave": "wav", "mp4": "m4a"}.get(kind, kind)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _inside(url: str) -> tuple[str | None, bytes]:
    """Return media type and content of a `data:` address."""
    head, comma, body = url[5:].partition(",")
    if not comma:
        raise DataError(f"The address {url!r:.100} holds no data: a comma is missing.")
    content = unquote_to_bytes(body)
    if head.lower().endswith(";base64"):
        head = head[: -len(";base64")]
        try:
            content = base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise DataError(f"The address {url!r:.100} does not hold base64: {error}.") from None
    return head or None, content


Role = Literal["system", "developer", "user", "assistant", "tool"]


@registry.register_own()
class ChatMessage(_ReadyMade):
    """One message of a conversation.

    Args:
        role: The speaker: `system`, `developer`, `user`, `assistant` or `tool`.
        content: A text, or a list of parts; a str in the list becomes a text part, media become their parts.
        name: Name of the speaker.
        tool_calls: The tools that an assistant calls.
        tool_call_id: Which call a `tool` message answers.
        refusal: The assistant's words where it refused.
        reasoning_content: The provider's own reasoning, as text.
        thinking_blocks: The provider's own reasoning, opaque; sent back as it came.

    Raises:
        pydantic.ValidationError: A field is wrong, or does not go with the role; names the field.

    Example:
        >>> ChatMessage("user", "Hi").role
        'user'

    Source: OpenAI's chat completions; differs: keys that a provider adds to an assistant message stay, if they come in
    by a dict: `ChatMessages([{"role": "assistant", ..., "reasoning_details": [...]}])`.
    """

    model_config = _OPEN

    _positions: ClassVar[tuple[str, ...]] = ("role", "content")

    role: Role
    content: str | list[Annotated[ContentPart, BeforeValidator(content_part)]] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    thinking_blocks: list[Any] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            role: Role,
            content: str | Sequence[Any] | None = None,
            *,
            name: str | None = None,
            tool_calls: Sequence[ToolCall] | None = None,
            tool_call_id: str | None = None,
            refusal: str | None = None,
            reasoning_content: str | None = None,
            thinking_blocks: Sequence[Any] | None = None,
        ) -> None: ...

    def _faults(self) -> Iterator[_Fault]:
        """Yield the combinations of fields that no provider accepts."""
        is_more = self.tool_calls or self.refusal or self.reasoning_content or self.thinking_blocks or self.model_extra
        for name, value in (self.model_extra or {}).items() if self.role != "assistant" else ():
            yield name, "only the message of an assistant may hold keys of its provider", value
        if self.role == "tool" and self.tool_call_id is None:
            yield "tool_call_id", "a tool message needs the id of the call it answers", None
        if self.role != "tool" and self.tool_call_id is not None:
            yield "tool_call_id", "only a tool message answers a call", self.tool_call_id
        if self.role != "assistant" and self.tool_calls is not None:
            yield "tool_calls", "only an assistant calls tools", self.tool_calls
        if self.content is None and not (self.role == "assistant" and is_more):
            yield "content", "may be None only on an assistant with tool calls, a refusal or reasoning", None

    def __str__(self) -> str:
        """Show the role, and below it the text, with a line for each tool call; of media only the kind."""
        parts = [self.content] if isinstance(self.content, str) else self.content or []
        texts = [part if isinstance(part, str) else getattr(part, "text", f"[{part.type}]") for part in parts]
        calls = [f"{call.function.name}({call.function.arguments})" for call in self.tool_calls or ()]
        return "\n".join([f"── {self.role} ──", *texts, *calls])


class Prompt(list[ChatMessage]):
    """The messages of a prompt: a list that prints as a person reads it."""

    def __repr__(self) -> str:
        """Show the messages below one another."""
        return "\n\n".join(map(str, self))


@registry.register_own()
class ChatMessages(_ReadyMade):
    """A conversation.

    Args:
        messages: The messages in order; required, may be empty.

    Raises:
        pydantic.ValidationError: A message is wrong.

    Example:
        >>> ChatMessages([ChatMessage("user", "Hi")]).messages[0].content
        'Hi'

    Source: Synalinks' `ChatMessages`.
    """

    _positions: ClassVar[tuple[str, ...]] = ("messages",)

    messages: list[ChatMessage]

    if TYPE_CHECKING:

        def __init__(self, messages: Sequence[ChatMessage | dict[str, Any]]) -> None: ...


# -- scales ------------------------------------------------------------------------------------------------------------


@registry.register_own()
class Score(float, Enum):
    """From 0.0 to 1.0 by 0.1, named by percent: `Score.P90 == 0.9`."""

    P0 = 0.0
    P10 = 0.1
    P20 = 0.2
    P30 = 0.3
    P40 = 0.4
    P50 = 0.5
    P60 = 0.6
    P70 = 0.7
    P80 = 0.8
    P90 = 0.9
    P100 = 1.0


@registry.register_own()
class Rating(int, Enum):
    """From 1 to 5: `Rating.R4 == 4`."""

    R1 = 1
    R2 = 2
    R3 = 3
    R4 = 4
    R5 = 5


def normalize_score(value: Any, scale: type[Enum]) -> float:
    """Return a score on the range from 0 to 1.

    Args:
        value: A member of the scale, or a number between its ends.
        scale: An Enum whose members are all ints or all floats, finite, at least two.

    Returns:
        `(value - low) / (high - low)`.

    Raises:
        DataError: The value is outside the scale, a bool, NaN or not a number; or `scale` is not a scale.

    Example:
        >>> normalize_score(Rating.R4, Rating)
        0.75

    Source: Synalinks' score enums; differs: a 7 on a scale of 5 is an error, not a 1.0.
    """
    low, high = _ends(scale)
    number = value.value if isinstance(value, scale) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
        raise DataError(f"{value!r:.100} is not on the scale {scale.__name__}: write a number from {low} to {high}.")
    return float((number - low) / (high - low))


def _ends(scale: Any) -> tuple[float, float]:
    """Return the lowest and the highest member of a scale (DataError if it is not one)."""
    if isinstance(scale, type) and issubclass(scale, Enum):
        numbers: list[Any] = [member.value for member in scale]
        kinds: set[Any] = {type(number) for number in numbers}
        if len(numbers) > 1 and kinds in ({int}, {float}) and all(map(isfinite, numbers)):
            return min(numbers), max(numbers)
    raise DataError(
        f"{scale!r:.100} is not a scale: write an Enum with at least two members, all ints or all floats, finite."
    )
