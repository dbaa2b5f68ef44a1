"""Confluent-compatible registries that fail, are slow or answer nonsense, over real sockets."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from pravega_serde import SchemaRegistryClient
from pravega_serde.avro import references
from pravega_serde.errors import (
    DeserializationError,
    MissingExtraError,
    PravegaError,
    RegistryAuthenticationError,
    RegistryConflictError,
    RegistryProtocolError,
    RegistryRequestError,
    RegistryUnavailableError,
    SchemaError,
    SerdeError,
    SerializationError,
)
from pravega_serde.protobuf import texts
from pravega_serde.registry import (
    RegistryConfig,
    confluent_store,
    deserializer,
    encodings,
    http,
    latest_schema,
    lookups,
    serializer,
)
from tests.unit.registry._pace import Clock
from tests.unit.registry._scripted import Action, answer, hang_up, scripted

AVRO = {"type": "record", "name": "n.R", "fields": [{"name": "a", "type": "int"}]}
SCHEMA = {"schema": json.dumps(AVRO), "subject": "s", "version": 1, "id": 7}
EVENT = b"\0\0\0\0\x07\x02"


def by_path(paths: dict[str, Any], otherwise: Action = (404, {"error_code": 40403})) -> Action:
    """Answer requests by their path, which may have a query."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        found = paths.get(handler.path, otherwise)
        status, body = found if isinstance(found, tuple) else (200, found)
        answer(handler, status, body)

    return act


def test_an_outage_is_waited_for() -> None:
    with scripted(hang_up, (503, b""), (429, b"later"), (200, SCHEMA)) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro")
        assert reader.deserialize(EVENT) == {"a": 1}
        assert [request.path for request in registry.requests] == ["/schemas/ids/7"] * 4


def test_a_registry_that_is_down(closed_port: int) -> None:
    uri = f"confluent+http://127.0.0.1:{closed_port}"
    reader = deserializer(RegistryConfig(uri=uri, timeout=0.3), group="s", schema=AVRO, format="avro")
    errors: list[DeserializationError] = []
    for read in (
        lambda: reader.deserialize(EVENT),
        lambda: reader.decode_column(pa.array([EVENT]), on_error=errors.append),
    ):
        with pytest.raises(RegistryUnavailableError, match=f"read the schema with id 7: .*{closed_port} is running"):
            read()
    assert errors == []


def test_an_id_is_asked_for_once() -> None:
    with scripted(by_path({"/schemas/ids/7": SCHEMA})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro", unknown_ids="corrupt")
        for _ in range(3):
            assert reader.deserialize(EVENT) == {"a": 1}
            assert reader.decode_column(pa.array([EVENT] * 100)).to_pylist() == [{"a": 1}] * 100
        assert [request.path for request in registry.requests] == ["/schemas/ids/7"]


@pytest.mark.parametrize(
    "answered",
    [
        {"schema": '{"type":"recor"}'},
        {"schema": "no JSON", "schemaType": "JSON"},
        {"schema": "AAAA", "schemaType": "PROTOBUF"},
        {"schema": '["n.A"]', "references": [{"name": "n.A", "subject": "a", "version": 1}]},
    ],
    ids=["avro", "json", "protobuf", "reference"],
)
@pytest.mark.parametrize("given", [None, AVRO])
def test_an_invalid_schema_is_requested_once_for_many_events(
    answered: dict[str, Any], given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(lookups, "time", clock)
    monkeypatch.setattr(encodings, "time", clock)
    answer_now = dict(answered)
    own = {"/schemas/ids/7": answer_now, "/schemas/ids/7?format=serialized": answer_now}
    others = {"/subjects/a/versions/1": {"schema": "{", "version": 1, "id": 1}, "/subjects/s/versions/latest": SCHEMA}
    with scripted(by_path({**own, **others})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=given, format=given and "avro")

        def fail() -> int:
            with pytest.raises(SchemaError):
                reader.deserialize(EVENT)
            with pytest.raises(SchemaError):
                reader.decode_column(pa.array([EVENT] * 3))
            return sum(request.path.startswith("/schemas/ids/7") for request in registry.requests)

        first = fail()
        assert [fail() for _ in range(50)] == [first] * 50
        clock.now += lookups.MISSING_SECONDS + 0.01
        assert fail() > first
        # A reader recovers if the registry does.
        answer_now.clear()
        answer_now.update(SCHEMA)
        clock.now += lookups.MISSING_SECONDS + 0.01
        assert reader.deserialize(EVENT) == {"a": 1}


def test_the_subject_of_unknown_ids_is_requested_once_for_many_events() -> None:
    with scripted(by_path({"/subjects/s/versions/latest": SCHEMA})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro", unknown_ids="corrupt")
        for _ in range(50):
            with pytest.raises(DeserializationError, match="does not know the encoding id 7"):
                reader.deserialize(EVENT)
        # More often only on a machine that needs more than a second for this.
        assert len(registry.requests) < 50


def test_an_id_is_only_malformed_if_its_subject_exists() -> None:
    with scripted(by_path({"/subjects/s/versions/latest": SCHEMA, "/schemas/ids/8": {**SCHEMA, "id": 8}})) as registry:
        uri = f"confluent+{registry.uri}"
        events = [EVENT, b"\0\0\0\0\x08\x02", b"\0\0\0\0\x09\x02"]
        errors: list[DeserializationError] = []
        reader = deserializer(uri, group="s", unknown_ids="corrupt")
        # A registry may have a later id.
        assert reader.decode_column(pa.array(events), on_error=errors.append).to_pylist() == [None, {"a": 1}, None]
        assert [(error.row, error.encoding_id) for error in errors] == [(0, 7), (2, 9)]
        other = deserializer(uri, group="other", schema=AVRO, format="avro", unknown_ids="corrupt")
        with pytest.raises(PravegaError, match="subject 'other'"):
            other.deserialize(EVENT)


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        ({"username": "ann", "password": "pass:word"}, "Basic " + base64.b64encode(b"ann:pass:word").decode()),
        ({"token": "pass:word"}, "Bearer pass:word"),
    ],
)
def test_credentials_are_sent_and_never_shown(settings: dict[str, str], header: str) -> None:
    with scripted((401, b"who are you?")) as registry:
        config = RegistryConfig(uri=f"confluent+{registry.uri}", **settings)  # type: ignore[arg-type]
        reader = deserializer(config, group="s", schema=AVRO, format="avro")
        with pytest.raises(RegistryAuthenticationError) as error:
            reader.deserialize(EVENT)
        assert registry.requests[0].headers["Authorization"] == header
        assert len(registry.requests) == 1
    for shown in (str(error.value), repr(config), repr(reader)):
        assert "pass:word" not in shown
        assert header not in shown


def test_credentials_are_of_one_registry() -> None:
    with scripted(by_path({"/schemas/ids/7": SCHEMA})) as other, scripted((404, b"")) as own:
        config = RegistryConfig(uri=own.uri, username="ann", password="secret")
        reader = deserializer(
            config,
            group="g",
            also={f"confluent+{other.uri}": "s"},
            schema=AVRO,
            format="avro",
            check_readable=False,
            fail_on_codec_mismatch=False,
        )
        assert reader.deserialize(EVENT) == {"a": 1}
        assert [request.headers.get("Authorization") for request in other.requests] == [None]
        assert own.requests == []


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (b"<html>", RegistryProtocolError, "not JSON"),
        ({}, RegistryProtocolError, "nothing for 'schema'"),
        ({"schema": "x", "schemaType": "XML"}, RegistryProtocolError, "unknown type 'XML'"),
        ({"schema": "{", "schemaType": "AVRO"}, SchemaError, "not JSON"),
        ({"schema": "[]", "schemaType": "JSON"}, SchemaError, "not a JSON schema, but list"),
        # Never the path of a file.
        ({"schema": "/etc/hostname", "schemaType": "JSON"}, SchemaError, "not JSON"),
        ({"schema": '"/etc/hostname"', "schemaType": "AVRO"}, SchemaError, "unknown type"),
        ({"schema": "", "schemaType": "PROTOBUF"}, SchemaError, "has no message type"),
        ({**SCHEMA, "references": [{"name": "x"}]}, RegistryProtocolError, "'subject'"),
    ],
)
def test_answers_without_a_schema(body: Any, error: type[PravegaError], words: str) -> None:
    with scripted((200, body)) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro")
        with pytest.raises(error, match=words):
            reader.deserialize(EVENT)


def test_references_without_end() -> None:
    def chain(handler: BaseHTTPRequestHandler) -> None:
        number = int(handler.path.rpartition("/")[2])
        answer(handler, 200, {**SCHEMA, "references": [{"name": f"n{number}", "subject": "s", "version": number + 1}]})

    with scripted(chain) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro")
        with pytest.raises(SchemaError, match="refers to too many schemas"):
            reader.deserialize(EVENT)
        assert len(registry.requests) < 100


def _twofold(levels: int) -> dict[str, Any]:
    """Return answers with two Avro records a level, which both refer to both records of the next level."""

    def schema(level: int, side: str) -> dict[str, Any]:
        names = [f"n.L{level + 1}{each}" for each in "ab"] if level < levels else []
        fields = [{"name": name[-1], "type": ["null", name]} for name in names]
        return {
            "schema": json.dumps({"type": "record", "name": f"n.L{level}{side}", "fields": fields}),
            "references": [{"name": name, "subject": name, "version": 1} for name in names],
        }

    paths = {f"/subjects/n.L{i}{side}/versions/1": schema(i, side) for i in range(1, levels + 1) for side in "ab"}
    return paths | {"/schemas/ids/7": schema(0, "a")}


@pytest.mark.parametrize(("kind", "base"), [("confluent", ""), ("apicurio", "/apis/ccompat/v7")])
def test_references_are_a_graph(kind: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(text: str, what: str) -> Any:
        parsed.append(text)
        assert len(parsed) < 100
        return parse_json(text, what)

    parse_json = references.parse_json
    monkeypatch.setattr(references, "parse_json", parse)
    with scripted(by_path({base + path: answer for path, answer in _twofold(20).items()})) as registry:
        reader = deserializer(f"{kind}+{registry.uri}", group="s")
        assert reader.deserialize(b"\0\0\0\0\x07\0\2\0\0") == {"a": None, "b": {"a": None, "b": None}}
        assert len(registry.requests) == len(parsed) == 41


def test_imports_are_registered_once() -> None:
    files = FileDescriptorSet()
    for level in range(12):
        for side in "ab":
            file = files.file.add(name=f"{level}{side}.proto", syntax="proto3")
            file.message_type.add(name=f"M{level}{side}")
            file.dependency.extend(f"{level - 1}{each}.proto" for each in "ab" if level)
    del files.file[-1]  # nothing imports the last one

    def register(handler: BaseHTTPRequestHandler) -> None:
        answer(handler, 200, {**SCHEMA, "schema": "not asked for", "schemaType": "PROTOBUF"})

    with scripted(register) as registry:
        serializer(f"confluent+{registry.uri}", group="s", schema=files, type="M11a", format="protobuf")
        assert [request.path for request in registry.requests] == [
            *(f"/subjects/{file.name}" for file in files.file[:-1]),
            "/subjects/s",
            # The rules of the schema: of the latest version if it has the same schema, and always with the id.
            "/subjects/s/versions/latest",
            "/schemas/ids/7",
        ]


def test_the_requests_of_one_schema_share_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(confluent_store, "time", clock)
    monkeypatch.setattr(http, "time", clock)

    def act(handler: BaseHTTPRequestHandler) -> None:
        clock.now += 1
        names = [{"name": f"n{i}", "subject": f"n{i}", "version": 1} for i in range(100)]
        answer(handler, 200, {**SCHEMA, "references": names if handler.path == "/schemas/ids/7" else []})

    with scripted(act) as registry:
        config = RegistryConfig(uri=f"confluent+{registry.uri}", timeout=10)
        reader = deserializer(config, group="s", schema=AVRO, format="avro")
        with pytest.raises(RegistryUnavailableError, match=r"for one schema with its references.* 10 s together"):
            reader.deserialize(EVENT)
        assert 10 <= len(registry.requests) <= 12


def test_the_number_of_requests_for_one_schema_is_limited() -> None:
    names = [{"name": f"n{i}", "subject": f"n{i}", "version": 1} for i in range(1001)]
    with scripted((200, {**SCHEMA, "references": names})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro")
        with pytest.raises(SchemaError, match="refers to too many schemas"):
            reader.deserialize(EVENT)
        assert len(registry.requests) == 1


@pytest.mark.parametrize(
    ("status", "error"), [(409, RegistryConflictError), (422, RegistryRequestError), (401, RegistryAuthenticationError)]
)
def test_a_schema_that_is_refused(status: int, error: type[PravegaError]) -> None:
    refuse = by_path({"/subjects/s/versions": (status, {"error_code": status, "message": "no, because"})})
    with scripted(refuse) as registry, pytest.raises(error, match="no, because"):
        serializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro", register_schema=True)


def test_a_server_that_ignores_the_order_of_fields() -> None:
    ab, ba = ({**AVRO, "fields": [{"name": name, "type": "int"} for name in names]} for names in ("ab", "ba"))
    with scripted((200, {**SCHEMA, "schema": json.dumps(ba)})) as registry:
        uri = f"confluent+{registry.uri}"
        with pytest.raises(PravegaError, match="another order of fields"):
            serializer(uri, group="s", schema=ab, format="avro", register_schema=True)
        # Docs have no effect on the events.
        documented = {**ba, "doc": "a record"}
        assert serializer(uri, group="s", schema=documented, format="avro").serialize({"a": 1, "b": 2})[:5] == EVENT[:5]


FILE = FileDescriptorProto(name="f.proto", syntax="proto3")
FILE.message_type.add(name="M").field.add(name="a", number=1, type=3, label=1)
PROTOBUF = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message M { int64 a = 1; }'}


def test_a_registry_returns_descriptors_where_it_can() -> None:
    serialized = {**PROTOBUF, "schema": base64.b64encode(FILE.SerializeToString()).decode()}
    with scripted(by_path({"/schemas/ids/7": PROTOBUF, "/schemas/ids/7?format=serialized": serialized})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s")
        assert reader.deserialize(b"\0\0\0\0\x07\0\x08\x05").a == 5
        assert [request.path for request in registry.requests] == ["/schemas/ids/7", "/schemas/ids/7?format=serialized"]


def test_protobuf_text_requires_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "find_spec", lambda _: None)
    with scripted(by_path({"/schemas/ids/7": PROTOBUF, "/schemas/ids/7?format=serialized": PROTOBUF})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s")
        with pytest.raises(MissingExtraError, match=r"pravega-serde\[protoc\]"):
            reader.deserialize(b"\0\0\0\0\x07\0\x08\x05")


@pytest.mark.parametrize(
    "make",
    [
        lambda: RegistryConfig(uri="kafka+http://h:1"),
        lambda: RegistryConfig(uri="confluent+ftp://h"),
        lambda: RegistryConfig(uri="confluent+http://user:secret@h"),
        lambda: RegistryConfig(uri="confluent+http://h", namespace="n"),
        lambda: RegistryConfig(uri="apicurio+http://h", namespace="n\u00e9e"),
        lambda: RegistryConfig(uri="apicurio+http://h", namespace="n\nX: y"),
        lambda: RegistryConfig(uri=f"http://h/{'a' * 100_000}"),
        lambda: RegistryConfig(uri="http://h/\ud800"),
        lambda: SchemaRegistryClient("confluent+http://h:1"),
    ],
)
def test_addresses_that_cannot_be_meant(make: Callable[[], object]) -> None:
    with pytest.raises(SerdeError) as error:
        make()
    assert "secret" not in str(error.value)


def test_a_reader_can_be_pickled() -> None:
    import pickle

    with scripted(by_path({"/schemas/ids/7": SCHEMA, "/subjects/s/versions/latest": SCHEMA})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s")
        expected = reader.decode_column(pa.array([EVENT]))
        copy = pickle.loads(pickle.dumps(reader))
        assert copy.decode_column(pa.array([EVENT])) == expected
        assert copy.deserialize(EVENT) == {"a": 1}


LONE = "\ud800"  # JSON can escape it, UTF-8 cannot encode it


@pytest.mark.parametrize(
    ("body", "error"),
    [
        # Escaped once, it is in the answer; twice, only in the schema.
        ({"schema": json.dumps({**AVRO, "doc": LONE}, ensure_ascii=False)}, RegistryProtocolError),
        ({"schema": f"message {LONE} {{}}", "schemaType": "PROTOBUF"}, RegistryProtocolError),
        ({"schema": json.dumps({**AVRO, "name": LONE})}, SchemaError),
        ({"schema": json.dumps({**AVRO, "fields": [{"name": LONE, "type": "int"}]})}, SchemaError),
    ],
)
def test_schemas_are_unicode(body: Any, error: type[PravegaError]) -> None:
    with scripted((200, body)) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro")
        malformed: list[DeserializationError] = []
        for read in (
            lambda: reader.deserialize(EVENT),
            lambda: reader.decode_column(pa.array([EVENT]), on_error=malformed.append),
        ):
            with pytest.raises(error, match="unpaired surrogate"):
                read()
        assert malformed == []


def test_unpaired_surrogates_outside_of_names_are_harmless() -> None:
    with scripted((200, {"schema": json.dumps({**AVRO, "doc": LONE})})) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s", schema=AVRO, format="avro")
        assert reader.deserialize(EVENT) == {"a": 1}
    properties = {"a": {"type": "integer"}, LONE: {"type": "string"}}
    schema = json.dumps({"type": "object", "title": LONE, "properties": properties})
    with scripted((200, {"schema": schema, "schemaType": "JSON"})) as registry:
        other = deserializer(f"confluent+{registry.uri}", group="s")
        event = EVENT[:5] + b'{"a": 1}'
        assert other.deserialize(event) == {"a": 1}
        assert other.decode_column(pa.array([event])).to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("s" * 100_000, "a name of 100000 characters.* is too long"),
        (LONE, "has an unpaired surrogate"),
        ("..", "cannot be"),
    ],
    ids=["long", "surrogate", "dots"],
)
@pytest.mark.parametrize("kind", ["confluent+", "apicurio+", ""])
def test_groups_that_no_request_can_name(kind: str, group: str, words: str) -> None:
    with scripted((404, b"")) as registry:
        with pytest.raises(RegistryRequestError, match=words) as error:
            serializer(f"{kind}{registry.uri}", group=group, schema=AVRO, format="avro")
        assert len(str(error.value)) < 1000
        assert registry.requests == []


def referring(form: str, schemas: dict[str, Any], root: Any, references: list[str]) -> dict[str, Any]:
    """Return the answers for a schema with id 7 and the subjects that it and they refer to, which are also names."""
    kind = {} if form == "AVRO" else {"schemaType": form}

    def body(schema: Any, names: list[str]) -> dict[str, Any]:
        refs = [{"name": name, "subject": name, "version": 1} for name in names]
        return {**kind, "schema": json.dumps(schema), "references": refs, "version": 1, "id": 7, "subject": "s"}

    found = {f"/subjects/{name}/versions/1": body(schema, names) for name, (schema, names) in schemas.items()}
    own = body(root, references)
    return {**found, "/schemas/ids/7": own, "/subjects/s/versions/latest": own}


RECORDS = {name: {"type": "record", "name": f"n.{name}", "fields": [{"name": "x", "type": "int"}]} for name in "AB"}


@pytest.mark.parametrize("referred", [False, True])
def test_a_union_is_read_by_row_and_by_column(referred: bool) -> None:
    root = ["null", "n.A", "n.B"] if referred else ["null", RECORDS["A"], RECORDS["B"]]
    names = {f"n.{name}": (record, []) for name, record in RECORDS.items()} if referred else {}
    with scripted(by_path(referring("AVRO", names, root, list(names)))) as registry:
        reader = deserializer(f"confluent+{registry.uri}", group="s")
        events = [EVENT[:5] + payload for payload in (b"\0", b"\x02\x0a", b"\x04\x0c")]
        assert [reader.deserialize(event) for event in events] == [None, ("n.A", {"x": 5}), ("n.B", {"x": 6})]
        assert reader.decode_column(pa.array(events)).to_pylist() == [
            None,
            {"member0": {"x": 5}, "member1": None},
            {"member0": None, "member1": {"x": 6}},
        ]


UNION_ROWS: list[Any] = [None, ("n.A", {"x": 5}), ("n.B", {"x": 6})]
UNION_COLUMNS = [
    {"member0": None, "member1": None},
    {"member0": {"x": 5}, "member1": None},
    {"member0": None, "member1": {"x": 6}},
]
UNION_EVENTS = [EVENT[:5] + payload for payload in (b"\0", b"\x02\x0a", b"\x04\x0c")]


@pytest.mark.parametrize("referred", [False, True])
def test_a_union_is_written_by_row_and_by_column(referred: bool) -> None:
    root = ["null", "n.A", "n.B"] if referred else ["null", RECORDS["A"], RECORDS["B"]]
    names = {f"n.{name}": (record, []) for name, record in RECORDS.items()} if referred else {}
    answers = referring("AVRO", names, root, list(names))
    if not referred:
        answers["/subjects/s"] = answers["/schemas/ids/7"]
    given = ["null", RECORDS["A"], RECORDS["B"]]
    with scripted(by_path(answers)) as registry:
        uri = f"confluent+{registry.uri}"
        for schema in (given, latest_schema(uri, group="s"), json.dumps(given)):
            writer = serializer(uri, group="s", schema=schema, format="avro")
            assert [writer.serialize(row) for row in UNION_ROWS] == UNION_EVENTS
            column = pa.array(UNION_COLUMNS, writer.arrow_type)
            writer.check_encodable(column.type)
            assert writer.encode_column(column).to_pylist() == UNION_EVENTS
            assert writer.decode_column(pa.array(UNION_EVENTS)).to_pylist() == [None, *UNION_COLUMNS[1:]]
            both = {"member0": {"x": 1}, "member1": {"x": 2}}
            with pytest.raises(SerializationError, match="row 1"):
                writer.encode_column(pa.array([UNION_COLUMNS[1], both], column.type))


def test_a_union_without_null_requires_a_branch_and_reads_events_of_its_branches() -> None:
    union = [RECORDS["A"], RECORDS["B"]]
    answers = referring("AVRO", {}, union, []) | {"/schemas/ids/8": {"schema": json.dumps(RECORDS["B"])}}
    answers["/subjects/s"] = answers["/schemas/ids/7"]
    with scripted(by_path(answers)) as registry:
        uri = f"confluent+{registry.uri}"
        writer = serializer(uri, group="s", schema=union, format="avro", register_schema=True)
        with pytest.raises(SerializationError, match="row 0"):
            writer.encode_column(pa.array(UNION_COLUMNS[:1], writer.arrow_type))
        with pytest.raises(SerializationError):
            writer.serialize(None)
        older = b"\0\0\0\0\x08\x0c"
        for reader in (deserializer(uri, group="s"), deserializer(uri, group="s", schema=union, format="avro")):
            assert reader.decode_column(pa.array([older])).to_pylist() == UNION_COLUMNS[2:]
            assert (
                reader.decode_column(writer.encode_column(pa.array(UNION_COLUMNS[1:], writer.arrow_type))).to_pylist()
                == UNION_COLUMNS[1:]
            )


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (["null", "int", "string"], [None, 5, "t"]),
        (["long", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}], [5, [1], {"k": 3}]),
        (["null", RECORDS["A"]], [None, {"x": 1}]),
        ([{"type": "enum", "name": "n.E", "symbols": ["a"]}, RECORDS["B"]], ["a", {"x": 1}]),
    ],
)
def test_unions_of_all_kinds_come_back(schema: Any, values: list[Any]) -> None:
    answers = referring("AVRO", {}, schema, [])
    answers["/subjects/s"] = answers["/schemas/ids/7"]
    with scripted(by_path(answers)) as registry:
        writer = serializer(f"confluent+{registry.uri}", group="s", schema=schema, format="avro")
        events = [writer.serialize(value) for value in values]
        assert [writer.deserialize(event) for event in events] == values
        column = writer.decode_column(pa.array(events))
        assert column.type == writer.arrow_type
        written = writer.encode_column(column).to_pylist()
        assert [event for event in written if event is not None] == [
            event for event, value in zip(events, values, strict=True) if value is not None
        ]


def test_json_that_refers_to_other_subjects_has_their_columns() -> None:
    schemas: dict[str, Any] = {
        "customer.json": (
            {
                "type": "object",
                "properties": {"name": {"$ref": "#/definitions/name"}, "home": {"$ref": "address.json#/definitions/A"}},
                "definitions": {"name": {"type": "string"}},
            },
            ["address.json"],
        ),
        "address.json": ({"definitions": {"A": {"properties": {"zip": {"type": "integer"}, "up": {"$ref": "#"}}}}}, []),
    }
    root = {
        "title": "Order",
        "properties": {
            "id": {"type": "integer"},
            "buyer": {"$ref": "customer.json"},
            "all": {"type": "array", "items": {"$ref": "customer.json#"}},
            "lost": {"$ref": "other.json"},
        },
    }
    value = {"id": 1, "buyer": {"name": "a", "home": {"zip": 5}}, "all": [{"name": "b", "home": None}]}
    answers = referring("JSON", schemas, root, ["customer.json"])
    with scripted(by_path(answers)) as registry:
        uri = f"confluent+{registry.uri}"
        reader = deserializer(uri, group="s")
        event = EVENT[:5] + json.dumps(value).encode()
        assert reader.decode_column(pa.array([event])).to_pylist() == [value]
        # The latest schema is found again, in spite of the definitions that it has now.
        again = serializer(uri, group="s", schema=latest_schema(uri, group="s"))
        assert again.serialize(value)[:5] == EVENT[:5]


OUTER = FileDescriptorProto(name="o.proto", package="n", syntax="proto3")
OUTER.message_type.add(name="Other")
OUTER.message_type.add(name="Outer").nested_type.add(name="Skipped")
OUTER.message_type[1].nested_type.add(name="Inner").field.add(name="a", number=1, type=5, label=1)
FILES = FileDescriptorSet(file=[OUTER])


def test_a_message_inside_another_is_written_with_its_indexes() -> None:
    text = base64.b64encode(OUTER.SerializeToString()).decode()
    found = {**SCHEMA, "schemaType": "PROTOBUF", "schema": text}
    with scripted(by_path({"/subjects/s": found, "/schemas/ids/7": found})) as registry:
        uri = f"confluent+{registry.uri}"
        write = serializer(uri, group="s", schema=FILES, format="protobuf", type="n.Outer.Inner")
        event = write.serialize({"a": 5})
        assert event == EVENT[:5] + b"\x04\x02\x02" + b"\x08\x05"
        assert deserializer(uri, group="s").deserialize(event).a == 5


def test_pravegas_registry_refuses_a_message_inside_another_before_it_is_called() -> None:
    uri = "mock://message-inside-another"
    more: dict[str, Any] = {"group": "g", "create_group": True, "register_schema": True}
    with pytest.raises(SchemaError, match=r"top level of their file; n\.Outer\.Inner is inside n\.Outer"):
        serializer(uri, schema=FILES, format="protobuf", type="n.Outer.Inner", **more)
