"""Objects of subclasses are refused: a reader would return objects of the declared classes."""

import dataclasses
import re
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar, Union

import attrs
import msgspec
import pydantic
import pytest

from pravega_serde import SerializationError, typed
from pravega_serde.cbor import CborSerializer
from pravega_serde.json import JsonSerializer
from tests.unit.serde._typed import FORMATS, Plain, again, model, one

T = TypeVar("T")


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_object_of_a_subclass_is_refused(format_name: str) -> None:
    with pytest.raises(SerializationError, match="expected a Plain, not a Longer"):
        again(format_name, Plain, dataclasses.make_dataclass("Longer", [], bases=(Plain,))(1))


class PlainModel(pydantic.BaseModel):
    number: int


class PlainStruct(msgspec.Struct):
    number: int


@attrs.define
class PlainAttrs:
    number: int


class PlainPair(NamedTuple):
    plain: Plain


class PlainKeys(TypedDict):
    plain: Plain


class Chain(msgspec.Struct):
    next: Union["Chain", list[Plain]]


def longer(parent: Any) -> Any:
    """Return an object of a subclass with another field."""
    if parent is PlainModel:
        return pydantic.create_model("Longer", __base__=parent, more=(int, ...))(number=1, more=2)
    kind = type("Longer", (parent,), {"__annotations__": {"more": int}})
    made = {Plain: dataclasses.dataclass, PlainAttrs: attrs.define}.get(parent, lambda kind: kind)(kind)  # type: ignore[call-overload]
    return made(1, 2)


def holder(kind: Any) -> Any:
    return model("Holder", field=kind)


@pytest.mark.parametrize(
    ("make", "parent"),
    [
        *((one, parent) for parent in (Plain, PlainModel, PlainStruct, PlainAttrs)),
        (holder, Plain),
        (holder, PlainModel),
    ],
)
@pytest.mark.parametrize("format_name", FORMATS)
def test_an_object_of_a_subclass_inside_is_refused_with_its_path(format_name: str, make: Any, parent: Any) -> None:
    value, exact = longer(parent), parent(number=1)
    for field, found, path in (
        (parent, value, "$.field"),
        (parent | None, value, "$.field"),
        (list[parent], [exact, value], "$.field[1]"),
        (dict[str, parent], {"a": exact, "b": value}, "$.field['b']"),
        (dict[str, list[parent | None]], {"a": [None, value]}, "$.field['a'][1]"),
    ):
        kind = make(field)
        with pytest.raises(
            SerializationError, match=rf"expected a {parent.__name__} at {re.escape(path)}, not a .*Longer"
        ):
            again(format_name, kind, kind(field=found))
        kept = exact if path == "$.field" else {"a": [None]} if "'a'" in path else type(found)()
        assert again(format_name, kind, kind(field=kept)) == kind(field=kept)


@pytest.mark.parametrize("format_name", ["json", "cbor"])
@pytest.mark.parametrize(
    ("field", "make", "path"),
    [
        (tuple[int, Plain], lambda value: (1, value), "$.field[1]"),
        (tuple[Plain, ...], lambda value: (Plain(1), value), "$.field[1]"),
        (PlainPair, PlainPair, "$.field.plain"),
        (PlainKeys, lambda value: {"plain": value}, "$.field.plain"),
        (Chain, lambda value: Chain(Chain([value])), "$.field.next.next[0]"),
        (Chain | list[Plain], lambda value: [value], "$.field[0]"),
    ],
    ids=["pair", "tuple", "named tuple", "typed dict", "itself", "union"],
)
def test_an_object_of_a_subclass_is_found_in_each_container(format_name: str, field: Any, make: Any, path: str) -> None:
    kind = one(field)
    assert again(format_name, kind, kind(make(Plain(1)))) == kind(make(Plain(1)))
    with pytest.raises(SerializationError, match=f"expected a Plain at {re.escape(path)}, not a Longer"):
        again(format_name, kind, kind(make(longer(Plain))))


class BoxOfModels(pydantic.BaseModel, Generic[T]):
    content: T


def test_a_subclass_that_is_declared_is_written() -> None:
    class Parent(msgspec.Struct, tag=True):
        number: int

    class Child(Parent, tag=True):
        more: int

    class Held(pydantic.BaseModel):
        box: BoxOfModels[int]
        left_out: PlainModel = pydantic.Field(exclude=True, default=PlainModel(number=2))

    kind = one(list[Parent | Child])
    for inner in (JsonSerializer(), CborSerializer()):
        objects = typed(inner, kind)
        value = kind([Parent(1), Child(1, 2)])
        assert objects.deserialize(objects.serialize(value)) == value
        models = typed(inner, Held)
        held = Held(box=BoxOfModels[int](content=1), left_out=longer(PlainModel))
        assert models.deserialize(models.serialize(held)).box == held.box
