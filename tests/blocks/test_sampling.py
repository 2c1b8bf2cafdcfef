"""Sampling parameters of blocks are attributes that may be set later."""

import synmod as sm
from synmod.lm import SAMPLING
from synmod.testing import FunctionLM
from tests.module.models import Answer, Query


async def test_what_is_set_later_is_sent():
    """By assignment or set_attributes; None is not sent."""
    seen = []

    def reply(request):
        seen.append({name: request.params[name] for name in request.params if name in SAMPLING})
        return {"answer": "a"}

    program = sm.Sequential([sm.Generator(Answer, language_model=FunctionLM(reply), temperature=0.5, top_p=0.9)])
    await program(Query(question="q"))
    program.set_attributes(sm.Generator, temperature=0.0, seed=7)
    program.members[0].top_p = None
    await program(Query(question="q"))
    assert seen == [{"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.0, "seed": 7}]


def test_every_sampling_parameter_is_an_attribute():
    """None where it was not given."""
    assert {getattr(sm.Generator(Answer), name) for name in SAMPLING} == {None}
