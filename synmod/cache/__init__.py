"""What was paid for once: JSON by key, in memory or in a file that several processes share.

Floor: 3. Purpose: `Cache`, and the key of a request. State: none of its own; each Cache holds its connections. Speed: a
read takes about 15 µs, a write some hundred, in a thread; sqlite3 is imported when a cache is first used.
Must never know: schemas, modules, models; that equal work is done once (callers ensure that).
"""

from .cache import Cache, checked_ttl, key_of

__all__ = ["Cache", "checked_ttl", "key_of"]
