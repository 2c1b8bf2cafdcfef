"""RandomFewShot and BootstrapFewShot: what they learn, what that costs, and what no set of examples may do."""

import random
import statistics
from dataclasses import replace

import pytest

import synmod as sm
from synmod.data import parse_json
from synmod.embedded import NearestAdapter
from synmod.optimizers import BootstrapFewShot, ExamplePool, Mipro, RandomFewShot
from synmod.testing import FunctionLM, tickets
from synmod.testing.tasks import Desk, Request
from synmod.train import Batch, Trainer

EXAMPLES = "0/examples"


async def fitted(task, optimizer, budget=None, *, lm="embedded/nearest", **options):
    """Return the history of a run on a task."""
    trainer = Trainer(task.program, reward=task.reward, **{"seed": task.seed, **options})
    with sm.use_language_models(lm):
        return await trainer.fit(
            [Batch(list(task.train))], eval_data=task.validation, optimizer=optimizer, budget=budget
        )


async def accuracy(task):
    """Return the accuracy on rows that nothing was chosen by."""
    return (await sm.evaluate(task.program, task.test, reward=task.reward, progress=False)).score


def of_task(row):
    """Return the entry that the label of a row makes."""
    return {"inputs": row.inputs, "outputs": row.target}


def test_a_random_set_has_every_answer_that_fits():
    """Rare answers are in it like frequent ones; rows whose answers all differ are drawn alike."""
    entries = [(str(row), {"inputs": {"x": row}, "outputs": {"y": min(row, 3)}}) for row in range(40)]
    harvest = ExamplePool.of({"0/examples": entries})
    for seed in range(20):
        rows = harvest.random_rows(8, random.Random(seed))
        assert {"0", "1", "2"} < {*rows}
        assert 6 <= len(set(rows)) == len(rows) <= 8
        assert len(harvest.random_rows(4, random.Random(seed))) == 4
    free = ExamplePool.of({"0/examples": [(row, {**entry, "outputs": {"y": row}}) for row, entry in entries]})
    drawn = [row for seed in range(200) for row in free.random_rows(4, random.Random(seed))]
    assert len(set(drawn)) == 40


def test_one_more_example_takes_the_place_of_a_drawn_one():
    """So the order of the others stays as it is balanced; where there is room, none gives way."""
    task = tickets(0)
    rows = {str(number): of_task(row) for number, row in enumerate(task.train[:5])}
    pool, full = ExamplePool.of({EXAMPLES: rows.items()}), [rows[row] for row in "0123"]

    def with_the_fifth(most, draw):
        state = pool.with_rows(sm.state(task.program), "0123", most)
        return list(pool.with_row(state, "4", most, random.Random(draw))[EXAMPLES].value)

    assert with_the_fifth(5, 0) == [*full, rows["4"]]
    places = set()
    for draw in range(40):
        examples = with_the_fifth(4, draw)
        place = examples.index(rows["4"])
        assert examples == [*full[:place], rows["4"], *full[place + 1 :]]
        places.add(place)
    assert places == {0, 1, 2, 3}


@pytest.mark.parametrize("optimizer", [RandomFewShot, BootstrapFewShot])
async def test_examples_of_an_answer_that_is_given_too_often_come_first(optimizer):
    """The first random set shows what the model prefers; each later one ends with the other answers."""
    task = tickets(0)
    preferred = task.train[0].target["desk"]
    lm = FunctionLM(lambda _: {"desk": preferred})
    history = await fitted(task, optimizer(max_examples=6, sets=8), 240, lm=lm)
    drawn = [each.state[EXAMPLES].value for each in history.candidates if each.operator in ("random set", "set")]
    orders = [[entry["outputs"]["desk"] != preferred for entry in entries] for entries in drawn[2:]]
    assert len(orders) >= 5
    assert all(order == sorted(order) for order in orders)


async def test_an_answer_that_no_row_asked_for_is_not_given_too_rarely():
    """The first rows may lack some answers: a model that is always right has its sets as they were drawn."""
    task = tickets(0)
    desks = {row.inputs["text"]: row.target["desk"] for row in task.validation}
    lm = FunctionLM(lambda request: {"desk": desks[request.messages[-1]["content"]]})
    drawn = []
    for first in (2, len(task.validation)):
        history = await fitted(task, RandomFewShot(max_examples=6, sets=8, first=first), lm=lm)
        drawn.append([each.state[EXAMPLES].value for each in history.candidates])
    assert len(drawn[0]) == 8 and drawn[0] == drawn[1]


@pytest.mark.parametrize("optimizer", [RandomFewShot, BootstrapFewShot])
async def test_a_bare_label_teaches_what_its_object_does(optimizer):
    """It stands for the only field that the program returns."""
    found = []
    for bare in (False, True):
        task = tickets(0)
        rows = [replace(row, target=row.target["desk"]) for row in task.train] if bare else task.train
        await fitted(replace(task, train=rows), optimizer(max_examples=4, sets=3), 120)
        found.append(sm.state(task.program))
    assert found[0] == found[1]
    assert found[0][EXAMPLES].value


TEMPLATE = {"system": "{instructions}\n{output_fields}", "user": "{inputs}"}


@pytest.mark.parametrize(
    "optimizer",
    [
        RandomFewShot(max_examples=2),
        BootstrapFewShot(max_examples=2),
        BootstrapFewShot(max_examples=2, teacher="embedded/nearest"),
        Mipro(instructions=2, sets=2),
        Mipro(proposals={"0/instructions": ["Sort it."]}),
    ],
)
@pytest.mark.parametrize("template", [TEMPLATE, {"user": "{inputs}"}])
async def test_examples_that_no_model_would_see_are_not_paid_for(optimizer, template):
    """A template without `{examples}` is an error before the first call of a model, and names the Variable."""
    task, lm = tickets(0), FunctionLM(lambda request: {"desk": "billing"})
    module = sm.Generator(Desk, template=template)
    program = sm.Sequential([sm.Input(Request), module], name="tickets")
    with pytest.raises(sm.ConfigError, match=r"^0/examples: template: no turn has \{examples\}"):
        await fitted(replace(task, program=program), optimizer, 100, lm=lm)
    assert not lm.requests


@pytest.mark.parametrize(
    "optimizer",
    [Mipro(max_examples=0, proposals={"0/instructions": ["Sort it."]}, steps=1), RandomFewShot(max_examples=2, sets=2)],
    ids=["no examples", "another module"],
)
async def test_a_template_without_examples_is_fine_where_none_are_trained(optimizer):
    """Mipro with `max_examples=0` trains instructions alone; `trainable=False` keeps a module as it is."""
    with_examples = isinstance(optimizer, RandomFewShot)
    first = sm.Generator(Desk, template=TEMPLATE, trainable=not with_examples)
    second = [sm.Generator(Desk)] if with_examples else []
    program = sm.Sequential([sm.Input(Request), first, *second], name="tickets")
    lm = FunctionLM(lambda request: {"desk": "billing"})
    await fitted(replace(tickets(0), program=program), optimizer, 200, lm=lm)
    assert lm.requests


def test_a_threshold_that_is_no_score():
    """Said when it is made."""
    for wrong in ("0.5", True, float("nan")):
        with pytest.raises(sm.TrainerError, match="threshold must be"):
            RandomFewShot(threshold=wrong)


# -- tickets -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_tickets_are_hard_without_examples_and_neither_easy_nor_hopeless_with_random_ones():
    """Chance with none; about 0.73 with 16 random ones."""
    bare, shown = [], []
    for seed in range(10):
        task = tickets(seed)
        assert task.train == tickets(seed).train != tickets(seed + 1).train
        assert len({row.inputs["text"] for split in (task.train, task.validation, task.test) for row in split}) == 180
        bare.append(await accuracy(task))
        drawn = random.Random(seed).sample(task.train, 16)
        sm.update(task.program, {EXAMPLES: [of_task(row) for row in drawn]})
        shown.append(await accuracy(task))
    assert 0.24 <= statistics.mean(bare) <= 0.37
    assert 0.68 <= statistics.mean(shown) <= 0.79


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "budget", "least"),
    [(RandomFewShot, 255, 0.76), (BootstrapFewShot, 400, 0.84), (BootstrapFewShot, 640, 0.87)],
)
async def test_what_is_learned_holds_on_the_test_rows(optimizer, budget, least):
    """Mean of six seeds; `python -m tests.benchmarks.optimizers` takes twenty."""
    scores = []
    for seed in range(6):
        task = tickets(seed)
        history = await fitted(task, optimizer(max_examples=16), budget)
        assert history.spent.rollouts <= budget
        scores.append(await accuracy(task))
    assert statistics.mean(scores) >= least


# -- laws --------------------------------------------------------------------------------------------------------------


OPTIMIZERS = {"random": (RandomFewShot, {"sets": 4}), "bootstrap": (BootstrapFewShot, {"sets": 4, "width": 2})}


@pytest.mark.parametrize("name", OPTIMIZERS)
async def test_a_budget_is_never_exceeded(name):
    """Whatever it is: the runs are counted where they happen, and a step never costs more than was foretold."""
    kind, settings = OPTIMIZERS[name]
    for budget in (None, 140, 206):
        ran, foretold = set(), []

        class Counting(kind):
            async def update(self, state, feedback, bench):
                before, most = bench.rollouts, self.step_cost(bench)
                answer = await super().update(state, feedback, bench)
                foretold.append((bench.rollouts - before, most))  # noqa: B023
                return answer

        def answer(request):
            ran.add(str(request.messages))  # noqa: B023
            return NearestAdapter().send(request)

        history = await fitted(tickets(2), Counting(max_examples=4, **settings), budget, lm=FunctionLM(answer))
        assert len(ran) <= history.spent.rollouts
        assert budget is None or history.spent.rollouts <= budget
        assert foretold
        assert all(cost <= most for cost, most in foretold)


async def test_sixteen_sets_and_forty_rows_cost_at_most_255():
    """Without a budget, too; and a budget of 255 is enough."""
    free = await fitted(tickets(0), RandomFewShot(max_examples=4))
    bound = await fitted(tickets(0), RandomFewShot(max_examples=4), 255)
    assert free.spent.rollouts == bound.spent.rollouts <= 255
    assert free.best.state == bound.best.state
    assert bound.stopped == "done"


async def test_the_first_rows_of_halving_have_every_answer():
    """However the rows were drawn: a set is not dropped for answers that it was never asked for."""
    for seed in range(4):
        task = tickets(seed)
        desks = {row.id: row.target["desk"] for row in task.validation}
        history = await fitted(task, RandomFewShot(max_examples=4, sets=4))
        assert all(
            {desks[row] for row in each.scores["validation"]} == {*desks.values()} for each in history.candidates
        )


async def test_a_larger_budget_gives_the_first_round_more_rows():
    """As many as fit; without a budget, and with one that is just enough, there are as few as the setting says."""
    rows = []
    for budget in (None, 200, 320):
        history = await fitted(tickets(0), RandomFewShot(max_examples=4, sets=8), budget)
        rows.append(min(len(each.scores["validation"]) for each in history.candidates))
        assert budget is None or history.spent.rollouts <= budget
    assert rows[0] == rows[1] == 5
    assert 15 < rows[2] < 40


@pytest.mark.parametrize("kind", [RandomFewShot, BootstrapFewShot])
async def test_a_good_seed_is_never_made_worse(kind):
    """A program with good examples keeps them unless something is better on the validation rows."""
    for seed in range(2):
        task = tickets(seed)
        sm.update(task.program, {EXAMPLES: [of_task(row) for row in task.train[:30]]})
        history = await fitted(task, kind(max_examples=4, sets=4), 240)
        first = history.candidates[0]
        assert history.best.score >= first.mean("validation", history.best.scores["validation"])
        assert len(history.best.scores["validation"]) == 40


@pytest.mark.parametrize("validation", [True, False])
@pytest.mark.parametrize("kind", [RandomFewShot, BootstrapFewShot])
@pytest.mark.filterwarnings("ignore:There are no validation rows")
async def test_examples_are_labels_that_a_train_row_never_sees_its_own_of(kind, validation):
    """No prompt of a train row holds its text as an example, even where it validates; no set holds an entry twice."""
    task = tickets(3) if validation else replace(tickets(3), validation=None)
    trained = {row.inputs["text"] for row in task.train}
    seen = []

    def answer(request):
        *examples, asked = [str(message["content"]) for message in request.messages]
        seen.append((examples, next((row for row in trained if row in asked), None)))
        return NearestAdapter().send(request)

    await fitted(task, kind(max_examples=8), 300 if validation else 400, lm=FunctionLM(answer))
    assert all(text not in examples for examples, text in seen if text is not None)
    assert (kind is RandomFewShot and validation) or any(text for _, text in seen)
    entries = sm.state(task.program)[EXAMPLES].value
    assert 0 < len(entries) <= 8
    assert len({str(entry) for entry in entries}) == len(entries)
    assert all(entry in [of_task(row) for row in task.train] for entry in entries)


# -- harvests by runs --------------------------------------------------------------------------------------------------


class Word(sm.DataModel):
    """What is asked."""

    word: str


class Length(sm.DataModel):
    """What the first Generator finds."""

    length: int


class Size(sm.DataModel):
    """What the second Generator finds."""

    size: str


class Two(sm.Module):
    """A Generator that counts, and one that sees nothing but the count."""

    def __init__(self):
        super().__init__()
        self.count, self.judge = sm.Generator(Length), sm.Generator(Size)

    async def call(self, inputs: Word) -> Size:
        return await self.judge(await self.count(inputs))


def counting(request):
    """Return the length of a word, or what size a length is."""
    asked = request.messages[-1]["content"]
    if "length" in request.schema["properties"]:
        return {"length": len(asked)}
    return {"size": "long" if parse_json(asked)["length"] > 3 else "short"}


LENGTH = '{{"length":{}}}'
WORDS = ["a", "be", "cow", "duck", "eagle", "ant", "bee", "if", "horse", "gnat", "emu", "yak"]


def words(shift=0):
    """Return rows: what is right, by the program as it is, but for one of four."""
    chosen = WORDS[shift:] + WORDS[:shift]
    labels = [{"size": "long" if len(word) > (2 if word == "cow" else 3) else "short"} for word in chosen]
    return [sm.Example(f"{word}-{shift}", {"word": word}, label) for word, label in zip(chosen, labels, strict=True)]


async def learned(optimizer, program=None, lm=counting, reward="exact_match", validation=None):
    """Return program and history of a run on words."""
    program = program or Two()
    trainer = Trainer(program, reward=reward)
    with sm.use_language_models(FunctionLM(lm, repairs=0)):
        await trainer.bind(Word)
        history = await trainer.fit([Batch(words())], eval_data=validation or words(5), optimizer=optimizer)
    return program, history


def entries_of(history, path):
    """Return the entries that all candidates of a run have at a path."""
    return [entry for each in history.candidates for entry in each.state[path].value]


@pytest.mark.parametrize("kind", [RandomFewShot, BootstrapFewShot])
async def test_two_generators_are_each_credited_with_their_own_calls(kind):
    """Inputs and outputs of each are its own; a row that went wrong makes no entry; equal ones are one."""
    _, history = await learned(kind(max_examples=12, sets=4))
    counted, judged = entries_of(history, "count/examples"), entries_of(history, "judge/examples")
    assert {entry["inputs"]["word"] for entry in counted} == set(WORDS) - {"cow"}
    assert all(entry["outputs"] == {"length": len(entry["inputs"]["word"])} for entry in counted)
    assert {(entry["inputs"]["length"], entry["outputs"]["size"]) for entry in judged} == {
        (1, "short"), (2, "short"), (3, "short"), (4, "long"), (5, "long"),
    }  # fmt: skip
    for each in history.candidates:
        shown = [str(entry) for entry in each.state["judge/examples"].value]
        assert len(set(shown)) == len(shown)


async def test_an_entry_of_several_rows_is_hidden_from_all_of_them():
    """'cow', 'ant', 'bee' are one entry of the second Generator: none of these train rows ever sees it."""
    asked = []

    def answer(request):
        if "size" in request.schema["properties"]:
            _, *examples, inputs = [turn["content"] for turn in request.messages]
            asked.append((examples, inputs))
            return {"size": "long" if examples else "short"}
        return counting(request)

    def helped(y_pred, inputs):
        """Examples help on validation rows; every train row could do better, so that all are probed."""
        return float(y_pred["size"] == "long") if len(inputs["word"]) > 5 else 0.5

    others = [sm.Example(word, {"word": word}, {"size": "long"}) for word in ("badger", "weasel", "lobster")]
    await learned(BootstrapFewShot(max_examples=2, sets=4, patience=4), lm=answer, reward=helped, validation=others)
    of_train_rows = [(examples, inputs) for examples, inputs in asked if inputs in map(LENGTH.format, range(1, 6))]
    assert any(examples for examples, _ in of_train_rows)
    assert all(inputs not in examples for examples, inputs in of_train_rows)


class Careless(sm.Module):
    """Asks one Generator, and another one where it fails."""

    def __init__(self):
        super().__init__()
        self.first, self.second = sm.Generator(Size, name="first"), sm.Generator(Size, name="second")

    async def call(self, inputs: Word) -> Size:
        try:
            return await self.first(inputs)
        except sm.ModelError:
            return await self.second(inputs)


async def test_failed_calls_never_enter():
    """The row went well, thanks to the second Generator: the first one gets no entry of it."""

    def answer(request):
        word = request.messages[-1]["content"]
        is_first = "FIRST" in str(request.messages)
        return "nonsense" if is_first and len(word) > 3 else {"size": "long" if len(word) > 3 else "short"}

    program = Careless()
    sm.update(program, {"first/instructions": "FIRST"})
    _, history = await learned(RandomFewShot(max_examples=12, sets=3), program, answer)
    assert {entry["outputs"]["size"] for entry in entries_of(history, "first/examples")} == {"short"}
    assert {entry["outputs"]["size"] for entry in entries_of(history, "second/examples")} == {"long"}


async def test_a_threshold_decides_which_rows_make_examples():
    """A number; or the best quarter where too few reach the maximum; never rows of the lowest score."""

    async def by_length(y_pred, inputs):
        return (len(inputs["word"]) - 1) / 5

    async def harvest(threshold, reward=by_length):
        _, history = await learned(RandomFewShot(max_examples=12, sets=6, threshold=threshold), reward=reward)
        return {entry["inputs"]["word"] for entry in entries_of(history, "count/examples")}

    assert await harvest(0.6) == {"duck", "eagle", "horse", "gnat"}
    assert await harvest(0.8) == {"eagle", "horse"}
    assert await harvest(None) == {"duck", "eagle", "horse", "gnat"}  # the third best of twelve, and its equals

    async def zero():
        return 0.0

    with pytest.raises(sm.TrainerError, match="nothing to make examples of"):
        await harvest(None, zero)


async def test_the_examples_of_an_agent_that_returns_its_conversation_are_answers():
    """The last turn of the conversation is the answer that an example shows."""

    def reply(request):
        return "short" if request.messages[-1]["role"] == "tool" else sm.ToolCall("1", "abs", {"x": -1})

    def absolute(x: int) -> int:
        return abs(x)

    agent = sm.Agent([sm.Tool(absolute, name="abs")], return_messages=True, language_model=FunctionLM(reply))
    program = sm.Sequential([sm.Input({"type": "object"}), agent])

    def better_with_examples(inputs):
        return float(inputs["n"] % 2 or bool(agent.examples.value))

    program.compile(reward=better_with_examples, optimizer=BootstrapFewShot())
    await program.fit([{"n": n} for n in range(20)])
    assert {example["outputs"]["content"] for example in agent.examples.value} == {"short"}


# -- teachers ----------------------------------------------------------------------------------------------------------


async def test_a_teacher_model_makes_the_examples_and_is_credited_to_nobody():
    """It answers in place of the program's model for the harvest alone; where it errs, the label stands in."""

    def teach(request):
        asked = str(request.messages[-1]["content"])
        return {"desk": next((label for text, label in right.items() if text in asked), "billing")}

    task = tickets(4)
    right = {row.inputs["text"]: row.target["desk"] for row in task.train[:30]}
    teacher = FunctionLM(teach)
    history = await fitted(task, BootstrapFewShot(max_examples=16, teacher=teacher), 460)
    assert len(teacher.requests) == 60
    assert history.spent.rollouts <= 460
    assert await accuracy(task) > 0.7
    assert all(entry in [of_task(row) for row in task.train] for entry in sm.state(task.program)[EXAMPLES].value)
    assert all(score in (0.0, 1.0) for each in history.candidates for score in each.scores["validation"].values())


async def test_a_teacher_may_be_values_of_the_program():
    """Instructions that are not trained here, too; the program keeps its own."""
    rules = "technical: freezes, screen, pair, log in\nshipping: courier, parcel, office, colour\nbilling: invoice"
    task = tickets(5)
    before = sm.state(task.program)["0/instructions"].value
    for teacher in ({"0/instructions": rules}, sm.state(task.program).replace({"0/instructions": rules})):
        history = await fitted(tickets(5), BootstrapFewShot(max_examples=8, teacher=teacher), 320)
        assert history.best.score > 0.5
    assert sm.state(task.program)["0/instructions"].value == before
    with pytest.raises(sm.StateError, match="instruction"):
        await fitted(tickets(5), BootstrapFewShot(teacher={"0/instruction": rules}))


@pytest.mark.parametrize("teacher", [None, "embedded/nearest", {"0/instructions": "x"}, sm.state(tickets(0).program)])
def test_it_saves_like_any_module(teacher):
    """Settings, and what it knows from step to step."""
    optimizer = BootstrapFewShot(max_examples=3, teacher=teacher)
    again = sm.loads(sm.dumps(optimizer))
    assert again.max_examples == 3
    assert sm.dumps(again) == sm.dumps(optimizer)


@pytest.mark.parametrize("setting", ["max_examples", "sets", "width", "probe", "block", "patience"])
def test_settings_are_whole_numbers_of_at_least_one(setting):
    """The message names the setting."""
    with pytest.raises(sm.TrainerError, match=setting):
        BootstrapFewShot(**{setting: 0})
