"""The examples that need no Spark, run as the programs that they are."""

import json
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from examples import evolution, heat_map, ingest_files, parallel_reads
from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName
from pravega_serde import ByField


def test_each_reader_sees_both_versions(config, registry, stream_name, capsys):
    arguments = ["--controller", config.controller, "--registry", registry, "--stream", str(stream_name)]
    evolution.main(arguments)
    assert capsys.readouterr().out.splitlines() == [
        "reader of version 1: [{'id': 1}, {'id': 2}]",
        "reader of version 2: [{'id': 1, 'tip': 0.0}, {'id': 2, 'tip': 1.5}]",
    ]


def test_files_are_ingested_once(
    config: PravegaConfig, client: PravegaClient, stream_name: StreamName, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    arguments = [str(tmp_path), "--controller", config.controller, "--stream", str(stream_name), "--key", "zone",
                 "--records", "7"]  # fmt: skip
    written = []
    for file in range(2):
        (tmp_path / f"{file}.csv").write_text("zone,trip\n" + "".join(f"{i % 5},{file * 50 + i}\n" for i in range(50)))
        for _ in range(2):
            ingest_files.main(arguments)
            written.append(capsys.readouterr().out.split()[0])
    assert written == ["50", "0", "50", "0"]
    trips = [json.loads(event) for event in client.read(stream_name)]
    assert Counter(trip["trip"] for trip in trips) == Counter(range(100))
    for zone in range(5):
        own = [trip["trip"] for trip in trips if trip["zone"] == zone]
        assert own == sorted(own)


def test_a_heat_map_shows_the_busy_segment(config, client, stream_name, tmp_path):
    client.create_stream(stream_name, 2)
    heat = heat_map.HeatMap(str(stream_name))
    heat.look(client)
    with client.writer(stream_name) as writer:
        for _ in range(100):
            writer.write(b"x" * 100, routing_key="the same")
    heat.look(client)
    client.scale_stream(stream_name, 4)
    heat.look(client)
    (start, middle, before), (_, end, after) = heat.rates()
    assert 0 == start < middle < end
    assert sorted(before) == [(0.0, 0.5), (0.5, 1.0)]
    assert sorted(rate * (middle - start) for rate in before.values()) == [0, pytest.approx(100 * (100 + 8))]
    assert sorted(after) == [(0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)]
    assert set(after.values()) == {0}

    page = tmp_path / "heat.html"
    heat_map.main(["--controller", config.controller, "--stream", str(stream_name), "--output", str(page),
                   "--every", "0.01", "--looks", "3"])  # fmt: skip
    picture = ElementTree.fromstring(page.read_text().partition("\n")[2])
    assert len(picture.findall("{http://www.w3.org/2000/svg}rect")) == 2 * 4


@pytest.mark.parametrize("engine", ["processes", "ray", "daft"])
def test_parallel_reads(client, config, stream_name, engine, capsys):
    if engine != "processes":
        pytest.importorskip(engine)
    client.create_stream(stream_name, 3)
    with client.writer(stream_name, "json", router=ByField("item")) as writer:
        for number in range(300):
            writer.write({"item": ("tea", "milk", "cake")[number % 3], "n": number})
    where = ["--controller", config.controller, "--stream", str(stream_name)]
    parallel_reads.main([*where, "--field", "item", "--engine", engine])
    assert capsys.readouterr().out.split("\n") == ["cake: 100", "milk: 100", "tea: 100", ""]
