"""Values for a block: overlays that hide live values, and captures of what is sown inside.

Floor: 5, inside tree, above functional. Purpose: `using`, its tables of sealed programs, `capture`.
State: tables of sealed programs for as long as they live. Speed: entering costs 0.2 µs a given leaf.
Must never know: what evaluates candidates.
"""
