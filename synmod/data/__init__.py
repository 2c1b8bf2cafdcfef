"""What flows through a program: JSON values, their schemas, data models, symbols, and the algebra over them.

Floor: 3. Purpose: frozen JSON, closed and bounded schemas, validation, structural subtyping, models and operators.
State: bounded caches only. Speed: a schema of a class is one dictionary read; a known subschema is below 0.5 µs.
Must never know: an event loop, a file, a socket, a clock, modules, models of language, any room above.

A block of your own finds here what ours use: `JsonDataModel.of(json, schema)` makes a value of parts that are valid,
`symbol(schema)` a symbol, and `schema_of(x)`, `model_of(x)` and `label(x)` read the schema, the class and the label of
a value, symbol, class or instance. `declare(x)` turns any declaration into a schema.
"""

from synmod.leaves import (
    dump_json as dump_json, frozen as frozen, json_equal as json_equal, parse_frozen as parse_frozen,
    parse_json as parse_json, thaw as thaw,
)

from . import ops as ops
from .checking import schema_from as schema_from
from .validation import (
    dump as dump, is_valid as is_valid, problems as problems, schema_of_class as schema_of_class,
    typed_instance as typed_instance, validate as validate, validator_faults as validator_faults,
)
from .merge import items_of as items_of, with_items as with_items
from .messages import (
    TOLD_BRIEFLY as TOLD_BRIEFLY, Audio as Audio, AudioPart as AudioPart, ChatMessage as ChatMessage,
    ChatMessages as ChatMessages, File as File, FilePart as FilePart, Image as Image, ImagePart as ImagePart,
    Rating as Rating, Score as Score, TextPart as TextPart, ToolCall as ToolCall, normalize_score as normalize_score,
)
from .models import (
    RECORDERS as RECORDERS, DataModel as DataModel, Described as Described, JsonDataModel as JsonDataModel,
    SymbolicDataModel as SymbolicDataModel, admit as admit, declaration as declaration, declare as declare,
    is_symbolic as is_symbolic, label as label, label_of as label_of, model_of as model_of, schema_of as schema_of,
    symbol as symbol, to_value as to_value, wrap as wrap,
)
from .ops import OPERATIONS as OPERATIONS, contains as contains, is_subschema as is_subschema
from .schema import (
    Schema as Schema, parts_of as parts_of, portable as portable, target_of as target_of,
    trusted_schema as trusted_schema,
)
from .subschema import includes as includes
