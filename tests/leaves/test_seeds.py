"""Random choices have names, and the name alone decides."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmod.errors import ArgumentError
from synmod.leaves.seeds import model_seed, rng


def test_a_generator_is_seeded_with_the_text_of_its_name():
    """`random()` gives the sequence that Python promises for `seed/step/purpose`."""
    plain = random.Random("7/3/minibatch")
    named = rng(7, 3, "minibatch")
    assert isinstance(named, random.Random)
    assert [named.random() for _ in range(5)] == [plain.random() for _ in range(5)]


def test_golden_numbers():
    """What was drawn once is drawn for ever, on each version of Python."""
    assert rng(0, 0, "a").random() == 0.5012923276045466
    assert rng(1, 2, "shuffle").sample(range(10), 4) == [4, 2, 3, 8]
    letters = list("abcdef")
    rng(1, 2, "shuffle").shuffle(letters)
    assert "".join(letters) == "dbfeac"
    assert model_seed(1, 2, "draft", "row-3") == 1819656673


def test_names_that_differ_give_other_sequences():
    """Seed, step and purpose all count."""
    names = [(0, 0, "a"), (1, 0, "a"), (0, 1, "a"), (0, 0, "b")]
    assert len({rng(*name).random() for name in names}) == len(names)


def test_the_global_generator_is_not_touched():
    """`random.random()` goes on as if nothing had happened."""
    random.seed(5)
    expected = random.random()
    random.seed(5)
    rng(1, 1, "x").shuffle(list(range(100)))
    assert random.random() == expected


def test_choices_use_random_only(monkeypatch):
    """No draw reads bits, whose use differs between versions of Python."""
    monkeypatch.setattr(random.Random, "getrandbits", lambda *_: pytest.fail("bits were drawn"))
    generator = rng(1, 1, "x")
    generator.shuffle(list(range(10)))
    generator.sample(range(10), 3)
    generator.choice("abc")
    generator.choices("abc", k=5)
    generator.randrange(5)
    generator.randint(1, 6)
    generator.uniform(0, 1)


def test_a_sample_of_a_huge_range_is_drawn_at_once():
    """And of what has no order of its own none, since another process would draw another one."""
    assert len(set(rng(1, 1, "x").sample(range(10**12), 5))) == 5
    with pytest.raises(TypeError, match="sequence"):
        rng(1, 1, "x").sample({"a", "b"}, 1)
    with pytest.raises(ValueError, match="empty"):
        rng(1, 1, "x").randint(5, 1)


@given(st.integers(), st.integers(0, 50), st.data())
def test_a_sample_is_a_part_and_a_shuffle_a_reordering(seed, size, data):
    """Nothing is lost, doubled or made up."""
    generator = rng(seed, 0, "law")
    population = list(range(size))
    k = data.draw(st.integers(0, size))
    sample = generator.sample(population, k)
    assert len(sample) == len(set(sample)) == k
    assert set(sample) <= set(population)
    shuffled = list(population)
    generator.shuffle(shuffled)
    assert sorted(shuffled) == population


@given(st.integers(-100, 100), st.integers(1, 100), st.integers(1, 9))
def test_ranges_hold(start, length, step):
    """A number drawn from a range lies in it."""
    number = rng(start, length, "range").randrange(start, start + length, step)
    assert number in range(start, start + length, step)
    assert start <= rng(0, 0, "int").randint(start, start + length) <= start + length


@given(st.integers(), st.integers(), st.text(min_size=1), st.text())
def test_a_model_seed_has_31_bits(seed, step, purpose, example):
    """Providers take a non-negative number below 2**31."""
    assert 0 <= model_seed(seed, step, purpose, example) < 2**31


@pytest.mark.parametrize(
    "arguments", [(1.5, 0, "x"), ("1", 0, "x"), (0, None, "x"), (0, 0, ""), (0, 0, None), (True, 0, "x")]
)
def test_wrong_names_are_refused(arguments):
    """Seed and step are whole numbers, a purpose is not empty."""
    with pytest.raises(ArgumentError):
        rng(*arguments)


@pytest.mark.parametrize("draw", [lambda r: r.choice([]), lambda r: r.randrange(0)])
def test_nothing_can_be_drawn_from_nothing(draw):
    """An empty sequence is an IndexError or ValueError, as in `random`."""
    with pytest.raises((IndexError, ValueError)):
        draw(rng(0, 0, "x"))
