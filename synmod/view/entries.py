"""What the module room asks of this one: a summary and a picture, put into its table when synmod is imported.

The room behind these two functions is loaded by the first who asks, so that `import synmod` stays quick.
"""

from __future__ import annotations

from typing import Any

from synmod.module.showing import SHOW


def _summary(*arguments: Any) -> str:
    """Write a summary."""
    from synmod.view.summary import summary

    return summary(*arguments)


def _plot(*arguments: Any) -> str:
    """Draw a picture."""
    from synmod.view.plot import plot

    return plot(*arguments)


SHOW["summary"] = _summary
SHOW["plot"] = _plot
