"""Random choices have names, and the name alone decides."""

import random

import pytest

from synmod.errors import ArgumentError
from synmod.leaves import rng


def test_a_generator_is_seeded_with_the_text_of_its_name():
    """`random()` gives the sequence that Python promises for `seed/step/purpose`."""
    plain = random.Random("7/3/minibatch")
    named = rng(7, 3, "minibatch")
    assert isinstance(named, random.Random)
    assert [named.random() for _ in range(5)] == [plain.random() for _ in range(5)]


def test_golden_numbers():
    """What was drawn once is drawn for ever, on each version of Python."""
    assert rng(0, 0, "a").random() == 0.5012923276045466
    assert rng(1, 2, "shuffle").sample(range(10), 4) == [0, 8, 6, 9]
    letters = list("abcdef")
    rng(1, 2, "shuffle").shuffle(letters)
    assert "".join(letters) == "bfecda"


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


@pytest.mark.parametrize(
    "arguments", [(1.5, 0, "x"), ("1", 0, "x"), (0, None, "x"), (0, 0, ""), (0, 0, None), (True, 0, "x")]
)
def test_wrong_names_are_refused(arguments):
    """Seed and step are whole numbers, a purpose is not empty."""
    with pytest.raises(ArgumentError):
        rng(*arguments)
