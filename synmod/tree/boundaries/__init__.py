"""Programs across a boundary and back: update contexts, and index spaces that several splits share.

Floor: 5, inside tree, above functional. Purpose: the four steps of an update, two shared index spaces.
State: one ContextVar of open contexts. Must never know: processes, files.
"""
