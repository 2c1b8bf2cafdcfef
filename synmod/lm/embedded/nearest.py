"""`embedded/nearest`: answers from what its prompt says, equal on every platform, without state.

Programs really get better or worse with their prompts: rule lines in the instructions and examples near the input
decide. First steps, tests, docs and benchmarks run on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.lm.embedded.answering import answer, text_answer
from synmod.lm.embedded.noise import Noise
from synmod.lm.embedded.reading import INSTRUCTING, Reading, read
from synmod.lm.embedded.scene import Scene
from synmod.lm.embedded.words import token_count
from synmod.lm.prompt.escape import json_text
from synmod.lm.records import LMReply
from synmod.scope import Usage

if TYPE_CHECKING:
    from synmod.lm.records import LMRequest


class NearestAdapter:
    """The adapter of `embedded/nearest`.

    A closed field takes the value that the three nearest examples and the rule lines `label: word, phrase` speak
    for; numbers are means of the nearest, strings and lists are the nearest's. A temperature above 0 adds noise drawn
    from seed, sample and prompt.

    Example:
        >>> from synmod.lm.records import LMRequest
        >>> schema = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}
        >>> turns = ({"role": "system", "content": "bad: late, broken"}, {"role": "user", "content": "It came late."})
        >>> NearestAdapter().send(LMRequest("embedded/nearest", turns, schema)).text
        '{"mood":"bad"}'

    Source: nearest-neighbour classification, tf-idf; differs: no logarithm, so that every platform rounds alike.
    """

    name = "embedded"
    version = 1

    def send(self, request: LMRequest) -> LMReply:
        """Answer a request from its own text; never fails, never waits, and so needs no time limit around it."""
        reading = read(request)
        scene = Scene(reading, request.params.get("seed"), _noise(request, reading))
        text = text_answer(scene) if reading.schema is None else json_text(answer(scene))
        return LMReply(text=text, usage=_usage(reading, text), model=request.model)


def _noise(request: LMRequest, reading: Reading) -> Noise:
    """The noise of a request: silent at temperature 0."""
    temperature = request.params.get("temperature") or 0
    if temperature <= 0:
        return Noise(0.0, "")
    prompt = "\n".join(f"{turn.role}: {turn.text}" for turn in reading.turns)
    return Noise(float(temperature), f"{request.params.get('seed') or 0}\n{request.sample}\n{prompt}")


def _usage(reading: Reading, text: str) -> Usage:
    """Words and signs counted as tokens; free of charge."""
    asked = sum(token_count(turn.text, again=turn.role in INSTRUCTING) for turn in reading.turns)
    return Usage(prompt_tokens=asked, completion_tokens=token_count(text, again=False), cost_usd=0.0)
