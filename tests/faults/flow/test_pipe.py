"""A pipe whose connections are cut, whose servers stall, and which is killed."""

import contextlib
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import DeadlineExceededError
from pravega_connector.operations.pipe import Pipe, standard_input
from tests.support.proxy import read_all

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def piped(config, stream, proxy, *, limit=64 << 10, timeout=60.0):
    """(descriptor to write to, pipe, thread that runs it); all its requests go through the proxy."""
    reading, writing = os.pipe()
    client = proxy.between(PravegaClient(config))
    with client, contextlib.closing(standard_input(reading)) as source:
        writer = client.writer(stream, timeout=timeout, max_in_flight=limit)
        pipe = Pipe(source, writer, max_unacknowledged=limit, failover_timeout=timeout)
        failures = []

        def run():
            try:
                pipe.run()
            except DeadlineExceededError as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield writing, pipe, thread, failures
        finally:
            source.stop()
            thread.join()
            writer.abandon()
            os.close(reading)


@pytest.mark.long
def test_connections_that_are_cut_at_random_leave_exactly_the_input(config, stream, proxy):
    chance = random.Random(5)
    events = [b"%06d " % i + b"x" * chance.randrange(200) for i in range(30_000)]
    with piped(config, stream, proxy) as (writing, pipe, thread, failures):
        with open(writing, "wb") as out:
            for at in range(0, len(events), 1000):
                proxy.cut_after(chance.randrange(1, 100_000))
                out.write(b"".join(event + b"\n" for event in events[at : at + 1000]))
                out.flush()
        thread.join()
        assert not failures
    assert proxy.cuts >= 15
    assert (pipe.summary.read, pipe.summary.acknowledged) == (30_000, 30_000)
    assert read_all(config, stream) == events


def test_a_slow_stream_slows_the_input(config, stream, proxy, eventually):
    """Nothing is acknowledged while the servers stall: what the pipe takes from its input is bounded."""
    limit = 64 << 10
    line = b"x" * 999 + b"\n"
    with piped(config, stream, proxy, limit=limit) as (writing, pipe, thread, _):
        os.write(writing, line)
        eventually(lambda: pipe.summary.acknowledged == 1)
        proxy.stall()
        os.set_blocking(writing, False)
        taken = refused = 0
        while refused < 20:
            try:
                taken += os.write(writing, line)
                refused = 0
            except BlockingIOError:
                refused += 1
                time.sleep(0.02)
        # The limit, one read beyond it, and what the kernel's pipe holds.
        assert taken <= limit + (256 << 10) + (64 << 10) + len(line)
        assert pipe.summary.acknowledged == 1
        proxy.flow()
        os.close(writing)
        thread.join()
    assert pipe.summary.not_acknowledged == 0
    assert sum(map(len, read_all(config, stream))) >= taken - taken // 999 + 999 - 1


def test_servers_that_stay_down_end_the_pipe_which_reports_what_is_safe(config, stream, proxy, eventually):
    with piped(config, stream, proxy, timeout=2.0) as (writing, pipe, thread, failures):
        os.write(writing, b"one\ntwo\n")
        eventually(lambda: pipe.summary.acknowledged == 2)
        proxy.stall()
        os.write(writing, b"three\n")
        thread.join()
        (error,) = failures
        assert "2 events are acknowledged, 1 more were read and may not be in the stream" in str(error)
        os.close(writing)
        proxy.flow()
    assert set(read_all(config, stream)) - {b"three"} == {b"one", b"two"}


def test_servers_that_come_back_are_waited_for(config, stream, proxy, eventually, monkeypatch, caplog):
    with piped(config, stream, proxy) as (writing, pipe, thread, failures):
        os.write(writing, b"one\ntwo\n")
        eventually(lambda: pipe.summary.acknowledged == 2)
        monkeypatch.setattr("pravega_connector.operations.pipe._WARN_AFTER", 0.3)
        monkeypatch.setattr("pravega_connector.operations.pipe._WARN_EVERY", 0.7)
        proxy.stall()
        with caplog.at_level(logging.WARNING, "pravega_connector.operations.pipe"):
            os.write(writing, b"three\n")
            eventually(lambda: len(caplog.records) == 2)
            proxy.flow()
            os.close(writing)
            thread.join()
        assert not failures
    first, *more, last = [record.getMessage() for record in caplog.records]
    waits = f"standard input waits: 1 events (6 bytes) for stream {stream} are not durable after 0 s, "
    assert first.startswith(f"{waits}retrying for 60 s more; last error: ")
    assert all("waits" in line for line in more)
    assert last.startswith("standard input: recovered after")
    assert set(read_all(config, stream)) == {b"one", b"two", b"three"}


@pytest.mark.long
def test_killed_again_and_again_nothing_that_was_acknowledged_is_lost(config, stream):
    """The sender continues after the last event that was acknowledged: each exists, some more than once."""
    chance = random.Random(9)
    total, done, kills = 20_000, 0, 0
    events = [b"%06d" % i for i in range(total)]
    while done < total:
        options = ("--acknowledge", "--buffer", "2000", "--controller", config.controller)
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from pravega_connector.operations.cli import main; main()",
                "write",
                str(stream),
                *options,
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        last = kills == 4
        # Those that must be killed get a part, and wait for more.
        part = events[done:] if last else events[done : done + 4000]
        sender = threading.Thread(target=send, args=(process.stdin, part, chance))
        sender.start()
        if last:
            sender.join()
            process.stdin.close()
        told = 0
        for line in process.stdout:
            told = int(line)
            if not last and told >= chance.randrange(500, 4000):
                process.kill()
                break
        # Output that it wrote before it was killed counts.
        told = max([told, *map(int, (part for part in process.stdout.read().split(b"\n")[:-1]))])
        process.wait()
        sender.join()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        done += told
        kills += process.returncode < 0
    assert kills == 4
    found = Counter(read_all(config, stream))
    assert found.keys() == set(events)
    assert sum(found.values()) >= total


def send(file, events, chance):
    """Write the events, as far as a process reads them."""
    with contextlib.suppress(BrokenPipeError):
        for at in range(0, len(events), 100):
            file.write(b"".join(event + b"\n" for event in events[at : at + 100]))
            file.flush()
            time.sleep(chance.random() / 200)
