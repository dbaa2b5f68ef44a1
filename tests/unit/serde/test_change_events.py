"""Change events of Debezium: JSON with and without schema, Avro, positions of each connector, and wrong events."""

import datetime as dt
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import (
    AvroSerializer,
    ChangeDeserializer,
    DeserializationError,
    JsonSerializer,
    RowChange,
    SchemaError,
    change_type,
    distinct_changes,
)
from pravega_serde.envelopes.debezium import change_schema, json_envelopes

ROW = pa.struct([("id", pa.int64()), ("item", pa.string())])
NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
MILLIS = 1_777_636_800_000
POSTGRES = {"connector": "postgresql", "table": "orders", "ts_ms": MILLIS, "sequence": '["600","656"]', "lsn": 656}


def event(op: str = "u", source: dict[str, Any] = POSTGRES, **fields: Any) -> dict[str, Any]:
    rows = {"before": {"id": 1, "item": "tea"}, "after": {"id": 1, "item": "milk"}}
    return {"op": op, **rows, "source": source, "ts_ms": MILLIS + 500, "transaction": None, **fields}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def in_json(columns: pa.StructType | None = None, **kinds: pa.DataType) -> ChangeDeserializer:
    kind = change_type(kinds.get("before", ROW), kinds.get("after", ROW), kinds.get("source"))
    return ChangeDeserializer(JsonSerializer(arrow_type=kind), columns=columns)


def with_schema(value: Any) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": [{"field": "op", "type": "string"}]}, "payload": value}


def test_events_with_and_without_a_schema_in_one_column():
    events = [encoded(each) for each in (event(), with_schema(event("c", before=None)))] * 50
    reader = pickle.loads(pickle.dumps(in_json()))
    column = reader.decode_column(pa.array([None, *events, None]))
    assert column.is_valid().to_pylist() == [False, *[True] * 100, False]
    rows = column.slice(1, 100).to_pylist()
    for row, change in zip(rows, map(reader.deserialize, events), strict=True):
        assert (row["op"], row["before"], row["after"]) == (change.op, change.before, change.after)
        assert (row["ts"], row["position"]) == (change.ts, change.position)
    assert [row["op"] for row in rows[:2]] == ["u", "c"]
    assert rows[1]["before"] is None
    assert rows[0]["ts"] == NOON
    assert rows[0]["position"] == "00000000000000000600:00000000000000000656"


def test_only_the_wanted_columns_and_fields():
    wanted = pa.struct(
        [
            ("after", pa.struct([("item", pa.string())])),
            ("op", pa.string()),
            ("source", pa.struct([("table", pa.string())])),
        ]
    )
    reader = in_json(wanted, source=pa.struct([("table", pa.string())]))
    column = reader.decode_column(pa.array([encoded(event()), encoded(event("d", after=None))]))
    assert column.type == wanted
    assert column.to_pylist() == [
        {"after": {"item": "milk"}, "op": "u", "source": {"table": "orders"}},
        {"after": None, "op": "d", "source": {"table": "orders"}},
    ]


AVRO = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.orders",
    "fields": [
        {
            "name": "before",
            "type": ["null", {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}]}],
            "default": None,
        },
        {"name": "after", "type": ["null", "Value"], "default": None},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "fields": [
                    {"name": "connector", "type": "string"},
                    {"name": "ts_ms", "type": "long"},
                    {"name": "file", "type": "string"},
                    {"name": "pos", "type": "long"},
                    {"name": "row", "type": "int"},
                ],
            },
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}


def test_avro_and_its_own_columns():
    source = {"connector": "mysql", "ts_ms": MILLIS, "file": "binlog.000003", "pos": 154, "row": 1}
    serializer = AvroSerializer(AVRO)
    given = [{"before": None, "after": {"id": n}, "source": source, "op": "c", "ts_ms": None} for n in range(100)]
    events = [serializer.serialize(value) for value in given]
    reader = ChangeDeserializer(serializer)
    column = reader.decode_column(pa.array(events))
    assert column.type.names == ["op", "before", "after", "ts", "position", "source"]
    changes = [reader.deserialize(each) for each in events]
    assert [RowChange(**row) for row in column.to_pylist()] == changes
    assert changes[7] == RowChange("c", None, {"id": 7}, NOON, changes[7].position, source)
    assert changes[7].position == f"binlog.{3:020}:{154:020}:{1:020}"
    fewer = ChangeDeserializer(
        serializer, columns=pa.struct([("position", pa.string()), ("after", column.type.field("after").type)])
    )
    assert fewer.decode_column(pa.array(events[:1])).to_pylist() == [
        {"position": changes[0].position, "after": {"id": 0}}
    ]


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ({"connector": "postgresql", "sequence": '[null,"24023128"]'}, f"{24023128:020}:{24023128:020}"),
        ({"connector": "postgresql", "sequence": "?"}, None),
        ({"connector": "postgresql"}, None),
        ({"connector": "mariadb", "file": "bin.000010", "pos": 4, "row": 0}, f"bin.{10:020}:{4:020}:{0:020}"),
        ({"connector": "mysql", "file": "log", "pos": 4, "row": 0}, f"log{0:020}:{4:020}:{0:020}"),
        (
            {"connector": "sqlserver", "commit_lsn": "00000027:0758:0005", "change_lsn": "00000027:0758:0003"},
            "00000027:0758:0005:00000027:0758:0003:",
        ),
        (
            {"connector": "sqlserver", "commit_lsn": "0:7", "change_lsn": "0:5", "event_serial_no": 2},
            f"0:7:0:5:{2:020}",
        ),
        ({"connector": "db2", "commit_lsn": "0:7", "change_lsn": "0:5"}, "0:7:0:5"),
        (
            {"connector": "oracle", "commit_scn": "900", "scn": "850", "rs_id": " 0x1", "ssn": 3},
            f"{900:020}:{850:020}: 0x1:{3:020}",
        ),
        ({"connector": "informix", "commit_lsn": "8589934592", "change_lsn": "7"}, f"{8589934592:020}:{7:020}"),
        ({"connector": "mongodb", "ord": 2}, f"{MILLIS:020}:{2:020}"),
        ({"connector": "vitess", "vgtid": "[]"}, None),
        ({}, None),
    ],
)
def test_positions(source: dict[str, Any], position: str | None):
    given = encoded(event(source={"ts_ms": MILLIS, **source}))
    assert in_json().deserialize(given).position == position
    column = in_json().decode_column(pa.array([given, encoded(event())]))
    assert column.field("position").to_pylist() == [position, "00000000000000000600:00000000000000000656"]


@pytest.mark.parametrize(
    ("connector", "sources"),
    [
        # Log 3 of Informix begins at 3 << 32, which has one digit more than the positions of log 2.
        ("informix", [{"commit_lsn": str(log << 32), "change_lsn": str((log << 32) - 8)} for log in (2, 3, 24)]),
        ("mysql", [{"file": f"bin.{number:06}", "pos": 4, "row": 0} for number in (999_999, 1_000_000)]),
        # A snapshot of Oracle has no commit_scn: it is before later commits, and after the commits that it contains.
        ("oracle", [{"scn": "800"}, {"commit_scn": "900", "scn": "850", "rs_id": " 0x1", "ssn": 3}, {"scn": "900"}]),
        # A second snapshot of PostgreSQL, by a connector that has lost its offsets.
        ("postgresql", [{"sequence": f"[{pair}]"} for pair in ('null,"5"', 'null,"7"', '"9","12"', 'null,"20"')]),
    ],
)
def test_a_later_change_has_a_greater_position(connector: str, sources: list[dict[str, Any]]):
    events = [encoded(event(source={"connector": connector, **source})) for source in sources]
    positions = [in_json().deserialize(each).position for each in events]
    assert all(map(str.__lt__, positions, positions[1:])), positions
    assert in_json().decode_column(pa.array(events)).field("position").to_pylist() == positions


@pytest.mark.parametrize(
    ("source", "millis", "ts"),
    [
        ({"ts_ms": MILLIS, "ts_us": MILLIS * 1000 + 7}, 0, NOON.replace(microsecond=7)),
        ({"ts_ms": None}, MILLIS, NOON),
        ({}, None, None),
    ],
)
def test_times(source: dict[str, Any], millis: int | None, ts: dt.datetime | None):
    given = encoded(event(source={"connector": "vitess", **source}, ts_ms=millis))
    assert in_json().deserialize(given).ts == ts
    assert in_json().decode_column(pa.array([given])).field("ts").to_pylist() == [ts]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (None, "not a change event of Debezium"),
        ({"id": 1}, "not a change event of Debezium"),
        ({"schema": None, "payload": None}, "not a change event of Debezium"),
        ({"schema": {}, "payload": {"status": "BEGIN"}}, "not a change event of Debezium"),
        ({**event(), "op": None}, "not a change event of Debezium"),
        ({**event(), "source": None}, "not a change event of Debezium"),
        (event(source={"connector": "mysql", "ts_ms": 2**62}), "beyond the range"),
    ],
)
def test_other_events_are_malformed(wrong: Any, words: str):
    events = [encoded(event()), encoded(wrong), encoded(event())] * 30
    errors: list[DeserializationError] = []
    values = in_json().decode_column(pa.array(events), on_error=errors.append)
    assert values.is_valid().to_pylist() == [True, False, True] * 30
    assert [error.row for error in errors] == list(range(1, 90, 3))
    with pytest.raises(DeserializationError, match=words) as raised:
        in_json().decode_column(pa.array(events))
    assert raised.value.row == 1
    with pytest.raises(DeserializationError, match=words):
        in_json().deserialize(events[1])


def test_malformed_json_and_other_events_are_in_order():
    events = [b"{", encoded({}), encoded(event(after={"id": "x"})), encoded(event())]
    errors: list[DeserializationError] = []
    values = in_json().decode_column(pa.array(events), on_error=errors.append)
    assert [error.row for error in errors] == [0, 1, 2]
    assert values.is_valid().to_pylist() == [False, False, False, True]


def test_repeated_changes_are_dropped():
    def change(position: str | None, after: Any = None) -> RowChange:
        return RowChange("c", None, after, None, position, {"table": "orders"})

    given = [change("1"), change("2"), change("1"), change("2", {"id": 1}), change(None), change(None)]
    assert list(distinct_changes(given)) == [given[0], given[1], given[3], given[4], given[5]]
    assert list(distinct_changes(given[:3], remember=1)) == given[:3]


def test_columns_from_the_events():
    envelopes = json_envelopes(
        pa.array([encoded(with_schema(event("c", before=None))), encoded(event("c", before=None)), b"{"])
    )
    assert [each[:4] for each in envelopes.to_pylist()] == [b'{"op', b'{"op', b"{"]
    kinds = {
        "op": pa.string(),
        "before": pa.string(),
        "after": ROW,
        "source": pa.struct([("pos", pa.string()), ("db", pa.string())]),
    }
    found = change_schema(pa.schema(list(kinds.items())))
    assert found.names == ["op", "before", "after", "ts", "position", "source"]
    assert found.field("before").type == found.field("after").type == ROW
    assert found.field("source").type == pa.struct([("pos", pa.int64()), ("db", pa.string())])
    with pytest.raises(SchemaError, match="not changes of Debezium: their fields are id"):
        change_schema(pa.schema([("id", pa.int64())]))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (pa.struct([("item", pa.string())]), "no field 'item'; they have: op, before, after, ts, position, source"),
        (pa.struct([("after", pa.struct([("cups", pa.int32())]))]), "no field 'after.cups'; they have: id, item"),
        (pa.struct([("op", pa.int32())]), "'op' of change events is string, not int32"),
    ],
)
def test_columns_that_the_events_do_not_have(columns: pa.StructType, words: str):
    with pytest.raises(SchemaError, match=words):
        _ = in_json(columns).arrow_type


def test_schemas_of_other_events():
    with pytest.raises(SchemaError, match="no fields 'op' and 'source'"):
        _ = ChangeDeserializer(AvroSerializer("long")).arrow_type


@pytest.mark.parametrize(
    "columns",
    [
        {"op": pa.string(), "after": pa.struct([("id", pa.int64())])},
        {"op": pa.string(), "source": pa.string()},
        {"op": pa.int64(), "source": pa.struct([("connector", pa.string())])},
        {"op": pa.string(), "source": pa.struct([("connector", pa.int64())])},
        {"op": pa.string(), "source": pa.struct([("ts_ms", pa.string())])},
        {"payload": pa.struct([("op", pa.string())])},
    ],
)
def test_columns_of_other_events_are_refused_before_they_are_read(columns: dict[str, pa.DataType]):
    changes = ChangeDeserializer(JsonSerializer(arrow_type=pa.struct(list(columns.items()))))
    with pytest.raises(SchemaError, match="no fields 'op' and 'source' of Debezium's envelope"):
        changes.decode_column(pa.array([b'{"op": "c"}']))


def test_the_origin_of_changes_is_a_struct():
    row = pa.struct([("id", pa.int64())])
    with pytest.raises(SchemaError, match="the origin of changes is a struct of its fields, not string"):
        change_type(row, row, pa.string())
    with pytest.raises(SchemaError, match="not changes of Debezium"):
        change_schema(pa.schema({"op": pa.string(), "source": pa.string()}))
    change = RowChange("c", None, {"id": 1}, None, "1", None)  # type: ignore[arg-type]
    assert list(distinct_changes([change, change])) == [change]
