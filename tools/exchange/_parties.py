"""Applications of each kind: they write trips into streams with what their users have, and read what others wrote."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from benchmarks._drive import Peer
from pravega_connector.client import EventWriter, PravegaClient, Transaction
from pravega_connector.local import registry_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.wire import StreamName
from pravega_serde import serializer_for
from pravega_serde.java import JavaEnum, JavaObject
from pravega_serde.registry import SchemaRegistryClient, deserializer, serializer
from tests.interop._javac import compile_java
from tests.interop._rust import RustPeer, rust_python
from tests.support.jvm import SOON_READY
from tools.exchange._trips import FORMATS, Format, expected, key

__all__ = ["FLINK_OPENS", "Flink", "Java", "Mode", "Party", "Place", "Python", "Rust", "Seen", "Spark"]

Mode = str
_HERE: Final = Path(__file__).parent
_INTEROP: Final = _HERE.parents[1] / "tests" / "interop"
_ASK_SECONDS: Final = 240.0
#: Options of Java for Flink's serializers, which look into objects of these packages.
FLINK_OPENS: Final = tuple(
    f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
    for package in (
        *("lang", "lang.invoke", "math", "net", "text", "time", "util"),
        *("util.concurrent", "util.concurrent.atomic"),
    )
)


@dataclass(frozen=True, slots=True)
class Place:
    """Servers that all parties use, and what they know about the formats."""

    controller: str
    registry: str
    scope: str
    schemas: Path
    """Folder with ``trip.avsc`` and ``trip.pb``, a descriptor set."""


@dataclass(slots=True)
class Seen:
    """Values of a reader, in the order of arrival."""

    values: list[Any]
    lows: list[int | None] = field(default_factory=list)
    """Lower bound of the time at each event, in milliseconds; empty where the reader knows no times of events."""
    highs: list[int | None] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """Watermarks on their own."""


class Party(ABC):
    """One kind of application."""

    name: str
    aborts = False
    """Whether it can abort a transaction on request."""
    bounds_above = True
    """Whether the times it notes are those of its last events; else they are earlier."""

    @abstractmethod
    def write(
        self, stream: StreamName, form: Format, first: int, last: int, mode: Mode, time: int | None = None
    ) -> None:
        """Write trips, durable on return. ``mode`` is plain, transaction or aborted; ``time`` is noted after them.

        The time of a trip is its number, in milliseconds.
        """

    @abstractmethod
    def read(self, stream: StreamName, form: Format, count: int, *, timed: bool) -> Seen:
        """Read the stream from its head to this many events, or to its end."""

    def done(self) -> None:  # noqa: B027 - most keep none open
        """Close the writers of streams that were written."""

    def lacks(self, form: Format, mode: str, *, writing: bool) -> str | None:
        """Why it cannot do this by what it is; None if it can."""
        return None

    def close(self) -> None:  # noqa: B027 - most have none
        """End its processes."""


class Python(Party):
    """A program with this project's client and serializers."""

    name = "Python"
    aborts = True

    def __init__(self, place: Place, sample: bytes) -> None:
        self._place, self._client = place, PravegaClient(place.controller)
        self._writing = {form: _writer(place, form, sample) for form in FORMATS}
        self._reading = {form: _reader(place, form) for form in FORMATS}
        self._writers: dict[StreamName, EventWriter[Any]] = {}

    def bytes_of(self, form: Format, number: int) -> bytes:
        """The event of a trip."""
        made: bytes = self._writing[form].serialize(_value(form, number))
        return made

    def value_of(self, form: Format, event: bytes) -> Any:
        """Content of an event."""
        return _plain(self._reading[form].deserialize(event))

    def write(
        self, stream: StreamName, form: Format, first: int, last: int, mode: Mode, time: int | None = None
    ) -> None:
        if mode == "plain":
            writer = self._writers.get(stream)
            if writer is None:
                writer = self._writers[stream] = self._client.writer(stream, self._writing[form])
            _write_all(writer, form, first, last)
            writer.flush()
            if time is not None:
                writer.note_time(time)
            return
        with self._client.transactions(stream, self._writing[form]) as writers:
            transaction = writers.begin()
            _write_all(transaction, form, first, last)
            if mode == "aborted":
                transaction.abort()
            else:
                transaction.commit(timestamp=time)

    def read(self, stream: StreamName, form: Format, count: int, *, timed: bool) -> Seen:
        if not timed:
            return Seen([self.value_of(form, event) for event in self._client.read(stream)])
        seen, deserialize = Seen([]), self._reading[form].deserialize
        with self._client.follow(stream, start="earliest") as follower:
            while len(seen.values) < count and (batch := follower.poll(30)) is not None:
                window = self._client.time_window(follower.positions[0])
                for event in batch.events.to_pylist():
                    seen.values.append(_plain(deserialize(event)))
                    # The position is behind the batch: what it says about earlier events is the upper bound.
                    seen.highs.append(window.high)
        seen.marks = [mark.low for mark in self._client.watermarks(stream)]
        return seen

    def done(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def close(self) -> None:
        self._client.close()


def _write_all(target: EventWriter[Any] | Transaction[Any], form: Format, first: int, last: int) -> None:
    for number in range(first, last):
        target.write(_value(form, number), routing_key=key(number))


def _value(form: Format, number: int) -> Any:
    found = expected(form, number)
    return bytes.fromhex(found) if form.base == "bytes" else found


def _writer(place: Place, form: Format, sample: bytes) -> Any:
    schema, more = _schema(place, form), {}
    if form.base == "protobuf":
        more["message_type" if not form.registry else "type"] = "com.example.taxi.proto.Trip"
    if form.registry:
        made = _registered(place, form)
        settings: dict[str, Any] = {"codec": form.codec} if form.codec else {}
        return serializer(
            place.registry, namespace=place.scope, group=form.group, schema=made, format=form.base, **settings
        )
    if form.base == "java":
        return serializer_for("java", sample=sample)
    return serializer_for(form.base, **({} if schema is None else {"schema": schema}), **more)


def _registered(place: Place, form: Format) -> Any:
    """The schema that the group has: Java registered it."""
    with SchemaRegistryClient(place.registry, namespace=place.scope) as client:
        (latest,) = client.latest_schemas(form.group)
        return latest.schema


def _reader(place: Place, form: Format) -> Any:
    if form.registry:
        return deserializer(place.registry, namespace=place.scope, group=form.group)
    if form.base == "java":
        return serializer_for("java")
    schema = _schema(place, form)
    more = {"message_type": "com.example.taxi.proto.Trip"} if form.base == "protobuf" else {}
    return serializer_for(form.base, **({} if schema is None else {"schema": schema}), **more)


def _schema(place: Place, form: Format) -> Any:
    if form.base == "avro":
        return (place.schemas / "trip.avsc").read_text()
    return (place.schemas / "trip.pb").read_bytes() if form.base == "protobuf" else None


def _plain(found: Any) -> Any:
    """A value that was read, as JSON has it."""
    if isinstance(found, bytes):
        return found.hex()
    if isinstance(found, Message):
        return {each.name: _field(found, each) for each in found.DESCRIPTOR.fields}
    if isinstance(found, JavaObject):
        return {name: _plain(value) for name, value in found.fields.items()}
    if isinstance(found, JavaEnum):
        return found.name
    if isinstance(found, Mapping):
        return {str(name): _plain(value) for name, value in found.items()}
    if isinstance(found, Sequence) and not isinstance(found, str):
        return [_plain(each) for each in found]
    return found


def _field(message: Message, field: FieldDescriptor) -> Any:
    found = getattr(message, field.name)
    if field.has_presence and not message.HasField(field.name):
        return None
    if field.enum_type is not None:
        return field.enum_type.values_by_number[found].name
    return _plain(
        dict(found) if field.message_type is not None and field.message_type.GetOptions().map_entry else found
    )


class Rust(Party):
    """The Rust client's Python binding, which carries strings and bytes: serializers are for its users to bring."""

    name = "Rust"

    def __init__(self, place: Place, folder: Path, python: Python) -> None:
        self._peer, self._python = RustPeer(place.controller, folder), python

    def write(
        self, stream: StreamName, form: Format, first: int, last: int, mode: Mode, time: int | None = None
    ) -> None:
        del mode, time
        self._peer.write(stream, [(key(n), self._python.bytes_of(form, n)) for n in range(first, last)])

    def read(self, stream: StreamName, form: Format, count: int, *, timed: bool) -> Seen:
        del timed
        return Seen([self._python.value_of(form, event) for event in self._peer.read(stream, count)])

    def lacks(self, form: Format, mode: str, *, writing: bool) -> str | None:
        if rust_python() is None:
            return "not installed"
        if form.base not in ("string", "bytes"):
            return "has no serializers"
        if mode == "watermarks":
            return "does not support event time"
        return None


class _Asked(Party):
    """A program in Java that answers questions (tests/interop/java/JsonPeer.java says how)."""

    def __init__(self, place: Place, name: str, classes: Path, jars: Iterable[str], *options: str) -> None:
        self._place = place
        folder = f"-Dexchange.schemas={place.schemas}"
        logback = f"-Dlogback.configurationFile={_INTEROP / 'java' / 'logback.xml'}"
        command = [str(find_java().path), "-Xmx768m", *SOON_READY, *options, folder, logback]
        self._peer = Peer(name, [*command, "-cp", ":".join([str(classes), *jars]), name])

    def _ask(self, do: str, stream: StreamName, form: Format, **request: Any) -> Any:
        registry = self._place.registry if form.registry else None
        return self._peer.ask(
            do,
            timeout=_ASK_SECONDS,
            controller=self._place.controller,
            scope=stream.scope,
            stream=stream.stream,
            format=form.base,
            registry=registry,
            group=form.group,
            codec=form.codec,
            **request,
        )["value"]

    def close(self) -> None:
        self._peer.close()


class Java(_Asked):
    """A program with the Java client and the serializers of the Java registry client."""

    name = "Java"
    aborts = True

    def __init__(self, place: Place, folder: Path) -> None:
        jars = registry_jars()
        sources = [*(_HERE / "java").glob("*.java"), _INTEROP / "java" / "JsonPeer.java"]
        compile_java(find_java(), sources, folder, jars)
        super().__init__(place, "ExchangePeer", folder, [f"{jars}/*"])

    def register(self, forms: Iterable[Format]) -> None:
        """Make the groups of the registry, with their schemas and codecs, as a writer does."""
        for form in forms:
            self._ask("register", StreamName(self._place.scope, form.group), form)

    def sample(self) -> bytes:
        """A trip in Java's own format."""
        return bytes.fromhex(self._peer.ask("sample", timeout=_ASK_SECONDS)["value"])

    def write(
        self, stream: StreamName, form: Format, first: int, last: int, mode: Mode, time: int | None = None
    ) -> None:
        self._ask("write", stream, form, first=first, last=last, mode=mode, time=time)

    def read(self, stream: StreamName, form: Format, count: int, *, timed: bool) -> Seen:
        found = self._ask("read", stream, form, count=count, timed=timed)
        values, lows, highs = ([each[part] for each in found] for part in ("value", "low", "high"))
        # Java's upper bound is of the reader's place in all segments, and can be earlier than the event.
        return Seen(values, lows, marks=[high for high in highs if high is not None])

    def done(self) -> None:
        self._peer.ask("close", timeout=_ASK_SECONDS)


class Flink(_Asked):
    """Jobs of a Flink mini cluster with the Pravega connector, by one of its two interfaces."""

    bounds_above = False  # it notes the job's watermark, behind which later events than it have been written

    def __init__(self, place: Place, folder: Path, jars: Path, api: str) -> None:
        self.name, self._api = f"Flink, {api}", api
        sources = [_HERE / "java" / "Trip.java", _HERE / "java" / "Trips.java", _HERE / "flink" / "FlinkPeer.java"]
        compile_java(find_java(), [*sources, _INTEROP / "java" / "JsonPeer.java"], folder, jars)
        super().__init__(place, "FlinkPeer", folder, [f"{jars}/*"], *FLINK_OPENS)

    def write(
        self, stream: StreamName, form: Format, first: int, last: int, mode: Mode, time: int | None = None
    ) -> None:
        self._ask("write", stream, form, api=self._api, first=first, last=last, mode=mode, time=time)

    def read(self, stream: StreamName, form: Format, count: int, *, timed: bool) -> Seen:
        found = self._ask("read", stream, form, api=self._api, count=count, timed=timed)
        return Seen(found["values"], marks=found["marks"])

    def lacks(self, form: Format, mode: str, *, writing: bool) -> str | None:
        if writing and form.codec:
            return "its registry serializer does not support codecs"
        if mode == "watermarks" and self._api != "legacy":
            return "its sink does not note event time" if writing else "its source does not support event time"
        return None


class Spark(Party):
    """Spark jobs with this project's source and sink."""

    name = "Spark"
    _DDL = (
        "number BIGINT, zone STRING, fare DOUBLE, stops ARRAY<STRING>, extras MAP<STRING, DOUBLE>, "
        "driver STRUCT<name: STRING, rating: INT>"
    )

    def __init__(self, place: Place, folder: Path, sample: bytes) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        from pyspark.sql import SparkSession

        self._place, self._sample = place, sample.hex()
        self._spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.warehouse.dir", str(folder))
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )

    def _options(self, form: Format, *, writing: bool) -> dict[str, str]:
        options = {"controller": self._place.controller}
        if form.registry:
            options |= {"registry": self._place.registry, "namespace": self._place.scope, "group": form.group}
            return options | ({"codec": form.codec} if form.codec and writing else {})
        options["format"] = form.base
        if form.base == "java":
            options["java_sample"] = self._sample
        elif form.base == "avro":
            options["avro_schema"] = str(self._place.schemas / "trip.avsc")
        elif form.base == "protobuf":
            options["protobuf_descriptor"] = str(self._place.schemas / "trip.pb")
            options["protobuf_message"] = "com.example.taxi.proto.Trip"
        return options

    def write(
        self, stream: StreamName, form: Format, first: int, last: int, mode: Mode, time: int | None = None
    ) -> None:
        options = self._options(form, writing=True)
        ddl, single = self._DDL, form.base in ("string", "bytes")
        if single:
            ddl = f"event {'STRING' if form.base == 'string' else 'BINARY'}, number BIGINT"
            del options["format"]  # raw events, so that the number can stand next to them
        rows = []
        for number in range(first, last):
            value = _value(form, number)
            rows.append({"routing_key": key(number), **({"event": value, "number": number} if single else value)})
        if mode == "transaction":
            options |= {"writer_mode": "exactly_once", "txn_app_id": str(stream), "txn_version": str(first)}
        if time is not None:
            options["event_time_column"] = "number"
        frame = self._spark.createDataFrame(rows, f"routing_key STRING, {ddl}").coalesce(1)
        if single and time is None:
            frame = frame.drop("number")
        frame.write.format("pravega").options(**options).mode("append").save(str(stream))

    def read(self, stream: StreamName, form: Format, count: int, *, timed: bool) -> Seen:
        del count
        reader = self._spark.read.format("pravega").options(**self._options(form, writing=False))
        if timed:
            reader = reader.option("columns", "event_time_low,event_time_high")
        if form.base == "json" and not form.registry:
            reader = reader.schema(
                self._DDL + (", event_time_low TIMESTAMP, event_time_high TIMESTAMP" if timed else "")
            )
        seen = Seen([])
        for row in reader.load(str(stream)).toArrow().to_pylist(maps_as_pydicts="strict"):
            if timed:
                low, high = row.pop("event_time_low"), row.pop("event_time_high")
                seen.lows.append(None if low is None else round(low.timestamp() * 1000))
                seen.highs.append(None if high is None else round(high.timestamp() * 1000))
            seen.values.append(_plain(row["value"] if form.base in ("string", "bytes") else row))
        return seen

    def close(self) -> None:
        self._spark.stop()
