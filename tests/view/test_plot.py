"""`plot`: what a picture shows, in its JSON form, and what every format promises."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

import synmod as sm
from synmod.view import FORMATS
from tests.view.programs import Agent, Answer, Leaf, Note, Query, Tied, Wide, chain, diamond, generator, run


def picture(module):
    """The JSON form."""
    return json.loads(module.plot(format="json"))


def lines(module, kind="data"):
    """(source, target) of the edges of a kind."""
    return {(edge["source"], edge["target"]) for edge in picture(module)["edges"] if edge["kind"] == kind}


def test_the_json_form_is_a_contract():
    """Nodes with ids, edges between them with kind, style and label."""
    found = picture(diamond())
    assert list(found) == ["nodes", "edges"]
    ids = [node["id"] for node in found["nodes"]]
    assert len(ids) == len(set(ids))
    for edge in found["edges"]:
        assert list(edge) == ["source", "target", "kind", "style", "label"]
        assert {edge["source"], edge["target"]} <= set(ids)
        assert edge["style"] == {"data": "solid", "skip": "dashed", "shared": "dotted"}[edge["kind"]]
    module = next(node for node in found["nodes"] if node["id"] == "first")
    assert (module["kind"], module["label"], module["class"], module["parent"]) == ("module", "first", "Generator", "")
    assert module["schema"] == "Query(query: str) -> Answer(answer: str)"
    assert module["variables"] == ["instructions", "examples"]


def test_a_functional_program_is_drawn_by_its_graph():
    """From the inputs to the outputs, through operators."""
    assert lines(diamond()) == {
        ("#inputs/query", "first"),
        ("#inputs/query", "second"),
        ("first", "last"),
        ("second", "last"),
        ("last", "#outputs/output"),
    }


def test_edges_say_what_flows():
    """The title of the schema."""
    labels = {(edge["source"], edge["target"]): edge["label"] for edge in picture(diamond())["edges"]}
    assert labels[("#inputs/query", "first")] == "Query"
    assert labels[("second", "last")] == "Note"


def test_several_inputs_and_outputs_are_nodes():
    """Each with its name in its id and its schema as label."""
    first, second = sm.Input(Query, name="first"), sm.Input(Note, name="second")
    program = sm.Program(inputs=[first, second], outputs={"both": first + second, "one": first})
    nodes = {node["id"]: node for node in picture(program)["nodes"]}
    assert list(nodes) == ["", "#inputs/first", "#inputs/second", "#outputs/both", "#outputs/one"]
    assert nodes["#inputs/second"]["label"] == "Note"
    assert lines(program) == {
        ("#inputs/first", "#outputs/both"),
        ("#inputs/second", "#outputs/both"),
        ("#inputs/first", "#outputs/one"),
    }


def test_programs_in_programs_are_boxes_in_boxes():
    """Each with its own inputs and outputs inside."""
    inner = diamond()
    x = sm.Input(Query, name="x")
    outer = sm.Program(inputs=x, outputs=sm.run(inner(x)), name="outer")
    parents = {node["id"]: node["parent"] for node in picture(outer)["nodes"]}
    assert parents["diamond/first"] == "diamond"
    assert parents["diamond#inputs/query"] == "diamond"
    assert ("#inputs/x", "diamond") in lines(outer)
    assert ("diamond#inputs/query", "diamond/first") in lines(outer)
    assert ("diamond", "#outputs/output") in lines(outer)


def test_a_row_is_drawn_by_its_members():
    """Before any call; a plain function is a box of its name."""

    def shout(note: Note) -> Note:
        return Note(note=note["note"].upper())

    row = sm.Sequential([sm.Input(Query), generator(Note), shout, generator(Answer)])
    assert lines(row) == {
        ("#inputs/inputs", "0"), ("0", "1"), ("1", "2"), ("2", "#outputs/output"),
    }  # fmt: skip
    nodes = {node["id"]: node for node in picture(row)["nodes"]}
    assert (nodes["1"]["class"], nodes["1"]["label"]) == ("Lambda", "shout")
    assert nodes["0"]["label"] == "generator"
    assert nodes["#outputs/output"]["label"] == "Answer"


def test_a_branch_is_drawn_as_its_decision_and_its_ways():
    """Before any call, also inside a functional program; one way or another leads out."""
    ways = {"note": generator(Note), "answer": sm.Sequential([sm.Input(Query), generator(Note), generator(Answer)])}
    branch = sm.Branch(ways, name="ways")
    inside = {
        ("#inputs/input", "decision"), ("decision", "branches/note"), ("decision", "branches/answer"),
        ("branches/note", "#outputs/output"), ("branches/answer", "#outputs/output"),
    }  # fmt: skip
    assert inside <= lines(branch)
    assert {node["kind"] for node in picture(branch)["nodes"]} == {"module", "input", "output"}

    async def compose(query: Query):
        return await branch(query)

    drawn = lines(sm.compose(compose))
    assert {("ways/decision", "ways/branches/note"), ("ways/decision", "ways/branches/answer")} <= drawn


def test_a_module_that_occurs_twice_is_one_box():
    """Data comes back to it."""
    twice = generator(Query)
    assert {("0", "1"), ("1", "0")} <= lines(sm.Sequential([twice, generator(Query), twice]))


def test_hand_written_calls_show_members_without_lines():
    """And what the module itself takes and gives."""
    assert lines(Agent()) == {("#inputs/inputs", ""), ("", "#outputs/output")}
    assert [node["id"] for node in picture(Agent())["nodes"]] == [
        "#inputs/inputs",
        "",
        "take",
        "write",
        "#outputs/output",
    ]


def test_a_recorded_call_draws_their_lines():
    """Also where a member's field went on in a new value."""
    agent = Agent()
    run(agent)
    assert lines(agent) == {("#inputs/inputs", "take"), ("take", "write"), ("write", "#outputs/output")}


def test_a_recorded_call_draws_the_inside_of_members():
    """Of every module below with a call of its own."""
    row = sm.Sequential([Agent(), generator(Note)])
    run(row)
    assert {("0#inputs/inputs", "0/take"), ("0/take", "0/write"), ("0/write", "0#outputs/output")} <= lines(row)


def test_a_trace_without_values_draws_no_lines():
    """There is nothing to follow."""
    agent = Agent()
    with sm.trace(values=False):
        sm.run(agent, Query(query="Who?"))
    assert lines(agent) == {("#inputs/inputs", ""), ("", "#outputs/output")}


def test_branches_of_a_recorded_call_are_told_apart():
    """A value goes back to the call that gave it last before it was taken."""

    class Two(sm.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right, self.same = generator(Note), generator(Answer), sm.Identity()

        async def call(self, inputs: Query):
            left, right = await self.left(inputs), await self.right(inputs)
            return await self.same(right), left

    two = Two()
    run(two)
    assert lines(two) == {
        ("#inputs/inputs", "left"),
        ("#inputs/inputs", "right"),
        ("right", "same"),
        ("same", "#outputs/output"),
        ("left", "#outputs/output_1"),
    }


def test_shared_variables_are_dotted():
    """Between the modules that hold them, named; a Variable of one module is nobody else's."""
    tone = sm.Param("kind")
    outer = Tied([Tied(tone), Tied(tone), Leaf()])
    edges = [edge for edge in picture(outer)["edges"] if edge["kind"] == "shared"]
    assert [(e["source"], e["target"], e["style"], e["label"]) for e in edges] == [
        ("held/0", "held/1", "dotted", "held")
    ]


def test_a_shared_module_is_one_box_with_a_dotted_line():
    """To whoever holds it elsewhere; a circle is none."""
    leaf = Leaf()
    outer = Tied([Tied(leaf), Tied(leaf)])
    outer.me = outer
    assert [node["id"] for node in picture(outer)["nodes"]] == ["", "held/0", "held/0/held", "held/1"]
    assert lines(outer, "shared") == {("held/0/held", "held/1")}
    tied = Tied(leaf.prompt)  # what it holds is the leaf's, and its own all the same
    assert lines(Tied([leaf, tied, Tied(tied)]), "shared") == {("held/0", "held/1"), ("held/1", "held/2")}


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_every_format_names_every_module(format, tmp_path):
    """And is written to a file as it is returned."""
    text = diamond().plot(tmp_path / "out", format)
    assert (tmp_path / "out").read_text(encoding="utf-8") == text
    for name in ("first", "second", "last", "Generator"):
        assert name in text


@pytest.mark.parametrize("format", sorted(FORMATS))
@pytest.mark.parametrize(
    "make", [Leaf, Agent, diamond, sm.Module, lambda: sm.Sequential([]), lambda: chain(40), lambda: Wide(60)]
)
def test_every_format_draws_every_program(format, make):
    """Twice alike, before the build as after it."""
    module = make()
    assert module.plot(format=format) == module.plot(format=format)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_no_text_of_a_user_is_syntax(format):
    """Angle brackets, quotes, arrows, control characters: in titles, fields and labels."""
    nasty = '<b>"x" --> y & z; %% end\n\x1b[31m`{{[(|#quot;--></script><!--'
    schema = {"type": "object", "title": nasty, "properties": {nasty: {"type": "string"}}}
    x = sm.Input(schema=schema)
    program = sm.Program(inputs=x, outputs=sm.run(sm.Sequential([sm.Identity()])(x)))
    text = program.plot(format=format)
    assert "\x1b" not in text
    if format == "json":
        assert json.loads(text)["edges"][0]["label"] == nasty
    if format in ("svg", "html"):
        assert "<b>" not in text
        assert "</script>" not in text
        ET.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    if format == "mermaid":
        for quoted in re.findall(r'"(.*)"', text):
            assert not set(quoted.replace("<br/>", "")) & set('<>"`{}[]()|&%')


def test_a_page_needs_nothing_else():
    """No address is loaded, no script runs; picture and summary are there."""
    page = diamond().plot(format="html")
    assert "src=" not in page
    assert "href" not in page
    assert "<script" not in page
    assert "://" not in page.replace('"http://www.w3.org/2000/svg"', "")
    assert "default-src 'none'" in page
    assert "<svg" in page
    assert "4 modules" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"format": "mermade"}, "Did you mean 'mermaid'"),
        ({"format": "png"}, "must be one of 'mermaid', 'svg', 'html', 'json', got 'png'"),
        ({"format": None}, "got None"),
        ({"path": 3}, "a path must be"),
    ],
)
def test_a_wrong_argument_is_told(arguments, said):
    """What was got, what there is."""
    with pytest.raises(sm.ArgumentError) as raised:
        diamond().plot(**arguments)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.svg", "svg"), ("a.html", "html"), ("a.json", "json"), ("a.mermaid", "mermaid"), ("a.mmd", "mermaid")],
)
def test_the_ending_of_the_path_is_the_format(name, format, tmp_path):
    """As in `History.plot`; without a known one it is Mermaid."""
    assert diamond().plot(tmp_path / name) == diamond().plot(format=format) == (tmp_path / name).read_text("utf-8")


def test_nothing_is_written_when_the_format_is_unknown(tmp_path):
    """A wrong word costs no file."""
    with pytest.raises(sm.ArgumentError):
        diamond().plot(tmp_path / "out", "mermade")
    assert not (tmp_path / "out").exists()


def test_a_line_from_a_box_to_what_is_in_it():
    """In SVG down from its head; in Mermaid from a node inside, since it draws none from a subgraph."""
    outer = Tied(Leaf())
    outer.mine = outer.held.prompt
    assert lines(outer, "shared") == {("", "held")}
    text = outer.plot()
    assert 'n0_itself(["tied"]):::port' in text
    assert 'n0_itself -.-|"prompt"| n1' in text
    path = next(x for x in ET.fromstring(outer.plot(format="svg")).iter() if x.get("stroke-linecap") == "round")
    start, *_, end = (each.split() for each in path.get("d").replace("M", "").replace("C", ",").split(","))
    assert float(start[1]) < float(end[1])


@pytest.mark.slow
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_large_programs_are_drawn(format):
    """Five hundred in one another, a thousand beside one another: linear, without recursion."""
    assert chain(500).plot(format=format)
    assert Wide(1000).plot(format=format)


def test_long_flows_are_drawn():
    """Every earlier output goes into the last module: long lines pass many layers."""

    async def wired(query):
        known = query
        value = query
        for _ in range(80):
            value = await sm.Identity(name="same")(value)
            known = known | value
        return await sm.Identity(name="last")(known)

    x = sm.Input(Query)
    program = sm.Program(inputs=x, outputs=sm.run(wired, x))
    assert len([edge for edge in picture(program)["edges"] if edge["target"] == "last"]) == 81
    ET.fromstring(program.plot(format="svg"))


def test_inputs_of_one_name_are_told_apart():
    """As at the door of the program."""
    first, second = sm.Input(Query, name="same"), sm.Input(Note, name="same")
    program = sm.Program(inputs=[first, second], outputs=first + second)
    assert lines(program) == {("#inputs/same", "#outputs/output"), ("#inputs/same_1", "#outputs/output")}


def test_a_long_loop_is_drawn_as_well():
    """A value that many calls hand on: each line once, in no more time than the calls take."""

    class Loop(sm.Module):
        def __init__(self):
            super().__init__()
            self.same = sm.Identity()

        async def call(self, inputs: Query):
            for _ in range(3000):
                inputs = await self.same(inputs)
            return inputs

    loop = Loop()
    run(loop)
    assert lines(loop) == {("#inputs/inputs", "same"), ("same", "same"), ("same", "#outputs/output")}
    assert loop.plot(format="svg")


def test_a_spec_that_needs_the_build_is_unknown_before():
    """Nothing is refused; afterwards it is shown."""

    class Late(sm.Module):
        async def build(self, inputs):
            self.model = sm.Param("x")
            self.answer = Answer

        @property
        def output_spec(self):
            return self.answer

        async def call(self, inputs: Query):
            return Answer(answer=inputs["query"])

    late = Late()
    assert "Query(query: str) -> ?" in late.summary()
    assert late.plot()
    sm.run(sm.build(late, Query))
    assert "Query(query: str) -> Answer(answer: str)" in late.summary()


def test_a_field_leads_back_to_who_gave_it_first():
    """Not to a module in between that handed it on in a value of its own."""

    class Echo(sm.Module):
        async def call(self, inputs: Query):
            return Note(note=inputs["query"])

    class Both(sm.Module):
        def __init__(self):
            super().__init__()
            self.echo, self.last = Echo(), generator(Answer)

        async def call(self, inputs: Query) -> Answer:
            note = await self.echo(inputs)
            return await self.last(Query(query=note["note"]))

    both = Both()
    run(both)
    assert ("#inputs/inputs", "last") in lines(both)
    assert ("echo", "last") not in lines(both)


@pytest.mark.parametrize("constant", ["yes", "not yet", 0.5, ""])
@pytest.mark.parametrize("is_own", [False, True])
def test_equal_constants_are_no_data_flow(constant, is_own):
    """Python keeps one object for equal constants: a new value of one of them leads to nobody."""

    class Held(sm.DataModel):
        held: str | float

    class Gives(sm.Module):
        async def call(self, inputs: Query) -> Held:
            return Held(held=constant)

    class Both(sm.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.last = Gives(), Gives(), sm.Identity()

        async def call(self, inputs: Query) -> Held:
            await self.first(inputs)
            second = await self.second(inputs)
            return await self.last(second if is_own else Held(held=second["held"]))

    both = Both()
    run(both)
    assert {source for source, target in lines(both) if target == "last"} == ({"second"} if is_own else set())


def test_a_constant_that_one_module_gave_is_no_data_flow():
    """A caller that writes the same word makes its own value."""

    class Yes(sm.Module):
        async def call(self, inputs: Query) -> Note:
            return Note(note="yes")

    class Both(sm.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = Yes(), generator(Answer)

        async def call(self, inputs: Query) -> Answer:
            await self.first(inputs)
            return await self.last(Note(note="yes"))

    both = Both()
    run(both)
    assert ("first", "last") not in lines(both)


class Document(sm.DataModel):
    """What is carried past the others."""

    text: str


@sm.skip.skippable(stash={"the_whole_document": Document, "page": Document})
class Reads(sm.Module):
    """Stashes."""

    async def call(self, inputs: Document) -> Document:
        sm.skip.stash("the_whole_document", inputs)
        sm.skip.stash("page", inputs)
        return inputs


@sm.skip.skippable(pop=["the_whole_document", "page"])
class Cites(sm.Module):
    """Pops."""

    async def call(self, inputs: Document) -> Document:
        sm.skip.pop("the_whole_document")
        sm.skip.pop("page")
        return inputs


def long_title():
    """An Agent over one tool, whose title is wider than its content."""

    def look_up(order: int) -> str:
        """Look an order up."""
        return str(order)

    return sm.Agent([look_up], Answer, language_model="embedded/nearest", name="assistant_of_all_our_customers")


def rectangle(element):
    """Left, top, right, bottom."""
    x, y, wide, high = (float(element.get(key)) for key in ("x", "y", "width", "height"))
    return x, y, x + wide, y + high


@pytest.mark.parametrize(
    "make",
    [
        long_title,
        lambda: sm.Sequential([sm.Input(Document), Reads(), Cites()], name="one_after_the_other"),
        lambda: sm.Sequential([Document, Reads(), generator(Document), sm.Identity(), generator(Document), Cites()]),
        lambda: sm.Sequential([sm.Sequential([Reads(), sm.Identity()]), generator(Document), Cites()]),
    ],
    ids=["a long title", "adjacent", "far apart", "out of a box"],
)
def test_no_text_of_an_svg_leaves_its_place(make):
    """A title fits into its box, and the label of a line covers no box and no other label."""
    svg = ET.fromstring(make().plot(format="svg"))
    space = "{http://www.w3.org/2000/svg}"
    page = (0.0, 0.0, float(svg.get("width")), float(svg.get("height")))
    boxes, labels = [], []
    for group in svg.iter(f"{space}g"):
        box, text = rectangle(group.find(f"{space}rect")), group.find(f"{space}text")
        wide = sum(len(part) for part in text.itertext()) * 7
        assert box[0] <= float(text.get("x")) - wide / 2
        assert float(text.get("x")) + wide / 2 <= box[2]
        if text.find(f"{space}tspan") is None:
            boxes.append(box)
    for element in svg.findall(f"{space}rect")[1:]:
        labels.append(rectangle(element))
    assert len(labels) == (0 if make is long_title else 1)
    for label in labels:
        assert page[0] < label[0] < label[2] < page[2]
        for left, top, right, bottom in boxes:
            assert label[2] <= left or right <= label[0] or label[3] <= top or bottom <= label[1]
