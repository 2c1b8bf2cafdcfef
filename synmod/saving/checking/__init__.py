"""Stage one of a load: every claim of a document is looked at before anything is made.

Floor: 8, inside saving, beside writing. Purpose: classes, arguments, attributes, terms, graphs, state, schemas; the
plan of what to make. State: none. Speed: one pass in the order of the sections.
Must never know: live objects other than registered classes.
"""
