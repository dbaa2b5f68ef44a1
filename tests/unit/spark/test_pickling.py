"""The shape of what the processes of a query hand to each other, next to the number that means it.

``python -m tests.unit.spark.test_pickling`` writes the shape down after the number was raised.
"""

import dataclasses
import json
import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.errors import VersionMismatchError
from pravega_connector.exactly_once.batch_commit import Content
from pravega_connector.rows.pickled import Pickled
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.jvm.decoding import TypedRows
from pravega_connector.spark.jvm.messages import TaskOptions
from pravega_connector.spark.pickling import VERSION, Exchanged, receive
from pravega_connector.spark.sink.transactions import TaskPart, TaskPrepared, WriteId
from pravega_connector.spark.sink.writers import TaskWritten
from pravega_connector.spark.source.readers import PravegaFilteringReader
from pravega_connector.spark.source.real_time import RealTimeReader
from pravega_connector.spark.tables.writer import TaskUpserted
from pravega_connector.testing import InProcessPravega

FILE = Path(__file__).parents[2] / "vectors" / "exchanged.json"
OURS = ("pravega_connector", "pravega_serde")


def name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def attributes(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        declared = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {**getattr(value, "__dict__", {}), **declared}
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **getattr(value, "__dict__", {})}


def add_shapes(value: Any, shapes: dict[str, list[str]], seen: set[int]) -> None:
    """Add the attributes of a value's class, and of the classes of the values in it."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Pickled):
        add_shapes(pickle.loads(value._pickled), shapes, seen)  # as it comes, without what its use adds
    if isinstance(value, dict):
        inner: Any = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif type(value).__module__.partition(".")[0] in OURS and not isinstance(value, type):
        found = attributes(value)
        name = name_of(type(value))
        shapes[name] = sorted({*shapes.get(name, ()), *found})
        inner = found.values()
    else:
        return
    for each in inner:
        add_shapes(each, shapes, seen)


def exchanged() -> list[Exchanged]:
    """One object of each kind, as they are behind a pickle."""
    typed = StructType([StructField("id", LongType()), StructField("item", StringType())])
    named = StructType([*typed, StructField("target_stream", StringType()), StructField("routing_key", StringType())])
    with InProcessPravega() as pravega, PravegaClient(pravega.config) as client:
        client.create_stream("s/x", 2)
        with client.writer("s/x", "string") as writer:
            writer.write("one", "key")
        place = {"controller": pravega.config.controller, "stream": "s/x"}
        source = PravegaDataSource(place | {"columns": "event,event_time_low"})
        columns = source.schema()
        batch = source.reader(columns)
        made: list[Any] = [batch, *batch.partitions(), source.streamReader(columns)]
        for name in ("json", "cbor"):
            source = PravegaDataSource(place | {"format": name})
            made += [source.reader(typed), source.writer(typed, overwrite=False), source.streamWriter(typed, False)]
        several = PravegaDataSource({"controller": place["controller"], "format": "json"})
        made.append(several.writer(named, overwrite=False))
        client.create_table("s/t", 4)
        table = {"controller": place["controller"], "table": "s/t", "format": "json"}
        keyed = StructType([*typed, StructField("key", StringType())])
        entries = PravegaDataSource(table).reader(keyed)
        upserts = PravegaDataSource(table | {"order_column": "id"})
        made += [entries, *entries.partitions(), upserts.writer(keyed, False), upserts.streamWriter(keyed, False)]
        listed = PravegaDataSource(place | {"metadata": "StreamInfo"})
        metadata = listed.reader(listed.schema())
        made += [
            metadata,
            *metadata.partitions(),
            TaskOptions(batch.options),
            TypedRows(batch.options, batch.schema, batch.serializer),
            PravegaFilteringReader(batch.options, batch.schema, batch.serializer),
            RealTimeReader(batch.options, batch.schema, batch.serializer),
        ]
    part = TaskPart(StreamName("s", "x"), uuid.UUID(int=1), Content(2, 30, 7), 0, 1)
    made += [
        TaskPrepared(WriteId("app", "query", "run", 7), 3, (part,)),
        TaskWritten(2, 30, query="query"),
        TaskUpserted(b"", b""),
    ]
    return [pickle.loads(pickle.dumps(value)) for value in made]


def shapes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in exchanged():
        add_shapes(value, found, set())
    return dict(sorted(found.items()))


def test_another_shape_has_another_number():
    kept = json.loads(FILE.read_text())
    write = "python -m tests.unit.spark.test_pickling"
    assert shapes() == kept["classes"], f"raise pravega_connector.spark.pickling.VERSION, then {write}"
    assert kept["version"] == VERSION, write


def test_every_class_that_is_exchanged_is_in_it():
    def below(kind: type) -> set[type]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    kept = json.loads(FILE.read_text())["classes"]
    # A class whose name begins with an underscore is a base.
    kinds = {kind for kind in below(Exchanged) - {Exchanged} if not kind.__name__.startswith("_")}
    assert {name_of(kind) for kind in kinds if kind.__module__ != __name__} <= kept.keys()


def test_another_number_is_refused_unread():
    with pytest.raises(VersionMismatchError, match=f"version {VERSION + 1}, this process version {VERSION}"):
        receive(VERSION + 1, b"nothing that can be read")


def main() -> None:
    kept, found = json.loads(FILE.read_text()) if FILE.exists() else {}, shapes()
    if kept.get("classes", found) != found and kept["version"] == VERSION:
        raise SystemExit(
            f"the shape is another one, but VERSION in pravega_connector/spark/pickling.py is still {VERSION}: raise it"
        )
    FILE.write_text(json.dumps({"version": VERSION, "classes": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
