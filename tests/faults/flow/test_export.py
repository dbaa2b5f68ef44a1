"""An export whose connections are cut, and whose servers are silent for a while."""

import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.controller.service import ControllerClient
from pravega_connector.operations.export import export_stream

EVENTS = [b"%06d:" % i + bytes(i % 700) for i in range(40_000)]


@pytest.mark.long
def test_it_continues_by_itself(config, stream, proxy, tmp_path, monkeypatch):
    with PravegaClient(config) as client, client.writer(stream) as writer:
        writer.write_column(pa.array(EVENTS), pa.array(["one"] * len(EVENTS)))
    monkeypatch.setattr(ControllerClient, "endpoint", lambda self, stream, segment_id, **_: proxy.endpoint)
    silences = []

    def disturb(done, total):
        if not 0 < done < total:
            return
        if proxy.cuts < 3:
            proxy.cut()
        elif not silences:  # longer than an attempt waits for an answer
            proxy.stall()
            silences.append(threading.Timer(8.0, proxy.flow))
            silences[0].start()

    path = tmp_path / "all.parquet"
    options = {"controller": config.controller, "columns": "event,offset"}
    summary = export_stream(str(stream), path, on_progress=disturb, **options)
    assert proxy.cuts == 3
    assert len(silences) == 1
    silences[0].join()
    assert summary.rows == len(EVENTS)
    assert pq.read_table(path).column("event").to_pylist() == EVENTS
