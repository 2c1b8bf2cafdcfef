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


__getattr__, __dir__ = opened_late(globals(), _parts)
