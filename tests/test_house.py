"""The house stays small: what `python -m tests.house` prints, held with five percent of room."""

import statistics

import pytest

from tests import house, words

LINES, FILES = 35_500, 200
ROOM = 1.05
HOPS = {"a call": 3, "a Generator call": 18, "a first call with build": 18, "a save": 18, "a load": 30}
WORDS = {
    "functions named by a participle, %": 0.7,
    "vague names, %": 0.4,
    "riddles in docstrings": 12,
    "class names in several files": 3,
    "fmt: skip": 5,
}


@pytest.fixture(scope="module")
def files():
    """Every file of the package."""
    return house.chapters()


def test_the_house_grows_by_five_percent_at_most(files):
    """Lines of code without docstrings, comments and blanks; files."""
    assert sum(file.lines for file in files) <= LINES * ROOM
    assert len(files) <= FILES * ROOM


def test_a_room_is_a_folder_of_chapters(files):
    """At most twenty files and no folders in a room; a file is worth opening, and no function is over 60 lines."""
    assert not [file.name for file in files if file.name.count(".") > 2]
    rooms = [file.room for file in files]
    assert max(map(rooms.count, set(rooms))) <= 20
    assert statistics.median(file.lines for file in files) >= 80
    assert max(file.longest for file in files) <= 60


def test_no_circle_of_imports_has_more_than_three_files(files):
    """Late imports count, too; those for types alone, under `if TYPE_CHECKING:`, do not."""
    assert max(map(len, house.cycles(files)), default=0) <= 3


def test_private_attributes_stay_in_their_file(files):
    """But for a few names, each with its reason."""
    reaches = [(file.name, line, name) for file in files for name, line in file.private]
    assert not [reach for reach in reaches if reach[2] not in house.KNOWN_PRIVATE]


def test_names_and_docstrings_are_plain():
    """Functions are verbs, values are nouns; these numbers only fall."""
    measured = words.measure()
    assert measured.keys() == WORDS.keys()
    assert not {name: count for name, count in measured.items() if count > WORDS[name]}


@pytest.mark.slow
def test_one_operation_touches_few_files():
    """What a reader meets who follows one call, build, save or load."""
    hops = house.hops()
    assert hops.keys() == HOPS.keys()
    assert not {name: count for name, count in hops.items() if count > HOPS[name] * ROOM}
