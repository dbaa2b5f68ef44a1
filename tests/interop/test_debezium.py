"""Change events of Debezium's own connector and converters are read, by row and by column, and without duplicates."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import pytest

from pravega_connector.local.jvm import find_java
from pravega_serde import (
    AvroSerializer,
    ChangeDeserializer,
    JsonSerializer,
    RowChange,
    change_type,
    distinct_changes,
    sniff,
)
from tests.foreign._corpora import Corpus
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

CHANGES: Final = 200
SECONDS: Final = 240
_MAVEN: Final = "https://repo1.maven.org/maven2"
#: The connector with its driver, which nothing here connects; the converters of Debezium Server.
JARS: Final = (
    ("io/debezium/debezium-api/3.0.8.Final", "9c60133bb8ba673632221f25f35fe885b5b9af31c4c7999d08bb142f9bd1c774"),
    ("io/debezium/debezium-core/3.0.8.Final", "a80472b7ef67a2a1450c2ad81ab3516a0e86f031f3758da0ae3ce6a5da6c1a9d"),
    (
        "io/debezium/debezium-connector-postgres/3.0.8.Final",
        "2d624d9c40de4f71d73f818d4d76ecba34c9d72b90d829c233ba747486ba2dbb",
    ),
    ("org/apache/kafka/connect-api/3.9.1", "c26bb05b8a83654d6dca13c42511d1cd1ded3d0778447fa2f46b47e075e511d0"),
    ("org/apache/kafka/connect-json/3.9.1", "8b0baff8583d8179a622aa7ad2b5f5e2701917eefe6bd7355033352b97e3e315"),
    ("org/apache/kafka/kafka-clients/3.9.1", "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9"),
    (
        "io/apicurio/apicurio-registry-utils-converter/3.0.9",
        "d26774d2f778be0e07863716ad2771b9de8b56717b50e98125e70280518fa31a",
    ),
    (
        "com/fasterxml/jackson/module/jackson-module-afterburner/2.21.2",
        "336a6f46a06b111ac9012ce39f2aa3c738a572c472e7fb42c038ec347ff4e46e",
    ),
    ("org/postgresql/postgresql/42.7.5", "69020b3bd20984543e817393f2e6c01a890ef2e37a77dd11d6d8508181d079ab"),
)
ROW: Final = pa.struct([("id", pa.int64()), ("item", pa.string()), ("cups", pa.int32()), ("at", pa.int64())])
ORIGIN: Final = pa.struct([("connector", pa.string()), ("table", pa.string())])
COLUMNS: Final = pa.struct(
    [
        ("op", pa.string()),
        ("before", ROW),
        ("after", ROW),
        ("ts", pa.timestamp("us", "UTC")),
        ("position", pa.string()),
        ("source", ORIGIN),
    ]
)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FORMS: Final = ("json", "json-schema", "avro")


@dataclass(frozen=True)
class Written:
    """Events of Debezium in a folder, and what the peer reports about them."""

    folder: Path
    told: list[dict[str, Any]]

    def events(self, form: str) -> list[bytes]:
        return [bytes.fromhex(line) for line in (self.folder / form).read_text().splitlines()]

    def reader(self, form: str, columns: pa.StructType | None = None) -> ChangeDeserializer:
        if form == "avro":
            return ChangeDeserializer(AvroSerializer(self.folder / "schema.avsc"), columns=columns)
        kind = change_type(ROW, ROW, ORIGIN)
        return ChangeDeserializer(JsonSerializer(arrow_type=kind), columns=columns)


def _jar(place: str, digest: str) -> Path:
    _, name, version = place.rsplit("/", 2)
    licence = "BSD-2-Clause" if name == "postgresql" else "Apache-2.0"
    return Corpus(f"{_MAVEN}/{place}/{name}-{version}.jar", digest, licence).file()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    classes, together, folder = (tmp_path_factory.mktemp(name) for name in ("classes", "jars", "events"))
    runtime, sparks = find_java(), Path(pyspark.__file__).parent / "jars"
    patterns = ("jackson-[acd]*-2*.jar", "avro-1*.jar", "slf4j-api*.jar")
    for jar in [*(jar for each in patterns for jar in sparks.glob(each)), *(_jar(*each) for each in JARS)]:
        (together / jar.name).symlink_to(jar)
    compile_java(runtime, (Path(__file__).parent / "java_debezium").glob("*.java"), classes, together)
    options = ["-Xmx256m", *SOON_READY, "-cp", f"{classes}:{together}/*"]
    program = ["io.debezium.connector.postgresql.DebeziumPeer", str(folder), str(CHANGES)]
    command = [str(runtime.path), *options, *program]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return Written(folder, [json.loads(line) for line in done.stdout.splitlines()])


def told(change: RowChange) -> dict[str, Any]:
    """A change as the peer reports it."""
    assert change.ts is not None
    parts = None if change.position is None else [int(part) for part in change.position.split(":")]
    return {
        "op": change.op,
        "before": change.before,
        "after": change.after,
        "millis": (change.ts - EPOCH) // timedelta(milliseconds=1),
        "sequence": parts,
        "table": change.source["table"],
        "connector": change.source["connector"],
    }


def wanted(written: Written) -> list[dict[str, Any]]:
    """The peer's report, with the sequence as numbers: before the first commit, which is null, the change's."""
    pairs = [json.loads(each["sequence"]) for each in written.told]
    numbers = [[int(commit or change), int(change)] for commit, change in pairs]
    return [{**each, "sequence": pair} for each, pair in zip(written.told, numbers, strict=True)]


@pytest.mark.integration
@pytest.mark.parametrize("form", FORMS)
def test_changes_are_read(written: Written, form: str) -> None:
    events = written.events(form)
    assert len(events) == len(written.told) == CHANGES + CHANGES // 10
    reader = written.reader(form, COLUMNS)
    changes = [reader.deserialize(event) for event in events]
    assert [told(change) for change in changes] == wanted(written)
    # The microseconds come from the database.
    assert changes[3].ts == datetime(2026, 5, 1, 12, 0, 0, 126456, tzinfo=UTC)
    column = reader.decode_column(pa.array(events))
    assert column.type == COLUMNS
    assert [told(RowChange(**row)) for row in column.to_pylist()] == wanted(written)
    assert {change.op for change in changes} == set("crud")


@pytest.mark.integration
def test_all_forms_in_one_column(written: Written) -> None:
    mixed = [
        event for pair in zip(written.events("json"), written.events("json-schema"), strict=True) for event in pair
    ]
    column = written.reader("json", COLUMNS).decode_column(pa.array(mixed))
    assert [told(RowChange(**row)) for row in column.to_pylist()] == [
        each for each in wanted(written) for _ in range(2)
    ]


@pytest.mark.integration
@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_twice_is_read_once(written: Written, form: str) -> None:
    reader = written.reader(form)
    changes = list(distinct_changes(map(reader.deserialize, written.events(form))))
    assert [told(change) for change in changes] == wanted(written)[:CHANGES]
    # In the order of the log, after a snapshot whose rows have one position.
    positions = [str(change.position) for change in changes]
    assert positions == sorted(positions)
    assert len(set(positions)) == CHANGES - 2


@pytest.mark.integration
@pytest.mark.parametrize("form", ["json", "json-schema"])
def test_the_proposal_of_sniffing_reads_them(written: Written, form: str) -> None:
    (part,) = sniff(written.events(form), stream="shop/orders").parts
    assert part.proposal.spark == {"format": "json", "unwrap": "debezium"}
    assert "after STRUCT<id: BIGINT, item: STRING, cups: BIGINT, at: BIGINT>" in part.proposal.columns
    assert (
        part.proposal.client
        == 'client.read("shop/orders", pravega_serde.ChangeDeserializer(pravega_serde.JsonSerializer()))'
    )
