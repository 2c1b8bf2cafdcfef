"""The Trainer: names, classes of Variables, the life cycle, bind, parameters, states, batches, running."""

import asyncio
import inspect

import pytest

import synmod as sm
from synmod.testing import FunctionLM
from synmod.train.binding import NEEDS


class Query(sm.DataModel):
    question: str


class Wide(sm.DataModel):
    question: str
    hint: str | None = None


class Other(sm.DataModel):
    topic: str


class Answer(sm.DataModel):
    answer: str


class Echo(sm.Module):
    """Answers with its style and the question; remembers what it was asked; fails where the question says so."""

    def __init__(self, style="plain", **keywords):
        super().__init__(**keywords)
        self.style = self.add_variable(style, schema={"type": "string"}, name="style")
        self.tone = self.add_variable("warm", schema={"type": "string"}, name="tone", trainable=False)
        self.asked = self.add_variable([], schema={"type": "array"}, name="asked", type=sm.Memory)

    async def call(self, inputs: Query) -> Answer:
        await asyncio.sleep(0)
        if inputs.question.startswith("fail"):
            raise KeyError(inputs.question)
        self.asked.assign([*self.asked.value, inputs.question])
        return Answer(answer=f"{self.style.value}: {inputs.question} ({len(self.asked.value)})")


class Three(sm.Module):
    """Asks three of them, one after the other, and gives the last answer."""

    def __init__(self, *styles):
        super().__init__()
        self.parts = [Echo(style) for style in styles or ("plain",) * 3]

    async def call(self, inputs: Query) -> Answer:
        return [await part(inputs) for part in self.parts][-1]


class Two(sm.Module):
    """Takes two inputs."""

    async def call(self, left: Query, right: Other) -> Answer:
        return Answer(answer=f"{left.question} {right.topic}")


class Upper(sm.train.Optimizer):
    """Writes every value in capitals, or what it was made with."""

    def __init__(self, answer=None, **keywords):
        super().__init__(**keywords)
        self.answer = answer

    async def update(self, state, feedback, bench):
        self.note(accepted=False)
        if self.answer is not None:
            return self.answer(state) if callable(self.answer) else self.answer
        return state.map(lambda path, leaf: leaf.value.upper())


def asking(*questions):
    """A batch of questions."""
    return sm.Batch([{"question": question} for question in questions])


async def ready(program=None, *, optimizer=True, bind=None, **keywords):
    """A trainer that is ready to run."""
    trainer = sm.Trainer(program or Echo(), **keywords)
    await trainer.bind(Query, **(bind or {}))
    await trainer.init_params()
    if optimizer:
        trainer.init_optimizer(Upper())
    return trainer


# -- making one --------------------------------------------------------------------------------------------------------


def test_a_name_that_the_program_does_not_have():
    """It is named, with the one that was perhaps meant."""
    with pytest.raises(sm.TrainerError, match="'rigth' is not found.*Did you mean 'right'"):
        sm.Trainer(Two(), data_names=["left", "rigth"])
    assert sm.Trainer(Two()).data_names == ["left", "right"]
    assert sm.Trainer(Two(), data_names=["right", "left"]).data_names == ["left", "right"]
    program = sm.Sequential([sm.Input(Query, name="ask"), Echo()])
    assert sm.Trainer(program).data_names == ["ask"]


async def test_a_label_that_nobody_asks_for_is_a_warning():
    """One of another name, or any where the reward needs no target."""
    trainer = sm.Trainer(Echo(), reward="exact_match", label_names=["answer", "other"])
    with pytest.warns(sm.SynmodWarning, match="'other' is not used"):
        await trainer.bind(Query, Answer)
    trainer = sm.Trainer(Echo(), reward=lambda outputs: 1.0, label_names=["answer"])
    with pytest.warns(sm.SynmodWarning, match="'answer' is not used"):
        await trainer.bind(Query, Answer)


async def test_every_variable_is_of_one_class():
    """State before fixed before param before aux."""
    trainer = sm.Trainer(Three(), fixed_param_names=["parts/1/**"], state_names="parts/2/tone")
    await trainer.bind(Query)
    await trainer.init_params()
    params, aux = trainer.get_params()
    assert list(params.to_json()) == [f"parts/{path}" for path in ("0/style", "1/style", "1/tone", "2/style")]
    assert list(aux.to_json()) == ["parts/0/tone"]
    (states,) = trainer.get_states()
    assert list(states.to_json()) == [f"parts/{path}" for path in ("0/asked", "1/asked", "2/tone", "2/asked")]
    for wrong in ({"fixed_param_names": "stile"}, {"state_names": [sm.Stat]}):
        with pytest.raises(sm.TrainerError, match="matches no Variable"):
            await sm.Trainer(Echo(), **wrong).bind(Query)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"work_load_list": [1, 2]}, "2 entries for 1 contexts"),
        ({"context": [sm.Context("a"), sm.Context("b")], "work_load_list": [1]}, "1 entries for 2 contexts"),
        ({"work_load_list": [0]}, "positive"),
        ({"work_load_list": [float("nan")]}, "positive"),
        ({"work_load_list": ["1"]}, "positive"),
        ({"context": ["big"]}, "context must be a sm.Context.*got 'big'"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_settings_that_cannot_be(keywords, text):
    """Both numbers are named."""
    with pytest.raises(sm.TrainerError, match=text):
        sm.Trainer(Echo(), **keywords)


def test_a_program_is_a_module():
    """Anything else is refused at once."""
    with pytest.raises(sm.TrainerError, match="must be a module"):
        sm.Trainer(lambda x: x)


# -- the life cycle ----------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "reshape": (Query,),
    "install_monitor": (sm.Monitor(1),),
    "set_states": (None, {"asked": []}),
    "set_params": ({"style": "a", "tone": "b"},),
    "load_params": ("nowhere.json",),
    "save_params": ("nowhere.json",),
    "save_checkpoint": ("nowhere", 1),
    "forward": (asking("a"),),
    "forward_backward": (asking("a"),),
    "update_metric": (sm.metrics.MeanReward(), []),
    "save_optimizer_states": ("nowhere.json",),
    "load_optimizer_states": ("nowhere.json",),
    "score": ([asking("a")],),
    "predict": ([asking("a")],),
    "iter_predict": ([asking("a")],),
}
STEPS = ("bind", "bind for training", "inputs_need_grad", "init_params", "init_optimizer", "forward", "backward")


async def do(trainer, step):
    """Take one step of the life cycle."""
    if step == "bind":
        await trainer.bind(Query, for_training=False)
    elif step in ("bind for training", "inputs_need_grad"):
        await trainer.bind(Query, inputs_need_grad=step == "inputs_need_grad", force_rebind=True)
    elif step == "init_params":
        await trainer.init_params()
    elif step == "init_optimizer":
        trainer.init_optimizer(Upper())
    elif step == "forward":
        await trainer.forward(asking("a"))
    elif step == "backward":
        await trainer.backward([sm.Feedback(1.0)])


async def call(trainer, name):
    """Call a method, or read a property."""
    if isinstance(inspect.getattr_static(sm.Trainer, name), property):
        return getattr(trainer, name)
    arguments = (trainer,) if name == "borrow_optimizer" else ARGUMENTS.get(name, ())
    result = getattr(trainer, name)(*arguments)
    return await result if inspect.isawaitable(result) else result


@pytest.mark.parametrize("name", sorted(set(NEEDS) - {"shared_module"}))
async def test_a_call_in_the_wrong_state_says_what_is_missing(name):
    """Each row of the table: for every step that it needs, the call without it names call, step, and steps done."""
    needed = NEEDS[name]
    closure = {step for each in needed for step in (*NEEDS.get(each, ()), each)} | {"bind"}
    for missing in needed:
        trainer = sm.Trainer(Echo())
        for step in STEPS:
            is_possible = step == "bind" or set(NEEDS.get(step, ())) <= {*trainer.lifecycle, *done(trainer)}
            if step in closure and step != missing and is_possible and not (missing == "bind"):
                await do(trainer, step)
        before = trainer.lifecycle
        with pytest.raises(sm.LifecycleError) as caught:
            await call(trainer, name)
        text = str(caught.value)
        assert text.startswith(f"{name} needs ")
        assert f"Done so far: {', '.join(before) or 'nothing'}" in text
        assert trainer.lifecycle == before
        assert isinstance(caught.value, RuntimeError)


def done(trainer):
    """The modes that hold."""
    return [step for step, holds in (("bind for training", trainer.for_training),) if holds]


async def test_the_first_missing_step_is_named_with_the_line_that_takes_it():
    """In the order of the table."""
    trainer = sm.Trainer(Echo())
    with pytest.raises(sm.LifecycleError, match=r"forward needs 'bind' first: await trainer.bind\(.*Done so far: noth"):
        await trainer.forward(asking("a"))
    await trainer.bind(Query)
    with pytest.raises(sm.LifecycleError, match=r"forward needs 'init_params' first: .*Done so far: bind\."):
        await trainer.forward(asking("a"))
    wanted = "update needs 'init_params' first: .*; then init_optimizer, forward, backward. Done so far: bind"
    with pytest.raises(sm.LifecycleError, match=wanted):
        await trainer.update()


async def test_flags_turn_after_success():
    """Each by its step; a failed step leaves all as it was."""
    trainer = sm.Trainer(Echo())
    assert (trainer.bound, trainer.params_initialized, trainer.optimizer_initialized) == (False, False, False)
    with pytest.raises(AttributeError):
        trainer.program = Echo()
    with pytest.raises(sm.SynmodError):
        await trainer.bind([("wrong", Query)])
    assert not trainer.bound
    await trainer.bind(Query, inputs_need_grad=True)
    assert (trainer.bound, trainer.for_training, trainer.inputs_need_grad) == (True, True, True)
    with pytest.raises(sm.StateError):
        await trainer.init_params(params={})
    assert not trainer.params_initialized
    await trainer.init_params()
    with pytest.raises(sm.TrainerError):
        trainer.init_optimizer("nothing_of_this_name")
    assert not trainer.optimizer_initialized
    trainer.init_optimizer(Upper())
    await trainer.forward(asking("a"))
    with pytest.raises(KeyError):
        await trainer.forward(asking("fail"))
    assert trainer.get_outputs()[0]["answer"] == "plain: a (1)"
    await trainer.backward([sm.Feedback(1.0)])
    await trainer.update()
    assert trainer.lifecycle == ("bind", "init_params", "init_optimizer", "forward", "backward", "update")


# -- bind --------------------------------------------------------------------------------------------------------------


async def test_bind_calls_no_model_and_gives_schemas():
    """The program is built; what goes in and out is known by name."""

    def never(request):
        raise AssertionError("a model was called")

    program = sm.Generator(Answer, language_model=FunctionLM(never))
    trainer = sm.Trainer(program, reward="exact_match", label_names=["answer"])
    await trainer.bind(Query, Answer)
    assert program.built
    ((name, schema),) = trainer.data_schemas
    assert name == trainer.data_names[0]
    assert list(schema["properties"]) == ["question"]
    assert list(trainer.label_schemas[0][1]["properties"]) == ["answer"]
    assert list(trainer.output_schemas[0][1]["properties"]) == ["answer"]
    assert trainer.output_names == [trainer.output_schemas[0][0]]


async def test_bind_checks_names_and_schemas():
    """Other names, inputs that do not fit, a reward whose mask names nothing."""
    with pytest.raises(sm.TrainerError, match=r"Data provided by \['x'\].*\['left', 'right'\]"):
        await sm.Trainer(Two()).bind([("x", Query)])
    with pytest.raises(sm.SchemaError):
        await sm.Trainer(sm.Sequential([sm.Input(Query), Echo()])).bind(Other)
    reward = sm.rewards.ExactMatch(in_mask=["anser"])
    with pytest.raises(sm.SchemaError, match="Did you mean 'answer'"):
        await sm.Trainer(Echo(), reward=reward).bind(Query, Answer)
    trainer = sm.Trainer(Echo())
    with pytest.raises(sm.TrainerError, match="for_training=True"):
        await trainer.bind(Query, for_training=False, inputs_need_grad=True)
    assert not trainer.bound


async def test_a_second_bind_is_a_warning():
    """It changes nothing; force_rebind keeps values and optimizer."""
    trainer = await ready()
    optimizer = trainer.optimizer
    with pytest.warns(sm.SynmodWarning, match="Already bound"):
        await trainer.bind(Other)
    assert list(trainer.data_schemas[0][1]["properties"]) == ["question"]
    await trainer.forward(asking("a"))
    trainer.program.style.assign("bold")
    await trainer.bind(Query, for_training=False, force_rebind=True)
    assert trainer.program.style.value == "bold"
    assert trainer.optimizer is optimizer
    assert trainer.lifecycle == ("init_params", "init_optimizer", "bind")
    await trainer.forward(asking("a"))
    with pytest.raises(sm.LifecycleError, match="bind for training"):
        await trainer.backward([sm.Feedback(1.0)])
    assert not trainer.feedback


async def test_several_inputs():
    """By name, whatever the order; a batch is a dict of columns."""
    trainer = sm.Trainer(Two())
    await trainer.bind([("right", Other), ("left", Query)])
    await trainer.init_params()
    batch = sm.Batch({"right": [{"topic": "b"}, {"topic": "d"}], "left": [{"question": "a"}, {"question": "c"}]})
    await trainer.forward(batch)
    assert [each["answer"] for each in trainer.get_outputs()] == ["a b", "c d"]
    assert [each["answer"] for each in await trainer.predict([batch])] == ["a b", "c d"]


async def test_functional_programs_of_several_inputs():
    """A list and a dict of Inputs."""
    left, right = sm.Input(Query, name="left"), sm.Input(Other, name="right")
    outputs = await Two()(left, right)
    batch = sm.Batch({"left": [{"question": "a"}], "right": [{"topic": "b"}]})
    for inputs in ([left, right], {"left": left, "right": right}):
        trainer = sm.Trainer(sm.Program(inputs=inputs, outputs=outputs))
        assert trainer.data_names == ["left", "right"]
        await trainer.bind([("left", Query), ("right", Other)])
        await trainer.init_params()
        await trainer.forward(batch)
        assert trainer.get_outputs()[0]["answer"] == "a b"
        assert (await trainer.predict([batch]))[0]["answer"] == "a b"


async def test_reshape():
    """Further optional fields are taken; anything else leaves the trainer as it was."""
    trainer = await ready()
    with pytest.raises(sm.SchemaError, match="reshape"):
        trainer.reshape(Other)
    assert list(trainer.data_schemas[0][1]["properties"]) == ["question"]
    trainer.reshape(Wide)
    assert list(trainer.data_schemas[0][1]["properties"]) == ["question", "hint"]
    assert trainer.optimizer_initialized


async def test_grad_req():
    """A word for all, a list in order, or a dict by path or glob; wrong ones are named."""
    program = sm.Sequential([Echo(name="first"), sm.Lambda(to_query), Echo(name="second")])

    async def run(grad_req, times=2):
        trainer = await ready(program, bind={"grad_req": grad_req, "force_rebind": True})
        for _ in range(times):
            await trainer.forward(asking("a"))
            await trainer.backward([sm.Feedback(1.0)])
        counts = {path: len(items) for path, items in trainer.feedback.items()}
        await trainer.update()
        return counts, {path: len(items) for path, items in trainer.feedback.items()}

    assert await run("write") == ({"0/style": 1, "2/style": 1}, {"0/style": 1, "2/style": 1})
    assert await run("add") == ({"0/style": 2, "2/style": 2}, {"0/style": 0, "2/style": 0})
    assert await run({"0/style": "null", "2/style": "add"}) == (
        {"0/style": 0, "2/style": 2},
        {"0/style": 0, "2/style": 0},
    )
    assert await run(["add", "null"]) == ({"0/style": 2, "2/style": 0}, {"0/style": 0, "2/style": 0})
    assert await run({"2/*": "null"}) == ({"0/style": 1, "2/style": 0}, {"0/style": 1, "2/style": 0})
    for wrong, text in (
        ("keep", "'keep'"), (["add"], "1 entries for 2 params"), ({"3/*": "add"}, "matches no param")
    ):  # fmt: skip
        with pytest.raises(sm.TrainerError, match=text):
            await sm.Trainer(program).bind(Query, grad_req=wrong)


async def to_query(inputs: Answer) -> Query:
    """The answer as the next question."""
    return Query(question=inputs.answer)


async def test_shared_module():
    """The Variables are the same objects; params count as initialised, and the optimizer is borrowed."""
    first = await ready(Echo("bold"))
    second = sm.Trainer(Echo())
    await second.bind(Query, shared_module=first)
    assert second.program.style is first.program.style
    assert second.lifecycle == ("bind", "init_params", "init_optimizer")
    assert second.optimizer is first.optimizer
    await second.forward(asking("a"))
    await second.backward([sm.Feedback(0.0)])
    await second.update()
    assert first.program.style.value == "BOLD"

    class More(Echo):
        def __init__(self, **keywords):
            super().__init__(**keywords)
            self.extra = self.add_variable("x", schema={"type": "string"}, name="extra")
            self.other = self.add_variable("x", schema={"type": "string"}, name="other")
            self.style = self.add_variable(1, schema={"type": "integer"}, name="style")

    third = sm.Trainer(More())
    with pytest.raises(sm.StateError, match="'extra' is missing.*'other' is missing.*'style' has another schema"):
        await third.bind(Query, shared_module=first)
    assert not third.bound
    assert third.program.style is not first.program.style
    fourth = sm.Trainer(Echo(), fixed_param_names="nothing")
    own = fourth.program.style
    with pytest.raises(sm.TrainerError):
        await fourth.bind(Query, shared_module=first)
    assert fourth.program.style is own
    with pytest.raises(sm.LifecycleError, match="shared_module needs 'bind'"):
        await sm.Trainer(Echo()).bind(Query, shared_module=sm.Trainer(Echo()))


# -- parameters and states ---------------------------------------------------------------------------------------------


async def fresh(**keywords):
    """A trainer that is bound alone."""
    trainer = sm.Trainer(Echo(), **keywords)
    await trainer.bind(Query)
    return trainer


def values(trainer):
    """What the program holds."""
    return sm.state(trainer.program).to_json()


async def test_init_params_keeps_what_there_is():
    """Given values are written; a mapping that is given names all of its kind; all or nothing."""
    trainer = await fresh()
    with pytest.raises(sm.StateError, match="not presented: style"):
        await trainer.init_params(params={})
    with pytest.raises(sm.StateError, match="not presented: style, tone"):
        await trainer.init_params(params={"stile": "x"}, aux={})
    with pytest.raises(sm.StateError, match="'stile'.*Did you mean 'style'"):
        await trainer.init_params(params={"stile": "x"}, aux={"tone": "cold"}, allow_missing=True)
    with pytest.raises(sm.StateSchemaError):
        await trainer.init_params(params={"style": 1}, aux={"tone": "x"})
    assert values(trainer) == {"style": "plain", "tone": "warm", "asked": []}
    await trainer.init_params(params={"style": "given", "more": 1}, aux={}, allow_missing=True, allow_extra=True)
    assert values(trainer)["style"] == "given"
    with pytest.warns(sm.SynmodWarning, match="initialized already"):
        await trainer.init_params(params={"style": "again"})
    assert values(trainer)["style"] == "given"
    await trainer.init_params(force_init=True)
    assert values(trainer) == {"style": "plain", "tone": "warm", "asked": []}


async def test_init_params_with_an_initializer():
    """Metadata first, then the initializer, then what it was made with; fixed ones by given values alone."""

    async def make(path, schema):
        return f"made for {path}"

    program = Three("a", "b", "c")
    sm.set_metadata(program, only=sm.filters.Path("parts/1/style"), init="from metadata")
    trainer = sm.Trainer(program, fixed_param_names="parts/2/**")
    await trainer.bind(Query)
    await trainer.init_params(make, params={"parts/0/style": "given"}, allow_missing=True)
    found = values(trainer)
    assert found["parts/0/style"] == "given"
    assert found["parts/0/tone"] == "made for parts/0/tone"
    assert found["parts/1/style"] == "from metadata"
    assert found["parts/2/style"] == "c"
    assert found["parts/0/asked"] == []
    for initializer in (sm.initializers.Constant("x"), lambda path, schema: "x", {"parts/0/style": "x"}):
        await trainer.init_params(initializer, force_init=True)
        assert values(trainer)["parts/0/style"] == "x"
    assert values(trainer)["parts/0/tone"] == "warm"
    state = sm.state(program)
    await trainer.init_params(sm.initializers.Empty(), force_init=True)
    assert values(trainer)["parts/0/style"] == ""
    await trainer.init_params(state, force_init=True)
    assert values(trainer)["parts/0/style"] == "x"
    with pytest.raises(sm.StateError, match="'parts/0/stile'.*Did you mean 'parts/0/style'"):
        await trainer.init_params({"parts/0/stile": "x"}, force_init=True)
    with pytest.raises(sm.ArgumentError, match="takes a State, or a dict"):
        await trainer.init_params("x", force_init=True)


async def test_set_and_get_params():
    """The same switches; what is got is a snapshot."""
    trainer = await fresh()
    trainer.set_params({"style": "set"})
    assert trainer.params_initialized
    params, aux = trainer.get_params()
    trainer.set_params({"style": "later"}, {"tone": "cold"})
    assert params.to_json() == {"style": "set"}
    assert values(trainer) == {"style": "later", "tone": "cold", "asked": []}
    with pytest.warns(sm.SynmodWarning, match="initialized already"):
        trainer.set_params({"style": "never"}, force_init=False)
    with pytest.raises(sm.StateError, match="not presented"):
        trainer.set_params({})
    trainer.set_params(params, aux)
    assert values(trainer) == {"style": "set", "tone": "warm", "asked": []}


async def test_states_are_carried_per_row():
    """From forward to forward by place; another number of rows begins anew; the live program is never written."""
    trainer = await ready()
    await trainer.forward(asking("a", "b"))
    await trainer.forward(asking("c", "d"))
    assert [state["asked"].value for state in trainer.get_states()] == [["a", "c"], ["b", "d"]]
    assert trainer.program.asked.value == []
    await trainer.forward(asking("x"))
    assert [state["asked"].value for state in trainer.get_states()] == [["x"]]
    assert [output["answer"] for output in await trainer.predict([asking("p", "q")])] == [
        "plain: p (1)",
        "plain: q (1)",
    ]
    await trainer.forward(asking("y"))
    assert trainer.get_states()[0]["asked"].value == ["x", "y"]
    await trainer.bind(Query, force_rebind=True)
    await trainer.forward(asking("z"))
    assert trainer.get_states()[0]["asked"].value == ["z"]


async def test_set_states():
    """One value for all rows or one State each; both or neither is an error; unknown paths too."""
    trainer = await ready()
    with pytest.raises(sm.TrainerError, match="Only one of states & value"):
        trainer.set_states([], {})
    with pytest.raises(sm.TrainerError, match="At least one"):
        trainer.set_states()
    with pytest.raises(sm.StateError, match="style"):
        trainer.set_states(value={"style": "x"})
    with pytest.raises(sm.StateSchemaError):
        trainer.set_states(value={"asked": 1})
    trainer.set_states(value={"asked": ["before"]})
    await trainer.forward(asking("a", "b"))
    assert [state["asked"].value for state in trainer.get_states()] == [["before", "a"], ["before", "b"]]
    states = trainer.get_states()
    await trainer.forward(asking("c", "d"))
    trainer.set_states(states)
    assert trainer.get_states() == states
    await trainer.forward(asking("e", "f"))
    assert [state["asked"].value for state in trainer.get_states()] == [["before", "a", "e"], ["before", "b", "f"]]
    await trainer.forward(asking("g"))
    assert trainer.get_states()[0]["asked"].value == ["g"]


async def test_states_by_context_can_be_set_again():
    """Groups go back to the rows they came from, also where rows went to whichever context was free."""
    trainer = await ready(context=[sm.Context("a", limit=1), sm.Context("b", limit=2)])
    questions = list("abcdefg")
    await trainer.forward(asking(*questions))
    groups = trainer.get_states(merge_multi_context=False)
    assert sorted(len(group) for group in groups) != [0, 7]
    states = trainer.get_states()
    trainer.set_states(groups)
    assert trainer.get_states() == states
    with pytest.raises(sm.TrainerError, match="3 States for the 7 rows"):
        trainer.set_states([groups[0][:1], groups[1][:2]])
    assert [state["asked"].value for state in states] == [[question] for question in questions]


# -- the optimizer -----------------------------------------------------------------------------------------------------


async def test_init_and_borrow_optimizer():
    """By name with parameters, or made; a second one is ignored; what is borrowed is the very object."""
    trainer = await ready(optimizer=False)
    with pytest.raises(sm.TrainerError, match="Did you mean 'gepa'"):
        trainer.init_optimizer("gepaa")
    with pytest.raises(sm.TrainerError, match="nothing to optimise.*style"):
        trainer.init_optimizer("random_few_shot")
    trainer.init_optimizer("gepa", {"width": 2})
    first = trainer.optimizer
    assert first.width == 2
    with pytest.warns(sm.SynmodWarning, match="initialized already"):
        trainer.init_optimizer("reflect")
    assert trainer.optimizer is first
    trainer.init_optimizer("reflect", force_init=True)
    assert trainer.optimizer is not first
    other = await ready(optimizer=False)
    with pytest.raises(sm.TrainerError, match="no optimizer"):
        trainer.borrow_optimizer(other)
    other.borrow_optimizer(trainer)
    assert other.optimizer is trainer.optimizer


async def test_a_program_without_params_by_hand():
    """update does not ask the optimizer; fit refuses."""
    trainer = sm.Trainer(sm.Identity(), reward=lambda outputs: 1.0)
    await trainer.bind(Query)
    await trainer.init_params()
    trainer.init_optimizer("random_few_shot")
    await trainer.forward_backward(asking("a"))
    assert await trainer.update() == ()
    with pytest.raises(sm.TrainerError, match="nothing to optimise"):
        await trainer.fit([asking("a")], eval_data=[asking("a")], num_epoch=1)


# -- batches and contexts ----------------------------------------------------------------------------------------------


async def test_batches():
    """Unequal lengths are named; orders are a function of seed and epoch; the last batch may be short."""
    batch = sm.Batch({"left": [1, 2], "right": [1]}, [1, 2, 3])
    with pytest.raises(sm.TrainerError, match="all data must have the same batch size.*left: 2, right: 1, label: 3"):
        batch.size
    with pytest.raises(sm.TrainerError, match=r"A batch has `data`; got a list: write sm.Batch"):
        await (await ready()).forward([{"question": "a"}])
    rows = [{"n": n} for n in range(7)]
    batches = sm.Batches(rows, list(range(7)), batch_size=3, shuffle=True, seed=5)
    first, second = list(batches), list(batches)
    assert [batch.size for batch in first] == [3, 3, 1] and len(batches) == 3
    assert first != second
    assert all(row["n"] == label for batch in first for row, label in zip(batch.data, batch.label, strict=True))
    again = sm.Batches(rows, list(range(7)), batch_size=3, shuffle=True, seed=5)
    assert (list(again), list(again)) == (first, second)
    with pytest.raises(sm.TrainerError, match="batch_size"):
        sm.Batches(rows, batch_size=0)


@pytest.mark.parametrize(
    ("rows", "loads", "sizes"), [(10, [1, 2], [3, 7]), (7, [1, 1, 1], [2, 2, 3]), (5, [1, 1], [2, 3])]
)
async def test_work_loads_cut_a_batch_by_place(rows, loads, sizes):
    """Halves to even, the last has the rest; outputs come in input order."""
    contexts = [sm.Context(str(n)) for n in range(len(loads))]
    trainer = await ready(context=contexts, work_load_list=loads)
    questions = [str(n) for n in range(rows)]
    await trainer.forward(asking(*questions))
    groups = trainer.get_outputs(merge_multi_context=False)
    assert [len(group) for group in groups] == sizes
    assert [output for group in groups for output in group] == trainer.get_outputs()
    assert [output["answer"] for output in trainer.get_outputs()] == [f"plain: {n} (1)" for n in range(rows)]


async def test_too_many_slices():
    """A context without a row is an error."""
    trainer = await ready(context=[sm.Context("a"), sm.Context("b")], work_load_list=[1, 10])
    with pytest.raises(sm.TrainerError, match="Too many slices"):
        await trainer.forward(asking("a", "b"))


async def test_contexts_have_models_and_limits():
    """Each context's own model answers, at most `limit` at once; rows go to whichever is free."""
    running, most = {"a": 0, "b": 0}, {"a": 0, "b": 0}

    def model(name, wait):
        async def reply(request):
            running[name] += 1
            most[name] = max(most[name], running[name])
            await asyncio.sleep(wait)
            running[name] -= 1
            return {"answer": name}

        return FunctionLM(reply)

    contexts = [
        sm.Context("a", language_model=model("a", 0), limit=2),
        sm.Context("b", language_model=model("b", 0.02), limit=3),
    ]
    trainer = await ready(sm.Generator(Answer, language_model=model("never", 0)), context=contexts, optimizer=False)
    await trainer.forward(asking(*map(str, range(30))))
    names = [output["answer"] for output in trainer.get_outputs()]
    assert set(names) == {"a", "b"}
    assert names.count("a") > names.count("b")
    assert most == {"a": 2, "b": 3}
    evaluation = await trainer.score([asking("x", "y")], lambda outputs: outputs["answer"] in "ab")
    assert evaluation.total == 2


# -- running -----------------------------------------------------------------------------------------------------------


async def test_the_first_failing_row_cancels_the_others():
    """It is raised with its number; with collect a Failed stands in its place."""
    trainer = await ready(reward=lambda outputs: 1.0)
    with pytest.raises(KeyError) as caught:
        await trainer.forward(asking("a", "fail 1", "b"))
    assert "row 1" in caught.value.__notes__
    await trainer.forward(asking("a", "fail 1", "b"), on_error="collect")
    first, failed, last = trainer.get_outputs()
    assert isinstance(failed, sm.Failed) and failed.index == 1 and isinstance(failed.error, KeyError)
    assert (first["answer"], last["answer"]) == ("plain: a (1)", "plain: b (1)")
    await trainer.backward()
    scores = [(item.feedback.score, item.feedback.critique) for item in trainer.feedback["style"]]
    assert scores == [(1.0, None), (0.0, "KeyError: 'fail 1'"), (1.0, None)]
    metric, strict = sm.metrics.Accuracy(skip_failed=True), sm.metrics.Accuracy()
    labels = [{"answer": "plain: a (1)"}, {"answer": "x"}, {"answer": "plain: b (1)"}]
    await trainer.update_metric(metric, labels)
    await trainer.update_metric(strict, labels)
    assert metric.result() == 1.0
    assert strict.result() == pytest.approx(2 / 3)
    with pytest.raises(sm.TrainerError, match="1 labels for 3 rows"):
        await trainer.update_metric(metric, labels[:1])
    with pytest.raises(sm.TrainerError, match="'raise' or 'collect'"):
        await trainer.forward(asking("a"), on_error="ignore")


async def test_phases():
    """Rows in inference, rewards in reward, optimizers in optimizer, whatever is around."""
    phases = {}

    class Seeing(Echo):
        async def call(self, inputs: Query) -> Answer:
            phases["row"] = sm.current_phase()
            return Answer(answer="x")

    def reward(outputs):
        phases["reward"] = sm.current_phase()
        return 1.0

    class Looking(Upper):
        async def update(self, state, feedback, bench):
            phases["optimizer"] = sm.current_phase()
            await bench.evaluate(state, bench.validation)
            return state

    trainer = await ready(Seeing(), reward=reward, optimizer=False)
    trainer.init_optimizer(Looking())
    with sm.phase("optimizer"):
        await trainer.forward_backward(asking("a"))
    assert phases == {"row": "inference", "reward": "reward"}
    await trainer.update()
    assert phases == {"row": "inference", "reward": "reward", "optimizer": "optimizer"}


async def test_score_and_predict():
    """All rows in order, pads dropped; batches on request; none gives an empty list; metrics and errors as evaluate."""
    trainer = await ready(reward=lambda outputs, target: outputs["answer"] == target["answer"])
    padded = sm.Batch([{"question": q} for q in "cdx"], [{"answer": "plain: c (1)"}] * 3, pad=1)
    data = [sm.Batch([{"question": q} for q in "ab"], [{"answer": "plain: a (1)"}] * 2), padded]
    found = await trainer.predict(data)
    assert [output["answer"][7] for output in found] == list("abcd")
    assert [len(outputs) for outputs in await trainer.predict(data, merge_batches=False)] == [2, 2]
    assert len(await trainer.predict(data, num_batch=1)) == 2
    assert await trainer.predict([]) == []
    assert [(len(outputs), n, batch) async for outputs, n, batch in trainer.iter_predict(data)] == [
        (2, 0, data[0]), (2, 1, data[1])
    ]  # fmt: skip
    assert len(await trainer.predict(data[0])) == 2
    evaluation = await trainer.score(data, "accuracy")
    assert (evaluation.score, evaluation.total) == (0.5, 4)
    assert evaluation.metrics == {"accuracy": 0.5}
    assert (await trainer.score(data, num_batch=1)).total == 2
    with pytest.raises(sm.ArgumentError, match="unknown keyword 'max_erors'. Did you mean 'max_errors'"):
        await trainer.score(data, max_erors=1)
    rows = [(Query(question="a"), {"answer": "plain: a (1)"}), (Query(question="b"), {"answer": "plain: a (1)"})]
    assert (await trainer.score(rows)).score == 0.5
    found = await trainer.predict([asking("a", "fail")], on_error="collect")
    assert isinstance(found[1], sm.Failed)
    with pytest.raises(KeyError):
        await trainer.predict([asking("a", "fail")])


async def test_fit_has_a_signature():
    """Its keywords stand in it, so that editors show them."""
    parameters = inspect.signature(sm.Trainer(Echo()).fit).parameters
    assert list(parameters) == [
        "train", "eval_data", "eval_metric", "validation_metric", "num_epoch", "begin_epoch", "optimizer",
        "optimizer_params", "initializer", "params", "aux", "allow_missing", "force_rebind", "force_init", "monitor",
        "batch_end_callback", "epoch_end_callback", "eval_end_callback", "callbacks", "budget", "run", "durable_rows",
        "executor",
    ]  # fmt: skip
    assert all(f"{name}:" in sm.Trainer.fit.__doc__ for name in parameters)


# -- several inputs ----------------------------------------------------------------------------------------------------


class Sides(sm.Module):
    """Takes two inputs of one schema, which both may be left out."""

    async def call(self, left: Query | None = None, right: Query | None = None) -> Answer:
        return Answer(answer=f"{left and left.question} {right and right.question}")


def sides(form):
    """A program of two Inputs, in a list or a dict, which both may be left out."""
    left, right = (sm.Input(Query, name=name, optional=True) for name in ("left", "right"))
    return sm.Program(inputs=[left, right] if form == "list" else {"left": left, "right": right}, outputs=left | right)


@pytest.mark.parametrize("make", [Sides, lambda: sides("list"), lambda: sides("dict")])
async def test_a_part_of_the_inputs_goes_where_its_name_says(make):
    """The others are None: `right` alone went to the first parameter."""
    trainer = await ready(make(), optimizer=False, data_names="right", bind={"for_training": False})
    assert trainer.data_names == ["right"]
    for batch in (asking("x"), sm.Batch({"right": [{"question": "x"}]})):
        await trainer.forward(batch)
        (output,) = trainer.get_outputs()
        assert list(output.get_json().values()) in (["None x"], ["x"])


async def test_a_row_may_leave_out_an_optional_input():
    """One that is not optional is named, and cannot be left out of data_names either."""
    for program in (Sides(), sides("list"), sides("dict")):
        trainer = sm.Trainer(program)
        await trainer.bind([("left", Query), ("right", Query)])
        await trainer.init_params()
        await trainer.forward(sm.Batch({"left": [{"question": "x"}]}))
        assert list(trainer.get_outputs()[0].get_json().values()) in (["x None"], ["x"])
        assert len(await trainer.predict([{"right": {"question": "x"}}, {"left": {"question": "y"}}])) == 2
    trainer = sm.Trainer(Two())
    await trainer.bind([("left", Query), ("right", Other)])
    await trainer.init_params()
    with pytest.raises(sm.DataError, match="row .*: there is no input 'right'"):
        await trainer.forward(sm.Batch({"left": [{"question": "x"}]}))
    with pytest.raises(sm.TrainerError, match="data_names: left of 'two' cannot be left out"):
        sm.Trainer(Two(), data_names=["right"])


# -- what is refused ---------------------------------------------------------------------------------------------------


class Late(sm.Module):
    """Is made of the schema that it is built on."""

    async def build(self, inputs):
        self.note = self.add_variable(inputs.keys()[0], schema={"type": "string"}, name="note")

    async def call(self, inputs) -> Answer:
        return Answer(answer=self.note.value)


@pytest.mark.parametrize("make", [lambda: sm.Sequential([sm.Input(Query), Echo()]), Late])
async def test_reshape_takes_nothing_that_forward_would_refuse(make):
    """Neither past an Input, nor where a module was built on the schema that was bound."""
    trainer = await ready(make(), optimizer=False)
    with pytest.raises(sm.SchemaError, match="what the program takes"):
        trainer.reshape(Wide)
    trainer.reshape(Query)


async def test_a_bind_that_fails_leaves_the_program_unbuilt():
    """So that the next one may build it on another schema."""

    program = Late()
    masked = sm.rewards.ExactMatch(in_mask=["anwser"])
    for made, bind in (({}, {"grad_req": "wirte"}), ({"fixed_param_names": "nte"}, {}), ({"reward": masked}, {})):
        with pytest.raises((sm.TrainerError, sm.SchemaError)):
            await sm.Trainer(program, **made).bind(Other, **bind)
        assert not program.built
    trainer = await ready(program, optimizer=False)
    await trainer.forward(asking("x"))
    assert trainer.get_outputs()[0]["answer"] == "question"


@pytest.mark.filterwarnings("error")
async def test_a_function_that_asks_for_the_target_needs_the_labels_named():
    """It is no label that nobody asks for, and a row without it is an error."""

    def right(y_true, y_pred):
        return float(y_true["answer"] == y_pred["answer"])

    trainer = sm.Trainer(Echo(), reward=right, label_names="answer")
    assert trainer.label_names == ["answer"]
    await trainer.bind(Query, Answer)
    await trainer.init_params()
    for label in (None, [{"other": "b"}]):
        await trainer.forward(sm.Batch([{"question": "a"}], label))
        with pytest.raises(sm.TrainerError, match="row 0 has no label answer"):
            await trainer.backward()


@pytest.mark.parametrize("pad", [3, -1, 1.0, True])
async def test_more_filling_than_rows_is_refused(pad):
    """Nor is it another thing than a number."""
    trainer = await ready(optimizer=False)
    with pytest.raises(sm.TrainerError, match="pad"):
        await trainer.predict(sm.Batch([{"question": "a"}, {"question": "b"}], pad=pad))


async def test_how_many_batches_are_run_is_a_count():
    """None of them is no output, of rows as of batches."""
    trainer = await ready(optimizer=False)
    for data in ([asking("a")], [{"question": "a"}]):
        assert await trainer.predict(data, num_batch=0) == []
        with pytest.raises(sm.TrainerError, match="num_batch must be .*, got -1"):
            await trainer.predict(data, num_batch=-1)


@pytest.mark.parametrize("seed", [1.5, "1", True, None])
def test_a_seed_is_a_whole_number(seed):
    """It is refused where it is given, not at the first draw."""
    for make in (lambda: sm.Trainer(Echo(), seed=seed), lambda: sm.Batches([{"question": "a"}], seed=seed)):
        with pytest.raises(sm.TrainerError, match="seed must be a whole number, got"):
            make()


async def test_what_is_given_in_the_wrong_place_is_told_in_words():
    """With what was got and what to write."""
    trainer = await ready(optimizer=False)
    with pytest.raises(sm.TrainerError, match="must be a Monitor.*got 'x'"):
        trainer.install_monitor("x")
    with pytest.raises(sm.TrainerError, match="write value="):
        trainer.set_states(states={"asked": []})
    with pytest.raises(sm.TrainerError, match="shared_module must be the other Trainer"):
        await sm.Trainer(Echo()).bind(Query, shared_module=trainer.program)
    with pytest.raises(sm.LifecycleError, match="get_params needs 'bind' first.*then init_params"):
        sm.Trainer(Echo()).get_params()
    with pytest.raises(sm.ArgumentError, match="rollouts must be a whole number of at least 0, got -1"):
        sm.Budget(rollouts=-1)
