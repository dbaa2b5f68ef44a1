"""Encrypted fields of events, by row and by column."""

import base64
import json
import logging
import pickle
import subprocess
import sys
from binascii import unhexlify
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import (
    AvroSerializer,
    CborSerializer,
    DataKeys,
    DecryptionError,
    Encrypted,
    EncryptionKeyError,
    Envelope,
    Enveloped,
    JsonSerializer,
    LocalKeys,
    MissingKeyError,
    ProtobufSerializer,
    SchemaError,
    SerdeError,
    SerializationError,
    UTF8StringSerializer,
    avro_schema_of,
    protobuf_schema_of,
    typed,
)
from pravega_serde.columnar import ByteColumn
from pravega_serde.encryption import siv
from pravega_serde.encryption.values import FieldCipher

LOCAL = LocalKeys({"main": bytes(range(32))})
KEYS = DataKeys.create(LOCAL, "main")
STREAM = "shop/orders"
VECTORS = Path(__file__).parents[2] / "vectors/encrypted_values.jsonl"
CARD = pa.struct([("number", pa.string()), ("code", pa.binary())])
COLUMNS = pa.schema(
    {
        "id": pa.int64(),
        "email": pa.string(),
        "card": CARD,
        "others": pa.list_(pa.field("element", CARD)),
        "notes": pa.map_(pa.string(), CARD),
        "tags": pa.list_(pa.field("element", pa.string())),
    }
)
FIELDS = ["email", "card.number", "card.code", "others.number", "notes.number", "tags"]
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"]},
        {
            "name": "card",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Card",
                    "fields": [
                        {"name": "number", "type": ["null", "string"]},
                        {"name": "code", "type": ["null", "bytes"]},
                    ],
                },
            ],
        },
        {"name": "others", "type": ["null", {"type": "array", "items": ["null", "Card"]}]},
        {"name": "notes", "type": ["null", {"type": "map", "values": ["null", "Card"]}]},
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    ],
}


def order(number: int) -> dict[str, object]:
    card = {"number": f"4000 {number} ünï", "code": bytes([number % 256]) * (number % 40 + 1)}
    return {
        "id": number,
        "email": "x" * (number % 50) or None,
        "card": card if number % 7 else None,
        "others": [{"number": str(each), "code": None} for each in range(number % 4)] if number % 5 else None,
        "notes": {f"n{each}": {"number": f"note {each}", "code": b"c"} for each in range(number % 3)},
        "tags": ["a", "", f"tag {number}"],
    }


ROWS = [order(number) for number in range(300)]
FORMATS = {
    "avro": AvroSerializer(AVRO),
    "json": JsonSerializer(arrow_type=COLUMNS),
    "cbor": CborSerializer(arrow_type=COLUMNS),
    "protobuf": ProtobufSerializer(protobuf_schema_of(COLUMNS, name="shop.Order")),
}


def column_of(rows=ROWS) -> pa.Array:
    return pa.array(rows, pa.struct(list(COLUMNS)))


@pytest.fixture(params=FORMATS)
def inner(request):
    return FORMATS[request.param]


@pytest.fixture
def encrypted(inner):
    return Encrypted(inner, FIELDS, KEYS, stream=STREAM)


def plain_columns(inner) -> pa.Array:
    """Columns as the format reads them without encryption."""
    return inner.decode_column(inner.encode_column(column_of()))


# ---- round trips ----


def test_columns_come_back(inner, encrypted):
    events = encrypted.encode_column(column_of())
    assert encrypted.decode_column(events).equals(plain_columns(inner))
    assert encrypted.arrow_type == inner.arrow_type


def test_rows_and_columns_have_equal_bytes_and_values(inner, encrypted):
    events = encrypted.encode_column(column_of()).to_pylist()
    if isinstance(inner, ProtobufSerializer):
        read = [encrypted.as_dict(encrypted.deserialize(each)) for each in events]
        wanted = [inner.as_dict(inner.deserialize(inner.serialize(each))) for each in ROWS]
    else:
        read = [encrypted.deserialize(each) for each in events]
        wanted = [inner.deserialize(inner.serialize(each)) for each in ROWS]
    assert read == wanted
    assert [encrypted.serialize(each) for each in ROWS] == events


def test_messages_of_protobuf_are_encrypted_too():
    inner = FORMATS["protobuf"]
    encrypted = Encrypted(inner, FIELDS, KEYS, stream=STREAM)
    message = inner.deserialize(inner.serialize(ROWS[8]))
    before = message.SerializeToString()
    event = encrypted.serialize(message)
    assert message.SerializeToString() == before  # the caller's message is unchanged
    assert event == encrypted.serialize(ROWS[8])
    assert encrypted.deserialize(event) == message


def test_the_schema_stays_valid_and_the_values_are_hidden(inner, encrypted):
    events = encrypted.encode_column(column_of())
    hidden = inner.decode_column(events)
    assert hidden.type == inner.arrow_type
    for event in events.to_pylist():
        assert b"4000 " not in event
        assert b"tag " not in event
    number = hidden[1].as_py()["card"]["number"]
    assert base64.b64decode(number)[:5] == b"\x01\x00\x00\x00\x01"
    assert hidden[1].as_py()["card"]["code"][:5] == b"\x01\x00\x00\x00\x01"
    assert hidden[1].as_py()["id"] == 1


def test_nulls_and_empty_values_stay(inner):
    encrypted = Encrypted(inner, ["email", "tags"], KEYS, stream=STREAM)
    rows = [{**order(1), "email": None, "tags": ["", "x"]}, None, {**order(2), "email": "", "tags": []}] * 40
    column = column_of(rows)
    events = encrypted.encode_column(column)
    assert events.null_count == 40
    assert encrypted.decode_column(events).equals(inner.decode_column(inner.encode_column(column)))
    assert inner.decode_column(events)[2].as_py()["email"] == ""


def test_slices_and_other_layouts_of_columns(inner):
    encrypted = Encrypted(inner, FIELDS, KEYS, stream=STREAM)
    whole = column_of()
    expected = encrypted.encode_column(whole)
    assert encrypted.encode_column(whole.slice(37, 101)).equals(expected.slice(37, 101))
    table = pa.RecordBatch.from_struct_array(whole)
    place = table.schema.get_field_index("email")
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        other = table.set_column(place, "email", table.column("email").cast(kind))
        assert encrypted.encode_column(other).equals(expected)


def test_json_without_columns_encrypts_text_by_name():
    encrypted = Encrypted(JsonSerializer(), ["email", "others.number"], KEYS, stream=STREAM)
    value = {"id": 1, "email": "a@b.c", "others": [{"number": "1"}, {"number": None}, {}]}
    event = encrypted.serialize(value)
    assert b"a@b.c" not in event
    assert encrypted.deserialize(event) == value
    with pytest.raises(SerializationError, match=r"a int cannot be encrypted.*\(field \$\.email\)"):
        encrypted.serialize({"email": 3})
    with pytest.raises(SerializationError, match="pass arrow_type for bytes"):
        encrypted.serialize({"email": b"x"})


def test_it_works_inside_envelopes_and_with_classes():
    from dataclasses import dataclass

    @dataclass
    class User:
        id: int
        email: str

    kind = pa.schema({"id": pa.int64(), "email": pa.string()})
    encrypted = Encrypted(JsonSerializer(arrow_type=kind), ["email"], KEYS, stream=STREAM)
    for inner in (
        JsonSerializer(arrow_type=kind),
        ProtobufSerializer(protobuf_schema_of(kind, name="shop.User")),
        AvroSerializer(avro_schema_of(kind, name="User")),
    ):
        objects = typed(Encrypted(inner, ["email"], KEYS, stream=STREAM), User)
        event = objects.serialize(User(1, "a@b.c"))
        assert b"a@b.c" not in event
        assert objects.deserialize(event) == User(1, "a@b.c")
    enveloped = Enveloped(encrypted, source="/shop", type="user")
    event = enveloped.serialize(Envelope({"id": 1, "email": "a@b.c"}))
    assert b"a@b.c" not in event
    assert enveloped.deserialize(event).value == {"id": 1, "email": "a@b.c"}
    with pytest.raises(SerializationError, match="typed"):
        encrypted.serialize(User(1, "a@b.c"))


# ---- equal bytes ----


def test_a_replay_has_equal_bytes_in_another_process(inner, encrypted):
    again = pickle.loads(pickle.dumps(encrypted))
    assert again.encode_column(column_of()).equals(encrypted.encode_column(column_of()))
    parts = [encrypted.encode_column(column_of(ROWS[start : start + 7])) for start in range(0, 300, 7)]
    assert pa.concat_arrays(parts).equals(encrypted.encode_column(column_of()))


def test_values_can_differ_each_time(inner):
    encrypted = Encrypted(inner, FIELDS, KEYS, stream=STREAM, deterministic=False)
    first, second = (encrypted.encode_column(column_of()) for _ in range(2))
    assert not first.equals(second)
    assert encrypted.decode_column(first).equals(plain_columns(inner))
    assert Encrypted(inner, FIELDS, KEYS, stream=STREAM).decode_column(second).equals(plain_columns(inner))
    value = ROWS[1]
    assert encrypted.serialize(value) != encrypted.serialize(value)
    mixed = pa.concat_arrays([first, Encrypted(inner, FIELDS, KEYS, stream=STREAM).encode_column(column_of())])
    assert encrypted.decode_column(mixed).equals(pa.concat_arrays([plain_columns(inner)] * 2))


# ---- faults ----

FLAT = pa.schema({"id": pa.int64(), "a": pa.string(), "b": pa.string(), "c": pa.binary()})
FLAT_ROWS = [{"id": n, "a": f"first {n}", "b": f"second {n}", "c": b"third %d" % n} for n in range(100)]
FLAT_FORMATS = {
    "avro": AvroSerializer(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "id", "type": "long"},
                *({"name": name, "type": ["null", "string"]} for name in "ab"),
                {"name": "c", "type": ["null", "bytes"]},
            ],
        }
    ),
    "json": JsonSerializer(arrow_type=FLAT),
    "protobuf": ProtobufSerializer(protobuf_schema_of(FLAT, name="shop.Flat")),
}


@pytest.fixture(params=FLAT_FORMATS)
def flat(request):
    return FLAT_FORMATS[request.param]


def changed(flat, row: int, **values: object) -> tuple[pa.Array, bytes]:
    """Events of FLAT_ROWS with other encrypted values in one row, and the event of that row."""
    encrypted = Encrypted(flat, ["a", "b", "c"], KEYS, stream=STREAM)
    rows = flat.decode_column(encrypted.encode_column(pa.array(FLAT_ROWS, pa.struct(list(FLAT))))).to_pylist()
    rows[row] = {**rows[row], **{name: each(rows[row]) if callable(each) else each for name, each in values.items()}}
    events = flat.encode_column(pa.array(rows, pa.struct(list(FLAT))))
    return events, events[row].as_py()


def refused(serializer, events: pa.Array, event: bytes, row: int, error: type, match: str) -> None:
    """Assert that one row is refused with an error, by row and by column, and the others are read."""
    with pytest.raises(error, match=match) as by_row:
        serializer.deserialize(event)
    with pytest.raises(error, match=match) as by_column:
        serializer.decode_column(events)
    assert (by_column.value.row, by_column.value.field_path) == (row, by_row.value.field_path)
    found = []
    values = serializer.decode_column(events, on_error=found.append)
    assert [(type(each), each.row) for each in found] == [(error, row)]
    wanted = [None if number == row else each for number, each in enumerate(FLAT_ROWS)]
    assert values.to_pylist() == wanted


def tampered(text: str) -> str:
    data = bytearray(base64.b64decode(text))
    data[-1] ^= 1
    return base64.b64encode(data).decode()


def not_canonical(text: str) -> str:
    """The same bytes in Base64 with other unused bits."""
    assert text.endswith("=")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = text.rstrip("=")
    return body[:-1] + alphabet[alphabet.index(body[-1]) + 1] + "=" * (len(text) - len(body))


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("a", lambda row: tampered(row["a"]), r"cannot be decrypted with data key 1.*\$\.a"),
        ("a", lambda row: row["b"], r"another field.*\$\.a"),
        ("c", lambda row: base64.b64decode(row["a"]), r"another field.*\$\.c"),
        ("c", lambda row: row["c"][:-1] + bytes([row["c"][-1] ^ 1]), r"was changed.*\$\.c"),
        ("c", lambda row: row["c"][:12], r"not encrypted.*\$\.c"),
        ("b", "plain text", r"not encrypted.*\$\.b"),
        ("b", "plain+text/aa", r"not encrypted.*\$\.b"),
        ("b", "AAAA", r"not encrypted.*\$\.b"),
        ("a", lambda row: not_canonical(row["a"]), r"not encrypted.*\$\.a"),
    ],
)
def test_a_value_that_is_not_the_writers_is_an_error(flat, name, value, match):
    serializer = Encrypted(flat, ["a", "b", "c"], KEYS, stream=STREAM)
    row = 70  # its text in Base64 ends with =
    events, event = changed(flat, row, **{name: value})
    refused(serializer, events, event, row, DecryptionError, match)


def test_every_changed_byte_is_an_error():
    flat = FLAT_FORMATS["json"]
    serializer = Encrypted(flat, ["c"], KEYS, stream=STREAM)
    sealed = flat.decode_column(serializer.encode_column(pa.array(FLAT_ROWS, pa.struct(list(FLAT)))))[0].as_py()["c"]
    rows = [
        {**FLAT_ROWS[0], "c": sealed[:at] + bytes([sealed[at] ^ 4]) + sealed[at + 1 :]} for at in range(len(sealed))
    ]
    events = flat.encode_column(pa.array(rows, pa.struct(list(FLAT))))
    found = []
    assert serializer.decode_column(events, on_error=found.append).null_count == len(rows)
    assert all(isinstance(each, DecryptionError) for each in found)


def test_another_stream_and_another_key_are_errors(flat):
    column = pa.array(FLAT_ROWS, pa.struct(list(FLAT)))
    events = Encrypted(flat, ["a"], KEYS, stream=STREAM).encode_column(column)
    for other in (
        Encrypted(flat, ["a"], KEYS, stream="shop/returns"),
        Encrypted(flat, ["a"], DataKeys.create(LOCAL, "main"), stream=STREAM),
    ):
        with pytest.raises(DecryptionError, match="another stream"):
            other.decode_column(events)
        with pytest.raises(DecryptionError, match="another stream"):
            other.deserialize(events[0].as_py())


def test_another_key_encryption_key_is_not_a_fault_of_the_events(flat):
    events = Encrypted(flat, ["a"], KEYS, stream=STREAM).encode_column(pa.array(FLAT_ROWS, pa.struct(list(FLAT))))
    for service, match in (
        (LocalKeys.generate("main"), "did not wrap this data key"),
        (LocalKeys.generate("other"), "no key-encryption key 'main'; known: other"),
    ):
        reader = Encrypted(flat, ["a"], DataKeys.load(KEYS.text, service), stream=STREAM)
        with pytest.raises(EncryptionKeyError, match=match):
            reader.decode_column(events, on_error=lambda error: pytest.fail(str(error)))
        with pytest.raises(EncryptionKeyError, match=match):
            reader.deserialize(events[0].as_py())


# ---- keys ----


def test_rotation_writes_with_the_newest_key_and_reads_both(flat):
    column = pa.array(FLAT_ROWS, pa.struct(list(FLAT)))
    old = Encrypted(flat, ["a", "c"], KEYS, stream=STREAM)
    rotated = KEYS.rotated()
    new = Encrypted(flat, ["a", "c"], rotated, stream=STREAM)
    first, second = old.encode_column(column), new.encode_column(column)
    assert base64.b64decode(flat.decode_column(second)[0].as_py()["a"])[:5] == b"\x01\x00\x00\x00\x02"
    mixed = pa.concat_arrays([first.slice(0, 50), second.slice(50)])
    assert new.decode_column(mixed).to_pylist() == FLAT_ROWS
    assert not first.equals(second)
    found = []
    assert old.decode_column(mixed, on_error=found.append).null_count == 50
    assert {type(each) for each in found} == {MissingKeyError}
    with pytest.raises(MissingKeyError, match=r"data key 2 is not in the set of keys \(it has: 1\).*row 50"):
        old.decode_column(mixed)
    with pytest.raises(MissingKeyError, match="data key 2"):
        old.deserialize(second[0].as_py())


def test_a_missing_key_can_be_null_with_a_warning(flat, caplog):
    column = pa.array(FLAT_ROWS, pa.struct(list(FLAT)))
    events = Encrypted(flat, ["a"], KEYS.rotated(), stream=STREAM).encode_column(column)
    reader = Encrypted(flat, ["a"], KEYS, stream=STREAM, missing_key="null")
    with caplog.at_level(logging.WARNING):
        assert reader.decode_column(events).to_pylist() == [{**row, "a": None} for row in FLAT_ROWS]
        value = reader.deserialize(events[3].as_py())
    value = flat.as_dict(value) if isinstance(flat, ProtobufSerializer) else value
    assert (value["id"], value["a"], value["b"]) == (3, None, "second 3")
    (record,) = caplog.records
    assert record.getMessage().startswith("values of the field 'a' are null: data key 2 is not in the set of keys")
    assert "a" not in reader.never_null


def test_keys_in_files(tmp_path):
    local, data = tmp_path / "local.json", tmp_path / "keys.json"
    LocalKeys.generate("main").save(local)
    assert local.stat().st_mode & 0o777 == 0o600
    keys = DataKeys.create(str(local), "main")
    keys.save(data)
    serializer = Encrypted(JsonSerializer(), ["a"], keys, stream=STREAM)
    event = serializer.serialize({"a": "secret"})
    reader = Encrypted(JsonSerializer(), ["a"], DataKeys.load(data, str(local)), stream=STREAM)
    assert reader.deserialize(event) == {"a": "secret"}
    with pytest.raises(FileExistsError):
        LocalKeys.generate("main").save(local)
    secret = json.loads(local.read_text())["main"]
    sent = pickle.dumps(serializer)
    assert base64.b64decode(secret) not in sent
    assert pickle.loads(sent).deserialize(event) == {"a": "secret"}
    assert secret not in repr(reader) + repr(keys) + repr(LocalKeys.load(local))


class Kms:
    """Key service of a test, as a class that a name finds."""

    def wrap(self, key_name: str, data_key: bytes) -> bytes:
        return LOCAL.wrap("main", data_key)

    def unwrap(self, key_name: str, wrapped: bytes) -> bytes:
        if key_name == "broken":
            raise ConnectionError("token s3cret was refused")
        return LOCAL.unwrap("main", wrapped)


def test_key_services_by_name_fail_without_their_text():
    keys = DataKeys.create(f"{__name__}:Kms", "orders")
    serializer = Encrypted(JsonSerializer(), ["a"], keys, stream=STREAM)
    event = serializer.serialize({"a": "x"})
    assert serializer.read_may_block, "a KMS can be slow"
    assert not Encrypted(JsonSerializer(), ["a"], KEYS, stream=STREAM).read_may_block
    broken = DataKeys.load(DataKeys.create(Kms(), "broken").text, Kms())
    with pytest.raises(
        EncryptionKeyError, match="failed for the key-encryption key 'broken': ConnectionError"
    ) as failed:
        Encrypted(JsonSerializer(), ["a"], broken, stream=STREAM).deserialize(event)
    assert "s3cret" not in str(failed.value)
    with pytest.raises(EncryptionKeyError, match="no_such:thing' cannot be created: ModuleNotFoundError"):
        DataKeys.create("no_such:thing", "orders")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "is not JSON"),
        ("{}", "must be"),
        ('{"keys": []}', "must be"),
        ('{"keys": [{"id": 0, "wrapped_by": "m", "wrapped": ""}]}', "from 1 to 4294967295"),
        ('{"keys": [{"id": 1, "wrapped_by": "m", "wrapped": "?"}]}', "must be"),
        ("/no/such/file", "cannot be read: No such file"),
    ],
)
def test_invalid_sets_of_keys(text, match):
    with pytest.raises(EncryptionKeyError, match=match):
        DataKeys.load(text, LOCAL)


# ---- construction ----


def record(name: str, *fields: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields)}


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        (["e"], "field 'e' cannot be encrypted: it is of the Avro type enum"),
        (["f"], "field 'f' cannot be encrypted: it is of the Avro type fixed"),
        (["u"], "logical type uuid"),
        (["id"], "field 'id' is int64: only strings and bytes"),
        (["x"], "field 'x' is struct.*: only strings and bytes"),
        (["x.member0"], "union of several types"),
        (["card"], "field 'card' is struct.*: only strings and bytes"),
        (["card.nubmer"], "no 'nubmer'.*did you mean.*number"),
        ([], "no field to encrypt"),
        (["e", "e"], "named twice"),
        (["card..number"], "not the path of a field"),
    ],
)
def test_fields_that_cannot_be_encrypted_are_refused_at_once(fields, match):
    avro = AvroSerializer(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
                {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}},
                {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
                {"name": "x", "type": ["string", "long"]},
                {
                    "name": "card",
                    "type": {"type": "record", "name": "C", "fields": [{"name": "number", "type": "string"}]},
                },
            ],
        }
    )
    with pytest.raises(SerdeError, match=match):
        Encrypted(avro, fields, KEYS, stream=STREAM)


def test_other_formats_refuse_fields_that_hold_no_text():
    message = (
        '{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"pattern": "^[0-9]+$"}}}'
    )
    with pytest.raises(SchemaError, match="'a' cannot be encrypted: it has 'pattern' in its JSON schema"):
        Encrypted(JsonSerializer(schema=message), ["a"], KEYS, stream=STREAM)
    from google.protobuf import type_pb2

    with pytest.raises(SchemaError, match="'syntax' cannot be encrypted: it is of the Protobuf type enum"):
        Encrypted(ProtobufSerializer(type_pb2.Type), ["syntax"], KEYS, stream=STREAM)
    with pytest.raises(SchemaError, match="only fields of records"):
        Encrypted(UTF8StringSerializer(), ["a"], KEYS, stream=STREAM)


def test_columns_without_a_field_to_encrypt_are_refused():
    encrypted = Encrypted(JsonSerializer(), ["card.number"], KEYS, stream=STREAM)
    with pytest.raises(SchemaError, match=r"no field 'card\.number' to encrypt"):
        encrypted.check_encodable(pa.struct([("id", pa.int64())]))
    with pytest.raises(SchemaError, match="only strings and bytes"):
        encrypted.check_encodable(pa.struct([("card", pa.struct([("number", pa.int64())]))]))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"stream": ""}, "stream must be the name"),
        ({"missing_key": "ignore"}, "must be 'error' or 'null'"),
        ({"keys": "keys.json"}, "keys must be DataKeys, not str"),
    ],
)
def test_invalid_arguments(arguments, match):
    with pytest.raises(SerdeError, match=match):
        Encrypted(JsonSerializer(), ["a"], **{"keys": KEYS, "stream": STREAM, **arguments})


def test_without_the_extra_an_error_names_it():
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from pravega_serde import DataKeys, Encrypted, JsonSerializer, LocalKeys, MissingExtraError\n"
        f"keys = DataKeys.load({KEYS.text!r}, LocalKeys({{'main': bytes(32)}}))\n"
        "try:\n    Encrypted(JsonSerializer(), ['a'], keys, stream='shop/orders')\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == (
        "[PRAVEGA-MISSING-EXTRA] encryption of fields needs the package 'cryptography'; install it with: "
        "pip install 'pravega-serde[encryption]'"
    )


# ---- the form ----


def test_values_of_the_vectors():
    """The form of a value is permanent: streams have it."""
    vectors = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    for each in vectors:
        local, wrapped, plain, sealed = (base64.b64decode(each[n]) for n in ("local_key", "wrapped", "plain", "sealed"))
        entry = {"id": each["id"], "wrapped_by": "main", "wrapped": base64.b64encode(wrapped).decode()}
        keys = DataKeys.load(json.dumps({"keys": [entry]}), LocalKeys({"main": local}))
        cipher = FieldCipher(keys, each["stream"], each["field"], deterministic=True, missing_key="error")
        assert cipher.open(sealed) == plain
        assert (cipher.seal(plain) == sealed) == (sealed[0] == 1)
    assert {base64.b64decode(each["sealed"])[0] for each in vectors} == {1, 2}


# ---- the cipher ----


def opened(values: list[bytes]) -> siv.Values:
    column = ByteColumn.of(pa.array(values, pa.binary()))
    return siv.Values.gather(column.words, column.starts, column.ends - column.starts)


@given(
    st.lists(st.binary(min_size=1, max_size=70), min_size=1, max_size=20),
    st.binary(min_size=64, max_size=64),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_columns_are_encrypted_as_the_library_encrypts_values(values, key, with_nonces):
    cipher, context = siv.Siv(key), b"shop/orders\0card.number"
    nonces = np.arange(2 * len(values), dtype=np.uint64).reshape(-1, 2) if with_nonces else None
    tags, sealed = cipher.encrypt(opened(values), cipher.header(context), nonces)
    data = sealed.blocks.tobytes()
    for row, value in enumerate(values):
        more = [] if nonces is None else [nonces[row].tobytes()]
        start = 16 * int(sealed.firsts[row])
        assert tags[row].tobytes() + data[start : start + len(value)] == cipher.of_value.encrypt(
            value, [context, *more]
        )
    plain, right = cipher.decrypt(sealed, tags, cipher.header(context), nonces)
    assert right.all()
    assert plain.blocks.tobytes() == opened(values).blocks.tobytes()


def test_the_cipher_is_that_of_rfc_5297():
    """Appendix A.1."""
    cipher = siv.Siv(unhexlify("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"))
    context = unhexlify("101112131415161718191a1b1c1d1e1f2021222324252627")
    tags, sealed = cipher.encrypt(opened([unhexlify("112233445566778899aabbccddee")]), cipher.header(context))
    assert tags.tobytes().hex() == "85632d07c6e8f37f950acd320a2ecc93"
    assert sealed.blocks.tobytes()[:14].hex() == "40c02b9690c4dc04daef7f6afe5c"


@pytest.mark.parametrize("inner", [JsonSerializer(), CborSerializer()], ids=["json", "cbor"])
def test_a_misspelled_field_of_unknown_types_is_noticed(inner, caplog):
    order = {"card": {"number": "4111"}, "lines": [{"name": "tea"}]}
    event = Encrypted(inner, ["card.number", "lines.name"], KEYS, stream="s/t").serialize(order)
    for path, hint in (
        ("card.nubmer", "did you mean 'number'"),
        ("crad.number", "did you mean 'card'"),
        ("lines.nmae", "did you mean 'name'"),
    ):
        wrong = Encrypted(inner, [path], KEYS, stream="s/t")
        with pytest.raises(SerializationError, match=hint):
            wrong.serialize(order)
        caplog.clear()
        assert [wrong.deserialize(event) for _ in range(3)] == [inner.deserialize(event)] * 3
        assert [hint in each for each in caplog.messages] == [True]
    # A field may be absent.
    optional = Encrypted(inner, ["owner"], KEYS, stream="s/t")
    caplog.clear()
    assert optional.deserialize(optional.serialize(order)) == order
    assert caplog.messages == []
