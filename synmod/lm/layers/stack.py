"""The order of the layers of a model call, outside in. Everything that guards a call stands here, once.

The full order is: fallback, events, `timeout_s`, cache and single flight, repair, retry, breaker, limits, budget,
adapter. Where a layer is still to come, a comment in the list below keeps its place.
"""

from __future__ import annotations

from functools import partial

from synmod.lm.layers.call import Below, Layer
from synmod.lm.layers.checking import checked
from synmod.lm.layers.repairing import readable
from synmod.lm.layers.reporting import reported
from synmod.lm.layers.retrying import retried
from synmod.lm.layers.sending import send
from synmod.lm.layers.spending import within_budget
from synmod.lm.layers.timing import in_time

__all__ = ["send_through"]


def stacked(*layers: Layer, adapter: Below) -> Below:
    """Put each layer on what comes after it."""
    below = adapter
    for layer in reversed(layers):
        below = partial(layer, below)
    return below


send_through = stacked(
    # place of fallback
    reported,
    in_time,
    checked,
    # place of cache and single flight
    readable,
    retried,
    # place of breaker and limits
    within_budget,
    adapter=send,
)
