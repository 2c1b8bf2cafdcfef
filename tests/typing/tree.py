"""What type checkers believe of split, merge and their kin; checked by pyright, never run."""

from typing import assert_type

import synmod as sm
from synmod.tree import GraphDef, State, Variables, clone, merge, split, state, update, variables


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
assert_type(state(m, sm.Param, ...), tuple[State, ...])
assert_type(variables(m), Variables)
assert_type(st.filter(sm.Param), State)
update(m, st)
