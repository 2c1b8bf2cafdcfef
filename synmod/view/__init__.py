"""Views of a program: a text summary, pictures of modules, data flow, skips and Variables, and a page of a trace.

Floor: 8. Purpose: `Module.summary`, `Module.plot`, `Tracer.to_html`, `format_variables`. State: none.
Speed: linear in the size of what is shown; nothing runs during a call.
Must never know: Program, training; external drawing programs.
"""

from .pages import trace_page
from .plotting import FORMATS, plot
from .summary import COLUMNS, format_variables, summary

__all__ = ["COLUMNS", "FORMATS", "format_variables", "plot", "summary", "trace_page"]
