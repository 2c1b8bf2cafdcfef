"""The data models and scales that come with synmod: made on first use, since pydantic takes its time."""

from .content_parts import AudioPart, FilePart, ImagePart, TextPart
from .media import Audio, File, Image
from .messages import ChatMessage, ChatMessages
from .scales import FineScore, Rating, Rating10, Rating20, Score, normalize_score
from .tool_call import ToolCall

__all__ = [
    "Audio",
    "AudioPart",
    "ChatMessage",
    "ChatMessages",
    "File",
    "FilePart",
    "FineScore",
    "Image",
    "ImagePart",
    "Rating",
    "Rating10",
    "Rating20",
    "Score",
    "TextPart",
    "ToolCall",
    "normalize_score",
]
