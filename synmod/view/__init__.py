"""Looking at a program: a summary as text, pictures of its modules, data flow, skips and Variables, a page of a trace.

Floor: 8. Purpose: `Module.summary`, `Module.plot`, `Tracer.to_html`, `format_variables`. State: entries in the tables
of the module room and of scope. Speed: linear in what is shown; nothing runs on the path of a call, and all but the
entries is loaded when somebody looks. Must never know: Program, training; how to draw with a program that is not here.
"""

from types import ModuleType
from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.view import entries

if TYPE_CHECKING:
    from synmod.view.plot import FORMATS
    from synmod.view.summary import COLUMNS
    from synmod.view.variables_table import format_variables

__all__ = ["COLUMNS", "FORMATS", "entries", "format_variables"]


def _parts() -> tuple[ModuleType, ...]:
    """Load what writes and draws."""
    from synmod.view import plot, summary, variables_table

    return plot, summary, variables_table


if TYPE_CHECKING:  # for the rooms above
    from synmod.view.layout import Measure as Measure
    from synmod.view.layout import Rectangle as Rectangle
    from synmod.view.layout import arranged as arranged
    from synmod.view.layout import labelled as labelled
    from synmod.view.layout.layers import layers_of as layers_of
    from synmod.view.layout.layers import without_circles as without_circles
    from synmod.view.layout.obstacles import points_of as points_of
    from synmod.view.layout.order import Layered as Layered
    from synmod.view.layout.places import places_across as places_across
    from synmod.view.letters import fitted as fitted
    from synmod.view.letters import text_width as text_width
    from synmod.view.timeline.page import trace_page as trace_page
    from synmod.view.timeline.rows import rows_of as rows_of

_FOR_ROOMS = {
    "Layered": "synmod.view.layout.order",
    "Measure": "synmod.view.layout",
    "Rectangle": "synmod.view.layout",
    "arranged": "synmod.view.layout",
    "fitted": "synmod.view.letters",
    "labelled": "synmod.view.layout",
    "layers_of": "synmod.view.layout.layers",
    "places_across": "synmod.view.layout.places",
    "points_of": "synmod.view.layout.obstacles",
    "rows_of": "synmod.view.timeline.rows",
    "text_width": "synmod.view.letters",
    "trace_page": "synmod.view.timeline.page",
    "without_circles": "synmod.view.layout.layers",
}
__getattr__, __dir__ = opened_late(globals(), _parts, inner=_FOR_ROOMS)
