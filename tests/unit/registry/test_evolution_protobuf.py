"""Protobuf types that follow one another: what is said of them, and what Protobuf itself reads."""

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from pravega_serde.errors import SchemaError
from pravega_serde.registry import Compatibility, SchemaInfo, SerializationFormat, check_compatibility

Field = descriptor_pb2.FieldDescriptorProto
TYPES = {name.removeprefix("TYPE_").lower(): number for name, number in Field.Type.items() if name != "TYPE_GROUP"}
LABELS = {"optional": Field.LABEL_OPTIONAL, "repeated": Field.LABEL_REPEATED, "required": Field.LABEL_REQUIRED}


def field(text, *, oneof=None, type_name=None, default=None, optional=False):
    """From ``name number type``, with a label before it."""
    label, name, number, kind = text.split() if len(text.split()) == 4 else ("optional", *text.split())
    made = Field(name=name, number=int(number), type=TYPES[kind], label=LABELS[label], proto3_optional=optional)
    if oneof is not None:
        made.oneof_index = oneof
    if type_name:
        made.type_name = f".p.{type_name}"
    if default is not None:
        made.default_value = default
    return made


def message(*fields, name="M", reserved=(), oneofs=()):
    made = descriptor_pb2.DescriptorProto(name=name, field=[field(f) if isinstance(f, str) else f for f in fields])
    for number in reserved:
        made.reserved_range.add(start=number, end=number + 1)
    for oneof in oneofs:
        made.oneof_decl.add(name=oneof)
    return made


def enum(name="E", reserved=(), **values):
    made = descriptor_pb2.EnumDescriptorProto(name=name)
    for key, number in values.items():
        made.value.add(name=key, number=number)
    for number in reserved:
        made.reserved_range.add(start=number, end=number)
    return made


def file(*messages, enums=(), syntax="proto3"):
    return descriptor_pb2.FileDescriptorProto(
        name="p.proto", package="p", syntax=syntax, message_type=messages, enum_type=enums
    )


def info(*messages, **more):
    data = descriptor_pb2.FileDescriptorSet(file=[file(*messages, **more)]).SerializeToString()
    return SchemaInfo("p.M", SerializationFormat.PROTOBUF, data)


def backward(old, new):
    return [reason.removeprefix("backward: ") for reason in check_compatibility(old, new, Compatibility.BACKWARD)]


def forward(old, new):
    return [reason.removeprefix("forward: ") for reason in check_compatibility(old, new, Compatibility.FORWARD)]


# ---- every pair of types, against what Protobuf reads ----------------------------------------------------------------

INTEGERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1)
SAMPLES = {
    "double": (0.0, 1.5, -2.0, 1e300),
    "float": (0.0, 1.5, -2.0),
    "bool": (False, True),
    "string": ("", "a", "é", "\x08\x01"),
    "bytes": (b"", b"a", b"\xff\xfe", b"\x08\x01"),
    "message": (1, 300),
    "enum": (0, 1, -1),
}
ENUM = enum(A=0, B=1, C=-1)
INNER = message("x 1 int32", name="Inner")


def message_class(kind):
    type_name = {"message": "Inner", "enum": "E"}.get(kind)
    made = file(message(field(f"f 1 {kind}", type_name=type_name)), INNER, enums=[ENUM])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(made)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.M")), made


def written(kind):
    """Bytes of all sample values of a type, with the values."""
    for value in SAMPLES.get(kind, INTEGERS):
        made = message_class(kind)[0]()
        try:
            if kind == "message":
                made.f.x = value
            else:
                made.f = value
        except ValueError:
            continue  # an integer beyond the type's range
        yield made.f.SerializeToString() if kind == "message" else made.f, made.SerializeToString()


def reads_everything(writer, reader):
    for value, data in written(writer):
        made = message_class(reader)[0]()
        try:
            made.ParseFromString(data)
        except DecodeError:
            return False
        found = made.f.SerializeToString() if reader == "message" else made.f
        wanted = value.encode() if isinstance(value, str) and isinstance(found, bytes) else value
        if found != wanted or (type(found) is not type(wanted) and not isinstance(found, int)):
            return False
    return True


# Read as they were, and a fault all the same: an enum's numbers are its own.
STRICTER = {("bool", "enum"), ("int32", "enum")}


@pytest.mark.parametrize("writer", sorted(TYPES))
def test_types(writer):
    old = SchemaInfo("p.M", SerializationFormat.PROTOBUF, _set(writer))
    for reader in sorted(TYPES):
        new = SchemaInfo("p.M", SerializationFormat.PROTOBUF, _set(reader))
        fits = backward(old, new) == []
        assert fits == (forward(new, old) == [])
        assert fits == (reads_everything(writer, reader) and (writer, reader) not in STRICTER), (writer, reader)


def _set(kind):
    return descriptor_pb2.FileDescriptorSet(file=[message_class(kind)[1]]).SerializeToString()


# ---- fields ----------------------------------------------------------------------------------------------------------


def test_fields_come_and_go():
    one, two = info(message("a 1 int32")), info(message("a 1 int32", "b 2 string"))
    assert backward(one, two) == forward(one, two) == []
    assert backward(two, one) == ["$.b: field 2 was removed, and its number is not reserved"]
    assert backward(two, info(message("a 1 int32", reserved=[2]))) == []
    assert backward(info(message("a 1 int32", reserved=[2])), two) == ["$.b: field 2 uses a reserved number"]


def test_names_mean_nothing():
    assert backward(info(message("a 1 int32")), info(message("renamed 1 int32"))) == []


def test_labels():
    single, repeated = info(message("a 1 string")), info(message("repeated a 1 string"))
    assert backward(single, repeated) == []
    assert backward(repeated, single) == [
        "$.a (field 1): a reader with a single value keeps the last one of the repeated field"
    ]


def test_required():
    optional, required = (info(message(f"{label} a 1 string"), syntax="proto2") for label in ("optional", "required"))
    assert backward(optional, required) == ["$.a: the reader requires field 1, which the writer may omit"]
    assert backward(required, optional) == []
    assert backward(info(message(), syntax="proto2"), required) != []


def test_defaults():
    one, zero, none = (
        info(message(field("a 1 int32", default=default)), syntax="proto2") for default in ("1", "0", None)
    )
    assert backward(zero, none) == backward(one, one) == []
    assert backward(one, none) == ["$.a (field 1): the default for a missing value differs"]


def test_oneofs():
    apart = info(message("a 1 string", "b 2 string"))
    together = info(message(field("a 1 string", oneof=0), field("b 2 string", oneof=0), oneofs=["c"]))
    alone = info(message(field("a 1 string", oneof=0), "b 2 string", oneofs=["c"]))
    optional = info(
        message(
            field("a 1 string", oneof=0, optional=True),
            field("b 2 string", oneof=1, optional=True),
            oneofs=["_a", "_b"],
        )
    )
    assert backward(apart, together) == ["$.c: a, b may be written together, but the reader allows only one of them"]
    assert backward(optional, together) != []
    for old, new in [(together, apart), (apart, alone), (alone, apart), (together, together), (apart, optional)]:
        assert backward(old, new) == []


def test_messages_inside():
    def outer(kind, **more):
        inner = message(f"x 1 {kind}", name="Inner", **more)
        itself = field("again 3 message", type_name="M")
        return info(message(field("i 1 message", type_name="Inner"), itself), inner)

    assert backward(outer("int32"), outer("int64")) == []
    assert backward(outer("int64"), outer("int32")) == ["$.i.x (field 1): int64 cannot be read as int32 without loss"]


def test_maps():
    def of(kind):
        entry = message("key 1 string", f"value 2 {kind}", name="TEntry")
        entry.options.map_entry = True
        owner = message(field("repeated t 1 message", type_name="M.TEntry"))
        owner.nested_type.append(entry)
        return info(owner)

    assert backward(of("int32"), of("int64")) == []
    assert backward(of("string"), of("int64")) != []


# ---- enums -----------------------------------------------------------------------------------------------------------


def with_enum(syntax="proto3", **more):
    return info(message(field("e 1 enum", type_name="E")), enums=[enum(**more)], syntax=syntax)


def test_enum_values():
    small, large = with_enum(A=0), with_enum(A=0, B=1)
    assert backward(small, large) == forward(small, large) == []
    assert backward(large, small) == ["$.e (field 1): the reader's enum has no number 1 (B)"]
    assert backward(large, with_enum(A=0, reserved=[1])) == []
    assert backward(large, with_enum(A=0, RENAMED=1)) == []
    assert backward(large, with_enum(A=0, B=2, C=1)) == ["$.e (field 1): B is number 1 written and 2 read"]


def test_closed_enums_lose_what_they_do_not_know():
    small, large = with_enum("proto2", A=0), with_enum("proto2", A=0, B=1)
    assert backward(small, large) == []
    assert forward(small, large) == ["$.e (field 1): the reader's enum has no number 1 (B)"]


# ---- descriptor sets -------------------------------------------------------------------------------------------------


def test_types_that_are_not_in_the_set():
    def imported(name):
        return info(message(field("t 1 message", type_name=name)))

    assert backward(imported("elsewhere.T"), imported("elsewhere.T")) == []
    assert "cannot be compared" in backward(imported("elsewhere.T"), imported("elsewhere.U"))[0]


def test_what_is_not_a_descriptor_set():
    good = info(message())
    for data, reason in [(b"\xff", "invalid Protobuf descriptor set"), (b"", "has no message type 'p.M'")]:
        with pytest.raises(SchemaError, match=reason):
            backward(good, SchemaInfo("p.M", SerializationFormat.PROTOBUF, data))
