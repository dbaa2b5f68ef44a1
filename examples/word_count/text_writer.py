"""Write lines from a socket or from standard input to a stream, each with its time.

nc -lk 9999
python -m examples.word_count.text_writer --controller tcp://localhost:9090 --stream demo/lines --port 9999

The program ends with the input. An event is JSON, {"at": "2026-11-21T12:00:00+00:00", "line": "to be or not to be"}.
The routing key is the line number, so that the lines spread over the segments.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from pravega_connector import PravegaClient, PravegaConfig
from pravega_serde import serializer_for


def write_lines(
    client: PravegaClient, stream: str, lines: Iterable[str], clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> int:
    """Write each line with the present time. Return their number after the server has stored all."""
    count = 0
    with client.writer(stream, serializer_for("json")) as writer:
        for count, line in enumerate(lines, 1):
            event = {"at": clock().isoformat(), "line": line.rstrip("\r\n")}
            writer.write(event, routing_key=str(count))
    return count


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write lines of text to a stream")
    parser.add_argument("--controller", required=True)
    parser.add_argument("--stream", required=True, help="scope/stream; made if it does not exist")
    parser.add_argument("--host", default="localhost", help="where the lines come from")
    parser.add_argument("--port", type=int, help="without it they come from standard input")
    given = parser.parse_args(arguments)
    with PravegaClient(PravegaConfig(controller=given.controller)) as client:
        client.create_stream(given.stream, 2)
        if given.port is None:
            count = write_lines(client, given.stream, sys.stdin)
        else:
            with (
                socket.create_connection((given.host, given.port)) as connection,
                connection.makefile(encoding="utf-8", errors="replace") as lines,
            ):
                count = write_lines(client, given.stream, lines)
    print(f"{count:,} lines written to {given.stream}", flush=True)


if __name__ == "__main__":
    main()
