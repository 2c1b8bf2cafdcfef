"""Looking at a program: a summary as text, pictures of its modules, data flow, skips and Variables, a page of a trace.

Floor: 8. Purpose: `Module.summary`, `Module.plot`, `Tracer.to_html`, `format_variables`. State: entries in the tables
of the module room and of scope. Speed: linear in what is shown; nothing runs on the path of a call.
Must never know: Program, training; how to draw with a program that is not here.
"""

from synmod.module import ABOVE
from synmod.scope import PAGES

from .picture import trace_page
from .plotting import FORMATS, plot
from .summary import COLUMNS, format_variables, summary

__all__ = ["COLUMNS", "FORMATS", "format_variables", "plot", "summary", "trace_page"]

ABOVE["summary"] = summary
ABOVE["plot"] = plot
PAGES["html"] = trace_page
