"""Filters: one way to say which Variables or nodes are meant.

Floor: 5, inside tree. Purpose: the forms that users write, filters of paths, patterns, decisions along a walk.
State: none. Speed: a filter is compiled once for a walk. Must never know: States, graphs.
"""
