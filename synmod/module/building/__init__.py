"""Building: once for all concurrent callers, on symbols, and undone whole where it fails.

Floor: 6, inside module, above interface. Purpose: builds under way and who waits for them, what `build` is given, undo,
contracts, symbolic calls, `sm.build`. State: a ContextVar of the build under way. Speed: a built module pays one test.
Must never know: containers of modules.
"""
