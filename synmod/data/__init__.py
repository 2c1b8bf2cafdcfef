"""What flows through a program: JSON values, their schemas, data models, symbols, and the algebra over them.

Floor: 3. Purpose: frozen JSON, closed and bounded schemas, validation, structural subtyping, models and operators.
State: bounded caches only. Speed: a schema of a class is one dictionary read; a known subschema is below 0.5 µs.
Must never know: an event loop, a file, a socket, a clock, modules, models of language, any room above.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from synmod.leaves.frozen import frozen, json_equal, thaw
from synmod.leaves.late import opened_late
from synmod.registry import own_later

from . import ops
from .model import DataModel
from .schema import Schema
from .subschema import contains, is_subschema
from .symbols import SymbolicDataModel, is_symbolic
from .text import dump_json, parse_json
from .value import JsonDataModel

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


if TYPE_CHECKING:  # for the rooms above
    from synmod.data.class_schema import dump as dump
    from synmod.data.class_schema import schema_of_class as schema_of_class
    from synmod.data.masks import patterns_of as patterns_of
    from synmod.data.merge import items_of as items_of
    from synmod.data.merge import with_items as with_items
    from synmod.data.messages.own_models import TOLD_BRIEFLY as TOLD_BRIEFLY
    from synmod.data.ops import OPERATIONS as OPERATIONS
    from synmod.data.ops import checked_prefix as checked_prefix
    from synmod.data.ops import checked_suffix as checked_suffix
    from synmod.data.parts import parts_of as parts_of
    from synmod.data.parts import portable as portable
    from synmod.data.schema import schema_from as schema_from
    from synmod.data.schema import trusted_schema as trusted_schema
    from synmod.data.subschema import includes as includes
    from synmod.data.symbols import RECORDERS as RECORDERS
    from synmod.data.symbols import Described as Described
    from synmod.data.symbols import declaration as declaration
    from synmod.data.symbols import declare as declare
    from synmod.data.symbols import label as label
    from synmod.data.symbols import label_of as label_of
    from synmod.data.symbols import model_of as model_of
    from synmod.data.symbols import schema_of as schema_of
    from synmod.data.symbols import symbol as symbol
    from synmod.data.text import parse_frozen as parse_frozen
    from synmod.data.validation import is_valid as is_valid
    from synmod.data.validation import problems as problems
    from synmod.data.validation import validate as validate
    from synmod.data.value import admit as admit
    from synmod.data.value import to_value as to_value
    from synmod.data.value import typed_instance as typed_instance
    from synmod.data.value import validator_faults as validator_faults
    from synmod.data.value import wrap as wrap

_FOR_ROOMS = {
    "Described": "synmod.data.symbols",
    "OPERATIONS": "synmod.data.ops",
    "RECORDERS": "synmod.data.symbols",
    "TOLD_BRIEFLY": "synmod.data.messages.own_models",
    "admit": "synmod.data.value",
    "checked_prefix": "synmod.data.ops",
    "checked_suffix": "synmod.data.ops",
    "declaration": "synmod.data.symbols",
    "declare": "synmod.data.symbols",
    "dump": "synmod.data.class_schema",
    "includes": "synmod.data.subschema",
    "is_valid": "synmod.data.validation",
    "items_of": "synmod.data.merge",
    "label": "synmod.data.symbols",
    "label_of": "synmod.data.symbols",
    "model_of": "synmod.data.symbols",
    "parse_frozen": "synmod.data.text",
    "parts_of": "synmod.data.parts",
    "patterns_of": "synmod.data.masks",
    "portable": "synmod.data.parts",
    "problems": "synmod.data.validation",
    "schema_from": "synmod.data.schema",
    "schema_of": "synmod.data.symbols",
    "schema_of_class": "synmod.data.class_schema",
    "symbol": "synmod.data.symbols",
    "to_value": "synmod.data.value",
    "trusted_schema": "synmod.data.schema",
    "typed_instance": "synmod.data.value",
    "validate": "synmod.data.validation",
    "validator_faults": "synmod.data.value",
    "with_items": "synmod.data.merge",
    "wrap": "synmod.data.value",
}
__getattr__, __dir__ = opened_late(globals(), _parts, inner=_FOR_ROOMS)
own_later(partial(__getattr__, "Score"))
