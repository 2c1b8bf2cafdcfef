"""Images, sound and files as data: base64, or an address; never a path, and nothing is fetched here."""

from __future__ import annotations

import base64
import binascii
import re
from mimetypes import MimeTypes
from os import PathLike
from pathlib import PurePath
from typing import Any, ClassVar, Final, Self
from urllib.parse import unquote_to_bytes

from pydantic import model_validator

from synmod.data.messages.own_models import TOLD_BRIEFLY, FieldFault, refuse
from synmod.data.model import DataModel
from synmod.errors import DataError
from synmod.registry import register_own

from .content_parts import AudioPart, FilePart, ImagePart, TextPart

_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(;.*)?", re.ASCII)
_ADDRESS: Final = ("http://", "https://")


class Media(DataModel):
    """What images, sound and files share: a media type, and either data in base64 or an address."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None

    _family: ClassVar[str] = ""

    @classmethod
    def from_bytes(cls, content: bytes, media_type: str | None = None) -> Self:
        """Make it of bytes.

        Args:
            content: The content of a file.
            media_type: Such as `image/png`; only for files it may be left out.

        Raises:
            DataError: The media type is missing.
            pydantic.ValidationError: It is one of another kind.
        """
        return cls(media_type=cls._known(media_type), data=base64.b64encode(bytes(content)).decode("ascii"), url=None)

    @classmethod
    def from_path(cls, path: str | PathLike[str], media_type: str | None = None) -> Self:
        """Read a file at once; the path is no part of the data.

        Args:
            path: The file.
            media_type: Such as `image/png`; guessed from the name if None.

        Raises:
            OSError: The file cannot be read.
            DataError: The media type cannot be guessed.
            pydantic.ValidationError: It is one of another kind.
        """
        with open(path, "rb") as file:
            content = file.read()
        return cls.from_bytes(content, media_type or _guessed(PurePath(path).name))

    @classmethod
    def from_url(cls, url: str, media_type: str | None = None) -> Self:
        """Take an address as it is; a `data:` address is taken apart.

        Args:
            url: `http`, `https` or `data`.
            media_type: Such as `image/png`, where the address does not say.

        Raises:
            DataError: Another kind of address, or a `data:` address that cannot be read.
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
            raise DataError(f"{cls.__name__}: the media type is not known: give media_type='{cls._family}/...'.")
        return media_type

    @model_validator(mode="after")
    def _one_of_data_and_url(self) -> Self:
        """Refuse what no part could be made of."""
        faults: list[FieldFault] = []
        if (self.data is None) == (self.url is None):
            faults.append(("data", "exactly one of data and url must be given", self.data))
        if self.data is not None and not _is_base64(self.data):
            faults.append(("data", "is no base64", self.data[:100]))
        if self.url is not None and not self.url.lower().startswith(_ADDRESS):
            faults.append(
                ("url", "must begin with http:// or https://; a data: address goes through from_url", self.url)
            )
        if self.media_type is None:
            if self.data is not None:
                faults.append(("media_type", "is needed beside data", None))
        elif not (_MEDIA_TYPE.fullmatch(self.media_type) and self.media_type.startswith(self._family)):
            faults.append(("media_type", f"must be a media type such as {self._family or 'text'}/...", self.media_type))
        refuse(type(self).__name__, faults)
        return self

    def _data_address(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"


@register_own()
class Image(Media):
    """An image: `{"media_type", "data": base64 or null, "url": address or null}`.

    Args:
        media_type: Such as `image/png`; may be None beside an address.
        data: The image in base64, or None.
        url: Where it is (http, https), or None.

    Raises:
        pydantic.ValidationError: Not exactly one of data and url, or one that is wrong; names the field.

    Example:
        >>> Image.from_url("https://example.com/a.png").url
        'https://example.com/a.png'

    Source: Synalinks' multimodal data models; differs: no file path in the data.
    """

    model_config = TOLD_BRIEFLY

    _family: ClassVar[str] = "image"

    def __synmod_part__(self) -> ImagePart:
        return ImagePart({"url": self.url or self._data_address()})


@register_own()
class Audio(Media):
    """Sound: `{"media_type", "data": base64 or null, "url": address or null}`.

    Args:
        media_type: Such as `audio/wav`; may be None beside an address.
        data: The sound in base64, or None.
        url: Where it is (http, https), or None; a message can only hold sound itself.

    Raises:
        pydantic.ValidationError: Not exactly one of data and url, or one that is wrong; names the field.

    Example:
        >>> Audio.from_bytes(b"RIFF", "audio/wav").data
        'UklGRg=='

    Source: Synalinks' multimodal data models; differs: no file path in the data.
    """

    model_config = TOLD_BRIEFLY

    _family: ClassVar[str] = "audio"

    def __synmod_part__(self) -> AudioPart:
        if self.data is None or self.media_type is None:
            raise ValueError("sound at an address cannot stand in a message: fetch it and use Audio.from_bytes")
        return AudioPart({"data": self.data, "format": _sound_format(self.media_type)})


@register_own()
class File(Media):
    """A file of any kind: `{"media_type", "data": base64 or null, "url": address or null}`.

    Args:
        media_type: Such as `application/pdf`; may be None beside an address.
        data: The file in base64, or None.
        url: Where it is (http, https), or None.

    Raises:
        pydantic.ValidationError: Not exactly one of data and url, or one that is wrong; names the field.

    Example:
        >>> File.from_bytes(b"text").media_type
        'application/octet-stream'

    Source: Synalinks' multimodal data models; differs: no file path in the data.
    """

    model_config = TOLD_BRIEFLY

    @classmethod
    def _known(cls, media_type: str | None) -> str:
        return media_type or "application/octet-stream"

    def __synmod_part__(self) -> FilePart:
        if self.url is not None:
            return FilePart({"file_id": self.url, "format": self.media_type})
        return FilePart({"file_data": self._data_address(), "format": self.media_type})


def as_part(x: Any) -> Any:
    """Turn what stands in a list of content into a part: a str, an image, sound or a file; else give it back."""
    if isinstance(x, str):
        return TextPart(x)
    make: Any = getattr(x, "__synmod_part__", None)
    return make() if make and not isinstance(x, type) else x


def _guessed(name: str) -> str | None:
    """Guess a media type from a file name, by Python's own table alone: the same everywhere."""
    known = MimeTypes().types_map[True]
    return known.get(PurePath(name).suffix.lower())


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
    """Take a `data:` address apart: media type, content."""
    head, comma, body = url[5:].partition(",")
    if not comma:
        raise DataError(f"The address {url!r:.100} holds no data: there is no comma.")
    content = unquote_to_bytes(body)
    if head.lower().endswith(";base64"):
        head = head[: -len(";base64")]
        try:
            content = base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise DataError(f"The address {url!r:.100} holds no base64: {error}.") from None
    return head or None, content
