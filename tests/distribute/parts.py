"""What workers of the tests import: registered modules, rewards and metrics, and live models."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Literal

import synmod as sm
from synmod.lm import LMReply

LOOPS = []
"""The event loop of each row that `Loud` was called for: one for each batch."""


class Ticket(sm.DataModel):
    """What a customer writes."""

    text: str


class Desk(sm.DataModel):
    """Who answers it."""

    desk: Literal["billing", "shipping"]


class Shout(sm.DataModel):
    """A loud text, and how often there was one."""

    text: str
    nth: int


@sm.register(package="tests_distribute")
class Loud(sm.Module):
    """Shouts; counts in a memory; fails on demand."""

    def __init__(self, **options):
        super().__init__(**options)
        self.said = sm.Memory(0, schema={"type": "integer"})
        self.mark = sm.Param("!", schema={"type": "string"})

    async def call(self, ticket: Ticket) -> Shout:
        LOOPS.append(asyncio.get_running_loop())
        if "fail" in ticket.text:
            raise ValueError(f"cannot shout {ticket.text!r}")
        self.add_reward(0.5, "zeal")
        self.said.assign(self.said.value + 1)
        return Shout(text=ticket.text.upper() + self.mark.value, nth=self.said.value)


@sm.register(package="tests_distribute")
class Joined(sm.Module):
    """Takes two inputs, and returns both and none."""

    async def call(self, ticket: Ticket, desk: Desk) -> tuple[Ticket, Desk]:
        return ticket, desk


@sm.register(package="tests_distribute")
class KillsItsWorkerOnce(sm.Module):
    """Kills the process that it runs in, unless somebody did so before."""

    def __init__(self, flag: str, **options):
        super().__init__(**options)
        self.flag = flag

    async def call(self, ticket: Ticket) -> Ticket:
        if "7" in ticket.text:
            try:
                Path(self.flag).touch(exist_ok=False)
            except FileExistsError:
                return ticket
            os.kill(os.getpid(), signal.SIGKILL)
        return ticket


@sm.register(package="tests_distribute")
def is_loud(outputs, target, inputs, extra, example_id):
    """A reward that asks for everything, and gives words."""
    right = outputs["text"] == target["text"]
    return sm.scope.Feedback(float(right), critique=f"{example_id} {inputs['text']} {extra.get('why')}", target=target)


@sm.register(package="tests_distribute")
def length(outputs):
    """A metric."""
    return len(outputs["text"])


class House:
    """An adapter of a user's own: needs no network, and cannot be saved."""

    name, version = "house", 1

    async def send(self, request):
        return LMReply('{"desk": "billing"}', usage=sm.Usage(prompt_tokens=5, completion_tokens=2))


def house(name="house"):
    """A live model that a file cannot hold."""
    return sm.LanguageModel("house/one", name=name, adapter=House(), price=(1.0, 1.0))


def live_models():
    """What `setup` names."""
    return {"house": house()}


def no_models():
    """A setup that raises."""
    raise RuntimeError("no key for the house")
