"""A program as a pair: split into structure and State, merged again, cloned, called.

Floor: 5, inside tree. Purpose: split, merge, clone, call, candidates; rewriting live objects as one step.
State: none. Speed: structure is copied, values are shared. Must never know: contexts that outlive a call.
"""
