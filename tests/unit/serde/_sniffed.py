"""Streams with known content, written before the detection that they judge. Their data is not in the vectors."""

from __future__ import annotations

import base64
import datetime
import gzip
import io
import json
import random
import struct
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import cbor2
import cramjam
import fastavro
import msgspec

from pravega_serde.avro import AvroSerializer
from pravega_serde.java import ClassDescriptor, JavaSerializer, Long

EVENTS = 400


@dataclass(frozen=True)
class Holds:
    """Part of a stream: the formats that name it rightly, its framing, and its share of the events."""

    formats: str
    framing: str = ""
    share: float = 1.0


@dataclass(frozen=True)
class Stream:
    """Stream of the list."""

    name: str
    truth: tuple[Holds, ...]
    make: Callable[[random.Random], list[bytes]]

    def events(self) -> list[bytes]:
        """Return the same events each time."""
        return self.make(random.Random(self.name))


STREAMS: list[Stream] = []


def stream(formats: str, framing: str = "", *more: Holds, share: float = 1.0, n: int = EVENTS):
    """Add a stream: the decorated function returns the event with an index."""

    def add(make: Callable[[random.Random, int], bytes]) -> Callable[[random.Random, int], bytes]:
        truth = (Holds(formats, framing, share), *more)
        name = make.__name__.strip("_").replace("_", " ")
        STREAMS.append(Stream(name, truth, lambda rng: [make(rng, i) for i in range(n)]))
        return make

    return add


# ---- data ----

WORDS = [
    *("anchor", "basil", "cobalt", "dune", "ember", "fjord", "garnet", "harbor"),
    *("iris", "juniper", "kelp", "lagoon", "mosaic", "nectar", "onyx"),
]


def words(rng: random.Random, least: int = 1, most: int = 6) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def reading(rng: random.Random, i: int) -> dict:
    found = {
        "station": f"st-{rng.randint(1, 40)}",
        "at": (datetime.datetime(2026, 3, 1) + datetime.timedelta(seconds=i)).isoformat() + "Z",
        "value": rng.random() * 50,
        "ok": rng.random() < 0.9,
    }
    if rng.random() < 0.5:
        found["note"] = words(rng)
    return found


def text_json(value: object) -> bytes:
    return json.dumps(value).encode()


AVRO = {
    "type": "record",
    "name": "Reading",
    "namespace": "org.example.plant",
    "fields": [
        {"name": "station", "type": "string"},
        {"name": "value", "type": "double"},
        {"name": "count", "type": "int"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
_avro = AvroSerializer(json.dumps(AVRO))


def avro_body(rng: random.Random, i: int) -> bytes:
    return _avro.serialize(
        {
            "station": f"st-{rng.randint(1, 40)}",
            "value": rng.random(),
            "count": rng.randint(-500, 500),
            "note": rng.choice([None, words(rng)]),
            "at": datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=i),
        }
    )


def varint(number: int) -> bytes:
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def field(number: int, value: object) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def proto_body(rng: random.Random, i: int) -> bytes:
    line = field(1, words(rng)) + field(2, rng.randint(1, 90_000))
    return b"".join(
        (
            field(1, i),
            field(2, f"st-{rng.randint(1, 40)}"),
            field(3, rng.random()),
            field(4, rng.randint(1, 5)) if rng.random() < 0.7 else b"",
            *(field(7, line) for _ in range(rng.randint(0, 3))),
            field(16, words(rng)) if rng.random() < 0.3 else b"",
        )
    )


ORDER = ClassDescriptor.of(
    "org.example.shop.Basket", 77, {"id": "long", "owner": "java.lang.String", "open": "boolean", "sizes": "int[]"}
)
_java = JavaSerializer()


def glue(version: int, body: bytes, flag: int = 0) -> bytes:
    return bytes([3, flag]) + uuid.UUID(int=0xB7B4A7F0_9C96_4E4A_A687_FB5DE9EF0C00 + version).bytes + body


def azure(body: bytes) -> bytes:
    return bytes(4) + b"0a1b2c3d4e5f60718293a4b5c6d7e8f9" + body


def grpc(body: bytes, flag: int = 0) -> bytes:
    return bytes([flag]) + struct.pack(">I", len(body)) + body


def registry(encoding: int, payload: bytes) -> bytes:
    return b"\1" + struct.pack(">i", encoding) + payload


def confluent(schema: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema) + payload


def apicurio(schema: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">q", schema) + payload


# ---- formats without framing ----


@stream("json")
def _json_objects(rng, i):
    return text_json(reading(rng, i))


@stream("json")
def _json_of_arrays_of_objects(rng, i):
    return text_json([reading(rng, i) for _ in range(rng.randint(1, 3))])


@stream("json")
def _json_pretty_printed_with_a_byte_order_mark(rng, i):
    return b"\xef\xbb\xbf" + json.dumps(reading(rng, i), indent=2, ensure_ascii=False).encode()


@stream("json")
def _json_with_a_map_of_uuids(rng, i):
    return text_json({"seen": {str(uuid.UUID(int=rng.getrandbits(128))): rng.random() for _ in range(4)}, "id": i})


@stream("cbor")
def _cbor_maps(rng, i):
    return cbor2.dumps(reading(rng, i))


@stream("cbor")
def _cbor_with_dates_and_bytes(rng, i):
    at = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=i)
    return cbor2.dumps({"at": at, "raw": rng.randbytes(9), "nested": {"depth": [1, 2, {"x": words(rng)}]}})


@stream("avro", "avro-container", n=30)
def _avro_container_files(rng, i):
    out = io.BytesIO()
    rows = [{"station": words(rng), "value": rng.random(), "count": i, "note": None, "at": i} for _ in range(5)]
    fastavro.writer(out, AVRO, rows, codec=rng.choice(["null", "deflate"]))
    return out.getvalue()


@stream("avro", "avro-single-object")
def _avro_single_objects(rng, i):
    return b"\xc3\x01" + bytes.fromhex("5d6b07f1e4a2c893") + avro_body(rng, i)


@stream("unknown")
def _avro_without_a_schema(rng, i):
    return avro_body(rng, i)


@stream("protobuf")
def _protobuf_with_messages_inside(rng, i):
    return proto_body(rng, i)


@stream("protobuf")
def _protobuf_of_numbers(rng, i):
    return field(1, rng.randint(0, 1 << rng.randint(1, 40))) + field(2, rng.random()) + field(5, rng.randint(0, 300))


@stream("protobuf")
def _protobuf_that_is_all_printable(rng, i):
    return field(1, words(rng, 5, 14)[:90].ljust(33, "."))


@stream("java")
def _java_objects(rng, i):
    made = ORDER.new(id=i, owner=words(rng), open=rng.random() < 0.5)
    return _java.serialize(made)


@stream("java")
def _java_strings(rng, i):
    return _java.serialize(words(rng))


@stream("java")
def _java_boxes_of_two_classes(rng, i):
    return _java.serialize(rng.choice([Long(i), rng.random()]))


@stream("java")
def _java_maps(rng, i):
    return _java.serialize({"station": words(rng), "count": i})


@stream("string")
def _text_sentences(rng, i):
    return f"{words(rng, 3, 9).capitalize()}.".encode()


@stream("string")
def _text_in_other_scripts(rng, i):
    return "".join(rng.choice("αβγδежзийкл漢字仮名交😀🚀") for _ in range(rng.randint(3, 20))).encode()


@stream("string")
def _log_lines_with_brackets(rng, i):
    return f"[{rng.choice(['INFO', 'WARN'])}] {i} {{{words(rng)}}}: took {rng.randint(1, 900)} ms".encode()


@stream("unknown")
def _random_bytes(rng, i):
    return rng.randbytes(rng.randint(20, 200))


@stream("unknown")
def _random_short_bytes(rng, i):
    return rng.randbytes(rng.randint(2, 8))


@stream("unknown")
def _encrypted_blocks_of_16_bytes(rng, i):
    return rng.randbytes(16 * rng.randint(1, 6))


# ---- framings ----


@stream("json", "pravega-registry")
def _registry_json(rng, i):
    return registry(rng.choice([0, 1]), text_json(reading(rng, i)))


@stream("unknown", "pravega-registry")
def _registry_avro(rng, i):
    return registry(3, avro_body(rng, i))


@stream("protobuf", "pravega-registry")
def _registry_protobuf(rng, i):
    return registry(2, proto_body(rng, i))


@stream("json", "pravega-registry+gzip")
def _registry_json_gzip(rng, i):
    return registry(4, gzip.compress(text_json(reading(rng, i))))


@stream("json", "pravega-registry+snappy")
def _registry_json_snappy(rng, i):
    return registry(5, bytes(cramjam.snappy.compress_raw(text_json(reading(rng, i)))))


@stream("protobuf", "pravega-registry+gzip")
def _registry_protobuf_gzip_padded(rng, i):
    return registry(1, gzip.compress(proto_body(rng, i) + bytes(17)))


@stream("unknown", "confluent")
def _confluent_avro(rng, i):
    return confluent(41, avro_body(rng, i))


@stream("json", "confluent")
def _confluent_json(rng, i):
    return confluent(rng.choice([7, 9]), text_json(reading(rng, i)))


@stream("protobuf", "confluent")
def _confluent_protobuf_first_message(rng, i):
    return confluent(12, b"\0" + proto_body(rng, i))


@stream("protobuf", "confluent")
def _confluent_protobuf_message_indexes(rng, i):
    return confluent(13, b"\x04\x02\x00" + proto_body(rng, i))


@stream("unknown", "apicurio")
def _apicurio_avro(rng, i):
    return apicurio(6, avro_body(rng, i))


@stream("json", "apicurio")
def _apicurio_json(rng, i):
    return apicurio(8, text_json(reading(rng, i)))


@stream("json", "cloudevents")
def _cloudevents(rng, i):
    return text_json(
        {
            "specversion": "1.0",
            "id": str(uuid.UUID(int=rng.getrandbits(128))),
            "source": "/plant/3",
            "type": "org.example.reading",
            "time": "2026-03-01T00:00:00Z",
            "data": reading(rng, i),
        }
    )


def _change(rng, i):
    row = {"id": i, "name": words(rng)}
    source = {"version": "2.7", "connector": "postgresql", "name": "shop", "ts_ms": 1_770_000_000_000 + i, "db": "d"}
    return {"before": None, "after": row, "source": source, "op": rng.choice("cu"), "ts_ms": 1_770_000_000_000 + i}


@stream("json", "debezium")
def _debezium_without_schema(rng, i):
    return text_json(_change(rng, i))


@stream("json", "debezium")
def _debezium_with_schema(rng, i):
    schema = {"type": "struct", "name": "shop.Envelope", "fields": [{"type": "string", "field": "op"}]}
    return text_json({"schema": schema, "payload": _change(rng, i)})


@stream("json", "gzip")
def _gzip_json(rng, i):
    return gzip.compress(text_json(reading(rng, i)))


@stream("string", "gzip")
def _gzip_text(rng, i):
    return gzip.compress(words(rng, 4, 9).encode())


@stream("json", "zlib")
def _zlib_json(rng, i):
    return zlib.compress(text_json(reading(rng, i)), i % 10)


@stream("unknown", "aws-glue")
def _glue_avro(rng, i):
    return glue(i % 2, avro_body(rng, i))


@stream("json", "aws-glue", Holds("json", "aws-glue+zlib", 0.5), share=0.5)
def _glue_json_partly_compressed(rng, i):
    body = text_json(reading(rng, i))
    return glue(0, zlib.compress(body), 5) if i % 2 else glue(0, body)


@stream("unknown", "azure")
def _azure_avro(rng, i):
    return azure(avro_body(rng, i))


@stream("json", "azure")
def _azure_json(rng, i):
    return azure(text_json(reading(rng, i)))


@stream("protobuf", "delimited")
def _delimited_protobuf(rng, i):
    return _delimited(proto_body(rng, i))


@stream("protobuf", "grpc")
def _grpc_protobuf(rng, i):
    return grpc(proto_body(rng, i))


@stream("json", "grpc")
def _grpc_json(rng, i):
    return grpc(text_json(reading(rng, i)))


@stream("protobuf", "grpc+gzip")
def _grpc_compressed(rng, i):
    return grpc(gzip.compress(proto_body(rng, i)), 1)


@stream("utf-32")
def _utf_32(rng, i):
    return words(rng, 3, 9).encode("utf-32")


@stream("utf-32")
def _utf_32_big_endian(rng, i):
    return words(rng, 3, 9).encode("utf-32-be")


@stream("ion")
def _ion(rng, i):
    # A struct of a field with the symbol 10 and a text.
    body = bytes([0x8A, 0x80 | len(word := rng.choice(WORDS).encode()[:12])]) + word
    return b"\xe0\x01\x00\xea" + bytes([0xDE, 0x80 | len(body)]) + body


@stream("smile")
def _smile(rng, i):
    word = rng.choice(WORDS).encode()
    return b":)\n\x01\xfa\x83item" + bytes([0x40 + len(word) - 1]) + word + b"\xfb"


# ---- mixtures ----


@stream("json", "", Holds("java", "", 0.3), share=0.7)
def _mixture_of_json_and_java(rng, i):
    return text_json(reading(rng, i)) if i % 10 < 7 else _java.serialize(words(rng))


@stream("json", "pravega-registry", Holds("json", "", 0.25), share=0.75)
def _mixture_with_and_without_registry(rng, i):
    body = text_json(reading(rng, i))
    return registry(0, body) if i % 4 else body


@stream("json", "", Holds("string", "", 0.1), share=0.9)
def _mixture_of_json_and_truncated_json(rng, i):
    body = text_json(reading(rng, i))
    return body if i % 10 else body[: len(body) // 2]


@stream("json", "", Holds("unknown", "", 0.2), share=0.8)
def _mixture_of_json_and_random_bytes(rng, i):
    return text_json(reading(rng, i)) if i % 5 else rng.randbytes(rng.randint(10, 60))


@stream("cbor", "", Holds("messagepack|unknown", "", 0.5), share=0.5)
def _mixture_of_cbor_and_messagepack(rng, i):
    return (cbor2.dumps if i % 2 else msgspec.msgpack.encode)(reading(rng, i))


@stream("json", "pravega-registry", Holds("protobuf", "pravega-registry", 0.4), share=0.6)
def _mixture_of_formats_in_one_registry_group(rng, i):
    return registry(0, text_json(reading(rng, i))) if i % 5 < 3 else registry(1, proto_body(rng, i))


# ---- near-misses ----


@stream("string|number")
def _near_miss_numbers_as_text(rng, i):
    return str(rng.randint(0, 10**6)).encode()


@stream("string")
def _near_miss_words_that_json_knows(rng, i):
    return rng.choice([b"true", b"false", b"null", b"maybe"])


@stream("unknown")
def _near_miss_one_byte(rng, i):
    return bytes([rng.randrange(256)])


@stream("csv|string")
def _near_miss_csv(rng, i):
    return f"{i},{rng.choice(WORDS)},{rng.random():.3f},{rng.choice(WORDS)}".encode()


@stream("xml|string")
def _near_miss_xml(rng, i):
    return f'<reading id="{i}"><note>{words(rng)}</note></reading>'.encode()


@stream("messagepack|unknown")
def _near_miss_messagepack(rng, i):
    return msgspec.msgpack.encode(reading(rng, i))


@stream("unknown")
def _near_miss_java_longs_of_a_byte_buffer(rng, i):
    return struct.pack(">q", 1_770_000_000_000 + i)


@stream("unknown")
def _near_miss_small_big_endian_pairs(rng, i):
    return struct.pack(">ii", rng.randint(1, 9), rng.randint(0, 500))


@stream("unknown")
def _near_miss_data_output_time_and_text(rng, i):
    raw = words(rng).encode()
    return struct.pack(">qH", 1_770_000_000_000 + i, len(raw)) + raw


@stream("unknown")
def _near_miss_little_endian_record_of_version_1(rng, i):
    raw = words(rng).encode()
    return struct.pack("<iI", 1, len(raw)) + raw


@stream("unknown")
def _near_miss_bare_avro_of_two_small_numbers(rng, i):
    return bytes([0x08, 2 * rng.randint(0, 60)])


@stream("unknown")
def _near_miss_java_magic_before_garbage(rng, i):
    return b"\xac\xed\x00\x05" + rng.randbytes(rng.randint(5, 40))


@stream("json")
def _near_miss_cloudevents_without_version(rng, i):
    return text_json({"id": str(i), "source": "/plant/3", "type": "org.example.reading", "data": reading(rng, i)})


@stream("string|base64")
def _near_miss_base64_of_protobuf(rng, i):
    return base64.b64encode(proto_body(rng, i))


@stream("unknown|utf-16")
def _near_miss_utf_16(rng, i):
    return words(rng, 2, 5).encode("utf-16-le")


# ---- added after the detection: what any number of events must not be named ----

#: Name of a stream -> the event with an index, and the names that it may have. "unknown" is always right.
NEVER_ELSE: dict[str, tuple[Callable[[random.Random, int], bytes], str]] = {
    "Avro of one text": (lambda rng, i: _avro_text(rng), ""),
    "Avro of two texts": (lambda rng, i: _avro_text(rng) + _avro_text(rng), ""),
    "Avro of a long": (lambda rng, i: varint(2 * rng.randint(0, 10 ** rng.randint(1, 9))), ""),
    "Avro of an id, a text and a branch": (
        lambda rng, i: varint(2 * rng.randint(0, 400)) + _avro_text(rng) + bytes([rng.choice([0, 2, 4])]),
        "",
    ),
    "Protobuf after its length": (lambda rng, i: _delimited(proto_body(rng, i)), "delimited+protobuf"),
    "text after its length": (lambda rng, i: _delimited(words(rng).encode()), ""),
    "random bytes after their length": (lambda rng, i: _delimited(rng.randbytes(rng.randint(1, 90))), ""),
    "random bytes after a flag and their length": (lambda rng, i: grpc(rng.randbytes(rng.randint(1, 90))), ""),
    "3 and a random UUID": (lambda rng, i: b"\3\0" + uuid.UUID(int=rng.getrandbits(128), version=4).bytes, ""),
    "3 and random bytes": (lambda rng, i: b"\3\0" + rng.randbytes(rng.randint(16, 40)), ""),
    "little-endian numbers of four bytes": (
        lambda rng, i: struct.pack("<5i", *(rng.randint(33, 120) for _ in "12345")),
        "utf-32",
    ),
    "a digest and random bytes": (lambda rng, i: rng.randbytes(16).hex().encode() + rng.randbytes(20), ""),
    "4 zeros, a digest and random bytes": (
        lambda rng, i: bytes(4) + rng.randbytes(16).hex().encode() + rng.randbytes(20),
        "",
    ),
    "Protobuf of one text": (lambda rng, i: field(1, words(rng)), "protobuf"),
    "Protobuf of one number": (lambda rng, i: field(1, i), "protobuf"),
    "CBOR text": (lambda rng, i: cbor2.dumps(words(rng)), "cbor"),
    "CBOR numbers": (lambda rng, i: cbor2.dumps([rng.randint(0, 99) for _ in range(5)]), "cbor"),
    "MessagePack array": (lambda rng, i: msgspec.msgpack.encode([i, words(rng)]), "messagepack"),
    "DataOutput.writeUTF": (lambda rng, i: _utf(words(rng)), ""),
    "short and text": (lambda rng, i: struct.pack(">i", rng.randint(1, 5)) + _utf(words(rng)), ""),
    "long and text": (lambda rng, i: struct.pack(">q", rng.randint(1, 5)) + _utf(words(rng)), ""),
    "type, length and text": (lambda rng, i: b"\1" + struct.pack(">i", len(w := words(rng))) + w.encode(), ""),
    "length and JSON": (lambda rng, i: struct.pack(">i", len(b := text_json(reading(rng, i)))) + b, ""),
    "version and doubles": (lambda rng, i: struct.pack("<ii", 1, 2) + rng.randbytes(8 * rng.randint(1, 4)), ""),
    "1 and random bytes": (lambda rng, i: b"\1" + rng.randbytes(rng.randint(5, 40)), ""),
    "0 and random bytes": (lambda rng, i: b"\0" + rng.randbytes(rng.randint(5, 40)), ""),
    "UUIDs in 16 bytes": (lambda rng, i: rng.randbytes(16), ""),
    "two random bytes": (lambda rng, i: rng.randbytes(2), ""),
    "three random bytes": (lambda rng, i: rng.randbytes(3), ""),
    "numbers of two bytes": (lambda rng, i: struct.pack("<8H", *range(i, i + 8)), ""),
    "numbers of two bytes in ASCII": (
        lambda rng, i: struct.pack("<8H", *(65 + rng.randrange(9) for _ in "12345678")),
        "utf-16",
    ),
    "little-endian longs": (lambda rng, i: struct.pack("<q", rng.randint(0, 3000)), ""),
    "zlib": (lambda rng, i: zlib.compress(text_json(reading(rng, i))), "zlib+json"),
    "Thrift": (lambda rng, i: b"\x0b\x00\x01\0\0\0\x05hello\x08\x00\x02" + struct.pack(">ib", i, 0), ""),
    "Latin-1": (lambda rng, i: f"{words(rng)} café".encode("latin-1"), ""),
    "letters Y and N": (lambda rng, i: rng.choice([b"Y", b"N"]), "string"),
    "JSON strings": (lambda rng, i: text_json(words(rng)), "string"),
    "Python dictionaries": (lambda rng, i: repr(reading(rng, i)).encode(), "string"),
    "several JSON documents": (lambda rng, i: b"\n".join(text_json(reading(rng, i)) for _ in range(3)), "string"),
    "lines that parse in part": (lambda rng, i: rng.choice([b"[17]", b"{}", *[words(rng).encode()] * 3]), "string"),
    "truncated Java strings": (lambda rng, i: _java.serialize(words(rng))[:-2], ""),
}


def _avro_text(rng: random.Random) -> bytes:
    raw = words(rng, 1, 3).encode()
    return varint(2 * len(raw)) + raw


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _delimited(body: bytes) -> bytes:
    return varint(len(body)) + body
