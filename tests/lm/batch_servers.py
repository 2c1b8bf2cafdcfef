"""Batch APIs of providers on the loopback: jobs that end when they were looked at, lines that fail as scripted."""

import asyncio
import json
import re
from itertools import count

from aiohttp import web

from synmod.lm import LanguageModel
from synmod.wires import MESSAGES
from tests.lm.loopback import KEY
from tests.lm.wire_servers import WIRES, Script


class BatchServer:
    """A provider with a batch API.

    Args:
        kind: "chat completions", "responses" or "messages".
        answer: `answer(text, sent)` returns a Script, or (status, code, message), for the last turn of a line; `sent`
            is how often that text was paid for.
        looks: How often a job is looked at before it ends.
        ends: How the first jobs end, such as "expired", or "half" (completed, and half of the results are missing); the
                others complete.
    """

    def __init__(self, kind="chat completions", answer=lambda text, sent: Script(f"re {text}"), looks=1, ends=()):
        self.wire = WIRES[kind]()
        self.kind, self.answer, self.looks, self.ends = kind, answer, looks, list(ends)
        self.jobs, self.files, self.paid, self.cancelled = {}, {}, [], []
        self.numbers = count()
        self.on_create = None  # called with each job when it was created, before the answer
        self.shuffle = False

    def model(self, **given):
        return LanguageModel(api_base=self.base, api_key=KEY, **{"attempts": 1, **self.wire.settings, **given})

    def script(self, params, text, sent):  # for servers whose model looks at more than the last turn
        """What the model replies to a request."""
        return self.answer(text, sent)

    # -- HTTP ---------------------------------------------------------------------------------------------------------

    async def handle(self, request):
        path, data = request.path.removeprefix("/v1"), await request.read()
        assert KEY in str(request.headers)
        if path == self.wire.path:  # a call without a job
            params, text = json.loads(data), text_of(json.loads(data))
            self.paid.append(text)
            return web.json_response(self.wire.reply(self.script(params, text, self.paid.count(text) - 1)))
        if path == "/files":
            assert b'name="purpose"\r\n\r\nbatch\r\n' in data
            content = re.search(rb"application/jsonl\r\n\r\n(.*)\r\n--", data, re.DOTALL)[1]
            self.files[name := f"file-{next(self.numbers)}"] = content
            return web.json_response({"id": name, "object": "file", "purpose": "batch"})
        if match := re.fullmatch(r"/files/([\w-]+)/content", path):
            return web.Response(body=self.files[match[1]])
        root = "/messages/batches" if self.kind == "messages" else "/batches"
        if path == root and request.method == "POST":
            return await self.create(json.loads(data))
        if path == root:
            return web.json_response({"data": [self.shown(job) for job in self.jobs.values()], "has_more": False})
        key, _, action = path.removeprefix(f"{root}/").partition("/")
        if (job := self.jobs.get(key)) is None:
            return web.json_response(self.wire.failure("not_found", f"No batch found with id '{key}'."), status=404)
        if action == "cancel":
            self.cancelled.append(key)
            job["status"] = "cancelled"
        elif action == "results":
            return web.Response(body=b"\n".join(self.results(job)))
        elif job["status"] == "in_progress":
            job["looks"] -= 1
            if job["looks"] < 0:
                end = self.ends.pop(0) if self.ends else "completed"
                job["is_half"] = end in ("expired", "half")  # with the results of the first half alone
                job["status"] = "completed" if end == "half" else end
        return web.json_response(self.shown(job))

    async def create(self, body):
        if self.kind == "messages":
            lines = [(line["custom_id"], line["params"]) for line in body["requests"]]
        else:
            assert body["completion_window"] == "24h"
            assert body["endpoint"] == f"/v1{self.wire.path}"
            content = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
            assert {line["url"] for line in content} == {body["endpoint"]}
            lines = [(line["custom_id"], line["body"]) for line in content]
        assert len({name for name, _ in lines}) == len(lines)
        assert all(re.fullmatch(r"[\w-]{1,64}", name) for name, _ in lines)
        headers = {"authorization": f"Bearer {KEY}", "x-api-key": KEY, **MESSAGES.headers}
        for _, params in lines:
            self.wire.check(params, {name: text for name, text in headers.items() if name != self.other_header})
        job = {"id": f"batch_{next(self.numbers)}", "lines": lines, "status": "in_progress", "looks": self.looks}
        job["metadata"], job["texts"] = body.get("metadata"), [text_of(params) for _, params in lines]
        job["sent"] = [self.paid.count(text) + job["texts"][:at].count(text) for at, text in enumerate(job["texts"])]
        self.paid += job["texts"]
        self.jobs[job["id"]] = job
        if self.on_create is not None:
            await self.on_create(job)
        return web.json_response(self.shown(job))

    @property
    def other_header(self):
        return "authorization" if self.kind == "messages" else "x-api-key"

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def shown(self, job):
        total, ended = len(job["lines"]), job["status"] != "in_progress"
        if self.kind == "messages":
            counts = {"processing": 0 if ended else total, "succeeded": total if ended else 0, "errored": 0}
            return {"id": job["id"], "processing_status": "ended" if ended else "in_progress", "request_counts": counts}
        state = {name: job[name] for name in ("id", "status", "metadata")}
        if job["status"] in ("completed", "expired"):
            self.files[f"{job['id']}-out"] = b"\n".join(self.results(job))
            state["output_file_id"] = f"{job['id']}-out"
        if job["status"] == "failed":
            state["errors"] = {"data": [{"code": "invalid", "message": "The file is not good.", "line": 1}]}
        return {**state, "request_counts": {"total": total, "completed": total if ended else 0, "failed": 0}}

    def results(self, job):
        """Lines of results, the last first."""
        lines = [self.result(job, at) for at in range(len(job["lines"]) // (2 if job.get("is_half") else 1))]
        if self.shuffle:  # a duplicate
            yield json.dumps({**lines[1], "response": None, "result": {"type": "expired"}}).encode()
        yield from (json.dumps(line).encode() for line in reversed(lines))
        if self.shuffle:  # another one, and a line of nobody
            yield json.dumps({**lines[0], "response": None, "result": {"type": "expired"}}).encode()
            yield b"not json"
            yield json.dumps({**lines[0], "custom_id": "nobody"}).encode()

    def result(self, job, at):
        name, params = job["lines"][at]
        script = self.script(params, job["texts"][at], job["sent"][at])
        if isinstance(script, Script):
            body, status = self.wire.reply(script), 200
            result = {"type": "succeeded", "message": body}
        else:
            status, code, text = script
            body = self.wire.failure(code, text)
            result = {"type": "errored", "error": body}
        if self.kind == "messages":
            return {"custom_id": name, "result": result}
        return {"custom_id": name, "response": {"status_code": status, "request_id": "r", "body": body}, "error": None}

    async def __aenter__(self):
        self._runner = web.ServerRunner(web.Server(self.handle), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_):
        await self._runner.cleanup()


class Learner(BatchServer):
    """A model for the two steps of `batch_child`: it answers well with examples in its prompt, else to even numbers."""

    def script(self, params, text, sent):
        turns = params.get("messages") or params["input"]
        is_good = any(turn["role"] == "assistant" for turn in turns) or text[-1:] in "02468"
        return Script(json.dumps({"a": f"x{text}"} if text.startswith("q") else {"b": "y" if is_good else "n"}))


def text_of(params):
    """The text of the last turn of a request."""
    content = (params.get("messages") or params["input"])[-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


async def gather(lm, texts, **call):
    """The replies or errors of calls at the same time."""
    return await asyncio.gather(*(lm(text, **call) for text in texts), return_exceptions=True)
