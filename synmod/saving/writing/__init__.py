"""From a live program to a document.

Floor: 8, inside saving, beside checking. Purpose: one walk that numbers nodes and Variables, one pass that writes their
records. State: none. Speed: at most twice `json.dump(indent=2)`.
Must never know: how a file is read.
"""
