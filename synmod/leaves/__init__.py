"""Small leaves: one idea a file, each usable by every room above.

Floor: 2. Purpose: frozen JSON, paths, names, suggestions, seeds, ids, clock, atomic files and the one async door.
State: none. Speed: a frozen value is frozen once; nothing here is on a call's path but ids and the clock.
Must never know: schemas, modules, models, any room above.
"""

from . import aio as aio
from .aio import (
    Clock as Clock, Gate as Gate, Signal as Signal, Suspended as Suspended, close_generator as close_generator,
    current_clock as current_clock, deadline_scope as deadline_scope, drive as drive, in_task as in_task,
    is_cancellation as is_cancellation, wall_time as wall_time,
)
from .files import write_atomic as write_atomic
from .frozen import (
    CONTAINERS as CONTAINERS, INT_END as INT_END, MAX_DIGITS as MAX_DIGITS, FrozenDict as FrozenDict,
    FrozenList as FrozenList, Json as Json, dump_json as dump_json, fill as fill, frozen as frozen,
    frozen_dict as frozen_dict, frozen_list as frozen_list, is_array as is_array, is_object as is_object,
    json_equal as json_equal, parse_frozen as parse_frozen, parse_json as parse_json, thaw as thaw,
)
from .names import (
    KeyPath as KeyPath, check_name as check_name, did_you_mean as did_you_mean, escape_step as escape_step,
    new_run_id as new_run_id, numbered as numbered, parse_path as parse_path, path_str as path_str, pointer as pointer,
    rng as rng, snake_case as snake_case, unused as unused,
)
from .nests import (
    DICTS as DICTS, LEAF as LEAF, MAPPING as MAPPING, MAX_DEPTH as MAX_DEPTH, SEQUENCE as SEQUENCE,
    NestPath as NestPath, Pairs as Pairs, aligned as aligned, copied as copied, is_leaf as is_leaf,
    is_namedtuple as is_namedtuple, is_registered_container as is_registered_container, kind_of as kind_of,
    leaves as leaves, leaves_with_path as leaves_with_path, map_leaves as map_leaves, pack as pack,
    parts_of as parts_of, put_together as put_together, take_apart as take_apart,
)
