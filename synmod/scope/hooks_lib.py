"""Ready-made hooks, as `sm.hooks_lib`: a log line for each end, a row for each event, the tree of the calls."""

from synmod.scope.logger import Logger
from synmod.scope.recorder import Recorder
from synmod.scope.tracer import Tracer

__all__ = ["Logger", "Recorder", "Tracer"]
