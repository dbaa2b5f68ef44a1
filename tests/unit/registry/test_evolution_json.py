"""JSON schemas that follow one another: what is said of them, and what a validator says about documents."""

import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde.errors import SchemaError
from pravega_serde.registry import Compatibility, SchemaInfo, SerializationFormat, check_compatibility


def info(schema):
    data = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return SchemaInfo("T", SerializationFormat.JSON, data)


def faults(writer, reader):
    reasons = check_compatibility(info(writer), info(reader), Compatibility.BACKWARD)
    assert all(reason.startswith("backward: ") for reason in reasons)
    # The other way round is the same question.
    forward = check_compatibility(info(reader), info(writer), Compatibility.FORWARD)
    assert [reason.removeprefix("forward: ") for reason in forward] == [
        reason.removeprefix("backward: ") for reason in reasons
    ]
    return [reason.removeprefix("backward: ") for reason in reasons]


def obj(*, required=(), closed=False, **properties):
    made = {"type": "object", "properties": properties}
    if required:
        made["required"] = list(required)
    if closed:
        made["additionalProperties"] = False
    return made


INTEGER, NUMBER, STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}
NODE = {"$ref": "#/definitions/Node"}


def tree(kind):
    return {**NODE, "definitions": {"Node": obj(value=kind, children={"type": "array", "items": NODE})}}


FIT = [
    (obj(a=INTEGER), obj(a=INTEGER)),
    (obj(a=INTEGER), obj(a=INTEGER, b=STRING)),
    (obj(a=INTEGER), obj(a=NUMBER)),
    (obj(a=INTEGER), obj(a={"type": ["null", "integer"]})),
    (obj(a=INTEGER), obj(a={})),
    (obj(a=INTEGER), obj(a=True)),
    (obj(a=INTEGER), obj(a={"type": "any"})),
    (obj(a=INTEGER, b=STRING), obj(a=INTEGER)),
    (obj(a=INTEGER, required=["a"]), obj(a=INTEGER)),
    (obj(a=INTEGER, closed=True), obj(a=INTEGER)),
    (obj(a=INTEGER, closed=True), obj(a=INTEGER, b=STRING, closed=True)),
    (obj(a=False), obj(a=INTEGER)),
    ({"enum": ["x"]}, {"enum": ["y", "x"]}),
    ({"enum": ["x"]}, STRING),
    ({"const": 1.0}, INTEGER),
    ({"type": "integer", "minimum": 3}, {"type": "integer", "minimum": 2}),
    ({"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 4}),
    ({"type": "string", "maxLength": 3, "pattern": "a"}, STRING),
    ({"type": "array", "items": INTEGER}, {"type": "array", "items": NUMBER}),
    ({"type": "array", "items": INTEGER}, {"type": "array", "uniqueItems": False}),
    (INTEGER, {"anyOf": [STRING, NUMBER]}),
    ({"anyOf": [STRING, INTEGER]}, {"type": ["string", "number"]}),
    ({"type": "object", "additionalProperties": INTEGER}, {"type": "object", "additionalProperties": NUMBER}),
    ({**obj(a=INTEGER), "title": "one"}, {**obj(a=INTEGER), "title": "two", "$schema": "s"}),
    (tree(INTEGER), tree(NUMBER)),
]
MISFIT = [
    (obj(a=INTEGER), obj(a=STRING), "$.a: the reader accepts no integer"),
    (obj(a=NUMBER), obj(a=INTEGER), "$.a: the reader accepts no number"),
    (obj(a={"type": ["null", "integer"]}), obj(a=INTEGER), "$.a: the reader accepts no null"),
    (
        obj(a={}),
        obj(a=INTEGER),
        "$.a: the reader accepts no array, no boolean, no null, no number, no object, no string",
    ),
    (obj(a=INTEGER), obj(a=INTEGER, required=["a"]), "$.a: the reader requires it, but the writer may omit it"),
    (obj(a=INTEGER), obj(a={**INTEGER, "required": True}), "$.a: the reader requires it, but the writer may omit it"),
    (obj(a=INTEGER), obj(b=STRING, required=["b"]), "$.b: the reader requires it, but the writer may omit it"),
    (
        obj(a=INTEGER, b=STRING, closed=True),
        obj(a=INTEGER, closed=True),
        "$.b: the reader does not name it, and allows no additional properties",
    ),
    (
        obj(a=INTEGER),
        obj(a=INTEGER, closed=True),
        "$.*: the reader does not name it, and allows no additional properties",
    ),
    (obj(a=INTEGER), obj(a=False), "$.a: the reader allows nothing"),
    ({"enum": ["x", "y"]}, {"enum": ["x"]}, '$: the reader does not accept "y"'),
    (STRING, {"type": "string", "enum": ["x"]}, "$: the reader accepts certain values only"),
    ({"enum": ["x", 1]}, STRING, "$: the reader accepts no integer"),
    ({"minimum": 2}, {"minimum": 3}, "$: the reader's minimum of 3 is tighter"),
    ({}, {"maxItems": 3}, "$: the reader's maxItems of 3 is tighter"),
    ({}, {"pattern": "a"}, "$: the reader's pattern is not the writer's"),
    ({}, {"uniqueItems": True}, "$: the reader's uniqueItems is not the writer's"),
    ({"type": "array", "items": NUMBER}, {"type": "array", "items": INTEGER}, "$[]: the reader accepts no number"),
    (NUMBER, {"anyOf": [STRING, INTEGER]}, "$: the written value fits none of the reader's anyOf"),
    ({"oneOf": [STRING, INTEGER]}, STRING, "$: the reader accepts no integer"),
    ({"type": "object", "additionalProperties": INTEGER}, obj(a=STRING), "$.a: the reader accepts no integer"),
    (tree(NUMBER), tree(INTEGER), "$.value: the reader accepts no number"),
]


@pytest.mark.parametrize(("writer", "reader"), FIT)
def test_what_fits(writer, reader):
    assert faults(writer, reader) == []


@pytest.mark.parametrize(("writer", "reader", "reason"), MISFIT)
def test_what_does_not(writer, reader, reason):
    assert faults(writer, reader) == [reason]


def test_a_schema_of_jackson():
    # Draft 3, as the Java serializers register it.
    def jackson(**properties):
        return {"type": "object", "id": "urn:jsonschema:com:example:User", "properties": properties}

    one = jackson(name=STRING, age=INTEGER, at={"type": "integer", "format": "utc-millisec"})
    two = jackson(name=STRING, age=NUMBER, at={"type": "integer", "format": "utc-millisec"}, friends=STRING)
    assert check_compatibility(info(one), info(two), Compatibility.BACKWARD) == []
    assert check_compatibility(info(one), info(two), Compatibility.FORWARD) == [
        "forward: $.age: the reader accepts no number"
    ]


@pytest.mark.parametrize(
    "schema",
    [b"{", b"[]", b"1", {"properties": []}, obj(a=1), {"anyOf": {}}, {"$ref": "#/nowhere"}, {"$ref": "http://x"}],
    ids=str,
)
def test_what_is_not_a_schema(schema):
    with pytest.raises(SchemaError):
        check_compatibility(info(obj(a=INTEGER)), info(schema), Compatibility.FULL)


def test_choices_in_choices_end():
    def knot(levels, kind):
        return kind if levels == 0 else {"anyOf": [obj(p=knot(levels - 1, kind), n={"const": n}) for n in range(3)]}

    entangled = {"$ref": "#/definitions/a", "definitions": {"a": {"anyOf": [{"allOf": [{"$ref": "#/definitions/a"}]}]}}}
    assert isinstance(check_compatibility(info(entangled), info(knot(2, STRING)), Compatibility.FULL), list)
    with pytest.raises(SchemaError, match="too deep or too entangled"):
        check_compatibility(info(knot(7, INTEGER)), info(knot(7, STRING)), Compatibility.FULL)


# ---- any two schemas, against a validator ----------------------------------------------------------------------------

NAMES = ("a", "b", "c")
LEAVES = st.sampled_from(
    [
        *({"type": name} for name in ("string", "integer", "number", "boolean", "null")),
        {"type": ["string", "null"]},
        {"type": ["integer", "string"]},
        {"enum": ["x", 1]},
        {"const": "x"},
        {"type": "integer", "minimum": 3},
        {"type": "integer", "maximum": 5},
        {"type": "string", "minLength": 2},
        {},
        True,
    ]
)


def objects(inner):
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return st.builds(
        lambda found, required, others: {
            "type": "object",
            "properties": found,
            "required": sorted(required & found.keys()),
            **({} if others is None else {"additionalProperties": others}),
        },
        properties,
        st.sets(st.sampled_from(NAMES)),
        st.none() | st.booleans(),
    )


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        objects(inner)
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner)
    ),
    max_leaves=6,
)
ANYTHING = st.sampled_from(["", "x", "long", 0, 1, 4, 7, 1.5, None, True, [], {}, ["x"]])


def documents(schema):
    """Documents that a writer with the schema may write: no members that it does not name."""
    if schema is True or schema == {}:
        return ANYTHING
    if "anyOf" in schema:
        return st.one_of(*map(documents, schema["anyOf"]))
    if schema.get("type") == "array":
        return st.lists(documents(schema["items"]), max_size=2)
    if schema.get("type") == "object":
        named = {name: documents(inner) for name, inner in schema["properties"].items()}
        required = {name: named.pop(name) for name in schema["required"]}
        return st.fixed_dictionaries(required, optional=named)
    return ANYTHING.filter(jsonschema.Draft202012Validator(schema).is_valid)


@settings(max_examples=150, deadline=None)
@given(writer=SCHEMAS, reader=SCHEMAS, data=st.data())
def test_what_fits_is_valid(writer, reader, data):
    if check_compatibility(info(writer), info(reader), Compatibility.BACKWARD) == []:
        document = data.draw(documents(writer))
        assert jsonschema.Draft202012Validator(reader).is_valid(document)


@settings(max_examples=50, deadline=None)
@given(schema=SCHEMAS)
def test_every_schema_fits_itself_and_whatever_takes_anything(schema):
    for reader in (schema, True, {}):
        assert check_compatibility(info(schema), info(reader), Compatibility.BACKWARD) == []


@settings(max_examples=100, deadline=None)
@given(
    schema=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "properties", "items", "anyOf", "enum", "required", "$ref"]), inner
            )
        ),
        max_leaves=10,
    )
)
def test_whatever_comes_is_compared_or_refused(schema):
    for pair in ((schema, obj(a=INTEGER)), (obj(a=INTEGER), schema)):
        try:
            check_compatibility(info(pair[0]), info(pair[1]), Compatibility.FULL)
        except SchemaError:
            continue
