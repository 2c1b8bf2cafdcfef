"""Traces: the calls of a block as a tree, recorded in place and drawn up when it is read.

Floor: 4, inside scope. Purpose: `sm.trace`, the `Tracer` that it installs, nodes, and what is said of them as text and
JSON. State: a trace holds what it recorded, within its bounds; one table for the page that a room above draws.
Speed: some 13 µs a call while open, nothing when closed. Must never know: modules, models, HTML.
"""
