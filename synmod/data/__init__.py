"""What flows through a program: JSON values, their schemas, data models, symbols, and the algebra over them.

Floor: 3. Purpose: frozen JSON, closed and bounded schemas, validation, structural subtyping, models and operators.
State: bounded caches only. Speed: a schema of a class is one dictionary read; a known subschema is below 0.5 µs.
Must never know: an event loop, a file, a socket, a clock, modules, models of language, any room above.

A block of your own finds here what ours use: `JsonDataModel.of(json, schema)` makes a value of parts that are valid,
`symbol(schema)` a symbol, and `schema_of(x)`, `model_of(x)` and `label(x)` read the schema, the class and the label of
a value, symbol, class or instance. `declare(x)` turns any declaration into a schema.
"""

from synmod.leaves.frozen import frozen, json_equal, thaw

from . import ops
from .class_schema import dump, schema_of_class
from .masks import patterns_of
from .merge import items_of, with_items
from .messages import (
    TOLD_BRIEFLY,
    Audio,
    AudioPart,
    ChatMessage,
    ChatMessages,
    File,
    FilePart,
    Image,
    ImagePart,
    TextPart,
    ToolCall,
)
from .model import DataModel
from .ops import OPERATIONS, checked_prefix, checked_suffix
from .parts import parts_of, portable
from .scales import Rating, Score, normalize_score
from .schema import Schema, schema_from, trusted_schema
from .subschema import contains, includes, is_subschema
from .symbols import (
    RECORDERS,
    Described,
    SymbolicDataModel,
    declaration,
    declare,
    is_symbolic,
    label,
    label_of,
    model_of,
    schema_of,
    symbol,
)
from .text import dump_json, parse_frozen, parse_json
from .validation import is_valid, problems, validate
from .value import JsonDataModel, admit, to_value, typed_instance, validator_faults, wrap

__all__ = [
    "OPERATIONS",
    "RECORDERS",
    "TOLD_BRIEFLY",
    "Audio",
    "AudioPart",
    "ChatMessage",
    "ChatMessages",
    "DataModel",
    "Described",
    "File",
    "FilePart",
    "Image",
    "ImagePart",
    "JsonDataModel",
    "Rating",
    "Schema",
    "Score",
    "SymbolicDataModel",
    "TextPart",
    "ToolCall",
    "admit",
    "checked_prefix",
    "checked_suffix",
    "contains",
    "declaration",
    "declare",
    "dump",
    "dump_json",
    "frozen",
    "includes",
    "is_subschema",
    "is_symbolic",
    "is_valid",
    "items_of",
    "json_equal",
    "label",
    "label_of",
    "model_of",
    "normalize_score",
    "ops",
    "parse_frozen",
    "parse_json",
    "parts_of",
    "patterns_of",
    "portable",
    "problems",
    "schema_from",
    "schema_of",
    "schema_of_class",
    "symbol",
    "thaw",
    "to_value",
    "trusted_schema",
    "typed_instance",
    "validate",
    "validator_faults",
    "with_items",
    "wrap",
]
