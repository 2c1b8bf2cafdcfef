"""Programs: the classes that users work with.

Floor: 10. Purpose: `Input`, `Program` (functional, by subclass, mixed), `compose`, `Sequential`; methods such as save
are one line each.
State: none beyond that of a module; what a program derives from its graph is kept beside it; a copy derives it again.
Speed: composing, making and running are linear in steps; the check of arguments costs a lookup for each Input.
Must never know: providers, optimizers.
"""

from .compose import Sequential, compose
from .program import Program
from .wiring import Input

__all__ = ["Input", "Program", "Sequential", "compose"]
