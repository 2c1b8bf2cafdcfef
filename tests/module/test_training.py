"""Training mode: decided from the outside in, never seen by siblings or callers."""

from synmod.module import Module
from synmod.program import Input, Program
from synmod.registry import register
from synmod.saving import dumps, loads
from synmod.scope import current_call
from tests.module.models import Query

q = Query(question="x")


class Says(Module):
    """Notes the mode in which it was called."""

    def __init__(self, default=None):
        super().__init__()
        self.seen = []

    async def call(self, inputs, training=False):
        self.seen.append(training)
        assert current_call().training is training
        return inputs


class ByDefault(Module):
    """Trains unless told otherwise."""

    async def call(self, inputs, training=True):
        assert current_call().training is training
        self.seen = training
        return inputs


class Silent(Module):
    """Has no such parameter, but hands the mode on."""

    def __init__(self, *children):
        super().__init__()
        self.children = list(children)

    async def call(self, inputs):
        for child in self.children:
            inputs = await child(inputs)
        return inputs


async def test_the_argument_wins_and_holds_below():
    """`training=` of a call decides for it and for the calls below."""
    says = Says()
    await Silent(Silent(says))(q, training=True)
    await says(q)
    assert says.seen == [True, False]


async def test_one_child_does_not_switch_its_neighbours():
    """What a child decides never reaches siblings or the caller."""
    first, second = Says(), Says()
    first.train()

    class Both(Module):
        def __init__(self):
            self.first, self.second = first, second

        async def call(self, inputs):
            await self.first(inputs)
            assert not current_call().training
            return await self.second(inputs)

    await Both()(q)
    assert (first.seen, second.seen) == ([True], [False])


async def test_the_frame_wins_over_the_attribute_and_the_attribute_over_the_default():
    """Argument, frame, attribute, default of the signature, False."""
    says = Says()
    says.train()
    await Silent(says)(q, training=False)
    assert says.seen == [False]
    by_default = ByDefault()
    await by_default(q)
    assert by_default.seen is True
    by_default.eval()
    await by_default(q)
    assert by_default.seen is False


async def test_a_default_is_not_handed_down():
    """Only what the first three decide holds for the calls below."""
    says = Says()

    class Outer(Module):
        def __init__(self):
            self.says = says

        async def call(self, inputs, training=True):
            return await self.says(inputs)

    await Outer()(q)
    assert says.seen == [False]


async def test_what_is_said_when_composing_holds_when_the_step_runs():
    """`training=` of a symbolic call is an argument of the step, also after a copy and a file."""
    dropout, encoder = Echoes(), Echoes()
    source = Input(data_model=Query)
    program = Program(inputs=source, outputs=await encoder(await dropout(source, training=True), training=False))
    for copy in (program, program.clone(), loads(dumps(program))):
        for mode in (True, False):
            modes.clear()
            await copy(q, training=mode)
            assert modes == [True, False]


modes = []


@register(package="tests_training")
class Echoes(Module):
    """Tells the mode in which it is called."""

    async def call(self, inputs: Query, training=False) -> Query:
        modes.append(training)
        return inputs
