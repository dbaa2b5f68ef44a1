"""The job in deploy/, run as the program that it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_a_stream_is_copied_once_however_often_the_job_runs(
    config: PravegaConfig, client: PravegaClient, stream_name: StreamName, tmp_path: Path, start_process
):
    client.create_stream(stream_name, 2)
    with client.writer(stream_name, "string") as writer:
        for number in range(40):
            writer.write(f"{number}", routing_key=str(number % 7))
    target = StreamName(stream_name.scope, "copy")
    words = [ROOT / "deploy" / "copy_stream.py", stream_name, target, "--checkpoint", tmp_path / "checkpoint"]
    # Everything about the servers comes from the environment, as in deploy/query.yaml.
    environment = {"PRAVEGA_CONTROLLER_URI": config.controller, "PYSPARK_PYTHON": sys.executable}
    for _ in range(2):
        job = start_process([*words, "--once"], environment, stderr=subprocess.PIPE, text=True)
        _, errors = job.communicate(timeout=280)
        assert job.returncode == 0, errors
    copied = list(client.read(target, "string"))
    assert sorted(map(int, copied)) == list(range(40))
    for key in range(7):
        of_key = [int(event) for event in copied if int(event) % 7 == key]
        assert of_key == sorted(of_key)
