"""`with_name_scope`, `train` and `eval`."""

import asyncio
import inspect

import pytest

import synmod as sm
from tests.module.models import Query


class Inner(sm.Module):
    """Records its scope."""

    def __init__(self):
        super().__init__()
        self.scopes = sm.static([])

    async def call(self, inputs: Query) -> Query:
        self.scopes.append(sm.current_scope())
        return inputs


class Encoder(sm.Module):
    """Has several entry points."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()

    @sm.Module.with_name_scope
    def plain(self, x, *, fail=False):
        """Return the scope."""
        if fail:
            raise ValueError(sm.current_scope())
        return sm.current_scope()

    @sm.Module.with_name_scope
    async def encode(self, x):
        """Call the child."""
        await asyncio.sleep(0)
        return await self.inner(x)

    async def bare(self, x):
        return sm.current_scope()


async def test_a_method_enters_the_scope_of_its_module():
    """Plain and async methods show the module's name, undecorated ones do not; the scope is left on every way out."""
    encoder = Encoder()
    assert encoder.plain(1) == "encoder"
    assert await encoder.bare(1) == ""
    await encoder.encode(Query(question="q"))
    assert encoder.inner.scopes == ["encoder/inner"]
    with pytest.raises(ValueError, match="encoder"):
        encoder.plain(1, fail=True)
    assert sm.current_scope() == ""
    assert str(inspect.signature(Encoder.plain)) == "(self, x, *, fail=False)"
    assert inspect.iscoroutinefunction(Encoder.encode)


async def test_a_scope_is_a_label_only():
    """A decorated method is neither a call nor a span, and a hundred at once do not mix."""

    class Outer(sm.Module):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder()

        async def call(self, inputs: Query) -> Query:
            return await self.encoder.encode(inputs)

    outer = Outer()
    with sm.trace() as trace:
        await asyncio.gather(*(outer(Query(question="q")) for _ in range(100)))
    assert {child.path for root in trace.roots for child in root.children} == {"encoder/inner"}
    assert set(outer.encoder.inner.scopes) == {"outer/encoder/inner"}


def test_train_and_eval_set_modes():
    """Wherever a node has such an attribute."""

    class Mode(Inner):
        def __init__(self):
            super().__init__()
            self.training, self.deterministic = False, True

    class ReadOnly(Inner):
        deterministic = property(lambda self: 1 / 0)

    root = sm.Sequential([Mode(), Inner()])
    assert root.train() is root
    assert (root.members[0].training, root.members[0].deterministic) == (True, False)
    assert not hasattr(root.members[1], "training")
    root.eval()
    assert (root.members[0].training, root.members[0].deterministic) == (False, True)
    root.members[0].deterministic = None
    sm.Sequential([root.members[0], ReadOnly()]).train()
    assert root.members[0].deterministic is False
