"""A target stream, and files of numbered samples."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.exactly_once.steps import StepLog
from pravega_connector.operations.ingest.run import open_steps, state_name

Events = Callable[[], list[tuple[int, int]]]


@pytest.fixture
def target(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name, 2)
    return stream_name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def write(folder: Path) -> Callable[..., Path]:
    """``write(file, samples)``: a CSV file with this many samples, its number in each of them."""

    def make(file: int, samples: int = 30, first: int = 0) -> Path:
        path = folder / f"{file:03}.csv"
        lines = "".join(f"{file},{sample}\n" for sample in range(first, first + samples))
        path.write_text("file,sample\n" + lines)
        return path

    return make


@pytest.fixture
def events(client: PravegaClient, target: StreamName) -> Events:
    """(file, sample) of all events that readers see, file by file in the order of the stream."""

    def read() -> list[tuple[int, int]]:
        found = [json.loads(event) for event in client.read(target)]
        return sorted(((each["file"], each["sample"]) for each in found), key=lambda pair: pair[0])

    return read


@pytest.fixture
def steps(client: PravegaClient, target: StreamName) -> Iterator[StepLog]:
    with open_steps(client, target, state_name(target)) as opened:
        yield opened
