"""CloudEvents of Java's SDK are read, and it reads what is written: random events, both ways, by row and by column."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import pytest

from pravega_connector.local.jvm import find_java
from pravega_serde import ByteArraySerializer, Envelope, Enveloped
from pravega_serde.envelopes.cloudevents_avro import SCHEMA
from tests.foreign._corpora import PROTOBUF_JAVA, Corpus
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

EVENTS: Final = 200
SECONDS: Final = 240
_MAVEN: Final = "https://repo1.maven.org/maven2/io/cloudevents"
SDK: Final = tuple(
    Corpus(f"{_MAVEN}/{name}/4.0.1/{name}-4.0.1.jar", digest, "Apache-2.0")
    for name, digest in {
        "cloudevents-api": "1eb08784349017f4d9bf7e31cd9107c7e1dd15138f60507168a3a68b0206cf5b",
        "cloudevents-core": "f6226bac64b9fd84b15ec2111eb50b512febec55bbf40495cce841946b8dc120",
        "cloudevents-json-jackson": "0b63817b29ed6e04c401928acf701470fd5d16c447e54d78cc2801800820617f",
        "cloudevents-protobuf": "ab07e80c89efa73a7858691f1ed8cd0a5cf40e4d7366ab3e7102f787e57cfdc7",
    }.items()
)
#: Branches of ``data`` in the specification's schema: the first two are our schema's.
_DATA: Final = ["bytes", "null", "boolean", "double", "string"]
AVRO: Final = json.dumps({**SCHEMA, "fields": [SCHEMA["fields"][0], {"name": "data", "type": _DATA}]})
FILES: Final = {"cloudevents": "json", "cloudevents+avro": "avro", "cloudevents+protobuf": "protobuf"}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
JSON: Final = "application/json"

Java = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    """Run the peer with arguments; return its report about each event."""
    classes, together, runtime = tmp_path_factory.mktemp("classes"), tmp_path_factory.mktemp("jars"), find_java()
    sparks = Path(pyspark.__file__).parent / "jars"
    jars = [*sparks.glob("jackson-[acd]*-2*.jar"), *sparks.glob("avro-1*.jar"), *sparks.glob("slf4j-api*.jar")]
    for jar in [*jars, *(each.file() for each in (*SDK, PROTOBUF_JAVA[0]))]:
        (together / jar.name).symlink_to(jar)
    compile_java(runtime, (Path(__file__).parent / "java_cloudevents").glob("*.java"), classes, together)

    def run(*arguments: str) -> list[Any]:
        options = ["-Xmx256m", *SOON_READY, "-cp", f"{classes}:{together}/*"]
        command = [str(runtime.path), *options, "CloudEventsPeer", AVRO, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@dataclass(frozen=True)
class Javas:
    """Events of Java in a folder, and what it reports about them."""

    folder: Path
    told: list[dict[str, Any]]

    def of(self, envelope: str) -> list[bytes]:
        return [bytes.fromhex(line) for line in (self.folder / FILES[envelope]).read_text().splitlines()]


@pytest.fixture(scope="module")
def javas(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Javas:
    folder = tmp_path_factory.mktemp("events")
    return Javas(folder, java("write", str(folder), str(EVENTS)))


def told(each: Envelope[bytes]) -> dict[str, Any]:
    """An event as the peer reports it."""
    attributes = dict(each.headers)
    if each.key is not None:
        attributes["partitionkey"] = each.key
    if each.time is not None:
        attributes["time"] = str((each.time - EPOCH) // timedelta(microseconds=1))
    return {"attributes": attributes, "data": None if each.value is None else each.value.hex()}


def column(envelopes: Sequence[Envelope[bytes]], kind: pa.DataType) -> pa.Array:
    rows = [
        {"value": each.value, "key": each.key, "time": each.time, "headers": [*each.headers.items()]}
        for each in envelopes
    ]
    return pa.array(rows, kind)


@pytest.mark.integration
@pytest.mark.parametrize("envelope", FILES)
def test_events_of_java_are_read(javas: Javas, envelope: str) -> None:
    events = javas.of(envelope)
    assert len(events) == len(javas.told) == EVENTS
    serializer = Enveloped(ByteArraySerializer(), envelope)
    assert [told(serializer.deserialize(event)) for event in events] == javas.told
    rows = serializer.decode_column(pa.array(events)).to_pylist()
    assert [told(Envelope(**{**row, "headers": dict(row["headers"])})) for row in rows] == javas.told


@pytest.mark.integration
def test_java_reads_what_is_written(java: Java, javas: Javas, tmp_path: Path) -> None:
    read = Enveloped(ByteArraySerializer()).deserialize
    # The data of an event without a content type is JSON.
    given = [read(event) for event in javas.of("cloudevents")]
    given = [replace(each, headers={"datacontenttype": JSON, **each.headers}) for each in given]
    given += [Envelope(None), Envelope(b"\xff"), Envelope(b"", key="k", time=EPOCH)]
    defaults = {"source": "/shop", "type": "order"}
    for envelope, name in FILES.items():
        serializer = Enveloped(ByteArraySerializer(), envelope, **defaults)
        events = [serializer.serialize(each) for each in given]
        assert serializer.encode_column(column(given, serializer.arrow_type)).to_pylist() == events
        (tmp_path / name).write_text("".join(f"{event.hex()}\n" for event in events))
    by_java = java("read", str(tmp_path))
    assert [each["format"] for each in by_java] == [name for name in ("json", "protobuf", "avro") for _ in given]
    for each, wanted in zip(by_java, given * 3, strict=True):
        attributes = each["attributes"]
        ours = told(wanted)
        kind = {} if wanted.value is None else {"datacontenttype": "application/octet-stream"}
        assert each["data"] == ours["data"]
        assert attributes == {"id": attributes["id"], **defaults, **kind, **ours["attributes"]}
    assert len({each["attributes"]["id"] for each in by_java}) == len(given)
