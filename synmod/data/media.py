"""Texts, images, sound and files: as parts of a message in the shape of chat completions, and as data."""

import base64
import binascii
import re
from collections.abc import Iterator
from mimetypes import MimeTypes
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self
from urllib.parse import unquote_to_bytes

from pydantic import Field, ValidationError

from synmod import leaves, registry
from synmod.errors import DataError

from .models import SHORT_DESCRIPTION, DataModel, FieldFault, ReadyMade

_MEDIA_TYPE: Final = r"[\w.+-]+/[\w.+-]+(;.*)?"
_ADDRESS: Final = ("http://", "https://")


@registry.register_own()
class TextPart(ReadyMade):
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

    type: Literal["text"]
    text: str

    if TYPE_CHECKING:

        def __init__(self, text: str) -> None: ...


class ImageAddress(DataModel):
    """Where an image is: a `data:` address that holds it, or one to fetch it from."""

    model_config = SHORT_DESCRIPTION

    url: str
    detail: Literal["auto", "low", "high"] | None = None


@registry.register_own()
class ImagePart(ReadyMade):
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

    type: Literal["image_url"]
    image_url: ImageAddress

    if TYPE_CHECKING:

        def __init__(self, image_url: ImageAddress | dict[str, Any]) -> None: ...


class AudioBytes(DataModel):
    """Sound in base64, and its format, such as `wav` or `mp3`."""

    model_config = SHORT_DESCRIPTION

    data: str
    format: str


@registry.register_own()
class AudioPart(ReadyMade):
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

    type: Literal["input_audio"]
    input_audio: AudioBytes

    if TYPE_CHECKING:

        def __init__(self, input_audio: AudioBytes | dict[str, Any]) -> None: ...


class FileContent(DataModel):
    """A file: a `data:` address that holds it, or the id or address by which the provider finds it."""

    model_config = SHORT_DESCRIPTION

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None
    format: str | None = None


@registry.register_own()
class FilePart(ReadyMade):
    """A file: `{"type": "file", "file": {"file_data": ...}}`.

    Args:
        file: Its content, or its id or address.

    Raises:
        pydantic.ValidationError: It is wrong.

    Example:
        >>> FilePart({"file_id": "file-1"}).file.file_id
        'file-1'

    Source: OpenAI's chat completions.
    """

    type: Literal["file"]
    file: FileContent

    if TYPE_CHECKING:

        def __init__(self, file: FileContent | dict[str, Any]) -> None: ...


ContentPart = Annotated[TextPart | ImagePart | AudioPart | FilePart, Field(discriminator="type")]
"""Any part."""


class Media(ReadyMade):
    """What images, sound and files share: a media type, and either data in base64 or an address."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None

    _positions: ClassVar[tuple[str, ...] | None] = ()
    _family: ClassVar[str] = ""
    _constructors: ClassVar[str] = " It is made by from_path(path), from_bytes(content) or from_url(url)."

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
        text = base64.b64encode(bytes(content)).decode("ascii")
        return cls(media_type=cls._require_media_type(media_type), data=text, url=None)

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
        table = MimeTypes().types_map[True]  # Python's own alone: the same everywhere
        return cls.from_bytes(content, media_type or table.get(file.suffix.lower()))

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
            stated, content = _decode_data_address(url)
            return cls.from_bytes(content, media_type or stated)
        if not url.lower().startswith(_ADDRESS):
            raise DataError(f"The address {url!r:.100} is neither http, https nor data: read a file with from_path.")
        return cls(media_type=media_type, data=None, url=url)

    @classmethod
    def _require_media_type(cls, media_type: str | None) -> str:
        if media_type is None:
            raise DataError(f"{cls.__name__}: the media type is not known: write media_type='{cls._family}/...'.")
        return media_type

    def _faults(self) -> Iterator[FieldFault]:
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
    def _require_media_type(cls, media_type: str | None) -> str:
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


def _decode_data_address(url: str) -> tuple[str | None, bytes]:
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
