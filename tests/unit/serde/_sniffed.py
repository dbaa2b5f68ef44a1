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


def stream(name: str, formats: str, framing: str = "", *more: Holds, share: float = 1.0, n: int = EVENTS):
    """Add a stream: the function returns the event with an index."""

    def add(make: Callable[[random.Random, int], bytes]) -> Callable[[random.Random, int], bytes]:
        truth = (Holds(formats, framing, share), *more)
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
stream("json objects", "json")(lambda rng, i: text_json(reading(rng, i)))
stream("json of arrays of objects", "json")(
    lambda rng, i: text_json([reading(rng, i) for _ in range(rng.randint(1, 3))])
)
stream("json pretty printed with a byte order mark", "json")(
    lambda rng, i: b"\xef\xbb\xbf" + json.dumps(reading(rng, i), indent=2, ensure_ascii=False).encode()
)
stream("json with a map of uuids", "json")(
    lambda rng, i: text_json(
        {"seen": {str(uuid.UUID(int=rng.getrandbits(128))): rng.random() for _ in range(4)}, "id": i}
    )
)
stream("cbor maps", "cbor")(lambda rng, i: cbor2.dumps(reading(rng, i)))


@stream("cbor with dates and bytes", "cbor")
def _cbor_with_dates_and_bytes(rng, i):
    at = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=i)
    return cbor2.dumps({"at": at, "raw": rng.randbytes(9), "nested": {"depth": [1, 2, {"x": words(rng)}]}})


@stream("avro container files", "avro", "avro-container", n=30)
def _avro_container_files(rng, i):
    out = io.BytesIO()
    rows = [{"station": words(rng), "value": rng.random(), "count": i, "note": None, "at": i} for _ in range(5)]
    fastavro.writer(out, AVRO, rows, codec=rng.choice(["null", "deflate"]))
    return out.getvalue()


stream("avro single objects", "avro", "avro-single-object")(
    lambda rng, i: b"\xc3\x01" + bytes.fromhex("5d6b07f1e4a2c893") + avro_body(rng, i)
)
stream("avro without a schema", "unknown")(avro_body)
stream("protobuf with messages inside", "protobuf")(proto_body)
stream("protobuf of numbers", "protobuf")(
    lambda rng, i: (
        field(1, rng.randint(0, 1 << rng.randint(1, 40))) + field(2, rng.random()) + field(5, rng.randint(0, 300))
    )
)
stream("protobuf that is all printable", "protobuf")(lambda rng, i: field(1, words(rng, 5, 14)[:90].ljust(33, ".")))


@stream("java objects", "java")
def _java_objects(rng, i):
    made = ORDER.new(id=i, owner=words(rng), open=rng.random() < 0.5)
    return _java.serialize(made)


stream("java strings", "java")(lambda rng, i: _java.serialize(words(rng)))
stream("java boxes of two classes", "java")(lambda rng, i: _java.serialize(rng.choice([Long(i), rng.random()])))
stream("java maps", "java")(lambda rng, i: _java.serialize({"station": words(rng), "count": i}))
stream("text sentences", "string")(lambda rng, i: f"{words(rng, 3, 9).capitalize()}.".encode())
stream("text in other scripts", "string")(
    lambda rng, i: "".join(rng.choice("αβγδежзийкл漢字仮名交😀🚀") for _ in range(rng.randint(3, 20))).encode()
)
stream("log lines with brackets", "string")(
    lambda rng, i: f"[{rng.choice(['INFO', 'WARN'])}] {i} {{{words(rng)}}}: took {rng.randint(1, 900)} ms".encode()
)
stream("random bytes", "unknown")(lambda rng, i: rng.randbytes(rng.randint(20, 200)))
stream("random short bytes", "unknown")(lambda rng, i: rng.randbytes(rng.randint(2, 8)))
stream("encrypted blocks of 16 bytes", "unknown")(lambda rng, i: rng.randbytes(16 * rng.randint(1, 6)))

# ---- framings ----
stream("registry json", "json", "pravega-registry")(
    lambda rng, i: registry(rng.choice([0, 1]), text_json(reading(rng, i)))
)
stream("registry avro", "unknown", "pravega-registry")(lambda rng, i: registry(3, avro_body(rng, i)))
stream("registry protobuf", "protobuf", "pravega-registry")(lambda rng, i: registry(2, proto_body(rng, i)))
stream("registry json gzip", "json", "pravega-registry+gzip")(
    lambda rng, i: registry(4, gzip.compress(text_json(reading(rng, i))))
)
stream("registry json snappy", "json", "pravega-registry+snappy")(
    lambda rng, i: registry(5, bytes(cramjam.snappy.compress_raw(text_json(reading(rng, i)))))
)
stream("registry protobuf gzip padded", "protobuf", "pravega-registry+gzip")(
    lambda rng, i: registry(1, gzip.compress(proto_body(rng, i) + bytes(17)))
)
stream("confluent avro", "unknown", "confluent")(lambda rng, i: confluent(41, avro_body(rng, i)))
stream("confluent json", "json", "confluent")(lambda rng, i: confluent(rng.choice([7, 9]), text_json(reading(rng, i))))
stream("confluent protobuf first message", "protobuf", "confluent")(
    lambda rng, i: confluent(12, b"\0" + proto_body(rng, i))
)
stream("confluent protobuf message indexes", "protobuf", "confluent")(
    lambda rng, i: confluent(13, b"\x04\x02\x00" + proto_body(rng, i))
)
stream("apicurio avro", "unknown", "apicurio")(lambda rng, i: apicurio(6, avro_body(rng, i)))
stream("apicurio json", "json", "apicurio")(lambda rng, i: apicurio(8, text_json(reading(rng, i))))
stream("cloudevents", "json", "cloudevents")(
    lambda rng, i: text_json(
        {
            "specversion": "1.0",
            "id": str(uuid.UUID(int=rng.getrandbits(128))),
            "source": "/plant/3",
            "type": "org.example.reading",
            "time": "2026-03-01T00:00:00Z",
            "data": reading(rng, i),
        }
    )
)


def _change(rng, i):
    row = {"id": i, "name": words(rng)}
    source = {"version": "2.7", "connector": "postgresql", "name": "shop", "ts_ms": 1_770_000_000_000 + i, "db": "d"}
    return {"before": None, "after": row, "source": source, "op": rng.choice("cu"), "ts_ms": 1_770_000_000_000 + i}


stream("debezium without schema", "json", "debezium")(lambda rng, i: text_json(_change(rng, i)))


@stream("debezium with schema", "json", "debezium")
def _debezium_with_schema(rng, i):
    schema = {"type": "struct", "name": "shop.Envelope", "fields": [{"type": "string", "field": "op"}]}
    return text_json({"schema": schema, "payload": _change(rng, i)})


stream("gzip json", "json", "gzip")(lambda rng, i: gzip.compress(text_json(reading(rng, i))))
stream("gzip text", "string", "gzip")(lambda rng, i: gzip.compress(words(rng, 4, 9).encode()))
stream("zlib json", "json", "zlib")(lambda rng, i: zlib.compress(text_json(reading(rng, i)), i % 10))
stream("glue avro", "unknown", "aws-glue")(lambda rng, i: glue(i % 2, avro_body(rng, i)))


@stream("glue json partly compressed", "json", "aws-glue", Holds("json", "aws-glue+zlib", 0.5), share=0.5)
def _glue_json_partly_compressed(rng, i):
    body = text_json(reading(rng, i))
    return glue(0, zlib.compress(body), 5) if i % 2 else glue(0, body)


stream("azure avro", "unknown", "azure")(lambda rng, i: azure(avro_body(rng, i)))
stream("azure json", "json", "azure")(lambda rng, i: azure(text_json(reading(rng, i))))
stream("delimited protobuf", "protobuf", "delimited")(lambda rng, i: _delimited(proto_body(rng, i)))
stream("grpc protobuf", "protobuf", "grpc")(lambda rng, i: grpc(proto_body(rng, i)))
stream("grpc json", "json", "grpc")(lambda rng, i: grpc(text_json(reading(rng, i))))
stream("grpc compressed", "protobuf", "grpc+gzip")(lambda rng, i: grpc(gzip.compress(proto_body(rng, i)), 1))
stream("utf 32", "utf-32")(lambda rng, i: words(rng, 3, 9).encode("utf-32"))
stream("utf 32 big endian", "utf-32")(lambda rng, i: words(rng, 3, 9).encode("utf-32-be"))


@stream("ion", "ion")
def _ion(rng, i):
    # A struct of a field with the symbol 10 and a text.
    body = bytes([0x8A, 0x80 | len(word := rng.choice(WORDS).encode()[:12])]) + word
    return b"\xe0\x01\x00\xea" + bytes([0xDE, 0x80 | len(body)]) + body


@stream("smile", "smile")
def _smile(rng, i):
    word = rng.choice(WORDS).encode()
    return b":)\n\x01\xfa\x83item" + bytes([0x40 + len(word) - 1]) + word + b"\xfb"


# ---- mixtures ----
stream("mixture of json and java", "json", "", Holds("java", "", 0.3), share=0.7)(
    lambda rng, i: text_json(reading(rng, i)) if i % 10 < 7 else _java.serialize(words(rng))
)


@stream("mixture with and without registry", "json", "pravega-registry", Holds("json", "", 0.25), share=0.75)
def _mixture_with_and_without_registry(rng, i):
    body = text_json(reading(rng, i))
    return registry(0, body) if i % 4 else body


@stream("mixture of json and truncated json", "json", "", Holds("string", "", 0.1), share=0.9)
def _mixture_of_json_and_truncated_json(rng, i):
    body = text_json(reading(rng, i))
    return body if i % 10 else body[: len(body) // 2]


stream("mixture of json and random bytes", "json", "", Holds("unknown", "", 0.2), share=0.8)(
    lambda rng, i: text_json(reading(rng, i)) if i % 5 else rng.randbytes(rng.randint(10, 60))
)
stream("mixture of cbor and messagepack", "cbor", "", Holds("messagepack|unknown", "", 0.5), share=0.5)(
    lambda rng, i: (cbor2.dumps if i % 2 else msgspec.msgpack.encode)(reading(rng, i))
)
stream(
    "mixture of formats in one registry group",
    "json",
    "pravega-registry",
    Holds("protobuf", "pravega-registry", 0.4),
    share=0.6,
)(lambda rng, i: registry(0, text_json(reading(rng, i))) if i % 5 < 3 else registry(1, proto_body(rng, i)))

# ---- near-misses ----
stream("near miss numbers as text", "string|number")(lambda rng, i: str(rng.randint(0, 10**6)).encode())
stream("near miss words that json knows", "string")(lambda rng, i: rng.choice([b"true", b"false", b"null", b"maybe"]))
stream("near miss one byte", "unknown")(lambda rng, i: bytes([rng.randrange(256)]))
stream("near miss csv", "csv|string")(
    lambda rng, i: f"{i},{rng.choice(WORDS)},{rng.random():.3f},{rng.choice(WORDS)}".encode()
)
stream("near miss xml", "xml|string")(lambda rng, i: f'<reading id="{i}"><note>{words(rng)}</note></reading>'.encode())
stream("near miss messagepack", "messagepack|unknown")(lambda rng, i: msgspec.msgpack.encode(reading(rng, i)))
stream("near miss java longs of a byte buffer", "unknown")(lambda rng, i: struct.pack(">q", 1_770_000_000_000 + i))
stream("near miss small big endian pairs", "unknown")(
    lambda rng, i: struct.pack(">ii", rng.randint(1, 9), rng.randint(0, 500))
)


@stream("near miss data output time and text", "unknown")
def _near_miss_data_output_time_and_text(rng, i):
    raw = words(rng).encode()
    return struct.pack(">qH", 1_770_000_000_000 + i, len(raw)) + raw


@stream("near miss little endian record of version 1", "unknown")
def _near_miss_little_endian_record_of_version_1(rng, i):
    raw = words(rng).encode()
    return struct.pack("<iI", 1, len(raw)) + raw


stream("near miss bare avro of two small numbers", "unknown")(lambda rng, i: bytes([0x08, 2 * rng.randint(0, 60)]))
stream("near miss java magic before garbage", "unknown")(
    lambda rng, i: b"\xac\xed\x00\x05" + rng.randbytes(rng.randint(5, 40))
)
stream("near miss cloudevents without version", "json")(
    lambda rng, i: text_json(
        {"id": str(i), "source": "/plant/3", "type": "org.example.reading", "data": reading(rng, i)}
    )
)
stream("near miss base64 of protobuf", "string|base64")(lambda rng, i: base64.b64encode(proto_body(rng, i)))
stream("near miss utf 16", "unknown|utf-16")(lambda rng, i: words(rng, 2, 5).encode("utf-16-le"))

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
