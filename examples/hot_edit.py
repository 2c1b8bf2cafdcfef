"""A program is restructured while it serves; the live objects stay the same.

    python examples/hot_edit.py [--model provider/name]

A desk answers questions. A copy of it gets one more step, two swapped steps and better rule lines, and is tried out.
Meanwhile the desk continues to answer. Then the live program is updated in place, all or nothing: code that holds one
of its modules (a route, a hook) still holds the same object afterwards.
"""

import argparse
import asyncio
import json
from typing import Literal

import synmod as sm


@sm.register(package="hot_edit")
class Question(sm.DataModel):
    """A question."""

    text: str


@sm.register(package="hot_edit")
class Topic(sm.DataModel):
    """What a question is about."""

    topic: Literal["billing", "shipping", "other"]


@sm.register(package="hot_edit")
class Tone(sm.DataModel):
    """The tone of a question."""

    tone: Literal["calm", "angry"]


@sm.register(package="hot_edit")
class Language(sm.DataModel):
    """The language of a question."""

    language: Literal["en", "de"]


@sm.register(package="hot_edit")
class Desk(sm.Module):
    """Runs its steps one after the other; each adds its findings."""

    def __init__(self, steps, **kwargs):
        super().__init__(**kwargs)
        self.steps = list(steps)
        self.tag = "v1"

    async def call(self, inputs):
        for step in self.steps:
            inputs = await step(inputs)
        return inputs


def restructure(desk):
    """Add a step, swap two, and write rule lines for all of them."""
    topic, tone = desk.steps
    language = sm.Generator(Language, name="language", return_inputs=True, instructions="en: the, my\nde: der, mein")
    desk.steps = [language, tone, topic]
    tone.instructions.assign(tone.instructions.value + "\nangry: again, rude, third time")
    topic.instructions.assign(topic.instructions.value + "\nbilling: invoice, paid, euros\nshipping: parcel, courier")
    desk.tag = "v2"


async def serve(desk, question, answers):
    """Answer repeatedly, as a server does."""
    while True:
        answers.append(await desk(question))
        await asyncio.sleep(0.01)


async def main(model):
    """Run everything, in order."""
    sm.set_default_language_model(model)
    question = Question(text="My parcel is late again, and the courier was rude!")
    desk = Desk([sm.Generator(each, name=each.__name__.lower(), return_inputs=True) for each in (Topic, Tone)])
    print("before:", json.dumps((await desk(question)).get_json()))
    route = {"topic": desk.steps[0]}  # other code holds a part

    answers = []
    serving = asyncio.create_task(serve(desk, question, answers))
    with sm.update_context("editor") as ctx:
        copy = ctx.merge(*ctx.split(desk))
        restructure(copy)
        print("copy:  ", json.dumps((await copy(question)).get_json()))
        meanwhile = len(answers)
        edited = ctx.merge(*ctx.split(copy))
    serving.cancel()
    await asyncio.wait([serving])

    print("after: ", json.dumps((await desk(question)).get_json()))
    print(f"steps:  {[step.name for step in desk.steps]}, {desk.tag}, version {desk.version}")
    print(f"answered meanwhile: {meanwhile > 0}; the same desk: {edited is desk}", end="; ")
    print(f"the route holds the live part: {route['topic'] is desk.steps[2]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="embedded/nearest", help="provider/name; the default does not need a key")
    sm.run(main, parser.parse_args().model)
