"""Data models, values and symbols: the three faces of a schema.

Floor: 3, inside data, above subtyping. Purpose: pydantic classes with exact schemas, frozen values, symbols of
values to come, and what a user may write for any of them.
State: the schema of a class is kept with the class. Speed: one dictionary read.
Must never know: how operations are done (the algebra puts them into a table).
"""
