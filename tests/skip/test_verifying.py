"""Verification: every fault of the wiring in one error, in execution order."""

import pytest

import synmod as sm
from synmod.module import ChildAt, Execution, execution_of
from synmod.skip import Namespace, SkipVerifyError, pop, skip_layout, skippable, verify_skippables
from tests.skip.parts import QUERY, Cite, Document, Query, Retrieve, Tell, calling, popper, stasher


def declaring(**declared):
    """A module that only declares."""

    @skippable(**declared)
    class Declares(sm.Module):
        async def call(self, inputs):
            return inputs

    return Declares()


def problems_of(*members):
    """What is wrong with a row."""
    try:
        verify_skippables(sm.Sequential(members))
    except SkipVerifyError as caught:
        error = caught
    else:
        return []
    assert "pairs of stash and pop do not match" in str(error)
    for problem in error.problems:
        assert problem.message in str(error)
    return [(problem.kind, problem.path, problem.name, problem.other_path) for problem in error.problems]


S, P = {"stash": ["foo"]}, {"pop": ["foo"]}


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ([S, P], []),
        ([S, {"pop": ["foo"], "stash": ["bar"]}, {"pop": ["bar"]}], []),
        ([{"stash": ["foo"], "pop": ["foo"]}], [("both", "0", "foo", None)]),
        ([S, {"stash": ["foo"], "pop": ["foo"]}, P], [("both", "1", "foo", None)]),
        ([S, P, S, P], [("restashed", "2", "foo", "0"), ("repopped", "3", "foo", "1")]),
        ([S, S, P, P], [("restashed", "1", "foo", "0"), ("repopped", "3", "foo", "2")]),
        ([P], [("unstashed", "0", "foo", None)]),
        ([S], [("unpopped", "0", "foo", None)]),
        ([P, S], [("unstashed", "0", "foo", None), ("unpopped", "1", "foo", None)]),
        ([{"stash": ["b", "a"]}], [("unpopped", "0", "a", None), ("unpopped", "0", "b", None)]),
        ([S, {"peek": ["foo"]}], []),
        ([S, {"peek": ["foo"]}, {"peek": ["foo"]}, P], []),
        ([S, P, {"peek": ["foo"]}], [("unstashed", "2", "foo", None)]),
        ([{"peek": ["foo"]}], [("unstashed", "0", "foo", None)]),
        ([{"pop": ["foo"], "optional": ["foo"]}, {"peek": ["foo"], "optional": ["foo"]}], []),
        ([S, {"pop": ["foo"], "optional": ["foo"]}], []),
    ],
)
def test_the_rules_of_a_row(row, wrong):
    """Each row of the table."""
    assert problems_of(*(declaring(**declared) for declared in row)) == wrong


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ([{"stash": ["foo"], "pop": ["foo"]}], "'0' declared 'foo' both as stashable and as poppable"),
        ([S, S, P], "'1' redeclared 'foo' as stashable but not isolated by namespace"),
        ([S, P, P], "'2' redeclared 'foo' as poppable but not isolated by namespace"),
        ([P], "'0' declared 'foo' as poppable but it was not stashed"),
        ([S], "no module declared 'foo' as poppable but stashed"),
    ],
)
def test_the_phrases(row, text):
    """As people look for them."""
    with pytest.raises(TypeError) as caught:
        verify_skippables(sm.Sequential([declaring(**declared) for declared in row]))
    assert text in str(caught.value)


def test_typed_skips_fit():
    """What is asked for must be stashed; both modules and the missing field are named. More is welcome."""

    class Longer(Document):
        title: str

    pair = declaring(stash={"doc": Document}), declaring(pop={"doc": Longer})
    with pytest.raises(SkipVerifyError, match="'1'.*'title'.*'0'") as caught:
        verify_skippables(sm.Sequential(pair))
    assert [(each.kind, each.path, each.other_path) for each in caught.value.problems] == [("schema", "1", "0")]
    verify_skippables(sm.Sequential([declaring(stash={"doc": Longer}), declaring(pop={"doc": Document})]))
    verify_skippables(sm.Sequential([declaring(stash={"doc": Longer}), declaring(pop=["doc"])]))
    verify_skippables(
        sm.Sequential([declaring(stash={"n": {"type": "integer"}}), declaring(pop={"n": {"type": "number"}})])
    )
    assert problems_of(declaring(stash={"n": {"type": "string"}}), declaring(pop={"n": {"type": "number"}})) == [
        ("schema", "1", "n", "0")
    ]


def test_containers_are_entered_to_any_depth():
    """A pair over two Sequentials matches; paths name the place."""
    nested = sm.Sequential(
        [sm.Sequential([declaring(**S), sm.Identity()]), sm.Sequential([sm.Sequential([declaring(**P)])])]
    )
    verify_skippables(nested)
    assert problems_of(sm.Sequential([declaring(**P)]), sm.Sequential([sm.Identity(), declaring(**S)])) == [
        ("unstashed", "0/0", "foo", None),
        ("unpopped", "1/1", "foo", None),
    ]


def test_a_module_that_occurs_twice_is_redeclared():
    """Also deep below; two Namespaces would be two modules."""
    shared = declaring(**S)
    assert problems_of(shared, sm.Sequential([shared]), declaring(**P)) == [("restashed", "1/0", "foo", "0")]


def test_namespaces_keep_pairs_apart():
    """Crossing and nested pairs are fine."""
    a, b = Namespace(), Namespace()
    crossing = [Retrieve().isolate(a), Retrieve().isolate(b), Retrieve(), Cite().isolate(a), Cite(), Cite().isolate(b)]
    assert problems_of(*crossing) == []
    assert problems_of(Retrieve().isolate(a), Cite().isolate(b)) == [
        ("unpopped", "0", "doc", None),
        ("unstashed", "1", "doc", None),
    ]


def test_a_hand_written_module_is_a_set():
    """Missing and doubled partners are found, the order is nobody's; what is ordered inside stays ordered."""

    def held(**parts):
        module = calling(lambda self, inputs: inputs)
        for name, part in parts.items():
            setattr(module, name, part)
        return module

    verify_skippables(held(a=declaring(**P), b=declaring(**S)))
    assert problems_of(held(a=declaring(**P))) == [("unstashed", "0/a", "foo", None)]
    assert problems_of(held(a=declaring(**S), b=declaring(**S)), declaring(**P)) == [("restashed", "0/b", "foo", "0/a")]
    assert problems_of(declaring(**S), held(a=[declaring(**P)], b={"x": declaring(**P)})) == [
        ("repopped", "1/b/x", "foo", "1/a/0")
    ]
    assert problems_of(held(row=sm.Sequential([declaring(**P), declaring(**S)]))) == [
        ("unstashed", "0/row/0", "foo", None),
        ("unpopped", "0/row/1", "foo", None),
    ]
    verify_skippables(held(a=declaring(peek=["foo"]), b=declaring(**P), c=declaring(peek=["foo"]), d=declaring(**S)))


class OneOf(sm.Module):
    """Declares that one of its members runs."""

    def __init__(self, *members):
        super().__init__()
        self.members = list(members)


@execution_of.register(OneOf)
def execution_of_one_of(module):
    """One of the members runs."""
    return Execution("one of", tuple(ChildAt(("members", i), each) for i, each in enumerate(module.members)))


def test_alternatives_are_checked_side_by_side():
    """What some of them stash counts as stashed after them."""
    assert problems_of(OneOf(declaring(**S), declaring(**S), sm.Identity()), declaring(**P)) == []
    assert problems_of(declaring(**S), OneOf(declaring(**P), declaring(**P))) == []
    assert problems_of(OneOf(declaring(**S), declaring(**P))) == [
        ("unpopped", "0/members/0", "foo", None),
        ("unstashed", "0/members/1", "foo", None),
    ]
    assert problems_of(OneOf(declaring(**S)), declaring(**S), declaring(**P)) == [
        ("restashed", "1", "foo", "0/members/0")
    ]


def test_a_cycle_of_modules_ends():
    """Modules that hold each other are walked once: what is inside is checked, nothing twice."""
    one, other = calling(lambda self, inputs: inputs), calling(lambda self, inputs: inputs)
    one.other, other.one = other, one
    one.a = declaring(**S)
    assert [problem[:1] for problem in problems_of(one)] == [("unpopped",)]
    other.b = declaring(**P)
    assert problems_of(one) == []


# -- when it runs by itself --------------------------------------------------------------------------------------------


async def test_it_runs_at_the_first_entry_call_of_a_row():
    """Before any member runs; again at the next call, since nothing was sealed."""
    middle = Tell()
    row = sm.Sequential([middle, Cite()])
    for _ in range(2):
        with pytest.raises(SkipVerifyError, match="'1' declared 'doc' as poppable but it was not stashed"):
            await row(QUERY)
    assert middle.seen == []


async def test_it_runs_in_build_and_leaves_nothing_built():
    """All or nothing; for a root that is a piece it does not run."""

    class Builds(sm.Module):
        async def build(self, inputs):
            self.notes = self.add_variable([], name="notes")

        async def call(self, inputs):
            return inputs

    inner = Builds()
    row = sm.Sequential([Retrieve(), inner])
    with pytest.raises(SkipVerifyError, match="no module declared 'doc'"):
        await sm.build(row, Query)
    assert not inner.built

    async def takes(self, inputs):
        return inputs + pop("doc")

    assert (await sm.build(calling(takes, pop={"doc": Document}), Query)).keys() == ("question", "text")
    with pytest.raises(SkipVerifyError):
        await sm.build(sm.Sequential([calling(takes, pop={"doc": Document})]), Query)
    with pytest.raises(SkipVerifyError, match="declared 'doc' as poppable"):
        await sm.build(sm.Sequential([Cite()]), Query)
    with pytest.raises(SkipVerifyError):
        sm.Sequential([Query, Retrieve()])


async def test_it_does_not_run_for_a_container_inside_another():
    """A row inside a row is checked with the whole."""
    whole = sm.Sequential([sm.Sequential([Retrieve()]), sm.Sequential([Cite()])])
    assert (await whole(QUERY))["cited_question"] == "why"
    assert (await sm.build(sm.Sequential([sm.Sequential([Retrieve()]), Cite()]), Query)).keys()


async def test_a_row_of_skippables_may_declare_itself():
    """A root that declares skips itself is a piece of a program to come."""

    @skippable(pop=["extra"])
    class Row(sm.Sequential):
        async def call(self, inputs):
            pop("extra")
            return await super().call(inputs)

    row = Row([Cite()])
    with pytest.raises(sm.SkipError, match="'extra' has not been stashed"):
        await row(QUERY)
    out = await sm.Sequential([stasher("extra"), Retrieve(), row])(QUERY)
    assert out["cited_question"] == "why"


async def test_partners_that_a_build_makes_are_waited_for():
    """While builds are to come, only what they cannot mend is a fault."""

    class Makes(sm.Module):
        async def build(self, inputs):
            self.retrieve = Retrieve()

        async def call(self, inputs):
            return await self.retrieve(inputs)

    out = await sm.Sequential([Makes(), Cite()])(QUERY)
    assert out["cited_question"] == "why"
    await sm.build(sm.Sequential([Makes(), Cite()]), Query)
    with pytest.raises(SkipVerifyError, match="redeclared"):
        await sm.Sequential([Makes(), Retrieve(), stasher("doc"), popper("doc")])(QUERY)


@pytest.mark.parametrize("root", [None, [stasher("a")], Query])
def test_only_modules_are_verified(root):
    """Anything else is an ArgumentError, for layouts too."""
    for ask in (verify_skippables, skip_layout):
        with pytest.raises(sm.ArgumentError, match="must be a module"):
            ask(root)
