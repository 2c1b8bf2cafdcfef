"""Ready-made hooks, as `sm.hooks_lib`: log lines, rows of JSON, the tree of the calls, spans of OpenTelemetry.

Floor: 4, inside scope. Purpose: hooks like those that users write, with no access of their own. State: what a hook was
given to write to. Speed: what a line or a row costs; loaded when first asked for. Must never know: modules, models.
"""

from synmod.scope.tracing.tracer import Tracer

from .logger import Logger
from .otel import OpenTelemetry
from .recorder import Recorder

__all__ = ["Logger", "OpenTelemetry", "Recorder", "Tracer"]
