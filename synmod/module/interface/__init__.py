"""What goes into a call and what comes out: signatures, annotations, nests of data, inputs, outputs, misfits.

Floor: 6, the lowest of module. Purpose: arguments told apart and converted once, outputs checked, errors that teach.
State: what was read of a class stays with its declaration. Speed: the common check is one lookup.
Must never know: how modules are built.
"""
