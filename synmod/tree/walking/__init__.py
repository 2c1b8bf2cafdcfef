"""The one walk over a program, and what it must be told of each class.

Floor: 5, inside tree. Purpose: visits, node and tree types, kinds, statics, RefMap, the views that are folds of it.
State: the registries of types, the counter of structural edits. Speed: at most 5 µs a visit, iterative, linear.
Must never know: graphs taken apart.
"""
