"""Small leaves: one idea per file, each usable by every room above.

Floor: 2. Purpose: frozen JSON, paths, names, suggestions, seeds, ids, clock, atomic files, secrets, the one async door.
State: the secrets in use, which no file may hold. Speed: a frozen value is frozen once; nothing here but ids and the
clock is on a call's path.
Must never know: schemas, modules, models, any room above.
"""

# pyright: reportUnusedImport=false
# imported by the rooms above only: it has no public names

__version__ = "0.1.0"  # the build reads it here, too

from . import aio
from .aio import (
    Clock, Gate, Signal, Suspended, close_generator, current_clock, deadline_scope, drive, in_task, is_cancellation,
    is_driven, reset, set_in_block, wall_time,
)
from .files import (
    SHORTEST_SECRET, escape_html, html_frame, html_table, make_file, make_folder, path_text, remember_secrets, scrub,
    scrub_json, stage_file, without_secrets, write_atomic,
)
from .frozen import (
    CONTAINERS, INT_END, MAX_DIGITS, FrozenDict, FrozenList, Json, dump_json, empty_object, fill, frozen, frozen_dict,
    frozen_equal, frozen_list, is_array, is_mapping, is_object, is_sequence, json_equal, mend, parse_frozen,
    parse_json, thaw,
)
from .names import (
    KeyPath, check_choice, check_int, check_name, check_number, check_seconds, check_type, checks_keywords,
    did_you_mean, escape_step, find_cycle, must_be, next_name, parse_path, path_str, pointer, snake_case, unique_name,
    with_label,
)
from .nests import (
    DICTS, LEAF, MAPPING, MAX_DEPTH, SEQUENCE, NestPath, Pairs, align_nests, copy_nest, is_leaf, is_namedtuple,
    is_registered_container, kind_of, leaves, leaves_with_path, map_leaves, pack, parts_of, unflatten_one_level,
    flatten_one_level,
)
from .randomness import new_run_id, rng
