"""The examples that need no Spark, run as the programs that they are."""

import json
from collections import Counter
from pathlib import Path

import pytest

from connector.client import PravegaClient
from connector.config import PravegaConfig
from connector.wire import StreamName
from examples import evolution, ingest_files


def test_each_reader_sees_both_versions(
    config: PravegaConfig, registry: str, stream_name: StreamName, capsys: pytest.CaptureFixture[str]
) -> None:
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
