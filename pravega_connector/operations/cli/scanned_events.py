"""Events of a stream, of a file or of standard input, as the commands ``sniff`` and ``generate`` examine them."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import click

from pravega_connector.client import StreamName
from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.position_argument import POSITION, resolve_position
from pravega_connector.reader.slices import SegmentSlice, read_slice, slices_between
from pravega_serde.errors import DeserializationError
from pravega_serde.sniffing import Scan, Sniffed
from pravega_serde.sniffing.sample import MAX_EVENT

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Segments that are read at most. Of more, as many are chosen, evenly from the first to the last.
_MOST_SEGMENTS: Final = 100
_FORMS: Final = ("raw", "base64", "hex", "whole")
#: Bytes of a line that are kept: enough for the hex digits of the largest event.
_LONGEST_LINE: Final = 2 * MAX_EVENT + 16

_OPTIONS: Final = (
    arguments.controller,
    click.option(
        "--start", type=POSITION, help="earliest, latest, a time, a stream cut, or @FILE.  [default: earliest]"
    ),
    click.option("--end", type=POSITION, help="latest, a time, a stream cut, or @FILE.  [default: latest]"),
    click.option(
        "--bytes",
        "form",
        type=click.Choice(_FORMS),
        default="raw",
        show_default=True,
        help="Form of the events in a file: one on a line, as raw bytes, base64 or hex; or the whole file as an event.",
    ),
    click.option(
        "--limit",
        type=click.IntRange(1),
        default=100_000,
        show_default=True,
        metavar="N",
        help="Read at most N events.",
    ),
    click.option(
        "--max-size", type=arguments.SIZE, default="256MiB", show_default=True, help="Read at most this many bytes."
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Read and examine events for this long.",
    ),
)


def scan_options(command: _Command) -> _Command:
    """Add the options that :func:`scanned` requires."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def scanned(
    source: str,
    *,
    controller: str | None,
    start: str | None,
    end: str | None,
    form: str,
    limit: int,
    max_size: int,
    timeout: float,
    avro_schema: str | None = None,
    registry: tuple[str, str | None] | None = None,
) -> tuple[str, Sniffed]:
    """Return the name of a stream for proposals, and the result of a scan of SCOPE/STREAM, @FILE or standard input (-).

    ``registry`` is the address and the group that proposals use.
    Raises ConfigError, DeserializationError, and the errors of the client.
    """
    is_file = source == "-" or source.startswith("@")
    name = "scope/stream" if is_file else str(StreamName.parse(source))
    limits: Any = {"max_events": limit, "max_bytes": max_size, "timeout": timeout}
    scan = Scan(stream=name, avro_schema=avro_schema, registry=registry, **limits)
    if is_file:
        _scan_file(scan, source, form)
    else:
        _scan_stream(scan, StreamName.parse(source), controller, (start, end), (limit, max_size, timeout))
    return name, scan.result()


# ---- streams ----


def _scan_stream(
    scan: Scan,
    stream: StreamName,
    controller: str | None,
    positions: tuple[str | None, str | None],
    limits: tuple[int, int, float],
) -> None:
    """Scan the first events of each segment. Segments share the limits evenly, as far as they have events."""
    events, size, timeout = limits
    with ExitStack() as stack:
        stack.enter_context(arguments.stopped_by_signals())
        client = stack.enter_context(arguments.client_of(controller, timeout))
        client.require_stream(stream)
        begin = resolve_position(client, stream, positions[0] or "earliest")
        until = resolve_position(client, stream, positions[1] or "latest", end=True)
        every = slices_between(client.stores, begin, until, skip_lost=True)
        slices = _spread(every)
        if len(slices) < len(every):
            click.echo(f"{len(slices)} of {len(every)} segments are read", err=True)
        stopped = ""
        for at, piece in enumerate(slices):
            left = len(slices) - at
            share = -(-events // left), -(-size // left)
            read_events, read_bytes, reason = _scan_slice(scan, read_slice(client.stores, piece), piece.end, *share)
            events, size, stopped = events - read_events, size - read_bytes, stopped or reason
            if scan.stopped or events <= 0 or size <= 0:
                stopped = stopped or ("events" if left > 1 else "")
                break
        scan.stopped = scan.stopped or stopped


def _spread(slices: list[SegmentSlice]) -> list[SegmentSlice]:
    """Return at most ``_MOST_SEGMENTS`` of the slices, evenly from the first to the last."""
    if len(slices) <= _MOST_SEGMENTS:
        return slices
    return [slices[at * (len(slices) - 1) // (_MOST_SEGMENTS - 1)] for at in range(_MOST_SEGMENTS)]


def _scan_slice(scan: Scan, batches: Any, end: int, most_events: int, most_bytes: int) -> tuple[int, int, str]:
    """Add events of a slice up to its share of the limits.

    Return the numbers of events and bytes, and the limit that left events out, if any.
    """
    count = size = 0
    with closing(batches):
        for batch in batches:
            events = batch.events[: most_events - count]
            count, size = count + len(events), size + batch.end - int(batch.offsets[0])
            is_last = batch.end == end and len(events) == len(batch.events)
            if not scan.add(events) or ((count >= most_events or size >= most_bytes) and not is_last):
                return count, size, "events" if count >= most_events else "bytes"
    return count, size, ""


# ---- files ----


def _scan_file(scan: Scan, source: str, form: str) -> None:
    """Scan the events of a file or of standard input. Raises ConfigError, DeserializationError."""
    if source == "-":
        _scan_lines(scan, sys.stdin.buffer, form, "standard input")
        return
    path = Path(source[1:])
    try:
        with path.open("rb") as file:
            _scan_lines(scan, file, form, str(path))
    except OSError as error:
        raise ConfigError(f"cannot read events from {path}: {error.strerror or error}; check the path") from None


def _scan_lines(scan: Scan, file: BinaryIO, form: str, where: str) -> None:
    if form == "whole":
        scan.add([file.read(MAX_EVENT + 1)])
        return
    decode = _DECODE[form]
    for number, line in enumerate(_lines(file), 1):
        try:
            event = decode(line)
        except ValueError:
            raise DeserializationError(f"line {number} of {where} is not {form}; check --bytes") from None
        if not scan.add([event]):
            return


#: Form of a line -> its event. A line that is too long has the beginning of its event.
_DECODE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "raw": bytes,
    "hex": lambda line: bytes.fromhex(line.decode("ascii")),
    "base64": lambda line: binascii.a2b_base64(line, strict_mode=True) if line else base64.b64decode(line),
}


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file without their ends. Only the beginning of a very long line is kept."""
    while line := file.readline(_LONGEST_LINE):
        rest = line
        while len(rest) == _LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(_LONGEST_LINE)
        yield line.removesuffix(b"\n")
