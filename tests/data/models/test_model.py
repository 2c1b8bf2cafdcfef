"""Data models: pydantic classes whose schema and JSON are exact."""

import re
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar

import pydantic
import pytest
from pydantic import (
    AliasChoices,
    ConfigDict,
    Field,
    Secret,
    SecretStr,
    SerializeAsAny,
    computed_field,
    field_serializer,
    model_serializer,
)
from typing_extensions import TypedDict

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, dump, schema_of_class
from synmod.errors import DataError, FieldError, SchemaError


class Inner(DataModel):
    n: int = 0


class Everything(DataModel):
    text: str
    number: float = 1.5
    maybe: int | None = None
    many: list[Inner] = []
    by_key: dict[str, int] = {}
    day: date = date(2020, 1, 1)
    money: Decimal = Decimal("1.50")
    raw: bytes = b"x"
    unique: set[int] = set()
    pair: tuple[int, str] = (1, "a")
    anything: Any = None
    named: int = Field(default=1, alias="Named")


def test_json_comes_back():
    """The JSON by alias, None and defaults kept, is valid and gives an equal instance."""
    thing = Everything(text="é", many=[Inner(n=1)], by_key={"a": 1}, unique={1}, anything=[1, {"x": None}], Named=2)
    json = thing.get_json()
    assert json["maybe"] is None
    assert json["Named"] == 2
    assert Everything.model_validate(json) == thing
    assert thing.to_json_data_model().to() == thing
    assert JsonDataModel(json, data_model=Everything).to() == thing


def test_unknown_fields_and_assignments():
    """Unknown fields are refused and assignments validated, by pydantic."""
    with pytest.raises(pydantic.ValidationError):
        Inner(m=1)
    with pytest.raises(pydantic.ValidationError):
        Inner().n = "x"


def test_class_and_instance_answer():
    """Schema and symbol of both; JSON of an instance."""
    assert Inner.get_schema() == Inner().get_schema() == Inner().to_json_data_model().get_schema()
    assert Inner.get_schema() is not Inner.get_schema()
    assert isinstance(Inner.to_symbolic_data_model(), SymbolicDataModel)
    assert Inner().to_symbolic_data_model(name="x").name == "x"
    assert Inner().to_json_data_model(name="y").name == "y"
    assert '"n": 0' in Inner().prettify_json()
    assert '"n": {' in Inner.prettify_schema()
    assert (Inner()["n"], "n" in Inner(), "m" in Inner()) == (0, True, False)
    with pytest.raises(FieldError):
        Inner()["m"]


def test_fields_may_be_called_anything():
    """Fields named as methods of values give no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Odd(DataModel):
            keys: int
            name: str
            prefix: str
            get: int
            to: str

    odd = Odd(keys=1, name="n", prefix="p", get=2, to="t")
    assert odd.to_json_data_model()["keys"] == 1
    assert odd.keys == 1


class Inbox(DataModel):
    first: Inner | None = None
    many: list[Inner] = Field(default_factory=list)
    by_key: dict[str, Inner] = Field(default_factory=dict)
    made: list[int] = Field(default_factory=lambda: [1])


def test_values_stand_for_their_json_in_the_constructor():
    """What a module returned goes into another model as it is, at any depth; what does not fit is an error."""
    one = Inner(n=3).to_json_data_model()
    assert Inbox(first=one, many=[one], by_key={"a": one}) == Inbox(
        first=Inner(n=3), many=[Inner(n=3)], by_key={"a": Inner(n=3)}
    )
    for wrong in ({"first": one, "many": 3}, {"first": Inbox().to_json_data_model()}, {"many": [3]}):
        with pytest.raises(pydantic.ValidationError):
            Inbox(**wrong)


def test_factories_of_empty_containers_are_defaults_of_the_schema():
    """So that a reply without the field reads as with `= []`; other factories run only when an instance is made."""
    absent = JsonDataModel({}, data_model=Inbox)
    assert (absent.many, absent.by_key) == ([], {})
    with pytest.raises(FieldError, match="declared, but absent"):
        absent.made
    assert absent.to() == Inbox()


def test_once_per_class():
    """pydantic is asked once; a subclass is another class."""

    class Sub(Inner):
        m: int = 0

    assert schema_of_class(Inner) is schema_of_class(Inner)
    assert list(Sub.get_schema()["properties"]) == ["n", "m"]
    assert list(Inner.get_schema()["properties"]) == ["n"]


def test_incomplete_classes_are_not_kept():
    """A class that waits for another is asked again when that is there."""

    class Waiting(DataModel):
        later: "Later"

    with pytest.raises(SchemaError, match="'Later'"):
        Waiting.get_schema()

    class Later(DataModel):
        x: int

    Waiting.model_rebuild()
    assert "Later" in Waiting.get_schema()["$defs"]


def refused(annotation, *default, **config):
    """A class with one such field `x`."""
    namespace = {"__annotations__": {"x": annotation}, "__module__": __name__, "__qualname__": "Refused"}
    if default:
        namespace["x"] = default[0]
    return type(DataModel)("Refused", (DataModel,), namespace, **config)


class WithSecret(pydantic.BaseModel):
    hidden: SecretStr


@pytest.mark.parametrize(
    ("annotation", "default", "name"),
    [
        (SecretStr, [], "Refused.x"),
        (list[Secret[int]], [], "Refused.x"),
        (Optional[SecretStr], [None], "Refused.x"),
        (dict[str, WithSecret], [], "WithSecret.hidden"),
        (Callable[[], int], [], "Refused.x"),
        (Any, [object()], "Refused.x"),
    ],
)
def test_fields_without_a_schema_or_with_a_secret(annotation, default, name):
    """They are a SchemaError at first use, naming the field."""
    cls = refused(annotation, *default)
    for use in (cls.get_schema, cls.to_symbolic_data_model):
        with pytest.raises(SchemaError, match=re.escape(name)):
            use()


@pytest.mark.parametrize(
    ("annotation", "default", "fields"),
    [
        (int, [Field(validation_alias="y")], {"y": 1}),
        (int, [Field(validation_alias=AliasChoices("y", "z"))], {"z": 1}),
        (int, [Field(serialization_alias="y")], {"x": 1}),
        (str, [None], {}),
        (int, ["1"], {}),
    ],
)
def test_dumps_that_are_not_what_the_schema_promises(annotation, default, fields):
    """Aliases that differ, wrong defaults and the like are a DataError of the first dump, which names the class."""
    with pytest.raises(DataError, match=r"^Refused: .*(/x|'?y'?)"):
        refused(annotation, *default)(**fields).get_json()


def test_the_schema_of_a_recursive_class_has_its_object_at_the_root():
    """What is handed out, and sent to providers, has `type` and `properties` at its root."""

    class Tree(DataModel):
        name: str
        children: list["Tree"] = []

    schema = Tree.get_schema()
    assert schema["type"] == "object"
    assert list(schema["properties"]) == ["name", "children"]
    assert schema["$defs"]["Tree"]["properties"] == schema["properties"]
    tree = Tree(name="a", children=[Tree(name="b")])
    assert JsonDataModel(tree.get_json(), schema).to(Tree) == tree


def test_aliases_that_agree():
    """One alias for both ways is fine, a generator too."""
    assert list(refused(int, Field(validation_alias="y", serialization_alias="y")).get_schema()["properties"]) == ["y"]

    class Camel(DataModel):
        model_config = ConfigDict(alias_generator=lambda name: name.title())
        word: int

    assert Camel(Word=1).get_json() == {"Word": 1}


def test_computed_fields():
    """They are in neither schema nor JSON, at any depth."""

    class Square(DataModel):
        n: int

        @computed_field
        @property
        def area(self) -> int:
            return self.n**2

    class Holder(DataModel):
        square: Square

    holder = Holder(square=Square(n=2))
    assert holder.get_json() == {"square": {"n": 2}}
    assert "area" not in str(Holder.get_schema())


def test_custom_serializers_are_checked():
    """Each dump of a class with serializers of a user is validated."""

    class Field_(DataModel):
        n: int

        @field_serializer("n")
        def write(self, n):
            return str(n) if n else n

    assert Field_(n=0).get_json() == {"n": 0}
    with pytest.raises(DataError, match="/n"):
        Field_(n=1).get_json()

    class Whole(DataModel):
        n: int

        @model_serializer
        def write(self):
            return {"m": self.n}

    with pytest.raises(DataError):
        Whole(n=1).to_json_data_model()


def test_edited_in_place():
    """A field edited to a wrong type is an error that names it."""
    thing = Everything(text="t")
    thing.many.append(None)
    with pytest.raises(DataError, match="/many/0"):
        thing.get_json()
    thing = Everything(text="t")
    thing.by_key["a"] = "one"
    with pytest.raises(DataError, match="/by_key/a"):
        thing.to_json_data_model()
    thing = Everything(text="t", many=[Inner()])
    thing.many[0].__dict__["n"] = "x"
    with pytest.raises(DataError, match="/many/0/n"):
        thing.get_json()
    thing = Everything(text="t", anything=[object()])
    with pytest.raises(DataError):
        thing.get_json()


def test_no_json():
    """NaN and half characters are refused with their place."""
    with pytest.raises(DataError, match="number"):
        Everything(text="t", number=float("nan")).get_json()
    for value in (float("inf"), {"a": [float("nan")]}):
        with pytest.raises(DataError, match="/anything"):
            Everything(text="t", anything=value).get_json()
    with pytest.raises(DataError, match="Everything"):
        Everything(text="t", anything=b"\xff").get_json()


def test_a_base_class_is_written_as_that_class():
    """A field declared with a base class is written with the fields of the base."""

    class More(Inner):
        m: int = 5

    class Holder(DataModel):
        inner: Inner
        many: list[Inner] = []

    assert Holder(inner=More(), many=[More()]).get_json() == {"inner": {"n": 0}, "many": [{"n": 0}]}

    class Any_(DataModel):
        inner: SerializeAsAny[Inner]

    with pytest.raises(DataError, match="m"):
        Any_(inner=More()).get_json()


def test_kinds_of_fields():
    """Enums, aliases by annotation, generics and strict classes work."""

    class Colour(Enum):
        RED = "red"

    T = TypeVar("T")

    class Box(DataModel, Generic[T]):
        held: T
        colour: Colour = Colour.RED
        count: Annotated[int, Field(ge=0)] = 0

    box = Box[int](held=5)
    assert box.get_json() == {"held": 5, "colour": "red", "count": 0}
    assert box.to_json_data_model().to() == box
    assert Box[int].get_schema()["properties"]["held"]["type"] == "integer"


def test_patterns_that_pydantic_writes():
    """They are not in the schema; pydantic checks them in `to`."""
    assert "pattern" not in str(Everything.get_schema())
    bad = JsonDataModel({"text": "t", "money": "no number"}, schema=Everything.get_schema())
    with pytest.raises(SchemaError):
        bad.to(Everything)


def test_plain_pydantic_classes():
    """A pydantic class under the same rules declares a schema."""

    class Plain(pydantic.BaseModel):
        n: int
        many: list[int] = []

    value = JsonDataModel({"n": 1, "more": 2}, data_model=Plain)
    assert value.to() == Plain(n=1)
    assert dump(Plain(n=1)) == {"n": 1, "many": []}


class Stock(pydantic.RootModel[dict[str, int]]):
    pass


class Line(pydantic.BaseModel):
    n: int
    price: int = Field(1, alias="unitPrice")

    @computed_field
    @property
    def twice(self) -> int:
        return self.n * 2


class Lines(pydantic.RootModel[dict[str, Line]]):
    model_config = ConfigDict(frozen=True)


class Named(pydantic.RootModel[dict[Annotated[str, pydantic.StringConstraints(pattern="^x")], int]]):
    pass


class Chosen(pydantic.RootModel[dict[Literal["a", "b"], int]]):
    pass


class Nested(pydantic.RootModel[dict[str, "Nested | int"]]):
    pass


class OfLine(pydantic.RootModel[Line]):
    pass


class Typed(TypedDict):
    a: int


class OfTyped(pydantic.RootModel[Typed]):
    pass


class Shelf(pydantic.BaseModel):
    stock: Stock
    all: list[Stock] = []


class Open(pydantic.BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int] = Field(init=False)
    a: int


@pytest.mark.parametrize(
    ("model", "json"),
    [
        (Stock, {"mug": 7, "plate": 0}),
        (Stock, {}),
        (Lines, {"a": {"n": 1, "unitPrice": 5}}),
        (Named, {"x1": 1}),
        (Chosen, {"a": 1}),
        (Nested, {"a": {"b": 1}}),
        (OfLine, {"n": 1, "unitPrice": 2}),
        (OfTyped, {"a": 1}),
        (Shelf, {"stock": {"a": 1}, "all": [{"b": 2}]}),
        (Open, {"a": 1, "b": 2}),
    ],
)
def test_the_schema_decides_which_keys_a_class_takes(model, json):
    """Those of a root that is a dict too; where only fields are declared, others are left out."""
    made = model.model_validate(json)
    assert JsonDataModel(json, data_model=model).to() == made
    assert JsonDataModel(json, {"type": "object"}).to(model) == made
    assert dump(made) == json
    more = JsonDataModel({**json, "more": "x"}, {"type": "object"})
    if model in (OfLine, OfTyped, Shelf):
        assert more.to(model) == made
    else:
        with pytest.raises(SchemaError, match="more"):
            more.to(model)


def test_extras():
    """A class that allows extras keeps them, checked as JSON."""

    class Free(DataModel):
        model_config = ConfigDict(extra="allow")
        n: int = 0

    free = Free(n=1, more=[1])
    assert free.get_json() == {"n": 1, "more": [1]}
    assert free.to_json_data_model().to() == free
    with pytest.raises(DataError):
        Free(more=object()).get_json()


def test_deferred_building_is_for_users_to_choose():
    """Classes of users are complete when defined, unless they ask otherwise."""
    assert Inner.__pydantic_complete__

    class Late(DataModel):
        model_config = ConfigDict(defer_build=True)
        n: int

    assert not Late.__pydantic_complete__
    assert Late.get_schema()["required"] == ["n"]


def test_a_field_that_can_be_read_once_is_never_read_twice():
    """Beside a value, which is only understood at a second look."""
    inner = JsonDataModel({"a": 1}, schema={"type": "object", "properties": {"a": {"type": "integer"}}})

    class Inner(DataModel):
        a: int

    class Outer(DataModel):
        numbers: list[int]
        inner: Inner

    assert Outer(numbers=[1], inner=inner).inner.a == 1
    with pytest.raises(ValueError, match="inner"):
        Outer(numbers=(number for number in range(3)), inner=inner)
