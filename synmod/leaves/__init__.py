"""Small leaves: one idea a file, each usable by every room above.

Floor: 2. Purpose: frozen JSON, paths, names, suggestions, seeds, ids, clock, atomic files and the one async door.
State: none. Speed: a frozen value is frozen once; nothing here is on a call's path but ids and the clock.
Must never know: schemas, modules, models, any room above.
"""

from . import aio
from .aio import (
    Clock, Gate, Signal, Suspended, close_generator, current_clock, deadline_scope, drive, in_task, is_cancellation,
    wall_time,
)
from .files import write_atomic
from .frozen import (
    CONTAINERS, INT_END, MAX_DIGITS, FrozenDict, FrozenList, Json, dump_json, fill, frozen, frozen_dict, frozen_list,
    is_array, is_object, json_equal, parse_frozen, parse_json, thaw,
)
from .names import (
    KeyPath, check_name, did_you_mean, escape_step, new_run_id, numbered, parse_path, path_str, pointer, rng,
    snake_case, unused, with_label,
)
from .notebook import html_frame, html_table
from .nests import (
    DICTS, LEAF, MAPPING, MAX_DEPTH, SEQUENCE, NestPath, Pairs, aligned, copied, is_leaf, is_namedtuple,
    is_registered_container, kind_of, leaves, leaves_with_path, map_leaves, pack, parts_of, put_together, take_apart,
)

__all__ = [
    "CONTAINERS", "DICTS", "INT_END", "LEAF", "MAPPING", "MAX_DEPTH", "MAX_DIGITS", "SEQUENCE", "Clock", "FrozenDict",
    "FrozenList", "Gate", "Json", "KeyPath", "NestPath", "Pairs", "Signal", "Suspended", "aio", "aligned", "check_name",
    "close_generator", "copied", "current_clock", "deadline_scope", "did_you_mean", "drive", "dump_json", "escape_step",
    "fill", "frozen", "frozen_dict", "frozen_list", "html_frame", "html_table", "in_task", "is_array",
    "is_cancellation", "is_leaf", "is_namedtuple", "is_object", "is_registered_container", "json_equal", "kind_of",
    "leaves", "leaves_with_path", "map_leaves", "new_run_id", "numbered", "pack", "parse_frozen", "parse_json",
    "parse_path", "parts_of", "path_str", "pointer", "put_together", "rng", "snake_case", "take_apart", "thaw",
    "unused", "wall_time", "with_label", "write_atomic",
]
