"""Classes with fields of every kind, and objects of them that must come through schemas of the classes."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import attrs
import msgspec
import pydantic

from tests.unit.serde._classes import LINES, SOME, Node, make

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
UUID_5 = UUID(int=5)


class Kinds(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Sizes(enum.Enum):  # a constant of the same name as in Kinds
    SMALL = 1
    HUGE = 2


class Codes(enum.IntEnum):
    OK = 200
    NONE = 0


@dataclasses.dataclass
class Scalars:
    flag: bool
    number: int
    ratio: float
    text: str
    raw: bytes
    day: date
    at: datetime
    clock: time
    price: Decimal
    key: UUID
    took: timedelta
    kind: Kinds


SCALARS = Scalars(
    True, -(1 << 63), -0.0, "ü😀\0", b"\xff\0", date(1, 1, 1), AT, time(23, 59, 59, 999999), Decimal("-1.5"), UUID_5,
    timedelta(days=-1, microseconds=7), Kinds.LARGE,
)  # fmt: skip
ZEROS = Scalars(
    False, 0, 0.0, "", b"", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), time(0), Decimal(0), UUID(int=0),
    timedelta(0), Kinds.SMALL,
)  # fmt: skip


@attrs.define
class Defaults:
    _private: int = 7
    ratio: float = 1
    text: str = 'x"ü'
    raw: bytes = b"\xff\0"
    day: date = date(2026, 1, 2)
    at: datetime = AT
    clock: time = time(1, 2, 3, 4)
    price: Decimal = Decimal("-12.5")
    key: UUID = UUID_5
    took: timedelta = timedelta(seconds=5)
    kind: Kinds = Kinds.LARGE
    sizes: tuple[Sizes, ...] = (Sizes.HUGE,)
    names: frozenset[str] = frozenset("b")
    counts: dict[str, int] = attrs.field(factory=dict)
    note: str | None = None
    word: str | None = "w"
    either: int | str = "text"
    inner: "Inner | None" = None


@dataclasses.dataclass(frozen=True)
class Inner:
    number: int = 3
    label: str | None = None


@dataclasses.dataclass
class Holder:
    inner: Inner = Inner(5, None)
    required: Inner | None = None


class Tree(msgspec.Struct):
    value: int
    children: list["Tree"] = []
    by_name: dict[str, Optional["Tree"]] = {}


Id = NewType("Id", int)
T = TypeVar("T")


class Pair(NamedTuple):
    left: int
    right: float = 2.0


@dataclasses.dataclass
class Box(Generic[T]):
    content: T
    kept: list[T] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Words:
    id: Id
    pair: Pair
    box: Box[Kinds]
    texts: Box[str]
    mixed: tuple[int, str]
    both: tuple[float, float]
    word: Literal["a b", "c"]
    level: Literal[1, 2] | None
    some: Annotated[str, "note"] = "x"


class Keys(TypedDict):
    x: int
    note: NotRequired[str]
    kinds: NotRequired[dict[Kinds, int]]


@dataclasses.dataclass
class Nested:
    grid: list[list[float]]
    holes: list[int | None]
    maybe: list[str] | None
    table: dict[str, list[int]]
    deep: dict[UUID, dict[str, Inner | None] | None]
    kinds: set[Kinds]
    either: int | str | None
    many: list[int | str | None]
    lists: int | list[str] | None
    pair: int | str | tuple[str, str]
    sequence: Sequence[int]
    mapping: Mapping[str, bytes]


class Created(msgspec.Struct, tag=True):
    id: int
    items: list[Inner | None]


class Deleted(msgspec.Struct, tag="gone"):
    id: int
    before: "Created | Deleted | None" = None


class Events(msgspec.Struct):
    first: Created | Deleted
    all: list[Created | Deleted] = []
    last: Created | Deleted | None = None


class Cat(pydantic.BaseModel):
    kind: Literal[Kinds.SMALL]
    name: str


class Dog(pydantic.BaseModel):
    kind: Literal[Kinds.LARGE]
    name: str


class Pets(pydantic.BaseModel):
    pets: list[Cat | Dog]
    favorite: Cat | Dog | None = None
    when: datetime | str = "never"


class Sparse(msgspec.Struct, omit_defaults=True, rename="camel", tag="sparse"):
    the_count: int = 5
    took: timedelta = timedelta(1)
    kind: Kinds = Kinds.LARGE
    unset: int | msgspec.UnsetType = msgspec.UNSET


class Area(pydantic.BaseModel):
    width: int = pydantic.Field(alias="Width", default=2)
    secret: str = pydantic.Field(default="", exclude=True)

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return self.width * 2


class BoxModel(pydantic.BaseModel, Generic[T]):
    content: T


class Boxes(pydantic.BaseModel):
    one: BoxModel[int]
    two: BoxModel[list[Kinds]]


class Empty(msgspec.Struct):
    pass


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derived(Inner):
    count: Final[int] = 1
    words: dict[Literal["p", "q"], int] = dataclasses.field(default_factory=dict)


class Linked(msgspec.Struct, Generic[T], rename="camel"):
    the_item: T
    rest: list["Linked[T]"] = []


class Parts(NamedTuple):
    numbers: tuple[int, ...] = ()
    mixed: tuple[int, str, None] = (1, "a", None)
    inner: Inner = Inner(9, "z")


class Model(pydantic.BaseModel):
    many: Annotated[int, pydantic.Field(gt=0)] = 1
    either: int | float | bool | None = None
    mine: Optional["Model"] = None
    some: list[Cat | int] = []


@attrs.define
class Converted:
    ratio: float = attrs.field(default="1.5", converter=float)  # type: ignore[assignment]
    price: Decimal = 0  # type: ignore[assignment]


NESTED = Nested(
    [[], [0.5, 1.0]], [1, None, 0], None, {"a": [], "b": [1]}, {UUID_5: {"x": Inner(0), "y": None}, UUID(int=6): None},
    {Kinds.SMALL}, "x", [1, "a", None, 0, ""], ["q"], ("string", "x"), [1, 2], {"k": b"\xff"},
)  # fmt: skip
VALUES: list[tuple[Any, Any]] = [
    *((kind, make(kind, SOME)) for kind in LINES),
    (Scalars, SCALARS),
    (Scalars, ZEROS),
    (Defaults, Defaults(ratio=1.0, inner=Inner())),
    (Holder, Holder()),
    (Holder, Holder(Inner(0, "x"), Inner())),
    (Node, Node(Node(Node()))),
    (Tree, Tree(1, [Tree(2), Tree(0, [Tree(3)])], {"a": None, "b": Tree(4)})),
    (Words, Words(Id(3), Pair(1), Box(Kinds.SMALL, [Kinds.LARGE]), Box("x"), (1, "a"), (0.5, 1.5), "a b", None)),
    (Box[list[Inner | None]], Box([Inner(), None], [[]])),
    (Pair, Pair(0, -0.0)),
    (Keys, {"x": 1}),
    (Keys, {"x": 0, "note": "", "kinds": {Kinds.SMALL: 1}}),
    (Nested, NESTED),
    (Nested, dataclasses.replace(NESTED, maybe=[], either=None, lists=0, many=[])),
    (Nested, dataclasses.replace(NESTED, maybe=["x"], either=0, lists=[])),
    (Events, Events(Created(0, [Inner(), None]), [Deleted(1), Created(2, [])], Deleted(3, Deleted(4, Created(5, []))))),
    (Created | Deleted, Deleted(1)),
    (Deleted, Deleted(1, Deleted(2))),
    (list[Created | Deleted], [Created(1, []), Deleted(2)]),
    (Pets, Pets(pets=[Cat(kind=Kinds.SMALL, name="a"), Dog(kind=Kinds.LARGE, name="a")])),
    (Pets, Pets(pets=[], favorite=Dog(kind=Kinds.LARGE, name=""), when=AT)),
    (Sparse, Sparse()),
    (Sparse, Sparse(0, timedelta(0), Kinds.SMALL, 0)),
    (Area, Area()),
    (Boxes, Boxes(one=BoxModel(content=1), two=BoxModel(content=[Kinds.SMALL]))),
    (Derived, Derived(number=1, words={"p": 1})),
    (Linked[Kinds], Linked(Kinds.SMALL, [Linked(Kinds.LARGE)])),
    (Linked[Inner | None], Linked(None)),
    (Parts, Parts()),
    (Model, Model(either=True, mine=Model(either=2), some=[Cat(kind=Kinds.SMALL, name="n"), 2])),
    (Model, Model(either=2.0)),
    (Converted, Converted()),
    (int, 0),
    (Kinds, Kinds.LARGE),
    (Kinds | None, None),
    (Inner | None, None),
    (dict[str, int] | None, {}),
    (int | str, "x"),
    (tuple[int, str], (1, "s")),
    (dict[str, Inner], {"a": Inner()}),
    (list[int], [1, 0]),
    (Empty, Empty()),
    (dataclasses.make_dataclass("Numbers", [("codes", list[Codes]), ("size", Sizes), ("kind", Kinds)]), None),
]
VALUES[-1] = (VALUES[-1][0], VALUES[-1][0]([Codes.OK, Codes.NONE], Sizes.SMALL, Kinds.SMALL))
