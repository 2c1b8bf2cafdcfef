"""What flows through a program: JSON values, their schemas, data models, symbols, and the algebra over them.

Floor: 3. Purpose: frozen JSON, closed and bounded schemas, validation, structural subtyping, models and operators.
State: bounded caches only. Speed: the schema of a class is one dictionary read; a known subschema takes below 0.5 µs.
Must never know: an event loop, a file, a socket, a clock, modules, language models, any room above.

A block of your own can use what ours use: `JsonDataModel.of(json, schema)` makes a value from valid parts,
`symbol(schema)` a symbol, and `schema_of(x)`, `model_of(x)` and `label(x)` read the schema, the class and the label of
a value, symbol, class or instance. `declare(x)` turns any declaration into a schema.
"""

from synmod.leaves import dump_json, frozen, json_equal, parse_frozen, parse_json, thaw

from . import ops
from .checking import schema_from
from .validation import (
    dump, is_valid, plain_json, problems, schema_of_class, typed_instance, validate, validator_faults,
)
from .merge import items_of, with_items
from .messages import (
    TOLD_BRIEFLY, Audio, AudioPart, ChatMessage, ChatMessages, File, FilePart, Image, ImagePart, Prompt, Rating, Score,
    TextPart, ToolCall, content_part, media_part, normalize_score,
)
from .models import (
    DataModel, Described, JsonDataModel, SymbolTracing, SymbolicDataModel, Wrapped, admit, declaration, declare,
    is_symbolic, label, label_of, model_of, schema_of, symbol, to_value, wrap,
)
from .ops import OPERATIONS, contains, is_subschema
from .schema import Schema, is_unchecked, parts_of, portable, rereferenced, target_of, trusted_schema, unchecked_schema
from .subschema import includes

__all__ = [
    "OPERATIONS", "TOLD_BRIEFLY", "Audio", "AudioPart", "ChatMessage", "ChatMessages", "DataModel", "Described", "File",
    "FilePart", "Image", "ImagePart", "JsonDataModel", "Prompt", "Rating", "Schema", "Score", "SymbolTracing",
    "SymbolicDataModel", "TextPart", "ToolCall", "Wrapped", "admit", "contains", "content_part", "declaration",
    "declare", "dump", "dump_json", "frozen", "includes", "is_subschema", "is_symbolic", "is_unchecked", "is_valid",
    "items_of", "json_equal", "label", "label_of", "media_part", "model_of", "normalize_score", "ops", "parse_frozen",
    "parse_json", "parts_of", "plain_json", "portable", "problems", "rereferenced", "schema_from", "schema_of",
    "schema_of_class", "symbol", "target_of", "thaw", "to_value", "trusted_schema", "typed_instance",
    "unchecked_schema", "validate", "validator_faults", "with_items", "wrap",
]
