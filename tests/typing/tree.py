"""What type checkers believe of split, merge and their kin; checked by pyright, never run."""

from typing import assert_type

import synmod as sm
from synmod.tree import GraphDef, State, clone, merge, split, state, update, variables


class M(sm.Module):
    """A module."""


m = M()
gd, st = split(m)
assert_type(gd, GraphDef[M])
assert_type(st, State)
gd2, a, b = split(m, sm.Param, ...)
assert_type(a, State)
assert_type(merge(gd, st), M)
assert_type(clone(m), M)
assert_type(state(m), State)
assert_type(state(m, sm.Param), State)
assert_type(variables(m), dict[str, sm.Variable])
assert_type(st.filter(sm.Param), State)
update(m, st)

with sm.using(m, st) as overlay:
    assert_type(overlay.state, State)
    assert_type(overlay.changes, State)
with sm.capture(sm.Intermediate) as cap:
    assert_type(cap.state, State)
    assert_type(cap.by_call["id"], State)
with sm.update_context("worker") as ctx:
    crossing, values = ctx.split(m)
    assert_type(crossing, GraphDef[M])
    assert_type(ctx.merge(crossing, values), M)


@sm.update_context("worker")
async def inside(number: int) -> str:
    return str(number)


async def use() -> None:
    assert_type(await inside(1), str)
