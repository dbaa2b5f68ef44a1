"""CBOR that Jackson writes is read, and Jackson reads what is written: random records, both ways."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import pytest

from pravega_connector.local.jvm import find_java
from pravega_serde.cbor import CborSerializer
from tests.foreign._corpora import Corpus
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

RECORDS: Final = 200
SECONDS: Final = 240
JACKSON_CBOR: Final = Corpus(
    "https://repo1.maven.org/maven2/com/fasterxml/jackson/dataformat/jackson-dataformat-cbor/2.21.2/"
    "jackson-dataformat-cbor-2.21.2.jar",
    "25ca74be28cdd945721c9f9c84aaea6f69daa2fa10eb24eb40140dd138ef3b95",
    "Apache-2.0",
)

FIELDS: Final = [
    ("id", pa.int64()),
    ("small", pa.int32()),
    ("x", pa.float64()),
    ("f", pa.float32()),
    ("ok", pa.bool_()),
    ("name", pa.string()),
    ("big", pa.decimal128(38, 0)),
    ("price", pa.decimal128(38, 10)),
    ("data", pa.binary()),
    ("key", pa.binary()),
    ("at", pa.timestamp("us", "UTC")),
    ("day", pa.date32()),
    ("local", pa.timestamp("us")),
    ("date", pa.timestamp("us", "UTC")),
    ("tags", pa.list_(pa.string())),
    ("counts", pa.map_(pa.string(), pa.int32())),
]
KIND: Final = pa.struct([*FIELDS, ("inner", pa.struct([*FIELDS, ("inner", pa.struct(FIELDS))]))])
EPOCH: Final = datetime(1970, 1, 1)

Java = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    """Run the peer with arguments; return its report about each record."""
    classes, runtime = tmp_path_factory.mktemp("classes"), find_java()
    sparks = Path(pyspark.__file__).parent / "jars"
    jars = [*sparks.glob("jackson-[acd]*-2*.jar"), JACKSON_CBOR.file()]
    together = tmp_path_factory.mktemp("jars")
    for jar in jars:
        (together / jar.name).symlink_to(jar)
    compile_java(runtime, (Path(__file__).parent / "java_cbor").glob("*.java"), classes, together)

    def run(*arguments: str) -> list[Any]:
        command = [str(runtime.path), "-Xmx256m", *SOON_READY, "-cp", f"{classes}:{together}/*", "CborPeer", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def plain(told: dict[str, Any] | None) -> dict[str, Any] | None:
    """Values of a record that Java reports."""
    if told is None:
        return None

    def moment(text: str) -> datetime:
        return EPOCH + timedelta(microseconds=int(text))

    convert: dict[str, Callable[[str], Any]] = {
        "id": int,
        "small": int,
        "x": float,
        "f": lambda text: pa.scalar(float(text), pa.float32()).as_py(),
        "ok": lambda text: text == "true",
        "name": str,
        "big": Decimal,
        "price": Decimal,
        "data": bytes.fromhex,
        "key": lambda text: bytes.fromhex(text.replace("-", "")),
        "at": lambda text: moment(text).replace(tzinfo=UTC),
        "day": lambda text: date(1970, 1, 1) + timedelta(int(text)),
        "local": moment,
        "date": lambda text: moment(text + "000").replace(tzinfo=UTC),
        "tags": lambda value: value,
        "counts": lambda value: list(value.items()),
    }
    made = {name: None if told[name] is None else change(told[name]) for name, change in convert.items()}
    return made | ({"inner": plain(told["inner"])} if "inner" in told else {})


def column(told: list[Any]) -> pa.Array:
    return pa.array([plain(each) for each in told], KIND)


@pytest.mark.integration
@pytest.mark.parametrize("times", ["numbers", "text"])
def test_what_jackson_writes_is_read(java: Java, tmp_path: Path, times: str) -> None:
    told = java("write", str(tmp_path / "events"), str(RECORDS), times)
    events = [bytes.fromhex(line) for line in (tmp_path / "events").read_text().split()]
    assert len(told) == len(events) == RECORDS
    serializer = CborSerializer(arrow_type=KIND)
    assert serializer.decode_column(pa.array(events)).equals(column(told))
    for event, each in zip(events, told, strict=True):
        row, wanted = serializer.deserialize(event), plain(each)
        assert wanted is not None
        for name in ("id", "small", "x", "f", "ok", "name", "big", "price", "data", "key", "tags"):
            assert row[name] == wanted[name], name
            assert name != "price" or str(row[name]) == str(wanted[name])


@pytest.mark.integration
def test_jackson_reads_what_is_written(java: Java, tmp_path: Path) -> None:
    told = java("write", str(tmp_path / "events"), str(RECORDS), "text")
    serializer = CborSerializer(arrow_type=KIND)
    by_column = serializer.encode_column(column(told)).to_pylist()
    rows = [plain(each) for each in told]
    for row in rows:
        at: Any = row
        while at is not None:
            at["counts"] = dict(at["counts"])
            at = at.get("inner")
    by_row = [serializer.serialize(row) for row in rows]
    (tmp_path / "again").write_text("\n".join(event.hex() for event in [*by_row, *by_column]))
    again = java("read", str(tmp_path / "again"))
    differ = [
        (name, read[name], wanted[name])
        for read, wanted in zip(again, [*told, *told], strict=True)
        for name in wanted
        if plain({**wanted, name: read[name]}) != plain(wanted)
    ]
    assert differ == []
