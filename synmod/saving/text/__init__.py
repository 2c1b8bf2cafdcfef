"""The text of a document: read strictly, within limits, and written byte for byte the same.

Floor: 8, the lowest of saving. Purpose: header and digest, parsing, layout, measures of size and depth, migrations,
faults with their place. State: none. Speed: parsing and digest near `json.loads` and `sha256`.
Must never know: nodes, terms, classes.
"""
