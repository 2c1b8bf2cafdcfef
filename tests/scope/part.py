"""A module that calls any function of any value: what the tests of this room are about is the call around it."""

import synmod as sm


class Calls(sm.Module):
    """Calls a function and puts what it returns aside, since outputs of modules are data."""

    async def call(self, *, x, body, box):
        if body is not None:
            box.append(await body(x))


class Part:
    """Calls `body(x)` as a module; keywords are parts below it, by the name of the attribute."""

    def __init__(self, name, body=None, hooks=(), **parts):
        self.module = Calls(name=name, hooks=hooks)
        for attribute, part in parts.items():
            setattr(self.module, attribute, part.module)
        self.body = body

    @property
    def name(self):
        return self.module.name

    @property
    def counters(self):
        return self.module.counters

    async def __call__(self, x=None):
        box = []
        await self.module(x=x, body=self.body, box=box)
        return box[0] if box else None
