"""Ready-made hooks, as `sm.hooks_lib`: log lines, rows of JSON, the tree of the calls, spans of OpenTelemetry."""

from synmod.scope.logger import Logger
from synmod.scope.otel import OpenTelemetry
from synmod.scope.recorder import Recorder
from synmod.scope.tracer import Tracer

__all__ = ["Logger", "OpenTelemetry", "Recorder", "Tracer"]
