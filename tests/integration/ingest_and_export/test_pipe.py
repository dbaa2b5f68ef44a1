"""Standard input and sockets into a stream, by the command."""

import json
import os
import signal
import socket
import struct
import subprocess
import threading

import pytest


@pytest.fixture
def stream(client, stream_name):
    client.create_stream(stream_name, 2)
    return stream_name


def fed(process, data):
    """(exit code, output, errors) of a process that reads ``data``."""
    output, errors = process.communicate(data)
    return process.returncode, output.decode(), errors.decode()


def test_lines_are_events(command, client, stream):
    events = [f"строка {i}".encode() for i in range(20_000)] + [b"", b"\xff\xfe\r", b"no newline"]
    code, output, errors = fed(command("write", stream, "--routing-key", "one"), b"\n".join(events))
    assert (code, output) == (0, "")
    assert errors.startswith(f"20,003 events ({sum(map(len, events)):,} bytes) are in {stream}\n")
    assert list(client.read(stream)) == events


def test_keys_keep_the_order_of_each(command, client, stream):
    lines = [json.dumps({"user": {"id": i % 20}, "n": i}).encode() for i in range(5000)] + [b"no json"]
    for options in (("--key-field", "user.id"), ("--key-pattern", '"id": ([0-9]+)')):
        start = client.tail(stream)
        code, _, errors = fed(command("write", stream, *options), b"\n".join(lines))
        assert code == 0
        assert "1 events have no routing key" in errors
        found = [event for event in client.read(stream, start=start) if event != b"no json"]
        assert len(found) == 5000
        for user in range(20):
            own = [value["n"] for value in map(json.loads, found) if value["user"]["id"] == user]
            assert own == list(range(user, 5000, 20))
        assert len({batch.segment_id for batch in client.read_columns(stream, start=start)}) == 2


def test_acknowledgements_follow_the_input_while_it_continues(command, client, stream):
    process = command("write", stream, "--acknowledge", bufsize=0)
    for count in (1, 5, 6):
        while (seen := sum(len(batch.events) for batch in client.read_columns(stream))) < count:
            process.stdin.write(b"event\n" * (count - seen))
            assert int(process.stdout.readline()) == count
    code, output, _ = fed(process, b"half a line")
    assert (code, output) == (0, "7\n")


def test_sigterm_makes_durable_what_was_read(command, client, stream):
    process = command("write", stream, "--acknowledge", bufsize=0)
    process.stdin.write(b"one\ntwo\nthr")
    assert process.stdout.readline() == b"2\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143  # the input has not ended
    errors = process.stderr.read().decode()
    assert "2 events" in errors
    assert "3 bytes at the end of an input were not a whole line" in errors
    assert sorted(client.read(stream)) == [b"one", b"two"]


def test_a_line_that_is_too_long_loses_nothing_before_it(command, client, stream):
    code, _, errors = fed(command("write", stream, "--max-event-size", 1000), b"one\ntwo\n" + b"x" * 5000 + b"\nno\n")
    assert code == 6
    assert "[PRAVEGA-EVENT-TOO-LARGE] standard input: a line of" in errors
    assert sorted(client.read(stream)) == [b"one", b"two"]


def test_files_follow_each_other(command, client, stream, tmp_path):
    for name, text in (("a", b"1\n2"), ("b", b""), ("c", b"3\n")):
        (tmp_path / name).write_bytes(text)
    process = command("write", stream, *(tmp_path / name for name in "abc"), "--routing-key", "one")
    assert process.wait(120) == 0
    assert list(client.read(stream)) == [b"1", b"2", b"3"]


def test_a_stream_that_is_not_there(command, scope):
    code, _, errors = fed(command("write", f"{scope}/missing"), b"one\n")
    assert code == 4
    assert "-NOT-FOUND]" in errors


def test_a_stream_is_created_if_asked_for(command, client, stream_name):
    for _ in range(2):
        assert fed(command("write", stream_name, "--create", 3), b"one\n")[0] == 0
    assert len(client.controller.current_segments(stream_name)) == 3
    assert list(client.read(stream_name)) == [b"one"] * 2


# ---------------------------------------------------------------- sockets


@pytest.fixture
def listening(command, stream):
    """(process, address) of a pipe that others connect to."""

    def start(address, *options):
        process = command("write", stream, "--listen", address, "--acknowledge", *options, bufsize=0)
        line = process.stderr.readline().decode()
        assert line.startswith("listening at "), line + process.stderr.read().decode()
        return process, line.split()[2]

    return start


def connect(address):
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)))


def sent(address, data):
    """The last acknowledgement of what was sent."""
    with connect(address) as sock, sock.makefile("rb") as answers:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return int(answers.read().split()[-1])


def test_many_connections_at_a_time(client, stream, listening):
    process, address = listening("tcp://127.0.0.1:0")
    told = {}

    def send(number):
        told[number] = sent(address, b"".join(b"%d:%d\n" % (number, i) for i in range(1000)))

    # More than are served at a time.
    threads = [threading.Thread(target=send, args=(number,)) for number in range(80)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == dict.fromkeys(range(80), 1000)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0
    assert sorted(client.read(stream)) == sorted(b"%d:%d" % (n, i) for n in range(80) for i in range(1000))


def test_a_broken_connection_does_not_end_the_others(client, stream, listening):
    process, address = listening("tcp://127.0.0.1:0")
    with connect(address) as broken:
        broken.sendall(b"one\ntw")
        assert broken.recv(10) == b"1\n"
        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST
    assert sent(address, b"three\n") == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 8
    errors = process.stderr.read().decode()
    assert "[PRAVEGA-INPUT-LOST] the connection from 127.0.0.1:" in errors
    assert "2 bytes at the end of an input were not a whole line" in errors
    assert sorted(client.read(stream)) == [b"one", b"three"]


def test_a_malformed_line_ends_its_connection(client, stream, listening):
    process, address = listening("tcp://127.0.0.1:0", "--format", "json")
    assert sent(address, b'{"n": 1}\n{"n":\n{"n": 2}\n') == 1
    assert sent(address, b'{"n": 3}\n') == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 6
    assert ": line 2 is not an event: " in process.stderr.read().decode()
    assert sorted(client.read(stream)) == [b'{"n":1}', b'{"n":3}']


# ---------------------------------------------------------------- memory


def test_memory_does_not_grow_with_the_input(command, stream):
    """40 times the buffer goes through; the process grows by a few buffers over one that reads nothing."""

    def peak(data):
        process = command("write", stream, "--buffer", 1 << 20, "--routing-key", "one", stdout=subprocess.DEVNULL)
        process.stdin.write(data)
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, process.stderr.read()
        process.stdin = None
        return usage.ru_maxrss / 1024  # MiB

    line = b"x" * 999 + b"\n"
    assert peak(line * 40_000) - peak(line) < 16
