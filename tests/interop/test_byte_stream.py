"""Streams of bytes shared with Java's ByteStreamClient, both ways."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pravega_connector.errors import ConfigError, DataLossError, ProtocolError, StreamNotFoundError, StreamSealedError
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.interop._java_program import JavaProgram
from tests.support.stopwatch import Stopwatch

TEXT = "".join(f"line {number} of a log\n" for number in range(100_000)).encode()


class JavaBytes(JavaProgram):
    """Runs java/BytePeer.java. Context manager."""

    def __init__(self, controller: str, folder: Path) -> None:
        super().__init__("BytePeer", controller)
        self._file = folder / "bytes"

    def write(self, stream: StreamName, data: bytes, piece: int = 1 << 16) -> int:
        """Append bytes; the offset behind them."""
        self._file.write_bytes(data)
        return int(self._ask("write", stream, file=str(self._file), piece=piece))

    def read(self, stream: StreamName, at: int, count: int) -> tuple[bytes, list[int]]:
        """Bytes from an offset on, and the head, the offset behind them and the tail."""
        numbers = self._ask("read", stream, file=str(self._file), at=at, count=count)
        return self._file.read_bytes(), [int(each) for each in numbers]

    def seal(self, stream: StreamName) -> None:
        """Let the stream take no more."""
        self._ask("seal", stream)


@pytest.fixture(scope="module")
def java(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBytes]:
    with JavaBytes(pravega.config.controller, tmp_path_factory.mktemp("bytes")) as java:
        yield java


def test_we_read_what_java_writes(client, java, stream_name):
    client.create_stream(stream_name)
    assert java.write(stream_name, TEXT) == len(TEXT)
    with client.byte_reader(stream_name) as file:
        assert file.readline() == b"line 0 of a log\n"
        assert file.tell() == 16
        assert file.read() == TEXT[16:]
        assert file.read(1) == b""
        file.seek(-17, io.SEEK_END)
        assert file.read() == TEXT[-17:]
    with io.TextIOWrapper(client.byte_reader(stream_name, start=16)) as lines:
        assert next(lines) == "line 1 of a log\n"
        assert sum(1 for _ in lines) == 99_998


def test_java_reads_what_we_write(client, java, stream_name):
    client.create_stream(stream_name)
    data = random.Random(1).randbytes(5 << 20)
    with client.byte_writer(stream_name) as file:
        file.write(data[:100])
        file.flush()
        assert java.read(stream_name, 0, 100)[0] == data[:100]
        file.write(data[100:])
    assert java.read(stream_name, 0, len(data)) == (data, [0, len(data), len(data)])
    assert java.write(stream_name, b"from Java") == len(data) + 9
    with client.byte_writer(stream_name) as file:
        file.write(b", from Python")
    assert java.read(stream_name, len(data), 22)[0] == b"from Java, from Python"


def test_a_reader_waits_for_more_and_a_sealed_stream_has_none(client, java, stream_name):
    client.create_stream(stream_name)
    with client.byte_reader(stream_name, wait=60) as file:
        java.write(stream_name, b"abc")
        assert file.read(3) == b"abc"
        java.write(stream_name, b"def")
        assert file.read(3) == b"def"
        java.seal(stream_name)
        begun = Stopwatch()
        assert file.read(1) == b""
        assert begun.within(30)
    # Java seals the segment; that the stream is not sealed shows when something is written.
    with client.byte_writer(stream_name).detach() as raw, pytest.raises(StreamSealedError):
        raw.write(b"more")
    with client.byte_reader(stream_name) as file:
        assert file.read() == b"abcdef"


def test_what_was_dropped_is_a_loss(client, java, stream_name):
    client.create_stream(stream_name)
    with client.byte_writer(stream_name) as file:
        file.write(b"0123456789")
        file.flush()
        file.drop_before(4)
        with pytest.raises(ConfigError, match="the stream ends at offset 10"):
            file.drop_before(11)
    assert java.read(stream_name, 4, 6) == (b"456789", [4, 10, 10])
    with client.byte_reader(stream_name) as file:
        assert (file.head(), file.available(), file.tail()) == (4, 6, 10)
        assert (file.tell(), file.read()) == (4, b"456789")
    with client.byte_reader(stream_name, start=2) as file, pytest.raises(DataLossError, match="before offset 4"):
        file.read()


def test_what_is_not_a_stream_of_bytes_is_said(client, java, stream_name):
    client.create_stream(stream_name, 2)
    for make in (client.byte_reader, client.byte_writer):
        with pytest.raises(StreamNotFoundError):
            make(StreamName(stream_name.scope, "missing"))
    for make in (client.byte_reader, client.byte_writer):
        with pytest.raises(ConfigError, match="has 2 segments; a byte stream must have one segment"):
            make(stream_name)


def test_reading_bytes_as_events_says_what_they_are(client, java, stream_name):
    client.create_stream(stream_name)
    java.write(stream_name, TEXT[:1000])
    with pytest.raises(ProtocolError, match=r"read a byte stream .*client\.byte_reader"):
        list(client.read(stream_name))
