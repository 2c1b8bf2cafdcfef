"""The layout: boxes stand apart and inside what holds them, data flows one way, lines end at boxes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from synmod.view import (
    Layered,
    Measure,
    Rectangle,
    arranged,
    fitted,
    labelled,
    layers_of,
    places_across,
    points_of,
    text_width,
    without_circles,
)

COUNTS = st.integers(1, 14)
PAIRS = st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=30)
MEASURE = Measure(lambda thing: Rectangle(60.0 + 7 * (hash(thing.name) % 5), 40.0), lambda what: Rectangle(0.0, 0.0))


class Thing:
    """Something to place."""

    def __init__(self, name, holder):
        self.name = name
        self.holder = holder


def picture(count, pairs, holders, across):
    """Things, each held by an earlier one or by none, and lines between them."""
    things = []
    for name in range(count):
        holder = holders[name] % (name + 1) if name < len(holders) else name
        things.append(Thing(name, things[holder] if holder < name else None))
    links = [(things[a % count], things[b % count], object(), 1.0) for a, b in pairs]
    return arranged([(thing, thing.holder) for thing in things], links, MEASURE, across=across), links


@given(COUNTS, PAIRS, st.lists(st.integers(0, 13), max_size=14), st.booleans())
def test_boxes_stand_apart_and_inside_their_holder(count, pairs, holders, across):
    """Whatever the lines are."""
    layout, _ = picture(count, pairs, holders, across)
    for box in layout.boxes:
        for one in box.members:
            assert box.x <= one.x
            assert one.x + one.width <= box.x + box.width + 0.01
            assert box.y <= one.y
            assert one.y + one.height <= box.y + box.height + 0.01
            for other in box.members:
                if one is not other:
                    beside = one.x + one.width <= other.x + 0.01 or other.x + other.width <= one.x + 0.01
                    below = one.y + one.height <= other.y + 0.01 or other.y + other.height <= one.y + 0.01
                    assert beside or below


@given(COUNTS, PAIRS, st.lists(st.integers(0, 13), max_size=14), st.booleans())
def test_every_line_is_drawn_once_and_ends_at_its_boxes(count, pairs, holders, across):
    """On their borders."""
    layout, links = picture(count, pairs, holders, across)
    boxes = {id(box.thing): box for box in layout.boxes if box.thing is not None}
    assert sorted(id(line.what) for line in layout.lines) == sorted(id(what) for _, _, what, _ in links)
    by_what = {id(what): (boxes[id(one)], boxes[id(other)]) for one, other, what, _ in links}
    for line in layout.lines:
        for box, (x, y) in zip(by_what[id(line.what)], (line.path.start, line.path.curves[-1][2]), strict=True):
            assert box.x - 0.1 <= x <= box.x + box.width + 0.1
            assert box.y - 0.1 <= y <= box.y + box.height + 0.1
            sides = (x - box.x, box.x + box.width - x, y - box.y, box.y + box.height - y)
            assert min(map(abs, sides)) < 0.1


@given(COUNTS, PAIRS)
def test_circles_are_cut_and_layers_go_one_way(count, pairs):
    """Every kept line leads to a later layer."""
    pairs = [(a % count, b % count) for a, b in pairs]
    kept = without_circles(count, pairs)
    layer = layers_of(count, kept)
    assert all(layer[one] < layer[other] for one, other in kept)
    assert {frozenset(pair) for pair in kept} == {frozenset(pair) for pair in pairs if pair[0] != pair[1]}


@given(st.integers(2, 12), PAIRS)
def test_what_is_no_circle_stays_as_it_was(count, pairs):
    """No line of a graph without circles is turned round."""
    pairs = {(min(a, b) % count, max(a, b) % count) for a, b in pairs}
    pairs = [(a, b) for a, b in pairs if a < b]
    assert set(without_circles(count, pairs)) == set(pairs)


@given(COUNTS, PAIRS)
def test_untangling_never_adds_a_crossing(count, pairs):
    """The best order that was seen is kept."""
    kept = without_circles(count, [(a % count, b % count) for a, b in pairs])
    layered = Layered(layers_of(count, kept), kept)
    before = layered._crossings(0)
    layered.untangle()
    assert layered._crossings(0) <= before


def test_a_plain_row_is_straight():
    """Boxes of several sizes, one after the other, on one line."""
    things = [Thing(name, None) for name in range(6)]
    links = [(one, other, object(), 1.0) for one, other in pairwise(things)]
    layout = arranged([(thing, None) for thing in things], links, MEASURE, across=True)
    assert len({box.y + box.height / 2 for box in layout.boxes[1:]}) == 1
    assert all(line.path.start[1] == line.path.curves[-1][2][1] for line in layout.lines)


def covers(box, point, margin=0.5):
    """Whether a point lies on a box, not just at its border."""
    x, y = point
    return box.x + margin < x < box.x + box.width - margin and box.y + margin < y < box.y + box.height - margin


def test_what_pulls_less_leaves_the_middle_to_data():
    """The data between boxes is straight, a skip runs beside it, and its name beside both."""
    for across in (True, False):
        things = [Thing(name, None) for name in range(4)]
        links = [(one, other, f"data {one.name}", 1.0) for one, other in pairwise(things)]
        links += [(things[1], things[2], "skip", 0.001), (things[0], things[3], "far", 0.001)]
        layout = arranged([(thing, None) for thing in things], links, MEASURE, across=across)
        data = [line.path for line in layout.lines if line.what.startswith("data")]
        assert len({round(point[across], 1) for path in data for point in points_of(path)}) == 1
        names = labelled(layout, lambda what: Rectangle(20.0 * (not what.startswith("data")), 14.0))
        assert [(name.line.what, name.is_free) for name in names] == [("skip", True), ("far", True)]
        for name in names:
            (x, y), others = name.middle, [line for line in layout.lines if line is not name.line]
            near = [point for line in others for point in points_of(line.path)]
            assert not [1 for px, py in near if abs(px - x) < 10 and abs(py - y) < 7]


def test_long_lines_are_straight_beside_a_straight_row():
    """Skips from the first box to each of the others: the row is straight, and each skip where it passes boxes."""
    things = [Thing(name, None) for name in range(6)]
    links = [(one, other, f"data {one.name}", 1.0) for one, other in pairwise(things)]
    links += [(things[0], thing, f"skip {thing.name}", 0.001) for thing in things[2:]]
    layout = arranged([(thing, None) for thing in things], links, MEASURE, across=True)
    assert {round(box.y + box.height / 2) for box in layout.boxes[1:]} == {round(layout.boxes[1].y + 20)}
    for line in layout.lines:
        if line.what.startswith("skip"):
            assert len({round(end[1], 1) for _, _, end in line.path.curves[:-1]}) == 1


@given(COUNTS, PAIRS, st.lists(st.integers(0, 13), max_size=14), st.booleans())
def test_names_stand_on_the_page(count, pairs, holders, across):
    """One for each line that has a name; one that is said to be free covers no box."""
    layout, _ = picture(count, pairs, holders, across)
    names = labelled(layout, lambda what: Rectangle(30.0, 10.0))
    assert [name.line for name in names] == layout.lines
    for name in names:
        if name.is_free:
            assert not [box for box in layout.boxes if not box.members and covers(box, name.middle)]


def test_lines_go_around_boxes():
    """Of boxes in a row that share something, the line from first to last meets none between them."""
    things = [Thing(name, None) for name in range(4)]
    links = [(things[0], things[1], "near", 0.0), (things[0], things[3], "far", 0.0)]
    layout = arranged([(thing, None) for thing in things], links, MEASURE, across=True)
    near, far = layout.lines
    assert len(near.path.curves) == 1
    assert not [1 for box in layout.boxes[1:] for point in points_of(far.path) if covers(box, point)]


def test_lines_of_a_crowd_are_drawn_all_the_same():
    """More than anybody can follow: straight, at once."""
    things = [Thing(name, None) for name in range(600)]
    links = [(things[0], thing, object(), 0.0) for thing in things[1:]]
    layout = arranged([(thing, None) for thing in things], links, MEASURE, across=True)
    assert len(labelled(layout, lambda what: Rectangle(30.0, 10.0))) == len(layout.lines) == 599


def test_two_lines_that_cross_are_untangled():
    """A swap of two boxes removes the crossing."""
    kept = without_circles(4, [(0, 3), (1, 2)])
    layered = Layered(layers_of(4, kept), kept)
    assert layered._crossings(0) == 1
    layered.untangle()
    assert layered._crossings(0) == 0
    places = places_across(layered, dict.fromkeys(kept, 1.0), lambda _: 10.0, lambda _, __: 5.0)
    assert (places[0], places[1]) == (places[3], places[2])


BOLD = (
    "348 456 521 838 696 1002 872 306 457 457 523 838 380 415 380 365 696 696 696 696 696 696 696 696 696 696 400 400 "
    "838 838 838 580 1000 774 762 734 830 683 683 821 837 372 372 775 637 995 837 850 733 850 770 720 682 812 774 1103 "
    "771 724 725 457 365 457 838 500 500 675 716 593 716 678 435 716 712 343 343 665 343 1042 712 687 716 716 493 595 "
    "478 712 652 924 645 652 582 712 365 712 838"
)
"""The letters of ASCII from the blank on in DejaVu Sans Bold, in thousandths of its size: as wide as a face gets."""


def test_no_letter_is_wider_than_it_is_taken_for():
    """In a wide face, set bold, as the names in boxes are."""
    for code, wide in enumerate(map(int, BOLD.split()), start=32):
        assert text_width(chr(code), 1000, bold=True) >= wide, chr(code)


@given(st.text(max_size=60), st.integers(20, 200))
def test_a_text_is_cut_to_its_room(text, room):
    """And is left alone where it fits."""
    cut = fitted(text, 12, room)
    assert text_width(cut, 12) <= room
    assert cut == text or text_width(text, 12) > room
