"""Random tables as files of each kind: every value is ingested as itself, as its text, or is a named error."""

import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pravega_connector.errors import BadRecordError
from pravega_connector.export import open_writer
from pravega_connector.ingest import FileSource
from tests.unit.ingest.test_exact_values import events

ROWS = 300


def number(rng: random.Random) -> Any:
    """An integer, a decimal or a double, often at an edge."""
    edge = rng.choice([0, 2**31, 2**53, 2**63, 2**64, 10**18, 10**25]) + rng.randint(-2, 2)
    return rng.choice([rng.randint(-9, 9), edge, -edge])


#: Type of a column, and its values.
COLUMNS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "small": (pa.int64(), lambda rng: rng.randint(-(10**6), 10**6)),
    "long": (pa.int64(), lambda rng: max(-(2**63), min(2**63 - 1, number(rng)))),
    "wide": (pa.decimal128(38, 0), number),
    "money": (pa.decimal128(20, 4), lambda rng: Decimal(rng.randrange(-(10**19), 10**19)).scaleb(-4)),
    "double": (pa.float64(), lambda rng: rng.choice([rng.random(), rng.uniform(-1e6, 1e6), 1e300, 5e-324, 0.1, 0.0])),
    "flag": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "text": (pa.string(), lambda rng: rng.choice(["tea", "", "NA", "007", "1E5", 'a"b', "x,y", "ü☕😀", " ", "null"])),
    "code": (pa.string(), lambda rng: rng.choice(["01", "+44", "0x1A", "7E400", "1.50", "-0", "1e5"])),
    "day": (pa.date32(), lambda rng: rng.randint(-700_000, 2_900_000)),
    "instant": (pa.timestamp("us", "UTC"), lambda rng: rng.randint(-(2**55), 2**55)),
    "local": (pa.timestamp("us"), lambda rng: rng.randint(-(2**55), 2**55)),
}


def table(seed: int) -> pa.Table:
    rng = random.Random(seed)
    columns = {}
    for name, (kind, make) in COLUMNS.items():
        values = [None if rng.random() < 0.1 else make(rng) for _ in range(ROWS)]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def as_csv(rows: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(rows, out)
    return out.getvalue()


def as_jsonl(rows: pa.Table) -> bytes:
    out = io.BytesIO()
    writer = open_writer(out, rows.schema, "jsonl", "none", {})
    for batch in rows.to_batches():
        writer.write(batch)
    return out.getvalue()


def as_parquet(rows: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(rows, out)
    return out.getvalue()


def as_avro(rows: pa.Table) -> bytes:
    out = io.BytesIO()
    kinds = {"small": "long", "long": "long", "double": "double", "flag": "boolean", "text": "string", "code": "string"}
    kinds |= {"day": "int", "instant": "long", "local": "long"}  # type: ignore[dict-item]
    logical = {"day": "date", "instant": "timestamp-micros", "local": "local-timestamp-micros"}
    fields = []
    for name in rows.schema.names:
        kind: Any = kinds.get(name, "bytes")
        if name in logical:
            kind = {"type": kind, "logicalType": logical[name]}
        if name in ("wide", "money"):
            scale = rows.schema.field(name).type.scale
            kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": scale}
        fields.append({"name": name, "type": ["null", kind]})
    schema = {"type": "record", "name": "R", "fields": fields}
    writer = open_writer(out, rows.schema, "avro", "deflate", {}, avro_schema=json.dumps(schema))
    for batch in rows.to_batches():
        writer.write(batch)
    writer.finish()
    return out.getvalue()


WRITERS = {"csv": as_csv, "jsonl": as_jsonl, "parquet": as_parquet, "avro": as_avro}


def is_same(name: str, found: Any, value: Any, text: Any) -> bool:
    """True if the value of an event is a value of the table, or its text."""
    if value is None or found is None:
        return found is value or (name in ("text", "code") and value in ("", "NA") and found in (None, ""))
    if isinstance(value, bool):
        return found in (value, str(value).lower())
    if isinstance(value, str):
        return bool(found == value)
    if isinstance(value, float):
        return float(found) == value
    if isinstance(value, int | Decimal):
        return Decimal(found) == Decimal(value)
    return str(found).replace("T", " ").removesuffix("Z").removesuffix(".000000") == text


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", WRITERS)
def test_every_value_comes_through(tmp_path: Path, kind: str, seed: int):
    rows = table(seed)
    path = tmp_path / f"x.{kind}"
    path.write_bytes(WRITERS[kind](rows))
    decode = json.JSONDecoder(parse_float=Decimal, parse_int=Decimal).decode
    found = [decode(event) for event in events(FileSource([path]))]
    assert len(found) == ROWS
    for name in COLUMNS:
        texts = texts_of(rows.column(name))
        for row, value in enumerate(values_of(rows.column(name))):
            assert is_same(name, found[row][name], value, texts[row]), (name, found[row][name], value)


def texts_of(column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_temporal(column.type):
        return [None] * len(column)
    plain = column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
    return [None if text is None else text.removesuffix(".000000") for text in plain.cast(pa.string()).to_pylist()]


def values_of(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_temporal(column.type):  # their texts are compared
        return [object() if there else None for there in column.is_valid().to_pylist()]
    return column.to_pylist()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("name", COLUMNS)
def test_other_values_after_the_sample_change_nothing(tmp_path: Path, kind: str, name: str):
    """Columns that are inferred from another column: the values are the same, or an error names the column."""
    sample = table(1)
    for other in COLUMNS:
        path = tmp_path / f"x.{kind}"
        path.write_bytes(WRITERS[kind](pa.table({"k": range(ROWS), "x": sample.column(name)})))
        files = FileSource([path])
        assert files.schema.names == ["k", "x"]
        rows = table(2).column(other)
        path.write_bytes(WRITERS[kind](pa.table({"k": range(ROWS), "x": rows})))
        try:
            found = [json.loads(event, parse_float=Decimal, parse_int=Decimal)["x"] for event in events(files)]
        except BadRecordError as error:
            assert "x=string" in str(error), error  # noqa: PT017
            continue
        texts = texts_of(rows)
        for row, value in enumerate(values_of(rows)):
            assert is_same(other, found[row], value, texts[row]), (other, found[row], value)
