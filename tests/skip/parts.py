"""Modules that tests of skips are made of."""

import asyncio

import synmod as sm
from synmod.skip import pop, skippable, stash


class Query(sm.DataModel):
    """What is asked."""

    question: str


class Document(sm.DataModel):
    """What is carried past."""

    text: str


class Tell(sm.Module):
    """Sees what the main lane holds."""

    def __init__(self, seen=None, waits=0):
        super().__init__()
        self.seen = sm.static([] if seen is None else seen)
        self.waits = waits

    async def call(self, inputs):
        for _ in range(self.waits):
            await asyncio.sleep(0)
        self.seen.append(sorted(inputs.keys()))
        return inputs


@skippable(stash=["doc"])
class Retrieve(sm.Module):
    """Stashes what it is given."""

    async def call(self, inputs):
        stash("doc", inputs)
        return inputs


@skippable(pop=["doc"])
class Cite(sm.Module):
    """Returns its input with what was stashed."""

    async def call(self, inputs):
        return inputs + pop("doc").prefix("cited")


def stasher(*names, **options):
    """A module that stashes its input under each name."""

    @skippable(stash=names, **options)
    class Stash(sm.Module):
        async def call(self, inputs):
            for name in names:
                stash(name, inputs)
            return inputs

    return Stash()


def popper(*names):
    """A module that pops each name."""

    @skippable(pop=names)
    class Pop(sm.Module):
        async def call(self, inputs):
            for name in names:
                pop(name)
            return inputs

    return Pop()


def calling(function, **declared):
    """A module with `function(self, inputs)` for its call."""

    class Anonymous(sm.Module):
        call = function

    cls = skippable(**declared)(Anonymous) if declared else Anonymous
    return cls()


class Dropped(sm.Hook):
    """Notes what is dropped, and how many slots each end of a call sees."""

    def __init__(self):
        self.events = []
        self.seen = []

    def on_skip_dropped(self, event):
        self.events.append(event)

    def on_call_end(self, event):
        from synmod.skip import current_skip_frame

        self.seen.append((event.path, len(current_skip_frame())))


QUERY = Query(question="why")
