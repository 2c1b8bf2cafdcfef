"""`sm.last`: the prompts and replies of the last model calls of this process.

`RECENT` is the one mutable value of this room that belongs to the whole process. A model call appends its records to it
by reference; they are rendered and scrubbed when they are read.
"""

import os
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from synmod import leaves

from .tracing import LMCallNode, lines_of, lm_call_json
from .transcript import transcript

_MOST: Final = 20
_TURN: Final = (
    "margin: 0; padding-left: .8em; border-left: 2px solid #8886; max-height: 24em; overflow: auto; "
    "white-space: pre-wrap; overflow-wrap: anywhere"
)


RECENT: Final[deque[LMCallNode]] = deque(maxlen=0 if os.environ.get("SYNMOD_LAST") == "0" else _MOST)
"""The last model calls of this process, in the order in which they ended."""


@dataclass(frozen=True, repr=False)
class LastCalls:
    """Model calls that have ended; printed as a person reads them, with a section per turn in a notebook.

    Attributes:
        calls: The model calls, as `Tracer.to_json` writes them, the last one last.
    """

    calls: tuple[dict[str, Any], ...]

    def __len__(self) -> int:
        return len(self.calls)

    def __repr__(self) -> str:
        texts = ["\n".join(lines_of(call, prompts=True)) for call in self.calls]
        return "\n\n".join(texts) or "No model was called yet, or SYNMOD_LAST=0 is set."

    def _repr_html_(self) -> str:
        """Return the calls for notebooks."""
        escape = leaves.escape_html
        html = [repr(self)] if not self.calls else []
        for call in self.calls:
            html.append(f'<p style="margin: 1em 0 0"><b>{escape(next(lines_of(call)))}</b></p>')
            for heading, text in transcript(call):
                html.append(f'<p style="margin: .6em 0 0; opacity: .7">{escape(heading)}</p>')
                html.append(f'<pre style="{_TURN}">{escape(text)}</pre>')
        return "".join(html)


def last(n: int = 1) -> LastCalls:
    """Return the prompts and replies of the last model calls of this process, to print.

    The last 20 calls are kept, those of all tasks and threads, cached and failed ones included. With `SYNMOD_LAST=0` in
    the environment when synmod is imported, none is kept.

    Args:
        n: How many calls, the last one last.

    Returns:
        The calls, with `***` in place of API keys.

    Raises:
        ArgumentError: `n` is not a whole number above zero.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> reply = sm.run(ScriptedLM(["Because."])("Why?"))
        >>> print(sm.last())
        testing/scripted  ... tokens
          user:
            Why?
          reply:
            Because.

    Source: DSPy's `inspect_history`.
    """
    leaves.check_int("last: n", n)
    return LastCalls(tuple(leaves.scrub_json([lm_call_json(call) for call in list(RECENT)[-n:]])))
