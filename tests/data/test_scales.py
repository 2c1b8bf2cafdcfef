"""Scales for a judge to pick from."""

from enum import Enum

import pytest

from synmod.data import DataModel, Rating, Score, normalize_score
from synmod.errors import DataError


def test_members_are_numbers():
    """Members are numbers and are named by them."""
    assert Score.P90 == 0.9
    assert Rating.R4 == 4
    assert {name: member.value for name, member in Score.__members__.items()} == {
        f"P{percent}": percent / 100 for percent in range(0, 101, 10)
    }
    assert {name: member.value for name, member in Rating.__members__.items()} == {f"R{n}": n for n in range(1, 6)}


def test_the_schema_is_an_enum():
    """A model can only pick a member."""

    class Judgement(DataModel):
        score: Score
        rating: Rating = Rating.R3

    schema = Judgement.get_schema()
    assert schema["$defs"]["Rating"]["enum"] == [1, 2, 3, 4, 5]
    assert schema["$defs"]["Score"]["enum"][9] == 0.9
    judgement = Judgement(score=0.9)
    assert judgement.get_json() == {"score": 0.9, "rating": 3}
    assert judgement.to_json_data_model().to() == judgement


def test_normalize():
    """From 0 to 1, for a member or a number in between."""
    assert normalize_score(Rating.R1, Rating) == 0.0
    assert normalize_score(4, Rating) == 0.75
    assert normalize_score(2.5, Rating) == 0.375
    assert normalize_score(Score.P90, Score) == 0.9

    class Mood(Enum):
        LOW = -1
        HIGH = 1

    assert normalize_score(Mood.HIGH, Mood) == 1.0
    assert normalize_score(0, Mood) == 0.5


@pytest.mark.parametrize("value", [7, 0, 5.1, True, float("nan"), float("inf"), "4", None])
def test_not_on_the_scale(value):
    """A 7 on a scale of 5 is a fault to see."""
    with pytest.raises(DataError, match="not on the scale Rating"):
        normalize_score(value, Rating)


def test_what_is_not_a_scale():
    """All ints or all floats, finite, at least two."""
    members = [{"A": 1}, {"A": 1, "B": 2.0}, {"A": "x", "B": "y"}, {"A": 1.0, "B": float("inf")}, {"A": 1, "B": True}]
    for kind in [*(Enum("Kind", given) for given in members), int, 5]:
        with pytest.raises(DataError, match="not a scale"):
            normalize_score(1, kind)
