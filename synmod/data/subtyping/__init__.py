"""Whether every value of one schema is a value of another, proved without looking at values.

Floor: 3, inside data, above validation. Purpose: checks of wiring at composition time.
State: a cache of proofs by pairs of schemas. Speed: a dictionary read where the pair is known.
Must never know: data models, values.
"""
