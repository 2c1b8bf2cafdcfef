"""The command `synmod`: saved programs without writing Python.

Floor: 14. Purpose: one function per command; each reads its arguments, calls public functions, and prints JSON. The
only importer of click. State: none. Speed: a command that fails at its arguments imports no provider. Must never know:
how a room below works.
"""

from .main import main

__all__ = ["main"]
