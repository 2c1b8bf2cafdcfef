"""Checkpoints: plain files, whole or not at all, that give back what was saved."""

import contextlib
import json
import os
import tempfile

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.testing import SchemaLM

from .test_trainer import Query, Upper, asking


@sm.register(package="tests_of_checkpoints")
class Keeper(sm.Module):
    """Holds a param, an aux and a state."""

    def __init__(self, style="plain"):
        super().__init__()
        self.style = self.add_variable(style, schema={"type": "string"}, name="style")
        self.tone = self.add_variable("warm", schema={"type": "string"}, name="tone", trainable=False)
        self.asked = self.add_variable([], schema={"type": "array"}, name="asked", type=sm.Memory)

    async def call(self, inputs: Query) -> Query:
        return inputs


@sm.register(package="tests_of_checkpoints")
class Counter(Upper):
    """An optimizer whose state is what it is."""


@sm.register(package="tests_of_checkpoints")
class Ask(sm.DataModel):
    query: str


@sm.register(package="tests_of_checkpoints")
class Reply(sm.DataModel):
    answer: str


@sm.register(package="tests_of_checkpoints")
class Other(Counter):
    """Another one."""


async def made(program=None, **values):
    """A trainer with values and an optimizer."""
    trainer = sm.Trainer(Keeper() if program is None else program)
    await trainer.bind(Query)
    await trainer.init_params(params=values or None, allow_missing=True)
    trainer.init_optimizer(Counter())
    return trainer


def parts(trainer):
    """What get_params returns, as JSON."""
    return tuple(state.to_json() for state in trainer.get_params())


async def test_files_are_json_by_path(tmp_path):
    """Three files, with the keys of the page."""
    trainer = await made(style="new")
    trainer.set_params({"style": "new"}, {"tone": "cold", "asked": ["before"]})
    trainer.optimizer.idle.assign(3)
    trainer.save_checkpoint(tmp_path / "run/agent", 3, save_optimizer_states=True, save_states=True)
    assert sorted(os.listdir(tmp_path / "run")) == ["agent-0003.json", "agent-0003.states.json", "agent-program.json"]
    found = json.loads((tmp_path / "run/agent-0003.json").read_text())
    assert list(found) == ["header", "params", "aux", "states"]
    assert (found["params"], found["aux"]) == ({"style": "new"}, {"tone": "cold"})
    assert found["states"] == {"asked": ["before"]}
    states = json.loads((tmp_path / "run/agent-0003.states.json").read_text())
    assert states["state"]["idle"] == 3
    assert "Counter" in states["class"]
    trainer.save_checkpoint(tmp_path / "run/agent", 4)
    assert "states" not in json.loads((tmp_path / "run/agent-0004.json").read_text())


async def test_load_gives_an_unbound_trainer_with_values(tmp_path):
    """The latest epoch, or a given one; the optimizer's states are put in later."""
    prefix = tmp_path / "agent"
    trainer = await made(style="one")
    trainer.optimizer.idle.assign(1)
    trainer.save_checkpoint(prefix, 1, save_optimizer_states=True)
    trainer.set_params({"style": "two"}, {"tone": "cold", "asked": [1]})
    trainer.save_checkpoint(prefix, 2, save_states=True)
    assert sm.list_checkpoints(prefix) == [1, 2]
    assert sm.latest_checkpoint(prefix) == 2
    latest = sm.Trainer.load(prefix, label_names=["answer"])
    assert not latest.bound
    assert latest.params_initialized
    assert latest.label_names == ["answer"]
    assert parts(latest) == ({"style": "two"}, {"tone": "cold"})
    first = sm.Trainer.load(str(prefix), 1, load_optimizer_states=True)
    assert parts(first) == ({"style": "one"}, {"tone": "warm"})
    with pytest.raises(sm.LifecycleError, match="forward needs 'bind'"):
        await first.forward(asking("a"))
    await first.bind(Query)
    assert parts(first) == ({"style": "one"}, {"tone": "warm"})
    first.init_optimizer(Counter())
    assert first.optimizer.idle.value == 1
    await latest.bind(Query)
    assert latest.get_states()[0].to_json() == {"asked": [1]}
    latest.save_checkpoint(prefix, 3, save_states=True)
    assert (tmp_path / "agent-0003.json").read_bytes() == (tmp_path / "agent-0002.json").read_bytes()


async def test_the_file_of_the_program_holds_no_conversation(tmp_path):
    """It is the same for all epochs: it had what the program held at the last save, which earlier epochs then took."""
    prefix = tmp_path / "agent"
    trainer = await made()
    for epoch in (1, 2):
        trainer.program.asked.assign([f"talk of epoch {epoch}"])
        trainer.program.style.assign(f"style {epoch}")
        trainer.save_checkpoint(prefix, epoch)
        text = (tmp_path / "agent-program.json").read_text()
        assert "talk" not in text
        assert "style 2" not in text
    loaded = sm.Trainer.load(prefix, 1)
    assert (loaded.program.style.value, loaded.program.asked.value) == ("style 1", [])
    loaded.save_checkpoint(prefix, 3, save_states=True)
    assert (tmp_path / "agent-program.json").read_text() == text


async def test_a_file_that_lacks_a_value_is_refused(tmp_path):
    """As by load_params, and `program` is as it was; strict=False leaves what it has."""
    prefix = tmp_path / "agent"
    (await made(style="saved")).save_checkpoint(prefix, 1)
    file = tmp_path / "agent-0001.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "params": {}}))
    program = Keeper("mine")
    program.tone.assign("mine")
    with pytest.raises(sm.StateError, match=r"not presented: style\..*strict=False"):
        sm.Trainer.load(prefix, program=program)
    assert (program.style.value, program.tone.value) == ("mine", "mine")
    assert parts(sm.Trainer.load(prefix, program=program, strict=False)) == ({"style": "mine"}, {"tone": "warm"})


async def test_a_prefix_may_be_a_folder(tmp_path):
    """What is saved under it is listed, too."""
    trainer = await made()
    trainer.save_checkpoint(f"{tmp_path}/", 1)
    assert sm.list_checkpoints(f"{tmp_path}/") == [1]
    assert parts(sm.Trainer.load(f"{tmp_path}/")) == parts(trainer)


async def test_a_full_disk_never_mixes_two_savings_of_one_epoch(tmp_path, monkeypatch):
    """Once the disk is full no file can be put back either, so all are written before the first is replaced."""
    for k in range(1, 100):
        prefix = tmp_path / str(k) / "a"
        trainer = await made(style="1")
        trainer.optimizer.idle.assign(1)
        trainer.save_checkpoint(prefix, 1, save_optimizer_states=True)
        trainer.set_params({"style": "2"})
        trainer.optimizer.idle.assign(2)
        count = 0

        def full(*args, real=os.fsync):
            nonlocal count
            count += 1
            if count >= k:  # noqa: B023  # called before the loop goes on
                raise OSError(28, "no space left on the device")
            return real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with contextlib.suppress(sm.SaveError):
                trainer.save_checkpoint(prefix, 1, save_optimizer_states=True)
        loaded = sm.Trainer.load(prefix, 1, load_optimizer_states=True)
        await loaded.bind(Query)
        loaded.init_optimizer(Counter())
        assert str(loaded.optimizer.idle.value) == parts(loaded)[0]["style"]
        if count < k:
            return
    raise AssertionError("it never ended")


async def test_states_of_another_optimizer(tmp_path):
    """A StateError that names both; nothing is initialised."""
    trainer = await made()
    trainer.save_checkpoint(tmp_path / "a", 1, save_optimizer_states=True)
    loaded = sm.Trainer.load(tmp_path / "a", load_optimizer_states=True)
    await loaded.bind(Query)
    with pytest.raises(sm.StateError, match="Counter.*Other"):
        loaded.init_optimizer(Other())
    assert not loaded.optimizer_initialized
    trainer.optimizer.idle.assign(5)
    trainer.save_optimizer_states(tmp_path / "states.json")
    trainer.optimizer.idle.assign(0)
    trainer.load_optimizer_states(tmp_path / "states.json")
    assert trainer.optimizer.idle.value == 5
    trainer.init_optimizer(Other(), force_init=True)
    with pytest.raises(sm.StateError, match="Counter.*Other"):
        trainer.load_optimizer_states(tmp_path / "states.json")
    with pytest.raises(sm.LoadError):
        trainer.load_optimizer_states(tmp_path / "a-0001.json")


async def test_what_is_missing_is_named_at_once(tmp_path):
    """All files, and the epochs there are."""
    prefix = tmp_path / "a"
    with pytest.raises(sm.LoadError, match="a-program.json.*a-0007.json.*a-0007.states.json.*none"):
        sm.Trainer.load(prefix, 7, load_optimizer_states=True)
    trainer = await made()
    for epoch in (1, 12345):
        trainer.save_checkpoint(prefix, epoch)
    with pytest.raises(sm.LoadError, match="a-0007.json.*1, 12345"):
        sm.Trainer.load(prefix, 7)
    with pytest.raises(sm.LoadError, match="12345.states.json"):
        sm.Trainer.load(prefix, load_optimizer_states=True)
    assert sm.list_checkpoints(tmp_path / "nowhere" / "a") == []
    assert sm.latest_checkpoint(tmp_path / "b") is None


async def test_keep_removes_older_ones(tmp_path):
    """After a success; those of other prefixes stay."""
    trainer = await made()
    trainer.save_checkpoint(tmp_path / "ab", 1)
    for epoch in range(1, 6):
        trainer.save_checkpoint(tmp_path / "a", epoch, save_optimizer_states=True, keep=2)
    assert sm.list_checkpoints(tmp_path / "a") == [4, 5]
    assert sm.list_checkpoints(tmp_path / "ab") == [1]
    assert sorted(each for each in os.listdir(tmp_path) if "states" in each) == [
        "a-0004.states.json",
        "a-0005.states.json",
    ]
    for keep in (0, True):
        with pytest.raises(sm.TrainerError, match="keep"):
            trainer.save_checkpoint(tmp_path / "a", 6, keep=keep)
    with pytest.raises(sm.TrainerError, match="epoch"):
        trainer.save_checkpoint(tmp_path / "a", -1)


async def test_values_into_todays_code(tmp_path):
    """The same structure takes them; another one is told path by path, or takes what fits."""
    trainer = await made(style="saved")
    trainer.save_checkpoint(tmp_path / "a", 1)
    same = sm.Trainer.load(tmp_path / "a", program=Keeper())
    assert parts(same)[0] == {"style": "saved"}

    class Changed(Keeper):
        def __init__(self):
            super().__init__()
            self.tone = self.add_variable(1, schema={"type": "integer"}, name="tone", trainable=False)
            self.more = self.add_variable("x", schema={"type": "string"}, name="more")

    with pytest.raises(sm.StateError, match="tone|the program itself"):
        sm.Trainer.load(tmp_path / "a", program=Changed())
    loose = sm.Trainer.load(tmp_path / "a", program=Changed(), strict=False)
    assert parts(loose) == ({"style": "saved", "more": "x"}, {"tone": 1})
    assert loose.unmatched == ("tone",)


async def test_programs_that_are_built_at_bind(tmp_path):
    """A Generator has its params only then: a fresh one is built as the saved one was."""
    for make in (lambda: sm.Generator(Query), lambda: sm.Sequential([sm.Input(Query), sm.Generator(Query)])):
        trainer = await made(make())
        path = next(path for path in parts(trainer)[0] if path.endswith("instructions"))
        trainer.set_params({path: "Be brief."}, allow_missing=True)
        trainer.save_checkpoint(tmp_path / "g", 1)
        for program in (None, make()):
            loaded = sm.Trainer.load(tmp_path / "g", program=program)
            assert parts(loaded) == parts(trainer)
            await loaded.bind(Query)
            assert parts(loaded) == parts(trainer)


async def test_a_checkpoint_with_an_index_takes_the_live_one(tmp_path):
    """The file has the name of the index alone, as that of `sm.save`."""
    index = sm.KeywordIndex()
    await index.add([{"id": "sea", "text": "The sea is deep."}])
    trainer = await made(sm.Sequential([sm.Input(Query), sm.Retrieve(index, name="docs")]))
    trainer.save_checkpoint(tmp_path / "a", 1)
    name = index.name
    loaded = sm.Trainer.load(tmp_path / "a", indexes={name: index})
    await loaded.bind(Query)
    await loaded.forward(asking("How deep is it?"))
    assert loaded.get_outputs()[0]["passages"][0]["id"] == "sea"


async def test_save_and_load_params(tmp_path):
    """The params file alone; anything else is an invalid one, and changes nothing."""
    trainer = await made(style="kept")
    trainer.save_params(tmp_path / "params.json")
    trainer.set_params({"style": "later"})
    trainer.load_params(tmp_path / "params.json")
    assert parts(trainer)[0] == {"style": "kept"}
    trainer.save_checkpoint(tmp_path / "a", 1)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text(
        (tmp_path / "params.json").read_text().replace('{\n    "style": "kept"\n  }', "[]")
    )
    for name in ("broken.json", "a-program.json", "list.json"):
        with pytest.raises(sm.LoadError, match="Invalid param file.*" + name):
            trainer.load_params(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        trainer.load_params(tmp_path / "nowhere.json")
    other = sm.Trainer(sm.Generator(Query))
    await other.bind(Query)
    with pytest.raises(sm.StateError, match="not presented: instructions"):
        other.load_params(tmp_path / "params.json")
    assert not other.params_initialized


async def test_what_cannot_be_saved_leaves_no_file(tmp_path):
    """A class that is not registered: its path and the remedy; no file was touched."""

    class Unknown(Keeper):
        pass

    trainer = await made(Unknown())
    with pytest.raises(sm.SaveError, match="register"):
        trainer.save_checkpoint(tmp_path / "a", 1)
    assert os.listdir(tmp_path) == []
    trainer = sm.Trainer(Keeper())
    await trainer.bind(Query)
    await trainer.init_params()
    with pytest.raises(sm.LifecycleError, match="save_optimizer_states needs 'init_optimizer'"):
        trainer.save_checkpoint(tmp_path / "a", 1, save_optimizer_states=True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("after", [False, True])
async def test_an_epoch_that_is_saved_again_is_the_former_or_the_new_one(tmp_path, monkeypatch, before, after):
    """The k-th operation fails, for every k: values and states of the optimizer are of one moment (they were mixed)."""
    for k in range(1, 100):
        prefix = tmp_path / str(k) / "a"
        trainer = await made(style="1")
        trainer.optimizer.idle.assign(1)
        trainer.save_checkpoint(prefix, 1, save_optimizer_states=before)
        trainer.set_params({"style": "2"})
        trainer.optimizer.idle.assign(2)
        failed = fails_at(monkeypatch, k, trainer.save_checkpoint, prefix, 1, after)
        has_states = before if failed else after
        assert prefix.with_name("a-0001.states.json").exists() == has_states
        loaded = sm.Trainer.load(prefix, 1, load_optimizer_states=has_states)
        await loaded.bind(Query)
        loaded.init_optimizer(Counter())
        assert parts(loaded)[0] == {"style": "1" if failed else "2"}
        assert loaded.optimizer.idle.value == (int(parts(loaded)[0]["style"]) if has_states else 0)
        if not failed:
            return
    raise AssertionError("it never ended")


def fails_at(monkeypatch, k, save, *args):
    """Save while the k-th operation on files fails; return whether that made it fail."""
    count = 0

    def faulty(real):
        def operation(*args, **keywords):
            nonlocal count
            count += 1
            if count == k:
                raise OSError(5, "the disk is gone")
            return real(*args, **keywords)

        return operation

    with monkeypatch.context() as patch:
        for name in ("open", "fsync", "replace", "chmod", "unlink"):
            patch.setattr(os, name, faulty(getattr(os, name)))
        try:
            save(*args)
        except (sm.SaveError, OSError):
            return True
    return False


@pytest.mark.parametrize("place", ["program", "context", "reward", "optimizer", "stand-in"])
async def test_a_checkpoint_holds_no_key(tmp_path, place):
    """Of no model that may answer, though a value holds it: a SaveError that names the path and not the key."""
    key = "sk-of-a-model-0123456789abcdef"
    lm = sm.LanguageModel("openai/gpt-4o", api_key=key)
    here = {name: lm if name == place else "embedded/nearest" for name in ("program", "context", "reward", "optimizer")}
    program = sm.Sequential([sm.Input(Query), sm.Generator(Query, language_model=here["program"])])
    reward = sm.rewards.LMAsJudge(language_model=here["reward"])
    context = sm.Context("here", language_model=here["context"])
    trainer = sm.Trainer(program, reward=reward, context=context)
    with sm.use_language_models(lm if place == "stand-in" else sm.LanguageModel("embedded/nearest")):
        await trainer.bind(Query)
        await trainer.init_params()
        trainer.init_optimizer("gepa", {"language_model": here["optimizer"]})
        trainer.save_checkpoint(tmp_path / "a", 1, save_optimizer_states=True)
        assert all(key not in file.read_text() for file in tmp_path.iterdir())
        trainer.set_params({"0/instructions": f"Use {key}."}, allow_missing=True)
        for save in (trainer.save_params, lambda path: trainer.save_checkpoint(path, 2)):
            with pytest.raises(sm.SaveError, match="0/instructions") as caught:
                save(tmp_path / "b")
            assert key not in str(caught.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a-0001.json", "a-0001.states.json", "a-program.json"]


@pytest.mark.parametrize("with_optimizer", [False, True])
async def test_a_failing_file_operation_leaves_the_former_checkpoint_whole(tmp_path, monkeypatch, with_optimizer):
    """The k-th one, for every k: what loads is the former epoch or the new one, each with its own values."""
    wanted = {1: "one", 2: "two"}
    for k in range(1, 100):
        folder = tmp_path / str(k)
        trainer = await made(style="one")
        trainer.optimizer.idle.assign(1)
        trainer.save_checkpoint(folder / "a", 1, save_optimizer_states=with_optimizer)
        trainer.set_params({"style": "two"})
        trainer.optimizer.idle.assign(2)
        failed = fails_at(monkeypatch, k, trainer.save_checkpoint, folder / "a", 2, with_optimizer)
        epochs = sm.list_checkpoints(folder / "a")
        assert epochs in ([1], [1, 2])
        for epoch in epochs:
            loaded = sm.Trainer.load(folder / "a", epoch, load_optimizer_states=with_optimizer)
            assert parts(loaded)[0] == {"style": wanted[epoch]}
            await loaded.bind(Query)
            loaded.init_optimizer(Counter())
            assert loaded.optimizer.idle.value == (epoch if with_optimizer else 0)
        if not failed:
            return
    raise AssertionError("it never ended")


TEXTS = st.text(max_size=20).filter(lambda text: text.encode("utf-8", "ignore").decode() == text)


@settings(max_examples=25)
@given(
    style=TEXTS, tone=TEXTS, asked=st.lists(TEXTS | st.integers(-5, 5) | st.none(), max_size=4), idle=st.integers(0, 9)
)
def test_save_then_load_is_identity(style, tone, asked, idle):
    """Values, states and the optimizer's data, whatever they are."""

    async def both(prefix):
        trainer = await made()
        trainer.set_params({"style": style}, {"tone": tone, "asked": asked})
        trainer.optimizer.idle.assign(idle)
        trainer.save_checkpoint(prefix, 0, save_optimizer_states=True, save_states=True)
        loaded = sm.Trainer.load(prefix, load_optimizer_states=True)
        assert sm.state(loaded.program) == sm.state(trainer.program)
        assert loaded.get_params() == trainer.get_params()
        await loaded.bind(Query)
        loaded.init_optimizer(Counter())
        assert sm.state(loaded.optimizer) == sm.state(trainer.optimizer)
        assert loaded.get_states() == trainer.get_states()

    with tempfile.TemporaryDirectory() as folder:
        sm.run(both, os.path.join(folder, "a"))


async def test_epoch_end_callbacks(tmp_path):
    """Saved as epoch + 1 where the period divides it; resumed by hand where it ended."""
    trainer = sm.Trainer(Keeper(), reward=lambda outputs: 0.5)
    every, second = (
        sm.callbacks.do_checkpoint(tmp_path / "a"),
        sm.callbacks.module_checkpoint(trainer, tmp_path / "b", 2, True),
    )
    data = [sm.Batch([Query(question="a")])]
    await trainer.fit(data, eval_data=data, optimizer=Counter(), num_epoch=3, epoch_end_callback=[every, second])
    assert sm.list_checkpoints(tmp_path / "a") == [1, 2, 3]
    assert sm.list_checkpoints(tmp_path / "b") == [2]
    again = sm.Trainer.load(tmp_path / "b", 2, True, reward=lambda outputs: 0.5)
    epochs = []
    history = await again.fit(
        data, eval_data=data, optimizer=Counter(), begin_epoch=2, num_epoch=4,
        epoch_end_callback=lambda epoch, program, params, aux: epochs.append((epoch, list(params.to_json()))),
    )  # fmt: skip
    assert epochs == [(2, ["style"]), (3, ["style"])]
    assert [row["epoch"] for row in history] == [2, 3]
    for make in (sm.callbacks.do_checkpoint, lambda *args, **kw: sm.callbacks.module_checkpoint(trainer, *args, **kw)):
        with pytest.raises(sm.TrainerError, match="period"):
            make("a", period=0)


class Own:
    """An adapter of a user."""

    name, version = "own", 1

    async def send(self, request):
        """Send nothing."""


BASE = {"api_base": "http://127.0.0.1:8000/v1"}
MODELS = {
    "endpoint": lambda: sm.LanguageModel("vllm/qwen", **BASE, temperature=0),
    "headers": lambda: sm.LanguageModel("openai/x", headers={"a": "b"}, attempts=7, limit=sm.Limit(rpm=5)),
    "body": lambda: sm.LanguageModel("openai/x", extra_body={"a": 1}, structured="json", timeout_s=None),
    "adapter": lambda: sm.LanguageModel("own/x", adapter=Own(), name="mine", repairs=3, max_tokens=4),
    "fallback": lambda: sm.LanguageModel("openai/x", **BASE, fallback=[sm.LanguageModel("openai/y", **BASE, seed=1)]),
    "double": lambda: SchemaLM(temperature=0, attempts=2),
    "nothing": lambda: sm.LanguageModel("openai/x", temperature=0.5),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
async def test_a_model_with_a_connection_of_its_own_is_the_one_that_was_saved(make, tmp_path):
    """Models are compared as they are saved, and a class that no file describes is taken from the program."""

    def program(model):
        return sm.Sequential([sm.Input(data_model=Ask), sm.Generator(Reply, language_model=model)])

    trainer = sm.Trainer(saved := program(make()), reward="exact_match")
    await trainer.bind(Ask, Reply)
    await trainer.init_params()
    trainer.save_checkpoint(tmp_path / "run", 1)
    if make is not MODELS["double"]:
        assert sm.graphdef(sm.loads(sm.dumps(saved))) == sm.graphdef(saved)
    for same in (saved, program(make())):
        assert sm.Trainer.load(tmp_path / "run", program=same).program is same
    with pytest.raises(sm.StateError, match="differs at: 0/language_model"):
        sm.Trainer.load(tmp_path / "run", program=program(sm.LanguageModel("openai/other", temperature=0.9)))
