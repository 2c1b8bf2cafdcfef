"""Parts of a message's content, told apart by `type`, in the shape of chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from synmod.data.messages.own_models import TOLD_BRIEFLY, positional
from synmod.data.model import DataModel
from synmod.registry import register_own


@register_own()
class TextPart(DataModel):
    """A text among other parts: `{"type": "text", "text": ...}`.

    Args:
        text: The text.

    Raises:
        pydantic.ValidationError: It is no text.

    Example:
        >>> TextPart("Hi").get_json()
        {'type': 'text', 'text': 'Hi'}

    Source: OpenAI's chat completions.
    """

    model_config = TOLD_BRIEFLY

    type: Literal["text"]
    text: str

    if TYPE_CHECKING:

        def __init__(self, text: str) -> None: ...

    else:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**{"type": "text", **positional("TextPart", ("text",), args, fields)})


class ImageAddress(DataModel):
    """Where an image is: a `data:` address that holds it, or one to fetch it from."""

    url: str
    detail: Literal["auto", "low", "high"] | None = None


@register_own()
class ImagePart(DataModel):
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

    model_config = TOLD_BRIEFLY

    type: Literal["image_url"]
    image_url: ImageAddress

    if TYPE_CHECKING:

        def __init__(self, image_url: ImageAddress | dict[str, Any]) -> None: ...

    else:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**{"type": "image_url", **positional("ImagePart", ("image_url",), args, fields)})


class AudioBytes(DataModel):
    """Sound in base64, and its format, such as `wav` or `mp3`."""

    data: str
    format: str


@register_own()
class AudioPart(DataModel):
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

    model_config = TOLD_BRIEFLY

    type: Literal["input_audio"]
    input_audio: AudioBytes

    if TYPE_CHECKING:

        def __init__(self, input_audio: AudioBytes | dict[str, Any]) -> None: ...

    else:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**{"type": "input_audio", **positional("AudioPart", ("input_audio",), args, fields)})


class FileContent(DataModel):
    """A file: a `data:` address that holds it, or the id or address by which the provider finds it."""

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None
    format: str | None = None


@register_own()
class FilePart(DataModel):
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

    model_config = TOLD_BRIEFLY

    type: Literal["file"]
    file: FileContent

    if TYPE_CHECKING:

        def __init__(self, file: FileContent | dict[str, Any]) -> None: ...

    else:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**{"type": "file", **positional("FilePart", ("file",), args, fields)})


ContentPart = Annotated[TextPart | ImagePart | AudioPart | FilePart, Field(discriminator="type")]
"""Any part."""
