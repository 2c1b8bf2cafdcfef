"""The main job: it runs offline, learns from its tickets, and its file gives equal answers elsewhere."""

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web

from synmod.embedded.nearest import NearestAdapter
from synmod.lm import LMRequest, turns
from tests.lm.loopback import Loopback, completion

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
FIELDS = r"category 0\.\d\d \((\d+) of 80\) urgency 0\.\d\d \((\d+) of 80\)"


@pytest.mark.slow
def test_the_help_desk_learns_and_reloads(tmp_path):
    """Held-out tickets are sorted better after training, as the README says; a fresh process answers alike."""
    saved = tmp_path / "out" / "desk.json"  # where it goes if nothing is said
    command = [sys.executable, ROOT / "examples" / "support_desk.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    right = [tuple(map(int, found)) for found in re.findall(FIELDS, run.stdout)]
    assert len(right) == 3
    assert right[0][0] + 12 < right[2][0]
    assert right[0][1] + 8 < right[2][1]
    told = re.search(r"from (\d+) to (\d+) right categories, and from (\d+) to (\d+) right urgencies", README)
    assert tuple(map(int, told.groups())) == (right[0][0], right[2][0], right[0][1], right[2][1])
    spent = [int(found) for found in re.findall(r": (\d+) of \d+ rollouts", run.stdout)]
    budget = int(re.search(r": \d+ of (\d+) rollouts", run.stdout).group(1))
    assert max(spent) <= budget
    assert re.search(r"budget of (\d+) runs", README).group(1) == str(budget)
    assert "\nsort/examples\n" in run.stdout
    assert "├─ sort" in run.stdout
    assert len(re.findall(r"[├└]─ draft/module ", run.stdout)) == 3
    assert "draft/module" in saved.with_name("desk_trace.html").read_text(encoding="utf-8")
    assert "equal answers (80)" in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 80
    assert json.loads(saved.read_text(encoding="utf-8"))["header"]["kind"] == "program"


class Nearest(Loopback):
    """Answers each request as `embedded/nearest` does, within the schema of its body."""

    async def handle(self, request):
        body = json.loads(await request.read())
        schema = body["response_format"]["json_schema"]["schema"]
        reply = NearestAdapter().send(LMRequest(body["model"], turns(body["messages"]), schema))
        self.arrived.append(body)
        return web.json_response(completion(reply.text).body)


@pytest.mark.slow
async def test_the_help_desk_runs_whole_on_a_server_of_ones_own(tmp_path):
    """Within the calls that the file names; what was answered is kept, and the fresh process sends nothing again."""
    script = ROOT / "examples" / "support_desk.py"
    async with Nearest() as server:
        command = [sys.executable, script, "--model", "openai/house", "--api-base", server.base]
        options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(*command, **options)
        out, error = (text.decode() for text in await process.communicate())
    assert process.returncode == 0, error
    most = int(re.search(r"(\d+) calls at\s+most", script.read_text(encoding="utf-8")).group(1))
    assert 0 < len(server.arrived) <= most
    assert len(re.findall(r": \d+ of 50 rollouts", out)) == 2
    assert "equal answers (12)" in out


def test_nobody_writes_down_how_to_sort():
    """The program begins without rules and examples of sorted tickets; the replies of people are not trained."""
    command = [sys.executable, "-c", PROBE]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=ROOT / "examples", timeout=60)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {"sort/examples": [], "sort/instructions": INSTRUCTIONS}


INSTRUCTIONS = """What a ticket is about, and how soon somebody must look at it.

Give the fields `category` and `urgency`."""
PROBE = """
import json
import synmod as sm
from support_desk import Ticket, desk
sm.run(sm.build, desk, Ticket)
print(json.dumps(sm.state(desk, sm.Trainable()).to_json(), sort_keys=True))
"""


def test_the_tickets_are_what_the_example_says():
    """At least 150 distinct tickets, 60 of them held out, in five categories and three languages."""
    rows = [json.loads(line) for line in (ROOT / "examples/data/tickets.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) >= 150
    assert len({row["text"] for row in rows}) == len(rows)
    counts = Counter(row["split"] for row in rows)
    assert counts["heldout"] >= 60
    assert {row["language"] for row in rows} == {"en", "de", "es"}
    assert len({row["category"] for row in rows}) == 5
