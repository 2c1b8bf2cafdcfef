"""Stored results: JSON by key, in memory or in a file that several processes share; equal work is done once.

Floor: 3. Purpose: `Cache`, the key of a request, `SingleFlight`, SQLite files. State: one ContextVar, the work that
runs here; each Cache holds its connections and its work under way. Speed: a read takes about 15 µs, a write some
hundred, in a thread.
Must never know: schemas, modules, models, budgets (a caller decides which failures concern the leader alone).
"""

from . import database
from .cache import Cache, key_of
from .flights import SingleFlight

__all__ = ["Cache", "SingleFlight", "database", "key_of"]
