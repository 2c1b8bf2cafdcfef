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
from .declaring import (
    HasSchema, Operand, OperandClass, build_instance, declaration, declare, dump, label, label_of, model_of, own_field,
    plain_json, run_validators, schema_from, schema_of, schema_of_class,
)
from .faults import is_valid, problems, validate
from .media import Audio, AudioPart, File, FilePart, Image, ImagePart, TextPart, content_part, media_part
from .merge import items_of, with_items
from .messages import ChatMessage, ChatMessages, Prompt, ToolCall
from .models import (
    SHORT_DESCRIPTION, DataModel, JsonDataModel, SymbolicDataModel, SymbolTracing, Wrapped, is_symbolic, symbol,
    to_value, value_from, wrap,
)
from .ops import OPERATIONS, contains, is_subschema
from .scales import RUBRICS, Rating, Score, normalize_score
from .schema import Schema, foreign_schema, intern_schema, is_foreign, map_references, parts_of, portable, target_of
from .subschema import includes
from .tables import ROW_READERS, Cells, import_for

__all__ = [
    "OPERATIONS", "ROW_READERS", "RUBRICS", "SHORT_DESCRIPTION", "Audio", "AudioPart", "Cells", "ChatMessage",
    "ChatMessages", "DataModel", "File", "FilePart", "HasSchema", "Image", "ImagePart", "JsonDataModel", "Prompt",
    "Rating", "Schema", "Score", "SymbolTracing", "SymbolicDataModel", "TextPart", "ToolCall", "Wrapped",
    "build_instance", "contains", "content_part", "declaration", "declare", "dump", "dump_json", "foreign_schema",
    "frozen", "import_for", "includes", "intern_schema", "is_foreign", "is_subschema", "is_symbolic", "is_valid",
    "items_of", "json_equal", "label", "label_of", "map_references", "media_part", "model_of", "normalize_score",
    "ops", "own_field", "parse_frozen", "parse_json", "parts_of", "plain_json", "portable", "problems",
    "run_validators", "schema_from", "schema_of", "schema_of_class", "symbol", "target_of", "thaw", "to_value",
    "validate", "value_from", "with_items", "wrap",
]

# The operators are functions of `ops`, which needs the classes.
_BINARY = {"add": ops.concat, "and": ops.logical_and, "xor": ops.logical_xor}
ops.bind_operators(Operand, {**_BINARY, "or": ops.logical_or})
ops.bind_operators(OperandClass, _BINARY)  # `|` stays Python's union of types
for method in (ops.in_mask, ops.out_mask, ops.prefix, ops.suffix, ops.factorize):
    setattr(HasSchema, method.__name__, method)
