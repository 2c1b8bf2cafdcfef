"""Stage two of a load: what the plan says is made, arguments first, each thing once.

Floor: 8, inside saving, above checking. Purpose: constructors, adoption of what they made, recorded attributes, graphs.
State: none. Speed: the constructors themselves.
Must never know: text.
"""
