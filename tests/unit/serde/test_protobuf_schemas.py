"""Protobuf schemas: what they are given as, what is missing from them, and what is said about bad ones."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from pravega_connector.controller._proto import controller_pb2
from pravega_serde import SchemaError, SerializationError, serializer_for
from pravega_serde.protobuf import ProtobufSerializer
from tests.interop.java_proto._descriptors import compile_protos, everything, older

FLAT = "everything.Flat"


def only(*names: str) -> FileDescriptorSet:
    """The set's files with these names."""
    return FileDescriptorSet(file=[file for file in everything().file if file.name in names])


def file_of(**fields: Any) -> FileDescriptorSet:
    return FileDescriptorSet(file=[FileDescriptorProto(**{"name": "f.proto", "syntax": "proto3", **fields})])


def test_a_set_comes_as_object_bytes_or_file(tmp_path: Path) -> None:
    path = tmp_path / "set.desc"
    path.write_bytes(everything().SerializeToString())
    given = [everything(), path.read_bytes(), bytearray(path.read_bytes()), path, str(path)]
    kinds = [ProtobufSerializer(schema, message_type=FLAT).arrow_type for schema in given]
    assert len(set(map(str, kinds))) == 1
    assert serializer_for("protobuf", schema=str(path), message_type=FLAT).arrow_type == kinds[0]
    assert [field.name for field in kinds[0]] == ["id", "name", "temp", "count", "ok", "ts"]


def test_a_generated_class_gives_its_own_messages() -> None:
    serializer = ProtobufSerializer(controller_pb2.NodeUri)
    event = controller_pb2.NodeUri(endpoint="a", port=5).SerializeToString()
    assert type(serializer.deserialize(event)) is controller_pb2.NodeUri is serializer.message_class
    assert repr(serializer) == "ProtobufSerializer(io.pravega.controller.stream.api.grpc.v1.NodeUri)"


def test_a_descriptor_gives_messages_of_its_pool() -> None:
    descriptor = controller_pb2.NodeUri.DESCRIPTOR
    assert ProtobufSerializer(descriptor).message_class is controller_pb2.NodeUri


def test_a_set_has_its_own_pool() -> None:
    first = ProtobufSerializer(everything(), message_type=FLAT)
    second = ProtobufSerializer(everything(), message_type=FLAT)
    assert first.message_class is not second.message_class
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName(FLAT)
    # Messages of the one are messages of the other.
    event = first.serialize({"id": 5, "name": "x"})
    assert second.serialize(first.deserialize(event)) == event


def test_two_versions_of_a_type_live_side_by_side() -> None:
    old = file_of(package="p", message_type=[{"name": "M", "field": [number(1, "a")]}])
    new = file_of(package="p", message_type=[{"name": "M", "field": [number(1, "a"), number(2, "b")]}])
    first, second = ProtobufSerializer(old), ProtobufSerializer(new)
    event = second.serialize({"a": 1, "b": 2})
    assert first.serialize(first.deserialize(event)) == event, "unknown fields are kept"
    assert first.decode_column(pa.array([event])).to_pylist() == [{"a": 1}]
    with pytest.raises(SerializationError, match=r"invalid message: p\.M is not the p\.M of this serializer's schema"):
        first.serialize(second.deserialize(event))


def number(tag: int, name: str) -> dict[str, Any]:
    return {"name": name, "number": tag, "type": 5, "label": 1}


def test_the_only_message_need_not_be_named() -> None:
    files = file_of(message_type=[{"name": "M", "field": [number(1, "a")]}])
    assert ProtobufSerializer(files).arrow_type == pa.struct([("a", pa.int32())])


def test_nested_messages_can_be_named() -> None:
    nested = {"name": "M", "nested_type": [{"name": "N", "field": [number(1, "a")]}]}
    assert ProtobufSerializer(file_of(message_type=[nested]), message_type="M.N").serialize({"a": 1}) == b"\x08\x01"


def test_googles_own_files_may_be_missing() -> None:
    """Java's ``ProtobufSchema.of(Class)`` puts in only the message's own file."""
    alone = only("everything.proto")
    assert len(alone.file) == 1
    complete = ProtobufSerializer(everything(), message_type="everything.Everything")
    assert ProtobufSerializer(alone, message_type="everything.Everything").arrow_type == complete.arrow_type


def test_the_order_of_files_does_not_matter() -> None:
    reverse = FileDescriptorSet(file=reversed(everything().file))
    assert ProtobufSerializer(reverse, message_type=FLAT).serialize({"ok": True}) == b"\x28\x01"


def test_other_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.proto").write_text('syntax = "proto3"; message A {}')
    (tmp_path / "b.proto").write_text('syntax = "proto3"; import "a.proto"; message B { A a = 1; }')
    both = compile_protos(tmp_path, "b.proto")
    assert ProtobufSerializer(both, message_type="B").serialize({"a": {}}) == b"\x0a\x00"
    with pytest.raises(SchemaError, match=r"lacks 'a\.proto', which 'b\.proto' imports; create it with: protoc --"):
        ProtobufSerializer(FileDescriptorSet(file=[file for file in both.file if file.name == "b.proto"]))


BAD_SETS = [
    (b"\xff", None, "invalid FileDescriptorSet of 1 bytes; create it with: protoc"),
    (b"", None, "has no file"),
    ("nowhere.desc", None, "cannot read the descriptor set 'nowhere.desc'"),
    ("\0", None, "cannot read the descriptor set"),
    (5, None, "a Protobuf schema must be a message class, .*; not int"),
    (int, None, "not a class: pass protobuf_schema_of"),
    (everything(), "everything.Flatt", "the descriptor set has no message 'everything.Flatt'; it has everyth"),
    (everything(), "everything.Level", "no message 'everything.Level'"),
    (everything(), None, "set message_type: the descriptor set has everything.Flat, everything.Inner"),
    (file_of(), None, "the descriptor set has no message"),
    (file_of(message_type=[{"name": f"M{n}"} for n in range(25)]), "X", "M19, and 5 more"),
    (file_of(dependency=["f.proto"]), "M", "imports itself through f.proto"),
    (
        file_of(message_type=[{"name": "M", "field": [number(0, "a")]}]),
        None,
        "'f.proto' of the descriptor set is inval",
    ),
    (file_of(message_type=[{"name": "M", "field": [number(1, "a"), number(1, "b")]}]), None, "is invalid"),
    (
        file_of(message_type=[{"name": "M", "field": [{**number(1, "a"), "type": 11, "type_name": ".N"}]}]),
        None,
        "inval",
    ),
    (controller_pb2.NodeUri, "p.Other", "is of io.pravega.*NodeUri, but the message type is p.Other"),
]


@pytest.mark.parametrize(("schema", "name", "message"), BAD_SETS, ids=[row[2][:40] for row in BAD_SETS])
def test_bad_schemas_are_named(schema: Any, name: str | None, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        ProtobufSerializer(schema, message_type=name)
    assert "\n" not in str(caught.value)


def test_editions() -> None:
    files = FileDescriptorSet(
        file=[
            FileDescriptorProto(
                name="e.proto",
                syntax="editions",
                edition="EDITION_2023",
                message_type=[{"name": "M", "field": [number(1, "a"), {**number(2, "r"), "label": 3}]}],
            )
        ]
    )
    serializer = ProtobufSerializer(files)
    assert serializer.as_dict(serializer.deserialize(b"")) == {"a": None, "r": []}
    assert serializer.serialize({"a": 0, "r": [1, 2]}) == b"\x08\x00\x12\x02\x01\x02"


def test_editions_are_written_in_columns_without_a_word_of_a_panic(capfd: pytest.CaptureFixture[str]) -> None:
    older = {**number(1, "a"), "label": 1}
    files = FileDescriptorSet(
        file=[
            FileDescriptorProto(
                name="in.proto",
                syntax="editions",
                edition="EDITION_2023",
                message_type=[{"name": "I", "field": [number(1, "x")]}],
            ),
            FileDescriptorProto(
                name="out.proto",
                syntax="proto3",
                dependency=["in.proto"],
                message_type=[{"name": "M", "field": [older, {**number(2, "i"), "type": 11, "type_name": ".I"}]}],
            ),
        ]
    )
    for name in ("I", "M"):
        serializer = ProtobufSerializer(files, message_type=name)
        column = serializer.decode_column(pa.array([b"\x08\x05", b""]))
        assert serializer.encode_column(column).to_pylist() == [b"\x08\x05", b""]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("make", [lambda: FieldMask, lambda: Duration, everything, older])
def test_pickling(make: Any) -> None:
    schema = make()
    name = None if isinstance(schema, type) else {True: FLAT, False: "older.Older"}[schema is everything()]
    serializer = ProtobufSerializer(schema, message_type=name)
    again = pickle.loads(pickle.dumps(serializer))
    assert again.arrow_type == serializer.arrow_type
    if isinstance(schema, type):
        assert again.message_class is schema


def test_a_class_that_cannot_be_imported_is_pickled_as_its_descriptors() -> None:
    dynamic = ProtobufSerializer(everything(), message_type="everything.Everything").message_class
    again = pickle.loads(pickle.dumps(ProtobufSerializer(dynamic)))
    assert again.message_class.DESCRIPTOR.full_name == "everything.Everything"
    assert again.serialize({"took": None, "i32": 1}) == b"\x08\x01"


def test_a_message_that_looks_like_googles_is_itself() -> None:
    fake = file_of(package="google.protobuf", message_type=[{"name": "Timestamp", "field": [number(1, "a")]}])
    assert ProtobufSerializer(fake).arrow_type == pa.struct([("a", pa.int32())])
    for name in ("Duration", "Struct", "Int64Value"):
        fake.file[0].message_type[0].name = name
        assert ProtobufSerializer(fake).arrow_type == pa.struct([("a", pa.int32())])


def test_a_message_that_contains_itself_has_rows_but_no_columns() -> None:
    serializer = ProtobufSerializer(everything(), message_type="everything.Tree")
    value = {"name": "a", "children": [{"name": "b", "children": [], "named": {}}], "named": {}}
    assert serializer.as_dict(serializer.deserialize(serializer.serialize(value))) == value
    for use in (lambda: serializer.arrow_type, lambda: serializer.check_encodable(pa.struct([("name", pa.string())]))):
        with pytest.raises(SchemaError, match=r"everything\.Tree contains itself, .* read it by rows"):
            use()


def test_a_small_schema_cannot_unfold_into_an_enormous_type() -> None:
    messages: list[dict[str, Any]] = [{"name": "L0", "field": [number(1, "x")]}]
    for level in range(1, 30):
        child = {"label": 1, "type": 11, "type_name": f".L{level - 1}"}
        fields = [{**child, "name": "l", "number": 1}, {**child, "name": "r", "number": 2}]
        messages.append({"name": f"L{level}", "field": fields})
    serializer = ProtobufSerializer(file_of(message_type=messages), message_type="L29")
    with pytest.raises(SchemaError, match="unfolds into more than 10000 columns"):
        _ = serializer.arrow_type


def test_classes_of_any_pool_will_do() -> None:
    pool = descriptor_pool.DescriptorPool()
    for file in everything().file:
        pool.Add(file)
    dynamic = message_factory.GetMessageClass(pool.FindMessageTypeByName(FLAT))
    assert ProtobufSerializer(dynamic).deserialize(b"\x28\x01").ok is True
