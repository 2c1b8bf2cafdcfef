"""Whether a value satisfies a schema, and if not, why.

Floor: 3, inside data, above schemas. Purpose: schemas compiled into plain functions; faults with place, wanted and got.
State: what was compiled stays with its schema. Speed: a small value in a few microseconds.
Must never know: data models, files, the jsonschema library (it is the oracle of the tests).
"""
