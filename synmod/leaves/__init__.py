"""Small leaves: one idea a file, each usable by every room above.

Floor: 2. Purpose: frozen JSON, paths, names, suggestions, seeds, ids, clock, atomic files and the one async door.
State: none. Speed: a frozen value is frozen once; nothing here is on a call's path but ids and the clock.
Must never know: schemas, modules, models, any room above.
"""
