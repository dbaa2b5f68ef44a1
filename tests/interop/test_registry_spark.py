"""Spark between Java's registry serializers and its deserializers: live streams, typed columns, value by value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega, LocalSchemaRegistry
from pravega_connector.wire import StreamName
from tests.interop._java import JavaPeer
from tests.interop._java_registry import JavaRegistry
from tests.interop._registry_values import VALUES

pytestmark = pytest.mark.long  # test_java_registry.py has Java and the registry, integration/spark the columns
#: Where Spark finds the codec of the group that Java writes "encrypted": a module that every worker gets.
MASK = "their_codecs:MASK"
THEIR_CODECS = """
from pravega_serde.registry import Codec

def mask(data, properties=None):
    key = 85 if properties is None else int(properties["mask"])
    return bytes(each ^ key for each in data)

MASK = Codec("com.example/mask", mask, mask, {"mask": "85"})
"""
#: Group -> what Spark has to be told to write back as Java wrote.
GROUPS: Final[dict[str, dict[str, str]]] = {
    "avro": {},
    "avro-gzip": {"codec": "gzip"},
    "avro-mask": {"codec": MASK},
    "avro-snappy": {"codec": "snappy"},
    "avro-multi": {},
    "json": {},
    "json-snappy": {"codec": "snappy", "typed_java_readers": "false"},
    "json-multi": {},
    "proto": {},
    "proto-gzip": {"codec": "gzip", "typed_java_readers": "false"},
    "proto-multi": {},
}
#: Options of Spark that read a group.
TO_READ: Final[dict[str, dict[str, str]]] = {"avro-mask": {"codecs": MASK}}
#: Columns of the groups with several types, and a field that tells them.
TYPES: Final = {"beats": "Pulse", "temp": "Sensor", "domain": "ErrorInfo", "units": "Money", "age": "User"}


@pytest.fixture(scope="module", autouse=True)
def their_codecs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The module of codecs, shipped as applications ship theirs."""
    module = tmp_path_factory.mktemp("codecs") / "their_codecs.py"
    module.write_text(THEIR_CODECS)
    spark.sparkContext.addPyFile(str(module))


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    with LocalSchemaRegistry() as registry:
        yield registry.uri


@pytest.fixture(scope="module")
def count() -> int:
    """How many events a group has."""
    return 10_000


@pytest.fixture(scope="module")
def serializers(uri: str, count: int, tmp_path_factory: pytest.TempPathFactory) -> JavaRegistry:
    """Java's registry serializers, after they have written."""
    made = JavaRegistry(uri, tmp_path_factory.mktemp("java_registry"), few=count, groups=GROUPS)
    made.write()
    return made


@pytest.fixture
def options(pravega: LocalPravega, uri: str) -> dict[str, str]:
    return {"controller": pravega.config.controller, "registry": uri}


def read(spark: SparkSession, stream: StreamName, options: dict[str, str]) -> DataFrame:
    return spark.read.format("pravega").options(**options).load(str(stream))


def write(frame: DataFrame, stream: StreamName, options: dict[str, str]) -> None:
    """Append the rows in their order."""
    frame.coalesce(1).write.format("pravega").options(**options).mode("append").save(str(stream))


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.toArrow().to_pylist(maps_as_pydicts="strict")
    return found


def expected(group: str, i: int) -> dict[str, Any]:
    value = VALUES[group][1](i)
    if not group.endswith("-multi"):
        return value
    name = next((name for key, name in TYPES.items() if key in value), "Order")
    names = {"avro-multi": ("Pulse", "Sensor"), "json-multi": ("Order", "User"), "proto-multi": ("ErrorInfo", "Money")}
    return {each: value if each == name else None for each in names[group]}


def test_java_to_spark_to_java(
    spark: SparkSession, client: PravegaClient, java: JavaPeer, serializers: JavaRegistry, count: int, scope: str,
    options: dict[str, str],
) -> None:  # fmt: skip
    """Java writes events of each group onto a stream, Spark reads and writes columns, Java reads values."""
    counts = {}
    for group, more in GROUPS.items():
        events = serializers.events(group)
        source, target = StreamName(scope, group), StreamName(scope, f"{group}-back")
        client.create_stream(source)
        client.create_stream(target)
        java.write(source, [("key", event) for event in events])

        frame = read(spark, source, options | TO_READ.get(group, {}))
        found = rows(frame)
        counts[group] = len(found)
        wrong = [i for i, row in enumerate(found) if row != expected(group, i)]
        assert wrong == [], f"{group} {wrong[0]}: {found[wrong[0]]} instead of {expected(group, wrong[0])}"

        write(frame, target, options | more | {"group": group})
        serializers.give(group, [event.payload for event in java.read(target)])
    assert all(each >= count for each in counts.values())

    answers = serializers.read()
    assert [answer for answer in answers if answer["wrong"]] == []
    assert {answer["group"]: answer["events"] for answer in answers} == counts
    readers = {(answer["group"], answer["reader"]) for answer in answers}
    assert {(group, "typed") for group in GROUPS if group not in ("json-snappy", "proto-gzip")} <= readers
    assert {(group, "generic") for group in GROUPS if not group.endswith(("-multi", "-mask"))} <= readers


def test_a_codec_that_was_not_told_is_named(
    spark: SparkSession, client: PravegaClient, java: JavaPeer, serializers: JavaRegistry, scope: str,
    options: dict[str, str],
) -> None:  # fmt: skip
    stream = StreamName(scope, "avro-mask")
    client.create_stream(stream)
    java.write(stream, [("key", event) for event in serializers.events("avro-mask")[:3]])
    with pytest.raises(PySparkException, match=r"com\.example/mask"):
        read(spark, stream, options)
    found = rows(read(spark, stream, options | TO_READ["avro-mask"]))
    assert found == [expected("avro-mask", number) for number in range(3)]


@pytest.mark.parametrize("made", ["avro", "json", "protobuf"])
def test_java_reads_what_spark_derived(
    spark: SparkSession, client: PravegaClient, java: JavaPeer, serializers: JavaRegistry, count: int, scope: str,
    options: dict[str, str], made: str,
) -> None:  # fmt: skip
    """Columns become a schema of each format, which Java's generic reader gets from the registry."""
    stream = StreamName(scope, f"derived-{made}")
    client.create_stream(stream)
    frame = spark.sql(f"""
        SELECT id, CAST(id AS INT) AS count, CONCAT('sensor-', id, ' é😀') AS name, id / 7D AS temp, id % 2 = 0 AS ok,
               IF(id % 5 = 0, NULL, CONCAT('n', id)) AS note, ARRAY('a', CONCAT('b', id)) AS tags
        FROM RANGE(0, {count}, 1, 1)""")
    new = {"format": made, "registry_type": "com.example.Made", "create_group": "true", "register_schema": "true"}
    write(frame, stream, options | new)
    events = [event.payload for event in java.read(stream)]
    shown = serializers.show({stream.stream: events})[stream.stream]
    assert len(shown) == count
    for i, value in enumerate(shown):
        if made == "protobuf":
            # Its JSON leaves out what is not there, and zeros of columns without nulls; it has 64 bits as text.
            zeros = {"note": None, "id": 0, "count": 0, "temp": 0.0, "ok": False}
            value = zeros | value | {"id": int(value.get("id", 0))}
        assert value == {
            "id": i, "count": i, "name": f"sensor-{i} é😀", "temp": i / 7, "ok": i % 2 == 0,
            "note": None if i % 5 == 0 else f"n{i}", "tags": ["a", f"b{i}"],
        }  # fmt: skip
