"""Runs that are killed at random, and two at a time, while the stream is written and scaled."""

import itertools
import random
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples import lake_table
from pravega_connector.client import PravegaClient, StreamName
from tests.conftest import StartProcess
from tests.integration.tier.conftest import Lake, Run, Write
from tests.integration.tier.test_tier import all_of, numbers

KILLS = 6


@pytest.mark.long
def test_the_example(client: PravegaClient, stream_name: StreamName, tmp_path: Path) -> None:
    assert lake_table.keep(client.config.controller, str(stream_name), str(tmp_path))


@contextmanager
def writing(client: PravegaClient, stream: StreamName, write: Write) -> Iterator[list[int]]:
    """Write and scale in the background until the block ends. The list has the number of events of each key."""
    ended, written = threading.Event(), [0]

    def work() -> None:
        for number in itertools.count():
            write(25)
            written[0] += 25
            if number % 8 == 4:
                client.scale_stream(stream, 2 + number % 3)
            if ended.wait(0.3):
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield written
    finally:
        ended.set()
        thread.join()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_random_kills_and_two_runs_at_a_time(
    client: PravegaClient, stream: StreamName, lake: Lake, run: Run, write: Write, start_process: StartProcess
) -> None:
    choice = random.Random(7)
    storage = [part for item in lake.storage.items() for part in ("--storage", "=".join(item))]
    command = [
        *("-c", "from pravega_connector.operations.cli import main; main()", "tier", str(stream), lake.name),
        *("--controller", client.config.controller, "--format", "json", "--follow", "--json", *storage),
        *("--target-size", "20kB", "--max-interval", "50ms"),
    ]
    killed = 0
    with writing(client, stream, write) as written:
        while killed < KILLS:
            processes = [start_process(command, {}, stdout=subprocess.PIPE, text=True) for _ in range(1 + killed % 2)]
            stdout = processes[0].stdout
            assert stdout is not None
            for _ in range(choice.randrange(4)):  # commits of the first one; it may be fenced by the second one
                stdout.readline()
            threading.Event().wait(choice.random() * 0.2)
            for process in processes:
                process.kill()
                process.wait()
            killed += 1
    summary = run()
    assert summary.position is not None
    assert summary.position.version > KILLS / 2
    assert numbers(lake.rows()) == all_of(written[0])
