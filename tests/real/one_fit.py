"""Trains a small program on a real server, in a process that may be killed: `python one_fit.py BASE FOLDER KILL_AT`.

It kills itself at the reply of this number; else it prints the history and how many requests it sent, as JSON.
"""

import json
import os
import signal
import sys
from typing import Literal

import synmod as sm
from tests.real.server import SHORT


class Ticket(sm.DataModel):
    text: str


class Team(sm.DataModel):
    team: Literal["billing", "shipping"]


TEXTS = {
    "billing": ["charged twice", "a wrong invoice", "no refund yet", "my card was declined"],
    "shipping": ["a late parcel", "a lost package", "the courier was rude", "a wrong address"],
}
ROWS = [
    ({"text": f"{start}: {text}"}, {"team": team})
    for start in ("Help", "Hello")
    for team, texts in TEXTS.items()
    for text in texts
]


class KillAt(sm.Hook):
    """Kills this process at a reply."""

    def __init__(self, number):
        self.left = number

    def on_lm_end(self, event):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def program(base, **given):
    """Return a program of one Generator on a server."""
    lm = sm.LanguageModel("openai/smollm2", api_base=base, **{**SHORT, **given})
    return sm.Sequential(sm.Input(Ticket), sm.Generator(Team, language_model=lm))


def main(base, folder, kill_at):
    """Train, and print what came of it."""
    sorter = program(base)
    sorter.compile(reward="exact_match", optimizer=sm.optimizers.RandomFewShot(max_examples=2, sets=2))
    with sm.hooks(KillAt(int(kill_at))), sm.track_usage() as usage:
        history = sm.run(sorter.fit(ROWS, budget=40, run=folder, concurrency=1, verbose=0))
    print(json.dumps([history.to_json(), usage.requests]))


if __name__ == "__main__":
    main(*sys.argv[1:])
