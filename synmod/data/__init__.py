"""What flows through a program: JSON values, their schemas, data models, symbols, and the algebra over them.

Floor: 3. Purpose: frozen JSON, closed and bounded schemas, validation, structural subtyping, models and operators.
State: bounded caches only. Speed: a schema of a class is one dictionary read; a known subschema is below 0.5 µs.
Must never know: an event loop, a file, a socket, a clock, modules, models of language, any room above.

A block of your own finds here what ours use: `JsonDataModel.of(json, schema)` makes a value of parts that are valid,
`symbol(schema)` a symbol, and `schema_of(x)`, `model_of(x)` and `label(x)` read the schema, the class and the label of
a value, symbol, class or instance. `declare(x)` turns any declaration into a schema.
"""

from synmod.leaves.frozen import (
    dump_json as dump_json, frozen as frozen, json_equal as json_equal, parse_frozen as parse_frozen,
    parse_json as parse_json, thaw as thaw,
)

from . import ops as ops
from .class_schema import dump as dump, schema_of_class as schema_of_class
from .merge import items_of as items_of, with_items as with_items
from .messages import (
    TOLD_BRIEFLY as TOLD_BRIEFLY, Audio as Audio, AudioPart as AudioPart, ChatMessage as ChatMessage,
    ChatMessages as ChatMessages, File as File, FilePart as FilePart, Image as Image, ImagePart as ImagePart,
    TextPart as TextPart, ToolCall as ToolCall,
)
from .model import DataModel as DataModel
from .ops import OPERATIONS as OPERATIONS
from .parts import parts_of as parts_of, portable as portable
from .scales import Rating as Rating, Score as Score, normalize_score as normalize_score
from .schema import Schema as Schema, schema_from as schema_from, trusted_schema as trusted_schema
from .subschema import contains as contains, includes as includes, is_subschema as is_subschema
from .subschemas import target_of as target_of
from .symbols import (
    RECORDERS as RECORDERS, Described as Described, SymbolicDataModel as SymbolicDataModel, declaration as declaration,
    declare as declare, is_symbolic as is_symbolic, label as label, label_of as label_of, model_of as model_of,
    schema_of as schema_of, symbol as symbol,
)
from .validation import is_valid as is_valid, problems as problems, validate as validate
from .value import (
    JsonDataModel as JsonDataModel, admit as admit, to_value as to_value, typed_instance as typed_instance,
    validator_faults as validator_faults, wrap as wrap,
)
