"""What lower rooms ask of this one: a module's summary and picture, a trace's page; put into their tables at import.

The room behind these functions is loaded by the first who asks, so that `import synmod` stays quick.
"""

from __future__ import annotations

from typing import Any

from synmod.module import SHOW
from synmod.scope import PAGES


def _summary(*arguments: Any) -> str:
    """Write a summary."""
    from synmod.view.summary import summary

    return summary(*arguments)


def _plot(*arguments: Any) -> str:
    """Draw a picture."""
    from synmod.view.plot import plot

    return plot(*arguments)


def _trace_page(*arguments: Any) -> str:
    """Draw a trace."""
    from synmod.view.timeline.page import trace_page

    return trace_page(*arguments)


SHOW["summary"] = _summary
SHOW["plot"] = _plot
PAGES["html"] = _trace_page
