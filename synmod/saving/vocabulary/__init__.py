"""What a file may say: the words that writing and reading share.

Floor: 8, inside saving, above text. Purpose: scalars beyond JSON, leaves of terms, records of models, attribute names,
stand-ins, and the problems of what cannot be said. State: the ids that stand-ins keep, weakly.
Must never know: which way the file goes.
"""
