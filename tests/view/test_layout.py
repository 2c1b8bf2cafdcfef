"""The layout: boxes stand apart and inside what holds them, data flows one way, lines end at boxes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from synmod.view.layout import Measure, Rectangle, arranged
from synmod.view.layout.layers import layers_of, without_circles
from synmod.view.layout.order import Layered
from synmod.view.layout.places import places_across
from synmod.view.letters import fitted, text_width

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


def test_two_lines_that_cross_are_untangled():
    """A swap of two boxes removes the crossing."""
    kept = without_circles(4, [(0, 3), (1, 2)])
    layered = Layered(layers_of(4, kept), kept)
    assert layered._crossings(0) == 1
    layered.untangle()
    assert layered._crossings(0) == 0
    places = places_across(layered, dict.fromkeys(kept, 1.0), lambda _: 10.0, lambda _, __: 5.0)
    assert (places[0], places[1]) == (places[3], places[2])


@given(st.text(max_size=60), st.integers(20, 200))
def test_a_text_is_cut_to_its_room(text, room):
    """And is left alone where it fits."""
    cut = fitted(text, 12, room)
    assert text_width(cut, 12) <= room
    assert cut == text or text_width(text, 12) > room
