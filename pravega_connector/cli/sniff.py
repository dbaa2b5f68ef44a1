"""``pravega-serde sniff``: report the formats, framings and schemas of a stream or of a file of events."""

from __future__ import annotations

import base64
import binascii
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from pravega_connector.atomic_file import WholeFile
from pravega_connector.cli import arguments
from pravega_connector.cli.command_group import examples
from pravega_connector.cli.position_argument import POSITION, resolve_position
from pravega_connector.client import StreamName
from pravega_connector.errors import ConfigError
from pravega_connector.reader.slices import SegmentSlice, read_slice, slices_between
from pravega_serde.errors import DeserializationError, RegistryNotFoundError
from pravega_serde.sniffing import Scan, Sniffed
from pravega_serde.sniffing.sample import MAX_EVENT

#: Segments that are read at most. Of more, as many are chosen, evenly from the first to the last.
_MOST_SEGMENTS: Final = 100
_FORMS: Final = ("raw", "base64", "hex", "whole")
#: Bytes of a line that are kept: those of the largest event in hex digits, and a little more.
_LONGEST_LINE: Final = 2 * MAX_EVENT + 16


@click.command(
    epilog=examples(
        "pravega-serde sniff shop/orders",
        "pravega-serde sniff shop/orders --start 2026-11-21T10:00:00Z --json",
        "pravega-serde sniff shop/orders --avro-schema order.avsc",
        "pravega-serde sniff @orders.hex --bytes hex",
        "pravega-serde sniff @events.jsonl --schema-file events.json",
    )
)
@click.argument("source", metavar="SCOPE/STREAM|@FILE|-")
@arguments.controller
@click.option("--start", type=POSITION, help="earliest, latest, a time, a stream cut, or @FILE.  [default: earliest]")
@click.option("--end", type=POSITION, help="latest, a time, a stream cut, or @FILE.  [default: latest]")
@click.option(
    "--bytes",
    "form",
    type=click.Choice(_FORMS),
    default="raw",
    show_default=True,
    help="Form of the events in a file: one on a line, as raw bytes, base64 or hex; or the whole file as one event.",
)
@click.option("--avro-schema", metavar="SCHEMA", help="Schema of Avro events, as text or path, to confirm it.")
@click.option(
    "--limit", type=click.IntRange(1), default=100_000, show_default=True, metavar="N", help="Read at most N events."
)
@click.option(
    "--max-size", type=arguments.SIZE, default="256MiB", show_default=True, help="Read at most this many bytes."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Read and examine events for this long.",
)
@click.option(
    "--schema-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the schema of the largest part that has one to this file.",
)
@arguments.registry
@arguments.registry_group
@arguments.as_json
def sniff(
    *,
    source: str,
    controller: str | None,
    start: str | None,
    end: str | None,
    form: str,
    avro_schema: str | None,
    limit: int,
    max_size: int,
    timeout: float,
    schema_file: Path | None,
    registry: str | None,
    group: str | None,
    as_json: bool,
) -> None:
    """Report the formats, framings and schemas of a stream.

    Pass @FILE to examine a file of events, or - for standard input. The result proposes options for Spark, a call of
    the client, and a group in the schema registry. Of a stream, the first events of each segment are read, up to the
    limits. A random sample of 1,000 of them is examined. A format without sufficient evidence is unknown.

    With --registry, the schemas of Pravega's encoding ids are looked up.
    """
    is_file = source == "-" or source.startswith("@")
    name = "scope/stream" if is_file else str(StreamName.parse(source))
    scan = Scan(stream=name, avro_schema=avro_schema, max_events=limit, max_bytes=max_size, timeout=timeout)
    if is_file:
        _scan_file(scan, source, form)
    else:
        _scan_stream(scan, StreamName.parse(source), controller, (start, end), (limit, max_size, timeout))
    found = scan.result()
    encodings = {} if registry is None else _encodings(found, registry, group or name.rpartition("/")[2])
    if as_json:
        click.echo(json.dumps(found.to_dict() | {"encodings": encodings}))
    else:
        click.echo("\n".join((str(found), *(f"encoding id {key}: {text}" for key, text in encodings.items()))))
    if schema_file is not None:
        _write_schema(found, schema_file)


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


# ---- schemas ----


def _encodings(found: Sniffed, uri: str, group: str) -> dict[str, str]:
    """Return what the registry has for each encoding id. Raises the errors of the registry."""
    from pravega_serde.registry import RegistryConfig, SchemaRegistryClient  # noqa: PLC0415 - takes a second to import

    ids = sorted({each for part in found.parts if part.framing[:1] == ("pravega-registry",) for each in part.ids})
    encodings = {}
    with SchemaRegistryClient(RegistryConfig.resolve(uri=uri)) as client:
        for each in ids:
            try:
                info = client.encoding_info(group, each)
            except RegistryNotFoundError:
                encodings[str(each)] = f"not in the group {group}"
                continue
            codec = f", codec {info.codec.name}" if info.codec.name else ""
            encodings[str(each)] = f"{info.version.format} {info.version.type}, version {info.version.version}{codec}"
    return encodings


def _write_schema(found: Sniffed, path: Path) -> None:
    """Write the first schema that is known, in ASCII. Raises ConfigError if none is known, OutputFileError."""
    schemas = [part.proposal.schema_file for part in found.parts if part.proposal.schema_file]
    if not schemas:
        raise ConfigError(f"the events define no schema, so {path} was not written; omit --schema-file")
    with WholeFile(path) as file:
        file.write(f"{json.dumps(json.loads(schemas[0]), indent=2)}\n".encode())
