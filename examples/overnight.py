"""Half the price: an evaluation and a fit through batch jobs, killed in the middle and resumed.

    python examples/overnight.py [--folder out/overnight]

A provider on the loopback takes OpenAI's chat completions, and its batch API at half the price. The same work is done
three times, each in a process of its own: by calls that are answered at once; through batch jobs, where the process
kills itself with SIGKILL while a job is under way; and by the same line again, which finds the job and goes on. The
provider's bills show what each way costs, and that no request was paid for twice.

With a key, the same works with a real provider: leave `api_base` and `price` out, and start it in the evening.
"""

import argparse
import asyncio
import itertools
import json
import logging
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Literal

from aiohttp import web

import synmod as sm

DATA = Path(__file__).parent / "data"
PRICE = (0.25, 2.0)  # USD per million tokens, in and out
LOOKS = 3  # how often a job is looked at before it has ended; providers take minutes to hours


class Ticket(sm.DataModel):
    text: str


@sm.compose
async def desk(ticket: Ticket):
    """Sort a ticket: two model calls, so two jobs for any number of tickets."""
    category = Literal["billing", "shipping", "technical", "account", "feedback"]
    about = await sm.Generator({"category": category}, name="category")(ticket)
    urgency = await sm.Generator({"urgency": Literal["low", "normal", "high"]}, name="urgency")(ticket + about)
    return about + urgency


# -- the provider ------------------------------------------------------------------------------------------------------


class Provider:
    """Chat completions and batch jobs; a model in this process answers."""

    def __init__(self):
        self.brain = sm.LanguageModel("embedded/nearest")
        self.files, self.jobs, self.numbers = {}, {}, itertools.count(1)
        self.paid, self.cost_usd = Counter(), 0.0

    async def complete(self, body, price=1.0):
        """Answer one request, and put its price on the bill."""
        reply = await self.brain(body["messages"], body["response_format"]["json_schema"]["schema"])
        prompt, completion = len(str(body["messages"])) // 4, len(reply.text) // 4
        self.cost_usd += price * (prompt * PRICE[0] + completion * PRICE[1]) / 1e6
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply.text}}
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}

    async def chat(self, request):
        return web.json_response(await self.complete(await request.json()))

    async def upload(self, request):
        name, form = f"file-{next(self.numbers)}", await request.post()
        self.files[name] = form["file"].file.read()
        return web.json_response({"id": name})

    async def create(self, request):
        body, lines = await request.json(), []
        for line in map(json.loads, self.files[body["input_file_id"]].splitlines()):
            self.paid[line["custom_id"]] += 1
            response = {"status_code": 200, "body": await self.complete(line["body"], price=0.5)}
            lines.append(json.dumps({"custom_id": line["custom_id"], "response": response}))
        job = {"id": f"batch-{next(self.numbers)}", "status": "in_progress", "metadata": body["metadata"]}
        self.files[f"{job['id']}-results"] = "\n".join(lines).encode()
        self.jobs[job["id"]] = {**job, "request_counts": {"total": len(lines)}, "looks": LOOKS}
        return web.json_response(job)

    async def look(self, request):
        job = self.jobs[request.match_info["job"]]
        job["looks"] -= 1
        if not job["looks"]:
            counts = {**job["request_counts"], "completed": job["request_counts"]["total"]}
            job |= {"status": "completed", "output_file_id": f"{job['id']}-results", "request_counts": counts}
        return web.json_response(job)

    async def list_jobs(self, request):  # noqa: ARG002  (the signature of every route)
        return web.json_response({"data": [*self.jobs.values()], "has_more": False})

    async def content(self, request):
        return web.Response(body=self.files[request.match_info["file"]])

    async def start(self):
        """Serve; return the address, and what to clean up."""
        app = web.Application(client_max_size=2**28)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.chat),
                web.post("/v1/files", self.upload),
                web.get("/v1/files/{file}/content", self.content),
                web.post("/v1/batches", self.create),
                web.get("/v1/batches", self.list_jobs),
                web.get("/v1/batches/{job}", self.look),
            ]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/v1", runner


# -- the work, in processes of their own -------------------------------------------------------------------------------


class KillsItself(logging.Handler):
    """Kills this process at a line about a job, of which there is one per look."""

    def __init__(self, at):
        super().__init__()
        self.count, self.at = itertools.count(1), at

    def emit(self, record):  # noqa: ARG002  (the signature of every handler)
        if next(self.count) == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


async def work(options):
    """Evaluate or train the desk, and print what came of it."""
    logging.getLogger("synmod.lm").setLevel(logging.INFO)
    logging.getLogger("synmod.lm").addHandler(KillsItself(options.kill_at))
    night = sm.BatchJobs(quiet_s=0.3, poll_s=0.05) if options.jobs else None  # the defaults are 2 s and 30 s
    lm = sm.LanguageModel("openai/m", api_base=options.base, api_key="none", price=PRICE, batch=night)
    tickets = await sm.load_examples(DATA / "tickets.jsonl", ["category", "urgency"], program=desk, id="id")
    train, heldout = ([row for row in tickets if row.extra["split"] == split][:40] for split in ("train", "heldout"))
    reward = sm.rewards.ExactMatch(reduce="mean")
    with sm.default_language_model(lm):
        if options.work == "evaluate":
            score = (await sm.evaluate(desk, heldout, reward=reward, run=options.run)).score
        else:
            desk.compile(reward, sm.optimizers.RandomFewShot(max_examples=8, sets=4, first=20))
            history = await desk.fit(train, validation_data=heldout, run=options.run, verbose=0)
            score = history[-1]["best_val_reward"]
    print(json.dumps({"score": score, "values": sm.state(desk).to_json()}))


async def start(base, name, folder, jobs=False, kill_at=0):
    """Do some work in a fresh process; return what it printed, nothing if it was killed."""
    run = ["--run", str(folder / f"{name}-{'jobs' if jobs else 'direct'}"), *(["--jobs"] if jobs else [])]
    command = [sys.executable, __file__, "--work", name, "--base", base, "--kill-at", str(kill_at), *run]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, errors = await child.communicate()
    if child.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(errors.decode())
    return json.loads(out or "{}")


async def main(folder):
    """Do all of it, and compare."""
    shutil.rmtree(folder, ignore_errors=True)
    provider = Provider()
    base, runner = await provider.start()
    for name, kill_at in (("evaluate", 2), ("fit", 11)):
        direct = await start(base, name, folder)
        before, provider.cost_usd = provider.cost_usd, 0.0
        print(f"{name}: at once, score {direct['score']:.3f} for {before:.5f} USD")
        jobs = len(provider.jobs)
        killed = await start(base, name, folder, jobs=True, kill_at=kill_at)
        print(f"{name}: {'NOT KILLED' if killed else 'killed'} in job {len(provider.jobs) - jobs}")
        night = await start(base, name, folder, jobs=True)  # the same line again
        after, provider.cost_usd = provider.cost_usd, 0.0
        same = "the same" if night == direct else "ANOTHER"
        print(f"{name}: overnight, {same} result for {after:.5f} USD, in {len(provider.jobs) - jobs} jobs")
    print(f"{len(provider.paid)} lines in jobs, {sum(provider.paid.values()) - len(provider.paid)} of them paid twice")
    await runner.cleanup()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("out", "overnight"), help="where the runs go")
    parser.add_argument("--work", choices=("evaluate", "fit"), help="do this instead, at the provider --base")
    parser.add_argument("--base", help="the address of a provider")
    parser.add_argument("--run", type=Path, help="the folder of the run")
    parser.add_argument("--jobs", action="store_true", help="through batch jobs")
    parser.add_argument("--kill-at", type=int, default=0, help="and die at this line about a job")
    options = parser.parse_args()
    sm.run(work(options) if options.work else main(options.folder))
