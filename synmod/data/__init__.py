"""What flows through a program: JSON values, their schemas, data models, symbols, and the algebra over them.

Floor: 3. Purpose: frozen JSON, closed and bounded schemas, validation, structural subtyping, models and operators.
State: bounded caches only. Speed: a schema of a class is one dictionary read; a known subschema is below 0.5 µs.
Must never know: an event loop, a file, a socket, a clock, modules, models of language, any room above.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from synmod.data.algebra.contain import contains
from synmod.data.models.model import DataModel
from synmod.data.models.symbol import SymbolicDataModel, is_symbolic
from synmod.data.models.value import JsonDataModel
from synmod.data.schemas.schema import Schema
from synmod.data.subtyping.subtype import is_subschema
from synmod.leaves.frozen import frozen, json_equal, thaw
from synmod.leaves.late import opened_late
from synmod.registry import own_later

from .algebra import ops
from .text import dump_json, parse_json

if TYPE_CHECKING:
    from types import ModuleType

    from .ready_made import (
        Audio,
        AudioPart,
        ChatMessage,
        ChatMessages,
        File,
        FilePart,
        FineScore,
        Image,
        ImagePart,
        Rating,
        Rating10,
        Rating20,
        Score,
        TextPart,
        ToolCall,
        normalize_score,
    )

__all__ = [
    "Audio",
    "AudioPart",
    "ChatMessage",
    "ChatMessages",
    "DataModel",
    "File",
    "FilePart",
    "FineScore",
    "Image",
    "ImagePart",
    "JsonDataModel",
    "Rating",
    "Rating10",
    "Rating20",
    "Schema",
    "Score",
    "SymbolicDataModel",
    "TextPart",
    "ToolCall",
    "contains",
    "dump_json",
    "frozen",
    "is_subschema",
    "is_symbolic",
    "json_equal",
    "normalize_score",
    "ops",
    "parse_json",
    "thaw",
]


def _parts() -> tuple[ModuleType, ...]:
    """Make the ready-made data models."""
    from . import ready_made

    return (ready_made,)


__getattr__, __dir__ = opened_late(globals(), _parts)
own_later(partial(__getattr__, "Score"))
