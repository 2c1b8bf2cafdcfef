"""Awaiting a function where a module stands."""

import synmod as sm


class Place(sm.DataModel):
    """What the modules pass on."""

    path: str


class Within(sm.Module):
    """Awaits a function in the module at `path` below it."""

    def __init__(self, function, path="", name=None, hooks=None):
        super().__init__(name=name, hooks=hooks)
        self.function = function
        self.below, _, rest = path.partition("/")
        if self.below:
            setattr(self, self.below, Within(function, rest, name=self.below))

    async def compute_output_spec(self, inputs):
        return inputs

    async def call(self, inputs):
        await (getattr(self, self.below)(inputs) if self.below else self.function())
        return inputs


async def inside(path, function, **given):
    """Await a function inside the module that stands at `path` below an entry module; return what it gave."""
    got = []

    async def kept():
        got.append(await function())

    await Within(kept, path, **given)(Place(path=path))
    return got[0]
