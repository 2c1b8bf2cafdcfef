"""Sealing: structure stays as it was built, and a change of it is found at its line."""

import pytest

from synmod.errors import ConfigError, GraphError, SealedError
from synmod.module import Module, build
from synmod.tree import Param, merge, split, variables
from tests.module.models import Echo, Query

q = Query(question="x")


class Holds(Module):
    """Holds a child, a Variable, a list of children, and plain values."""

    def __init__(self):
        super().__init__()
        self.child = Echo()
        self.v = self.add_variable("x", name="v")
        self.many = [Echo(), {"k": Echo()}]
        self.plain = {"n": [1, 2]}

    async def call(self, inputs):
        return inputs


async def test_structure_is_closed_after_the_first_call():
    """Assigning, replacing or deleting a node or Variable is refused at that line; values stay open."""
    holds = Holds()
    holds.early = Echo()
    await holds(q)
    for change in (
        lambda: setattr(holds, "child", Echo()),
        lambda: setattr(holds, "new", Echo()),
        lambda: setattr(holds, "v", Param("y")),
        lambda: setattr(holds, "many", []),
        lambda: delattr(holds, "child"),
        lambda: delattr(holds, "many"),
        lambda: holds.add_variable("z"),
    ):
        with pytest.raises(SealedError):
            change()
    holds.plain = {"n": []}
    holds.note = "x"
    del holds.note
    holds.v.assign("y")
    holds.trainable = False
    holds.child = holds.child


@pytest.mark.parametrize("change", ["append", "replace", "deep", "remove"])
async def test_a_container_changed_behind_the_back_is_found(change):
    """At the next structural operation, naming the path."""
    holds = Holds()
    await holds(q)
    {
        "append": lambda: holds.many.append(Echo()),
        "replace": lambda: holds.many.__setitem__(0, Echo()),
        "deep": lambda: holds.many[1].update(k=Echo()),
        "remove": lambda: holds.many.pop(),
    }[change]()
    with pytest.raises(SealedError, match="many"):
        split(holds)


async def test_a_copy_of_what_is_sealed_is_as_closed():
    """In a merged program, a container changed behind its back is found like in the one that was built."""
    holds = Holds()
    await holds(q)
    twin = merge(*split(holds))
    assert split(twin) == split(holds)
    twin.many[1]["k"] = Echo()
    with pytest.raises(SealedError, match="many"):
        split(twin)
    split(holds)


async def test_a_list_that_holds_no_structure_may_change():
    """Plain values are config, not structure."""
    holds = Holds()
    await holds(q)
    holds.plain["n"].append(3)
    assert merge(*split(holds)).plain == {"n": [1, 2, 3]}


async def test_a_variable_is_an_attribute_under_its_name():
    """`_1`, ... where the name is taken; assigned to another attribute too, it has an alias."""
    module = Holds()
    module.add_variable(1, name="loose")
    module.alias = module.add_variable(2, name="other")
    module.add_variable(3, name="loose")
    module.add_variable(4, name="call")
    assert list(variables(module)) == ["v", "loose", "other", "loose_1", "call_1"]
    assert [v.value for v in module.variables] == ["x", 1, 2, 3, 4]
    assert module.alias is module.other


async def test_sm_build_seals_what_no_trace_has_called():
    """A child without `build` under a parent that declares its output; opened again if an outer build fails."""

    class Child(Module):
        async def call(self, inputs: Query) -> Query:
            return inputs

    class Parent(Module):
        def __init__(self):
            super().__init__()
            self.children = [Child()]

        async def call(self, inputs: Query) -> Query:
            return await self.children[0](inputs)

    class Failing(Module):
        def __init__(self):
            super().__init__()
            self.parent = Parent()

        async def build(self, inputs):
            await build(self.parent, Query)
            raise RuntimeError("no")

    failing = Failing()
    with pytest.raises(RuntimeError):
        await build(failing, Query)
    failing.parent.children[0].late = Param("still open")
    await build(failing.parent, Query)
    with pytest.raises(SealedError):
        failing.parent.children[0].later = Param("x")


def test_a_variable_without_a_title_is_called_variable():
    """The default name is the snake case of the schema's title, else `variable`, then `variable_1`."""
    module = Module()
    assert [module.add_variable("text").name for _ in range(2)] == ["variable", "variable"]
    assert list(variables(module)) == ["variable", "variable_1"]
    assert module.add_variable(schema={"title": "!?", "type": "string"}).name == "variable"


def test_assigning_over_a_variable_names_assign():
    """Whatever is not a Variable, in `__init__`, in build and after it; another Variable may take its place before."""
    holds = Holds()
    for value in ("y", None, Echo()):
        with pytest.raises(GraphError, match=r"'v' holds a Variable.*\.assign\("):
            holds.v = value
    assert holds.v.value == "x"
    holds.v = Param("z")
    assert [v.value for v in holds.variables] == ["z"]


def test_an_attribute_that_hides_a_name_of_module_is_an_error():
    """Methods, read-only properties and slots; the message proposes another name. What has a setter can be set."""

    class Finder(Module):
        def __init__(self, name):
            super().__init__()
            setattr(self, name, "x")

    for name in ("path", "variables", "summary", "clone", "build", "call", "from_config", "stashable_names", "_record"):
        with pytest.raises(ConfigError, match=f"'{name}' would hide.*such as finder_{name}"):
            Finder(name)
    assert Finder("description").description == "x"
    with pytest.raises(ConfigError, match="class Listener: the class attribute '_record' hides .* rename it"):
        type("Listener", (Module,), {"_record": lambda self, event: event})
