"""Programs by subclass, and the mixed form whose build composes."""

import pytest

from synmod.errors import BuildError, CallError, ConfigError, NoCallError, SchemaError
from synmod.module import Module, build
from synmod.program import Input, Program, Sequential
from synmod.tree import variables
from tests.program.parts import Answer, Echo, Hint, Noted, Query, Reply, Shout, query


class Agent(Program):
    """Answers loudly."""

    def __init__(self, loud=True, **kwargs):
        super().__init__(**kwargs)
        self.loud = loud
        self.reply = Reply()
        self.shout = Shout()

    async def call(self, inputs: Query) -> Answer:
        answer = await self.reply(inputs)
        return await self.shout(answer) if self.loud else answer


class Mixed(Program):
    """Composes in its build."""

    def __init__(self, times=1, **kwargs):
        super().__init__(**kwargs)
        self.times = times
        self.reply = Reply()

    async def build(self, inputs):
        out = await self.reply(inputs)
        for _ in range(self.times):
            out = await Shout()(out)
        super().__init__(inputs=inputs, outputs=out, name=self.name)


async def test_a_subclass_with_call_is_a_module_with_the_methods_of_a_program():
    """Nothing else differs."""
    agent = Agent(name="agent")
    assert (await agent(query("a")))["answer"] == "A"
    assert (agent.name, agent.description) == ("agent", "Answers loudly.")
    assert agent.get_config() == {"loud": True, "name": "agent"} or agent.get_config()["name"] == "agent"
    assert agent.get_module("shout") is agent.shout
    assert (agent.inputs, agent.outputs, agent.steps) == (None, None, ())
    assert await agent(None) is None
    assert await Sequential([Echo(), agent])(None) is None
    x = Input(Query)
    assert (await agent(x)).keys() == ("answer",)


async def test_none_below_another_call_passes_a_subclass_too():
    """A program by subclass is skipped like any module."""

    class Outer(Module):
        def __init__(self):
            super().__init__()
            self.agent = Agent()

        async def call(self, inputs: Query):
            assert await self.agent(None) is None
            return inputs

    assert await Outer()(query()) == query()


async def test_a_program_without_call_and_graph_cannot_be_called():
    """NoCallError that names the class."""

    class Empty(Program):
        pass

    with pytest.raises(NoCallError, match="Empty"):
        await Empty()(query())
    with pytest.raises(NoCallError, match="Program"):
        await Program()(query())


async def test_the_mixed_form_builds_its_graph_at_the_first_call():
    """The instance takes the graph, and calls of it run the graph."""
    mixed = Mixed(times=2, name="mine")
    assert not mixed.built
    assert mixed.steps == ()
    assert (await mixed(query("a")))["answer"] == "A"
    assert mixed.built
    assert [step.name for step in mixed.steps] == ["reply", "shout", "shout"]
    assert list(mixed.__dict__) == ["times", "reply", "shout", "shout_1"]
    assert (await mixed(query("b")))["answer"] == "B"
    with pytest.raises(SchemaError):
        await mixed(Hint(hint="x"))


async def test_many_instances_have_each_their_own_graph():
    """The class knows nothing of graphs."""
    one, three = Mixed(times=1), Mixed(times=3)
    await build(one, Query)
    await build(three, Query)
    assert (len(one.steps), len(three.steps)) == (2, 4)


async def test_the_mixed_form_keeps_arguments_and_labels():
    """Config is that of the user's own constructor; what was given at construction stays."""
    mixed = Mixed(times=2, name="mine", description="Mine.", trainable=False)
    await mixed(query())
    assert mixed.get_config() == {"times": 2, "name": "mine", "description": "Mine.", "trainable": False}
    assert (mixed.name, mixed.description, mixed.trainable) == ("mine", "Mine.", False)


async def test_a_module_held_already_is_not_held_twice():
    """The graph uses it under the name it has."""
    mixed = Mixed()
    await mixed(query())
    assert mixed.submodules == (mixed.reply, mixed.shout)


async def test_a_failed_build_leaves_no_graph():
    """All or nothing; the next call builds anew."""

    class Picky(Program):
        def __init__(self):
            super().__init__()
            self.fails = True

        async def build(self, inputs):
            super().__init__(inputs=inputs, outputs=await Reply()(inputs))
            if self.fails:
                raise LookupError("not yet")

    picky = Picky()
    with pytest.raises(LookupError):
        await picky(query())
    assert not picky.built
    assert (picky.steps, picky.submodules) == ((), ())
    picky.fails = False
    assert (await picky(query("a")))["answer"] == "a"


async def test_the_graph_goes_into_build_and_once():
    """Anywhere else, or a second time, it is a BuildError."""

    class Early(Program):
        def __init__(self):
            x = Input(Query)
            super().__init__(inputs=x, outputs=x)

    class Twice(Program):
        async def build(self, inputs):
            super().__init__(inputs=inputs, outputs=inputs)
            super().__init__(inputs=inputs, outputs=inputs)

    with pytest.raises(BuildError, match="build"):
        Early()
    with pytest.raises(BuildError, match="once"):
        await Twice()(query())
    mixed = Mixed()
    await mixed(query())
    x = Input(Query)
    with pytest.raises(BuildError):
        Program.__init__(mixed, inputs=x, outputs=x)


async def test_a_call_beside_the_graph_is_a_config_error():
    """A program runs one or the other."""

    class Both(Program):
        async def build(self, inputs):
            super().__init__(inputs=inputs, outputs=inputs)

        async def call(self, inputs):
            return inputs

    with pytest.raises(ConfigError, match="call"):
        await Both()(query())


async def test_a_graph_that_runs_its_own_program_is_refused():
    """It would wait for itself."""

    class Circle(Program):
        async def build(self, inputs):
            super().__init__(inputs=inputs, outputs=await self(inputs))

    with pytest.raises(BuildError, match="waits for itself"):
        await Circle()(query())


async def test_copies_of_a_mixed_program():
    """Built ones keep the graph; unbuilt ones build their own."""
    mixed = Mixed(times=2)
    early = mixed.clone()
    await mixed(query())
    late = mixed.clone()
    assert not early.built
    assert late.built
    for twin in (early, late):
        assert (await twin(query("a")))["answer"] == "A"
        assert len(twin.steps) == 3
        assert twin.steps[0].module is twin.reply
        assert twin.reply is not mixed.reply


async def test_a_trivial_subclass_takes_a_graph_like_program_itself():
    """Without a constructor of its own there is nothing to record."""

    class Named(Program):
        """Has a name."""

    x = Input(Query)
    named = Named(inputs=x, outputs=await Reply()(x))
    assert named.name == "named"
    assert (await named(query("a")))["answer"] == "a"


async def test_a_mixed_program_in_a_program():
    """It builds when it is composed, and is one step."""
    x = Input(Query)
    mixed = Mixed()
    program = Program(inputs=x, outputs=await mixed(x))
    assert len(program.steps) == 1
    assert mixed.built
    assert (await program(query("a")))["answer"] == "A"


async def test_several_inputs_of_a_mixed_program():
    """Nests and several arguments of `build` become the structure of its inputs."""

    class Two(Program):
        async def build(self, first, second):
            super().__init__(inputs=[first, second], outputs=first + second)

    two = Two()
    assert (await two(query("a"), Hint(hint="b"))).get_json() == {"question": "a", "hint": "b"}
    assert (await two([query("a"), Hint(hint="b")])).get_json() == {"question": "a", "hint": "b"}
    with pytest.raises(CallError):
        await two(query("a"))


async def test_state_made_beside_the_graph():
    """A mixed build may make Variables too."""

    class Noting(Program):
        async def build(self, inputs):
            self.note = self.add_variable("n", name="note")
            super().__init__(inputs=inputs, outputs=await Noted()(inputs))

    noting = Noting()
    await noting(query())
    assert list(variables(noting)) == ["note", "noted/notes"]


def test_a_module_is_what_a_program_is():
    """Programs nest in modules."""

    class Outer(Module):
        def __init__(self):
            super().__init__()
            self.agent = Agent()
            self.echo = Echo()

        async def call(self, inputs: Query) -> Answer:
            return await self.agent(await self.echo(inputs))

    from synmod.flow import run

    assert run(Outer(), query("a"))["answer"] == "A"
