"""Policies, and Avro: which schemas may follow which."""

import json

import pytest

from pravega_serde.errors import SchemaError
from pravega_serde.registry import (
    Compatibility,
    CompatibilityRule,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
    VersionInfo,
    check_compatibility,
)


def avro(*fields, kind="record"):
    schema = {"type": kind, "name": "R", "namespace": "n", "fields": list(fields)}
    return SchemaInfo("n.R", SerializationFormat.AVRO, json.dumps(schema).encode())


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


A = field("a", "int")
ONE = avro(A)
ADDED = avro(A, field("b", "string", default=""))
REQUIRED = avro(A, field("b", "string"))
PROMOTED = avro(field("a", "long"))
NARROWED = avro(field("a", ["null", "int"]))
OTHER = avro(field("a", "string"))
POLICIES = {"Backward": Compatibility.BACKWARD, "Forward": Compatibility.FORWARD, "Full": Compatibility.FULL}


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (ONE, ONE, {"Backward", "Forward", "Full"}),
        (ONE, ADDED, {"Backward", "Forward", "Full"}),
        (ONE, REQUIRED, {"Forward"}),
        (REQUIRED, ONE, {"Backward"}),
        (ONE, PROMOTED, {"Backward"}),
        (PROMOTED, ONE, {"Forward"}),
        (NARROWED, ONE, {"Forward"}),
        (ONE, NARROWED, {"Backward"}),
        (ONE, OTHER, set()),
    ],
)
def test_avro(old, new, allowed):
    assert {name for name, policy in POLICIES.items() if check_compatibility(old, new, policy) == []} == allowed


def test_reasons_say_which_way_and_where():
    (reason,) = check_compatibility(ONE, REQUIRED, Compatibility.FULL)
    assert reason.startswith("backward: ")
    assert "$.b" in reason
    reasons = check_compatibility(ONE, OTHER, Compatibility.FULL)
    assert [reason.partition(":")[0] for reason in reasons] == ["backward", "forward"]


def test_what_is_an_error_only_when_it_turns_up_is_a_reason():
    def enum(*symbols, **more):
        return avro(field("e", {"type": "enum", "name": "E", "symbols": symbols, **more}))

    assert check_compatibility(enum("A"), enum("A", "B"), Compatibility.BACKWARD) == []
    (reason,) = check_compatibility(enum("A"), enum("A", "B"), Compatibility.FORWARD)
    assert "lacks 1 of the writer's symbols" in reason
    assert check_compatibility(enum("A", default="A"), enum("A", "B"), Compatibility.FORWARD) == []

    wide, narrow = avro(field("u", ["int", "string", "boolean"])), avro(field("u", ["int", "string"]))
    (reason,) = check_compatibility(wide, narrow, Compatibility.BACKWARD)
    assert reason == "backward: the reader has no branch for boolean at $.u"
    # Inside a list, a map and a record that contains itself.
    deep = field("deep", {"type": "array", "items": {"type": "map", "values": ["null", "n.R"]}})
    old, new = (avro(deep, field("u", kinds)) for kinds in (["int", "string", "boolean"], ["int", "string"]))
    assert len(check_compatibility(old, new, Compatibility.BACKWARD)) == 1


HISTORY = [ONE, ADDED, PROMOTED]
VERSIONS = [SchemaWithVersion(one, VersionInfo("n.R", "Avro", n, n)) for n, one in enumerate(HISTORY)]


def till(version):
    return CompatibilityRule("ForwardTill", VERSIONS[version].version)


@pytest.mark.parametrize(
    ("policy", "fits"),
    [
        (Compatibility.ALLOW_ANY, True),
        (Compatibility.DENY_ALL, False),
        (Compatibility.FORWARD, True),
        (Compatibility.FORWARD_TRANSITIVE, False),
        (Compatibility.FULL, True),
        (Compatibility.FULL_TRANSITIVE, False),
        (Compatibility.BACKWARD_TRANSITIVE, True),
        (Compatibility.advanced(forward=till(2)), True),
        (Compatibility.advanced(forward=till(1)), False),
        (Compatibility.advanced(backward=CompatibilityRule("BackwardTransitive")), True),
        (Compatibility.advanced(forward=CompatibilityRule("Forward")), True),
    ],
)
def test_policies_mind_the_last_schema_or_all_of_them(policy, fits):
    # A long: the first two schemas cannot read it, the last one can.
    assert (check_compatibility(VERSIONS, PROMOTED, policy) == []) == fits
    assert check_compatibility([], PROMOTED, policy) == []


def test_what_cannot_be_checked_is_an_error():
    with pytest.raises(SchemaError, match="only on schemas with their versions"):
        check_compatibility(HISTORY, PROMOTED, Compatibility.advanced(forward=till(0)))
    with pytest.raises(SchemaError, match="'Sideways' is unknown"):
        check_compatibility(ONE, ONE, Compatibility("Sideways"))
    with pytest.raises(SchemaError):
        check_compatibility(ONE, SchemaInfo("n.R", SerializationFormat.AVRO, b"{"), Compatibility.FULL)


def test_other_formats_are_compared_by_their_bytes():
    one, same, other = (SchemaInfo("t", SerializationFormat.custom("F"), data) for data in (b"a", b"a", b"b"))
    assert check_compatibility(one, same, Compatibility.FULL) == []
    assert "cannot be compared" in check_compatibility(one, other, Compatibility.FULL)[0]
    assert check_compatibility(ONE, one, Compatibility.BACKWARD) == ["backward: the format changes from Avro to F"]
