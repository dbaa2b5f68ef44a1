"""An export in a process that cannot import PySpark."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

SCRIPT = """
import sys

sys.modules["pyspark"] = None  # its import is an ImportError

from pravega_connector.operations.cli import main
from pravega_connector.operations.export import export_stream
from pravega_connector.testing import InProcessPravega

folder = sys.argv[1]
with InProcessPravega() as pravega, pravega.client() as client:
    client.create_scope("s")
    client.create_stream("s/x")
    with client.writer("s/x") as writer:
        for event in (b'{"n": 1}', b'not JSON', b'{"n": 2}'):
            writer.write(event)
    place = {"controller": pravega.uri, "columns": "segment_id,offset"}
    export_stream("s/x", f"{folder}/raw.avro", **place)
    export_stream("s/x", f"{folder}/typed.jsonl", format="json", json_schema='{"type": "object", "properties": '
                  '{"n": {"type": "integer"}}}', mode="DROPMALFORMED", **place)
    sys.argv = ["pravega-serde", "export", "s/x", f"{folder}/command.parquet", "--controller", pravega.uri]
    main()
"""


def test_events_are_exported_without_spark(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "typed.jsonl").read_text().splitlines() == [
        '{"n":1,"segment_id":0,"offset":0}',
        '{"n":2,"segment_id":0,"offset":32}',
    ]
    assert (tmp_path / "raw.avro").read_bytes().startswith(b"Obj\x01")
    assert pq.read_table(tmp_path / "command.parquet")["event"].to_pylist()[1] == b"not JSON"
