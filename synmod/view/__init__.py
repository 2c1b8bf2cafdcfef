"""Views of a program: a text summary, pictures of modules, data flow, skips and Variables, and pages of traces.

Floor: 8. Purpose: `Module.summary`, `Module.plot`, `Tracer.to_html`, the pages of training, `format_variables`. State:
none. Speed: linear in the size of what is shown; nothing runs during a call.
Must never know: Program, training; external drawing programs.
"""

from .pages import evaluation_page, history_page, trace_page
from .plotting import FORMATS, plot
from .summary import COLUMNS, format_variables, summary

__all__ = [
    "COLUMNS", "FORMATS", "evaluation_page", "format_variables", "history_page", "plot", "summary", "trace_page",
]
