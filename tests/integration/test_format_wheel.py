"""A format in its own package: the one of the page 'Write a format', built and installed as users do."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector import PravegaClient, export_stream
from pravega_serde import DeserializationError, format_table, formats, plug_in_formats, serializer_for, sniff
from pravega_serde.registry import SerializationFormat, deserializer, serializer
from tests.support import pages

PAGE = "docs/serialization/write-a-format.md"
ROOT = Path(__file__).parents[2]


def block_of(section: str, language: str) -> pages.Block:
    (found,) = (each for each in pages.blocks(PAGE) if (each.section, each.language) == (section, language))
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of the page's package, and install it in a folder."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "msgpack_events.py").write_text(block_of("A format with columns", "python").text)
    (source / "pyproject.toml").write_text(block_of("The package", "toml").text)
    install = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", target, source]
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, env=environment, timeout=120)
    return target


@pytest.fixture
def known(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let this process find the package."""
    caches = (plug_in_formats.load, plug_in_formats.installed, format_table._plug_in)
    monkeypatch.syspath_prepend(installed)
    for each in caches:
        each.cache_clear()
    yield installed
    for each in caches:
        each.cache_clear()
    sys.modules.pop("msgpack_events", None)


def test_the_names_of_a_package_are_known_without_its_import(known: Path):
    assert "messagepack" in formats()
    events = [serializer_for("messagepack").serialize({"id": each, "item": "tea"}) for each in range(20)]
    sys.modules.pop("msgpack_events")
    found = sniff(events)
    assert found.format == "messagepack"
    assert found.parts[0].reason.endswith("The installed format 'messagepack' reads it: set format=messagepack.")
    assert "msgpack_events" not in sys.modules
    assert serializer_for(" MessagePack ").deserialize(events[7]) == {"id": 7, "item": "tea"}
    assert serializer_for("msgpack_events:MsgpackSerializer").deserialize(events[7])["id"] == 7


def test_columns_report_malformed_rows(known: Path):
    columns = serializer_for("messagepack", arrow_type=pa.schema([("id", pa.int64())]))
    events = columns.encode_column(pa.array([{"id": each} for each in range(200)])).to_pylist()
    events[150:152] = [b"\xc1", serializer_for("messagepack").serialize({"id": "x"})]
    errors: list[DeserializationError] = []
    values = columns.decode_column(pa.array(events), on_error=errors.append).to_pylist()
    assert values == [None if each in (150, 151) else {"id": each} for each in range(200)]
    assert [each.row for each in errors] == [150, 151]


@pytest.mark.parametrize("page", [PAGE])
def test_the_page_runs_with_the_package(page: str, follower: pages.Follower, known: Path):
    follower.packages = (known,)
    shown = [follower.run(each) for each in pages.run_by(pages.FORMAT_WHEEL)[page] if each.section == "Use it"]
    values = [json.loads(line) for line in shown[1].splitlines() if line.startswith("{")]
    assert {"id": 2, "item": "coffee"} in values
    assert pq.read_table(follower.folder / "orders.parquet").sort_by("id").to_pylist() == [
        {"id": 1, "item": "tea"},
        {"id": 2, "item": "coffee"},
        {"id": 3, "item": "milk"},
    ]
    assert "set format=messagepack" in shown[1]
    with PravegaClient(follower.controller) as client:  # the events of the client, of write and of ingest
        assert [value["id"] for value in client.read("plug/orders", "messagepack")] == [1, 2, 3]
    assert pq.read_table(follower.folder / "orders.parquet")["item"].to_pylist() == ["tea", "coffee", "milk"]


def test_export_with_columns(client: PravegaClient, scope: str, tmp_path: Path, known: Path):
    client.create_stream(f"{scope}/exported")
    client.write(f"{scope}/exported", {"id": 1, "item": "tea"}, "messagepack")
    file, columns = tmp_path / "items.parquet", pa.schema([("item", pa.string())])
    controller = client.config.controller
    done = export_stream(f"{scope}/exported", file, controller=controller, format="messagepack", schema=columns)
    assert done.rows == 1
    assert pq.read_table(file).to_pylist() == [{"item": "tea"}]


def test_events_of_a_custom_format_in_a_registry(registry: str, scope: str, known: Path):
    custom = SerializationFormat.custom("MessagePack")
    chosen = {"custom_formats": {"MessagePack": "messagepack"}}
    writer = serializer(
        registry,
        group=f"{scope}packed",
        schema="",
        format=custom,
        type="Order",
        create_group=True,
        register_schema=True,
        **chosen,
    )
    event = writer.serialize({"id": 1})
    assert deserializer(registry, group=f"{scope}packed", **chosen).deserialize(event) == {"id": 1}


SPARK = """
import sys
from pathlib import Path
from pyspark.sql.functions import struct
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.functions import from_pravega, to_pravega
from tests.support import pages
from tests.support.spark_session import spark_session

controller, folder = sys.argv[1], Path(sys.argv[2])
spark = spark_session(folder)
spark.dataSource.register(PravegaDataSource)
follower = pages.Follower(folder, controller, "")
follower.names["spark"] = spark
for block in pages.run_by(pages.FORMAT_WHEEL)["docs/serialization/write-a-format.md"]:
    if block.section == "Use it in Spark":
        follower.run(block)
place = {"controller": controller, "format": "msgpack_events:MsgpackSerializer"}
stream = spark.readStream.format("pravega").options(**place, start_stream_cut="earliest").schema("item STRING")
query = (
    stream.load("plug/orders").writeStream.format("pravega").options(**place, allow_create_stream=True)
    .option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start("plug/items")
)
assert query.awaitTermination(120)
(row,) = spark.read.format("pravega").options(**place).schema("item STRING").load("plug/items").collect()
assert tuple(row) == ("tea",)
frame = spark.createDataFrame([(7, "milk")], "id BIGINT, item STRING")
events = frame.select(to_pravega(struct("id", "item"), "messagepack").alias("event"))
value = from_pravega("event", "messagepack", "id BIGINT, item STRING").alias("value")
(row,) = events.select(value).select("value.*").collect()
assert tuple(row) == (7, "milk")
print("complete")
"""


@pytest.mark.long
def test_spark_with_the_package(
    client: PravegaClient, installed: Path, tmp_path: Path, start_python: Callable[..., subprocess.Popen[str]]
):
    client.create_stream("plug/orders")
    client.write("plug/orders", b"\x82\xa2id\x01\xa4item\xa3tea", "bytes")
    paths = os.pathsep.join(map(str, (ROOT, installed)))
    done = start_python(SPARK, client.config.controller, tmp_path, PYTHONPATH=paths)
    output, errors = done.communicate(timeout=240)
    assert done.returncode == 0, errors[-4000:]
    assert output.endswith("complete\n")
