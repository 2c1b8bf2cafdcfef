"""The state leaf: a Variable, what it starts with, what it says of itself, and what overlays it.

Floor: 5, the lowest of tree. Purpose: Variables of every type, their frozen states, initializers, the reading of
containers. State: one ContextVar for overlays. Speed: reading a value costs one ContextVar read.
Must never know: nodes, walks.
"""
