"""Schemas: what one may say, and that it says nothing a stranger could misuse.

Floor: 3, the lowest of data. Purpose: interned schemas, closed to the outside, of one draft, of bounded cost; and
what they consist of.
State: a weak table of schemas, bounded caches of patterns. Speed: a known schema is below 0.5 µs.
Must never know: values that satisfy a schema, data models.
"""
