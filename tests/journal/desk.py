"""A program with branches, an Agent, a cache and tools, in processes that may be killed.

`python desk.py FOLDER KILLS SEED` runs it once whole, then again and again until that many kills have happened,
each run in a folder of its own, and prints what came of it as JSON. Each process is a fork of this one, which has
imported everything and started nothing. What is paid for and what tools do is a line in a file.
"""

import asyncio
import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import synmod as sm
from synmod.testing import FunctionLM

AT_ONCE = 8
"""How many calls may be under way when the process is killed."""


class Query(sm.DataModel):
    text: str


class Summary(sm.DataModel):
    summary: str


def digest(*parts):
    """Return a short text that depends on others."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def note(folder, kind, *parts):
    """Write a line that survives a kill: what was paid, or what a tool did."""
    with open(folder / "done.log", "a") as file:
        file.write(f"{kind} {' '.join(parts)}\n")


def model_of(folder):
    """Return a model whose replies depend on the request alone, and that notes what it is paid for."""

    async def answer(request):
        await asyncio.sleep(random.uniform(0, 0.006))
        turns = [turn["content"] for turn in request.messages]
        note(folder, "paid", digest(turns, request.sample))
        results = sum(turn["role"] == "tool" for turn in request.messages)
        if request.tools and results < 6:
            names = ("write", "charge") if results else ("write", "write")
            return [
                sm.ToolCall(f"{results}{at}", name, {"text": digest(turns, at)[:6]}) for at, name in enumerate(names)
            ]
        text = digest(turns, request.sample)
        return text if request.schema is None else {"summary": text}

    return FunctionLM(answer)


def program_of(folder):
    """Return three branches, an Agent, and a cached summary, one after the other."""
    model = model_of(folder)

    async def write(text: str) -> str:
        """Write a file."""
        await asyncio.sleep(random.uniform(0, 0.003))
        (folder / f"{text}.txt").write_text(text)
        note(folder, "wrote", text)
        return f"wrote {text}"

    def charge(text: str) -> str:
        """Charge a card: never twice."""
        note(folder, "charged", text)
        time.sleep(random.uniform(0, 0.003))
        return f"charged {text}"

    branches = sm.Parallel(
        *(sm.Generator(Summary, language_model=model, instructions=name, name=name) for name in "abc"), merge="concat"
    )
    agent = sm.Agent([write, sm.Tool(charge, once=True)], Summary, language_model=model, name="agent")
    cached = sm.Cached(sm.BestOf(sm.Generator(Summary, language_model=model), 3, reward=rate), sm.Cache())

    async def main():
        async with sm.durable(folder / "run"):
            found = [await branches(Query(text=str(number))) for number in range(3)]
            answers = await asyncio.gather(*(agent(value) for value in found))
            return [(await cached(answer)).get_json() for answer in (*answers, answers[0])]

    return main


def rate(outputs):
    """Return a number of an output."""
    return int(outputs["summary"], 16) / 16**12


def start(folder):
    """Start the program in a process of its own."""
    child = os.fork()
    if child:
        return child
    try:
        random.seed()
        result = asyncio.run(program_of(folder)())
        (folder / "result.json").write_text(json.dumps(result))
        os._exit(0)
    except sm.ToolError as error:
        os._exit(3 if "may have run" in str(error) else 4)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(4)


def settle(folder):
    """Record what became of charges that may have run, as a person would, by what is written."""
    run = sm.Run(folder / "run")
    for call in run.calls:
        if not call.ended:
            text = call.arguments["text"]
            if f"charged {text}\n" in (folder / "done.log").read_text():
                run.settle(call, f"charged {text}")
            else:
                run.forget([call])


def run_to_the_end(folder, kills, longest=0.0):
    """Run the program in a folder until it ends, killed at random moments; return how often it was."""
    folder.mkdir(parents=True)
    killed = 0
    while True:
        child = start(folder)
        if killed < kills:
            time.sleep(random.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return killed
        if status == 3:
            settle(folder)
        elif status != -signal.SIGKILL:
            raise SystemExit(f"the program failed in {folder}")
        else:
            killed += 1


def main(folder, kills, seed):
    """Print what the runs left."""
    random.seed(seed)
    found, left, began = [], kills, time.monotonic()
    run_to_the_end(folder / "whole", 0)
    longest = time.monotonic() - began
    while left > 0:
        name = str(len(found))
        killed = run_to_the_end(folder / name, min(left, 8), longest)
        left -= killed
        found.append((name, killed))
    outcomes = []
    for name, killed in [("whole", 0), *found]:
        lines = (folder / name / "done.log").read_text().splitlines()
        files = {path.stem: path.read_text() for path in (folder / name).glob("*.txt")}
        result = json.loads((folder / name / "result.json").read_text())
        outcomes.append({"killed": killed, "result": result, "lines": lines, "files": files})
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
