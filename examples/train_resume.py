"""A training run is killed in the middle; the same command resumes it, and ends with the same bytes.

    python examples/train_resume.py [--folder out/runs]

Three processes train the help desk of `support_desk.py` with the same line, `desk.fit(..., run=folder)`. The first one
runs undisturbed. The second one kills itself with SIGKILL in the middle of a step: no handler runs, nothing is closed.
The third one is started like the second. The run's journal holds every result that was paid for, so it calls the models
only for the rest. Programs and histories of both runs are compared byte by byte.
"""

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from support_desk import desk, read_tickets

import synmod as sm

FILES = ("desk.json", "history.json", "history.svg")


def killer(calls):
    """Return a hook that kills this process at the end of a model call."""
    count = itertools.count(1)

    class Killer(sm.Hook):
        def on_lm_end(self, event):  # noqa: ARG002  (the signature of every hook)
            if next(count) == calls:
                os.kill(os.getpid(), signal.SIGKILL)

    return Killer()


async def train(folder, kill_at):
    """Train the desk in a folder and write the results; each child process runs this."""
    sm.set_default_language_model("embedded/nearest")
    desk.compile(sm.rewards.ExactMatch(reduce="mean"), sm.optimizers.Gepa(language_model="embedded/rules"))
    with sm.hooks(killer(kill_at)), sm.track_usage() as usage:
        history = await desk.fit(await read_tickets("train"), budget=600, run=folder, verbose=0)
    desk.save(folder / "desk.json")
    (folder / "history.json").write_text(json.dumps(history.to_json()), encoding="utf-8")
    history.plot(folder / "history.svg")
    print(f"{history.spent.rollouts} rollouts, {history.spent.lm_calls:,} model calls, {usage.calls:,} of them here")


def start(folder, kill_at=0):
    """Train in a fresh process; print how it ended."""
    command = [sys.executable, __file__, "--train", str(folder), "--kill-at", str(kill_at)]
    child = subprocess.run(command, check=False, capture_output=True, text=True, encoding="utf-8")
    if child.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(child.stderr)
    if child.returncode:
        pieces = len(sm.Run(folder).export(folder / "journal.jsonl").read_text(encoding="utf-8").splitlines())
        print(f"{folder.name}: killed; {pieces} records in the journal")
    else:
        print(f"{folder.name}: {child.stdout.strip()}")


def main(folder):
    """Run everything, in order."""
    alone, killed = folder / "alone", folder / "killed"
    for each in (alone, killed):
        shutil.rmtree(each, ignore_errors=True)
    start(alone)
    start(killed, kill_at=1000)
    start(killed)  # the same command again
    same = {name: (alone / name).read_bytes() == (killed / name).read_bytes() for name in FILES}
    for name, equal in same.items():
        print(f"{name}: {(alone / name).stat().st_size:,} bytes, {'the same' if equal else 'DIFFERENT'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("out", "runs"), help="where the runs go")
    parser.add_argument("--train", type=Path, help="train in this folder instead")
    parser.add_argument("--kill-at", type=int, default=0, help="and die after this number of model calls")
    arguments = parser.parse_args()
    if arguments.train:
        sm.run(train, arguments.train, arguments.kill_at)
    else:
        main(arguments.folder)
