"""Sniffing of streams with known content."""

from __future__ import annotations

import base64
import gzip
import io
import itertools
import json
import pickle
import random
import struct
import sys
import tracemalloc
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import cbor2
import fastavro
import pyarrow as pa
import pytest

import pravega_serde
from pravega_serde import (
    ChangeDeserializer,
    Enveloped,
    JavaSerializer,
    JsonSerializer,
    SchemaError,
    SerdeError,
    serializer_for,
    sniff,
)
from pravega_serde.json.derive import arrow_type_of_json_schema
from pravega_serde.sniffing import Scan, scan
from pravega_serde.sniffing.payloads import detect
from tests.unit.serde._sniffed import (
    AVRO,
    EVENTS,
    NEVER_ELSE,
    STREAMS,
    Stream,
    apicurio,
    avro_body,
    azure,
    confluent,
    field,
    glue,
    grpc,
    proto_body,
    reading,
    registry,
    text_json,
)

VECTORS = Path(__file__).parents[2] / "vectors"


def found(events: list[bytes], **options) -> dict[tuple[str, str], float]:
    """Return framing and format of each part with its share."""
    return {("+".join(part.framing), part.format): part.share for part in sniff(events, **options).parts}


def lines(name: str) -> list[dict]:
    with (VECTORS / name).open() as file:
        return [json.loads(line) for line in file]


def verdict(each: Stream) -> str:
    """Return right, unknown or wrong, as the list of streams defines them."""
    parts = found(each.events())
    matched = {
        key: truth
        for key in parts
        for truth in each.truth
        if key[0] == truth.framing and key[1] in truth.formats.split("|")
    }
    if any(key not in matched for key in parts if key != ("", "unknown")):
        return "wrong"
    is_right = len(matched) == len(parts) == len(each.truth)
    return "right" if is_right and all(abs(parts[key] - matched[key].share) < 0.01 for key in parts) else "unknown"


# ---- the list ----


@pytest.mark.parametrize("each", STREAMS, ids=lambda each: each.name)
def test_a_listed_stream(each):
    assert verdict(each) == "right"


def test_the_list_has_sixty_streams():
    assert len(STREAMS) >= 60
    assert len({each.name for each in STREAMS}) == len(STREAMS)


@pytest.mark.parametrize("count", [1, 3, 20, EVENTS])
@pytest.mark.parametrize("name", NEVER_ELSE)
def test_near_misses_have_no_other_name(name, count):
    make, names = NEVER_ELSE[name]
    rng = random.Random(f"{name} {count}")
    named = {"+".join(key).strip("+") for key in found([make(rng, i) for i in range(count)])}
    assert named <= {"unknown", *names.split("|")}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 30, 100])
def test_random_bytes_are_unknown(size):
    for seed in range(20):
        rng = random.Random(seed)
        assert set(found([rng.randbytes(size) for _ in range(rng.choice([1, 10, 300]))])) == {("", "unknown")}


# ---- golden vectors ----


def test_times_with_another_event_are_not_a_framing():
    rng = random.Random(8)
    times = [(1_700_000_000_000 + 1000 * i + rng.randrange(1000)).to_bytes(8, "big") for i in range(60)]
    structs = [struct.pack(">IIQQ", 7, 8, 9, i) for i in range(7)]
    for count in range(8):
        assert found([*times, *structs[:count]]) == {("", "unknown"): 1.0}


def test_one_event_with_a_header_among_others_is_not_a_framing():
    rng = random.Random(9)
    for others in (9, 30, 100, 900):
        events = [bytes([rng.randrange(2, 256)]) + rng.randbytes(rng.randrange(10, 50)) for _ in range(others)]
        for header in (b"\1\0\0\0", b"\1\0\0\0\0", b"\1\0\0\0\7"):
            assert found([*events, header + rng.randbytes(20)]) == {("", "unknown"): pytest.approx(1.0)}


def nested_java(levels: int) -> bytes:
    """Return linked objects of a class N with one field n."""
    descriptor = b"\x72\0\1N" + (1).to_bytes(8, "big") + b"\2\0\1L\0\1n\x74\0\3LN;\x78\x70"
    return b"\xac\xed\0\5\x73" + descriptor + b"\x73\x71\0\x7e\0\0" * (levels - 1) + b"\x70"


def test_an_event_nested_beyond_the_limit_does_not_end_the_examination():
    documents = [text_json({"a": i, "b": "text"}) for i in range(59)]
    result = sniff([*documents, nested_java(20_000)])
    assert [(part.format, part.events) for part in result.parts] == [("json", 59), ("java", 1)]
    assert result.parts[1].classes == {"(not readable)": 1}
    assert "no event could be examined" in result.parts[1].proposal.notes[0]
    assert "(not readable)" in str(result)


def test_events_within_the_limit_have_a_proposal_next_to_one_beyond_it():
    (part,) = sniff([nested_java(20_000), *(JavaSerializer().serialize(i) for i in range(59))]).parts
    assert part.classes == {"java.lang.Integer": 59, "(not readable)": 1}
    assert part.proposal.spark == {"format": "java", "java_type": "java.lang.Integer"}


def test_golden_java_objects():
    rows = [row for row in lines("java_serializer.jsonl") if "hex" in row]
    events = [bytes.fromhex(row["hex"]) for row in rows]
    assert all(found([event]) == {("", "java"): 1.0} for event in events)
    for row, event in zip(rows, events, strict=True):
        (part,) = sniff([event]).parts
        infos = {each.name: each for each in part.class_infos}
        for described in row["classdescs"]:
            # A vector lists the fields of one class, the result also has the superclasses' fields.
            info = infos[described["name"]]
            assert info.serial_version_uid == int(described["suid"])
            assert {name for name, _ in described["fields"]} <= {name for name, _ in info.fields}


_FORMATS = {"avro": "unknown", "json": "json", "protobuf": "protobuf"}


def test_golden_registry_events():
    groups = defaultdict(list)
    for row in lines("registry.jsonl"):
        groups[row["group"]].append(row)
    for rows in groups.values():
        wanted = Counter()
        for row in rows:
            info = row.get("encoding_info")
            codec = {"application/x-gzip": "+gzip", "application/x-snappy-framed": "+snappy"}
            stored = "" if info is None else codec.get(info["codecType"]["name"], "")
            name = row["serializer"].partition("_")[0]
            if info is not None:
                name = info["schemaInfo"]["serializationFormat"]["serializationFormat"].lower()
            framing = "" if info is None else f"pravega-registry{stored}"
            wanted[framing, _FORMATS[name]] += 1
        result = sniff([bytes.fromhex(row["hex"]) for row in rows])
        parts = {("+".join(part.framing), part.format): part for part in result.parts}
        if rows[0]["group"] == "avro-mixed":  # one event with snappy is too few to tell it from others
            wanted = Counter({("pravega-registry", "unknown"): 2, ("pravega-registry+gzip", "unknown"): 1})
        assert {key: part.events for key, part in parts.items()} == wanted
        ids = {row.get("encoding_id") for row in rows} - {None}
        assert {each for part in result.parts for each in part.ids} == ids


def test_golden_avro_is_confirmed_by_its_schema():
    confirmed = 0
    for row in lines("registry.jsonl"):
        info = row.get("encoding_info")
        if info is None or info["schemaInfo"]["serializationFormat"]["serializationFormat"] != "Avro":
            continue
        if info["codecType"]["name"] or row["serializer"] != "avro":
            continue
        schema = base64.b64decode(info["schemaInfo"]["schemaData"]).decode()
        parts = found([bytes.fromhex(row["hex"])], avro_schema=schema)
        assert parts == {("pravega-registry", "avro"): 1.0}
        confirmed += 1
    assert confirmed >= 10


def test_golden_texts_and_bytes():
    rows = lines("simple_serializers.jsonl")
    texts = [bytes.fromhex(r["hex"]) for r in rows if r["serializer"] == "UTF8StringSerializer" and "note" not in r]
    assert {name for _, name in found(texts)} == {"string", "empty"}
    others = [bytes.fromhex(r["hex"]) for r in rows if r["serializer"] != "UTF8StringSerializer"]
    assert {name for _, name in found(others)} == {"unknown", "empty"}


# ---- schemas ----


def test_fields_of_json_have_types_optionality_and_logical_types():
    rng = random.Random(1)
    events = [
        text_json(
            {
                "id": f"00000000-0000-4000-8000-{i:012}",
                "price": f"{rng.randint(100, 900)}.50",
                "day": f"2026-05-{i % 28 + 1:02}",
                "at": f"2026-05-01T10:00:{i % 60:02}Z",
                "created_at": 1_770_000_000_000 + i,
                "version": "2.7",
                "either": i if i % 2 else "text",
                "lines": [{"sku": "a", "note": None}] if i % 3 else [],
                **({"extra": 1.5} if i % 2 else {}),
            }
        )
        for i in range(60)
    ]
    (part,) = sniff(events).parts
    fields = {each.path: each for each in part.fields}
    assert {path: each.logical for path, each in fields.items() if each.logical} == {
        "id": "uuid",
        "price": "decimal",
        "day": "date",
        "at": "timestamp",
        "created_at": "epoch-millis",
    }
    assert set(fields["either"].types) == {"integer", "string"}
    assert fields["extra"].optional
    assert not fields["id"].optional
    assert fields["lines[].sku"].types == ("string",)
    assert fields["lines[].note"].optional
    assert "day DATE, at TIMESTAMP" in part.proposal.columns
    assert "either" in part.proposal.notes[0]


def test_events_of_registries_are_read_with_their_options():
    rng = random.Random(3)
    names = {"confluent": "confluent+http://localhost:8081", "apicurio": "apicurio+http://localhost:8080"}
    for framing, frame in (("confluent", confluent), ("apicurio", apicurio)):
        events = [frame(7, text_json(reading(rng, i))) for i in range(50)]
        (part,) = sniff(events, stream="shop/orders").parts
        assert part.framing == (framing,)
        assert part.proposal.spark == {"registry": names[framing], "group": "orders-value"}
        assert f'deserializer("{names[framing]}", group="orders-value")' in part.proposal.client
        both = sniff([*events, *(registry(2, avro_body(rng, i)) for i in range(50))])
        assert {each.framing for each in both.parts} == {(framing,), ("pravega-registry",)}
        assert f"also_registry and also_group to those of the {framing} part" in both.notes[-1]


def test_fields_of_protobuf_are_statistics():
    rng = random.Random(2)
    (part,) = sniff([proto_body(rng, i) for i in range(200)]).parts
    assert {each.path: (each.types[0], each.optional) for each in part.fields} == {
        "1": ("integer", False),
        "2": ("text", False),
        "3": ("double", False),
        "4": ("integer", True),
        "7[]": ("message", True),
        "7[].1": ("text", False),
        "7[].2": ("integer", False),
        "16": ("text", True),
    }


def test_schema_of_an_avro_container_file():
    out = io.BytesIO()
    fastavro.writer(out, AVRO, [{"station": "a", "value": 1.0, "count": 1, "note": None, "at": 5}])
    (part,) = sniff([out.getvalue()]).parts
    names = [each["name"] for each in json.loads(part.proposal.schema_file)["fields"]]
    assert names == ["station", "value", "count", "note", "at"]


def test_an_avro_schema_that_does_not_fit_confirms_nothing():
    rng = random.Random(3)
    events = [avro_body(rng, i) for i in range(100)]
    assert found(events, avro_schema=json.dumps(AVRO)) == {("", "avro"): 1.0}
    other = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "boolean"}]}
    assert found(events, avro_schema=json.dumps(other)) == {("", "unknown"): 1.0}


# ---- proposals ----


@pytest.mark.parametrize("each", STREAMS, ids=lambda each: each.name)
def test_a_proposal_reads_the_events(each, tmp_path):
    result = sniff(each.events(), avro_schema=json.dumps(AVRO))
    assert result.parts
    for part in result.parts:
        options = dict(part.proposal.spark)
        name = options.pop("format", None)
        if name is None or name in ("avro", "protobuf") or part.framing[:1] == ("pravega-registry",):
            continue
        if around := {"envelope", "unwrap"} & options.keys():
            reader = (Enveloped if around == {"envelope"} else ChangeDeserializer)(JsonSerializer())
            assert all(reader.deserialize(event) for event in each.events())
            continue
        arguments = {{"java_type": "java_type", "java_sample": "sample"}[key]: text for key, text in options.items()}
        if name in ("json", "cbor"):
            arguments = {"arrow_type": _columns(part)}
        rows = [event for event in each.events() if len(result.parts) == 1 or detect(event).format == part.format]
        column = serializer_for(name, **arguments).decode_column(pa.array(rows, pa.binary()))
        assert column.null_count == 0


def _columns(part) -> pa.Schema:
    if part.proposal.schema_file:
        return pa.schema(list(arrow_type_of_json_schema(part.proposal.schema_file)))
    types = {"STRING": pa.string(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(), "BINARY": pa.binary()}
    types["TIMESTAMP"] = pa.timestamp("us", "UTC")
    pairs = [column.split(" ", 1) for column in part.proposal.columns.split(", ")]
    return pa.schema([(name, types[kind]) for name, kind in pairs])


def test_a_proposal_quotes_names_for_spark():
    (part,) = sniff([text_json({"a b": i, "c`d": {"e-f": 1.5}}) for i in range(30)]).parts
    assert part.proposal.columns == "`a b` BIGINT, `c``d` STRUCT<`e-f`: DOUBLE>"


def test_the_proposal_of_a_registry_stream_names_its_group():
    rng = random.Random(4)
    (part,) = sniff([registry(0, text_json(reading(rng, i))) for i in range(30)], stream="shop/orders").parts
    assert part.proposal.spark == {"registry": "http://localhost:9092"}
    assert part.proposal.registry_format == "Json"
    assert 'group="orders"' in part.proposal.client


@pytest.mark.parametrize(
    ("data", "format_name", "value"),
    [
        ({"data": {"item": "tea"}}, "json", "STRUCT<item: STRING>"),
        ({"data": "tea"}, "string", "STRING"),
        ({"data_base64": "dGVh"}, "bytes", "BINARY"),
        ({}, "bytes", "BINARY"),
    ],
)
def test_the_proposal_for_cloudevents_names_the_envelope(data, format_name, value):
    event = {"specversion": "1.0", "source": "/", "type": "t", "datacontenttype": "text/plain", **data}
    (part,) = sniff([text_json({**event, "id": f"{i}"}) for i in range(30)], stream="shop/orders").parts
    assert part.framing == ("cloudevents",)
    assert part.proposal.spark == {"format": format_name, "envelope": "cloudevents"}
    assert part.proposal.columns == f"key STRING, time TIMESTAMP, headers MAP<STRING, STRING>, value {value}"
    assert part.proposal.client.startswith('client.read("shop/orders", pravega_serde.Enveloped(pravega_serde.')


# ---- the result ----


def test_forms_of_the_result():
    rng = random.Random(5)
    result = sniff([text_json(reading(rng, i)) if i % 4 else JavaSerializer().serialize(i) for i in range(80)])
    assert result.format == "mixture"
    again = json.loads(json.dumps(result.to_dict()))
    assert [(part["format"], part["share"]) for part in again["parts"]] == [("json", 0.75), ("java", 0.25)]
    text = str(result)
    assert " 75.0%  json, confidence high" in text
    assert "class java.lang.Integer: 20 events" in text


def test_no_events_and_empty_events():
    assert sniff([]).parts == ()
    assert sniff([]).format == "unknown"
    assert found([b"", b""]) == {("", "empty"): 1.0}


# ---- limits ----


def test_limits_of_a_scan():
    endless = (text_json({"n": i}) for i in itertools.count())
    result = sniff(endless, max_events=5000)
    assert (result.scanned, result.stopped, result.examined) == (5000, "events", 1000)
    result = sniff((b"x" * 1000 for _ in itertools.count()), max_bytes=10**6)
    assert result.stopped == "bytes"
    assert result.scanned_bytes < 3 * 10**6
    assert sniff((b"x" for _ in itertools.count()), max_events=None, max_bytes=None, timeout=0.2).stopped == "time"


def test_a_missing_extra_is_noted(monkeypatch):
    events = [cbor2.dumps({"name": i, "another name": "text"}) for i in range(30)]
    monkeypatch.setattr(scan, "find_spec", lambda package: None)
    monkeypatch.setitem(sys.modules, "pravega_serde.cbor.rows", None)
    result = sniff(events)
    assert result.format == "unknown"
    assert result.notes[0] == "CBOR is not recognized without the extra cbor: pip install 'pravega-serde[cbor]'"
    assert sniff([b"a line of text"] * 9).notes == ()


def test_a_sample_is_uniform():
    events = [text_json({"n": i}) for i in range(20_000)] + [b"plain text of a stream"] * 10_000
    share = found(events)["", "string"]
    assert 0.28 < share < 0.39  # a third, plus or minus four standard deviations


def test_an_arrow_column_gives_the_same_result_as_its_events():
    events = [text_json({"n": i}) for i in range(3000)]
    column = pa.chunked_array([pa.array(events[:2000]), pa.array(events[2000:])])
    from_column, from_list = sniff(column), sniff(events)
    assert from_column.scanned == from_list.scanned == 3000
    assert from_column.scanned_bytes == from_list.scanned_bytes
    assert from_column.parts[0].format == "json"


def test_events_larger_than_a_sample_can_hold_are_counted():
    result = sniff([b"[" + b"1," * 600_000 + b"1]", text_json({"a": 1, "b": 2})])
    assert result.scanned == 2
    assert result.examined == 1
    assert "1 sampled events have more than" in result.notes[0]


@pytest.mark.parametrize("events", [["text"], [None], [3]], ids=["str", "None", "int"])
def test_events_must_be_bytes(events):
    with pytest.raises(SerdeError, match="must be bytes"):
        sniff(events)


@pytest.mark.parametrize("limits", [{"max_events": 0}, {"max_bytes": -1}, {"timeout": 0}])
def test_invalid_limits(limits):
    with pytest.raises(SerdeError, match=next(iter(limits))):
        Scan(**limits)


def test_an_invalid_avro_schema():
    with pytest.raises(SchemaError):
        sniff([b"x"], avro_schema='{"type": "nothing"}')


HOSTILE = {
    "deep JSON": b"[" * 200_000,
    "deep JSON that ends": b"[" * 50_000 + b"]" * 50_000,
    "deep CBOR": b"\xa1\x61a" * 100_000 + b"\x01",
    "CBOR of a huge length": b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
    "MessagePack of a huge length": b"\xdf\xff\xff\xff\xff\xa1a\x01",
    "deep MessagePack": b"\x81\xa1a" * 100_000 + b"\x01",
    "deep Protobuf": b"\x0b" * 100_000,
    "many fields": field(1, 1) * 100_000,
    "a gzip bomb": gzip.compress(bytes(50_000_000)),
    "a snappy bomb": b"\xff\xff\xff\x7f\x00",
    "entities of XML": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]><a>&d;</a>',
    "long numbers": b"[" + b"9" * 100_000 + b",{}]",
    "large exponents": b"[" + b"1e308," * 20_000 + b"{}]",
    "a Java array of a huge length": bytes.fromhex("aced0005757200025b42acf317f8060854e00200007870")
    + b"\x7f"
    + b"\xff" * 3,
    "a container file of many entries": b"Obj\x01" + b"\xfe\xff\xff\xff\x0f" + b"\x02a\x02b" * 1000,
    "many names": json.dumps({f"name {i}": i for i in range(20_000)}).encode(),
    "many CBOR names": cbor2.dumps({f"name {i}": i for i in range(20_000)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_events_cost_bounded_memory(name):
    sniff([text_json({"a": 1})])  # imports
    tracemalloc.start()
    result = sniff([HOSTILE[name]] * 3, timeout=20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.examined >= 1
    assert peak < 80_000_000
    assert all(len(part.fields) <= 1100 for part in result.parts)
    assert len(json.dumps(result.to_dict())) < 2_000_000


def test_many_compressed_payloads_cost_bounded_memory():
    bomb = gzip.compress(bytes(900_000) + b"x")
    tracemalloc.start()
    result = sniff([bomb] * 200)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 120_000_000
    assert "exceed the memory limit" in result.notes[0]
    assert {part.format for part in result.parts} == {"unknown"}


def test_mutated_events_raise_nothing():
    rng = random.Random(9)
    pools = [each.events() for each in STREAMS]
    for _ in range(300):
        result = sniff([_mutated(rng, rng.choice(rng.choice(pools))) for _ in range(rng.randint(1, 12))])
        assert json.dumps(result.to_dict())
        assert str(result)


def _mutated(rng: random.Random, event: bytes) -> bytes:
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(event) + 1)
        end = at + rng.choice([0, 1, 1, 5, len(event)])
        event = event[:at] + rng.randbytes(rng.choice([0, 1, 1, 6])) + event[end:]
    return event


def test_a_pickle_is_named_and_not_loaded():
    class Harm:
        def __reduce__(self):
            return (pytest.fail, ("it was loaded",))

    (part,) = sniff([pickle.dumps(Harm(), protocol=4)]).parts
    assert part.format == "pickle"
    assert part.proposal.spark == {}


# ---- framings that Framed reads ----


def proposed(part):
    """Return the serializer of a proposal's call."""
    call = part.proposal.client.removeprefix('client.read("scope/stream", ').removesuffix(")")
    return eval(call, {"pravega_serde": pravega_serde})


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("aws-glue", lambda body: glue(0, body)),
        ("aws-glue", lambda body: glue(0, zlib.compress(body), 5)),
        ("azure", azure),
        ("grpc", grpc),
        ("grpc", lambda body: grpc(gzip.compress(body), 1)),
        ("gzip", gzip.compress),
        ("zlib", zlib.compress),
        ("zlib", lambda body: zlib.compress(gzip.compress(body))),
    ],
)
def test_the_proposal_for_a_framing_reads_its_events(name, frame):
    rng = random.Random(1)
    values = [reading(rng, i) for i in range(30)]
    (part,) = sniff([frame(text_json(each)) for each in values]).parts
    assert (part.framing[0], part.format, part.confidence) == (name, "json", "high")
    read = proposed(part)
    assert [read.deserialize(frame(text_json(each))) for each in values] == values


def test_bodies_of_glue_and_azure_are_read_with_the_schema_of_the_user(tmp_path, monkeypatch):
    rng = random.Random(2)
    bodies = [avro_body(rng, i) for i in range(30)]
    monkeypatch.chdir(tmp_path)
    Path("events.avsc").write_text(json.dumps(AVRO))
    for frame, ids in (
        (lambda body: glue(7, body), ("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c07",)),
        (azure, ("0a1b2c3d4e5f60718293a4b5c6d7e8f9",)),
    ):
        (part,) = sniff([frame(body) for body in bodies]).parts
        assert (part.format, part.ids) == ("unknown", ids)
        assert json.loads(json.dumps(part.to_dict()))["ids"] == list(ids)
        read = proposed(part)
        assert [read.deserialize(frame(body)) for body in bodies] == [
            serializer_for("avro", schema=AVRO).deserialize(body) for body in bodies
        ]
        (part,) = sniff([frame(body) for body in bodies], avro_schema=AVRO).parts
        assert part.format == "avro"


def test_named_formats_are_not_decoded():
    for name, events in (
        ("ion", [bytes.fromhex("e00100eade838a8161")]),
        ("smile", [b":)\n\x01\xfa\x83item\x42tea\xfb"]),
        ("utf-32", [text.encode("utf-32") for text in ("tea", "tea and milk", "coffee")]),
    ):
        (part,) = sniff(events).parts
        assert (part.format, part.framing) == (name, ())
        assert part.proposal.client == 'client.read("scope/stream")'
        assert "No format here reads it" in part.reason


def test_a_small_event_of_zlib_does_not_fill_the_memory():
    bomb = zlib.compress(bytes(100 << 20), 9)
    for event in (bomb, grpc(bomb, 1), glue(0, bomb, 5)):
        tracemalloc.start()
        try:
            sniff([event] * 5)
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()
