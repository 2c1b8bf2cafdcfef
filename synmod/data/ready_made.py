"""The data models and scales that come with synmod: made on first use, since pydantic takes its time."""

from synmod.data.messages.chat import ChatMessage, ChatMessages
from synmod.data.messages.content_parts import AudioPart, FilePart, ImagePart, TextPart
from synmod.data.messages.media import Audio, File, Image
from synmod.data.messages.tool_call import ToolCall

from .scales import FineScore, Rating, Rating10, Rating20, Score, normalize_score

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
