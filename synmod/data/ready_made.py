"""The data models and scales that come with synmod: made on first use, since pydantic takes its time."""

from synmod.data.content_parts import AudioPart, FilePart, ImagePart, TextPart
from synmod.data.media import Audio, File, Image
from synmod.data.messages import ChatMessage, ChatMessages
from synmod.data.scales import FineScore, Rating, Rating10, Rating20, Score, normalize_score
from synmod.data.tool_call import ToolCall

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
