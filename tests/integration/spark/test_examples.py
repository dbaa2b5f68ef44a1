"""The word count and its text writer, run as the programs that they are."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connector.client import PravegaClient
from connector.config import PravegaConfig
from connector.wire import StreamName
from examples.word_count import count_words, text_writer

START = datetime(2026, 11, 21, 12, 0, 3, tzinfo=UTC)
LINES = ["To be, or not to be", "that is the question:", "", "Whether 'tis nobler", "ЖИТЬ, жить — be"] * 8


def clock(step: float) -> Iterator[datetime]:
    return (START + timedelta(seconds=step * i) for i in range(1_000_000))


def expected(step: float) -> Counter[tuple[str, str]]:
    """(start of the window, word) -> count, worked out without any stream."""
    counts: Counter[tuple[str, str]] = Counter()
    for at, line in zip(clock(step), LINES, strict=False):
        window = at - timedelta(seconds=at.second % 10, microseconds=at.microsecond)
        words = line.lower().replace(",", "").replace(":", "").replace("—", "").split()
        counts.update((window.isoformat(timespec="seconds"), word) for word in words)
    return counts


def counted(client: PravegaClient, stream: StreamName) -> list[tuple[str, str, int]]:
    rows = [json.loads(event) for event in client.read(stream)]
    return [(datetime.fromisoformat(r["start"]).isoformat(timespec="seconds"), r["word"], r["count"]) for r in rows]


@pytest.mark.long
def test_words_are_counted_once_for_each_window(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream_name: StreamName, checkpoint: str
):
    target = StreamName(stream_name.scope, "counts")
    client.create_stream(stream_name, 3)
    arguments = ["--controller", config.controller, "--source", str(stream_name), "--target", str(target),
                 "--checkpoint", checkpoint, "--once"]  # fmt: skip
    half = len(LINES) // 2
    times = clock(1.7)
    # Run, stopped and run again: the windows that were open go on.
    for lines in (LINES[:half], LINES[half:]):
        text_writer.write_lines(client, str(stream_name), [line + "\n" for line in lines], lambda: next(times))
        count_words.main(arguments)
    # A line of later lets go of the last windows.
    text_writer.write_lines(client, str(stream_name), [""], lambda: START + timedelta(hours=1))
    count_words.main(arguments)
    found = counted(client, target)
    assert {(start, word): count for start, word, count in found} == expected(1.7)
    assert len(found) == len(expected(1.7))


def test_counts_are_shown(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream_name: StreamName,
    capfd: pytest.CaptureFixture[str], tmp_path: Path,
):  # fmt: skip
    client.create_stream(stream_name)
    text_writer.write_lines(client, str(stream_name), LINES, lambda: START)
    count_words.main(["--controller", config.controller, "--source", str(stream_name), "--once"])
    shown = capfd.readouterr().out
    assert "|2026-11-21 12:00:00|2026-11-21 12:00:10|be      |24   |" in shown
    with pytest.raises(SystemExit):
        count_words.main(["--controller", config.controller, "--source", str(stream_name), "--target", "a/b"])


def test_lines_of_a_socket_become_events(config: PravegaConfig, client: PravegaClient, stream_name: StreamName, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall("\n".join([*LINES, "no line end"]).encode() + b" \xff")

        serving = threading.Thread(target=serve)
        serving.start()
        port = str(server.getsockname()[1])
        before = datetime.now(UTC)
        text_writer.main(["--controller", config.controller, "--stream", str(stream_name), "--host", "127.0.0.1",
                          "--port", port])  # fmt: skip
        serving.join()
    assert f"{len(LINES) + 1} lines written to {stream_name}" in capsys.readouterr().out
    events = [json.loads(event) for event in client.read(stream_name)]
    assert Counter(event["line"] for event in events) == Counter([*LINES, "no line end \ufffd"])
    assert all(before <= datetime.fromisoformat(event["at"]) <= datetime.now(UTC) for event in events)
