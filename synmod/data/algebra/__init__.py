"""The algebra of data models: pure functions on values, recorded plans on symbols.

Floor: 3, inside data, above models. Purpose: merging, masks, renaming, factorizing, containment, each a plan made once.
State: bounded caches of plans. Speed: applying a kept plan costs the new fields and no schema work.
Must never know: programs, event loops.
"""
