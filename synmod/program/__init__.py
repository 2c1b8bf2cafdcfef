"""Programs: the face users hold.

Floor: 10. Purpose: `Input`, `Program` (functional, by subclass, mixed), `compose`, `Sequential`; methods such as save
are one line each.
State: none beyond that of a module; what follows from a graph is kept beside it and made again in a copy.
Speed: composing, making and running are linear in steps; the door costs a lookup for each Input.
Must never know: providers, optimizers.
"""

from .compose import Sequential, compose
from .program import Program
from .wiring import Input

__all__ = ["Input", "Program", "Sequential", "compose"]
