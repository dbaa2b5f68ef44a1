"""A cluster that lets one user in, with delegation tokens that expire while clients are at work."""

import time
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import AuthenticationError
from pravega_connector.local import LocalPravega

# One server with tokens, and each renewal by itself, are tests of the client.
pytestmark = pytest.mark.long

# Seconds that a token lives, and of the work: tokens end twice in it.
TOKEN, WORK = 20, 45
CREDENTIALS = {"username": "ann", "password": "correct horse"}


@pytest.fixture(scope="module")
def cluster():
    with LocalPravega(cluster=True, token_seconds=TOKEN, start_timeout=400.0, **CREDENTIALS) as server:
        yield server


@pytest.mark.timeout(900)
def test_a_writer_and_a_follower_continue_while_tokens_expire(cluster, stream_name):
    with PravegaClient(cluster.config, timeout=60.0) as client:
        client.create_stream(stream_name, 4)
        written, followed, end = 0, [], time.monotonic() + WORK
        with client.follow(stream_name, start=client.head(stream_name)) as reader, client.writer(stream_name) as writer:
            while time.monotonic() < end:
                writer.write(b"%d" % written, routing_key=str(written % 7))
                writer.flush()
                written += 1
                followed += _of(reader.poll(0.2))
            deadline = time.monotonic() + 60
            while len(followed) < written and time.monotonic() < deadline:
                followed += _of(reader.poll(1.0))
        assert sorted(followed) == list(range(written))
        for key in range(7):
            of_key = [number for number in followed if number % 7 == key]
            assert of_key == sorted(of_key)
        # Of a writer and a reader at least; they are renewed before they end.
        assert client.counters.as_dict()["token_refreshes"] >= WORK // TOKEN
        assert sorted(int(event) for event in client.read(stream_name)) == list(range(written))


def test_nobody_else_is_let_in(cluster, stream_name):
    wrong = cluster.config.with_credentials("ann", "wrong horse")
    with PravegaClient(wrong) as client, pytest.raises(AuthenticationError):
        client.create_stream(stream_name)


def test_secrets_are_in_no_command_line(cluster):
    for name in ("controller-1", "store-1"):
        command = Path(f"/proc/{cluster.processes[name].pid}/cmdline").read_text()
        assert "@" in command
        assert CREDENTIALS["password"] not in command
        assert "signingKey" not in command


def _of(batch):
    return [] if batch is None else [int(event) for event in batch.events.to_pylist()]
