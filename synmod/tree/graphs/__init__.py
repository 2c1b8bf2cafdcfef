"""Structure without values: graph definitions, and the record of one walk that makes them.

Floor: 5, inside tree. Purpose: definitions, equality, fingerprints, differences, what is shared, iteration over it.
State: the codec that saving puts there. Speed: a record is one walk. Must never know: values of Variables.
"""
