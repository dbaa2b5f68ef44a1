"""``pravega-serde read``: print the events of a stream."""

from __future__ import annotations

import base64
import codecs
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from pravega_connector.client import EventBatch, PravegaClient, StreamCut
from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.position_argument import POSITION, read_cut_file, resolve_position
from pravega_connector.operations.cli.progress import progress_bar
from pravega_connector.operations.monitoring import segment_label
from pravega_connector.reader.slices import SegmentSlice, read_slice, slices_between
from pravega_connector.rows.options import CommonOptions
from pravega_connector.stores.segments import Lineage
from pravega_serde.atomic_file import WholeFile
from pravega_serde.errors import DeserializationError
from pravega_serde.json import JsonSerializer
from pravega_serde.registry import deserializer, event_type
from pravega_serde.serializer_interface import HasDicts
from pravega_serde.text import ByteArraySerializer

# Seconds between two polls of a following reader, which then saves its stream cut.
_POLL: Final = 1.0
_BYTES: Final = ("raw", "base64", "hex")
_json: Final = JsonSerializer()


@click.command(
    epilog=examples(
        "pravega-serde read shop/orders --limit 10",
        "pravega-serde read shop/orders --follow --format json --json",
        "pravega-serde read shop/orders --start 2026-11-21T10:00:00Z",
        "pravega-serde read shop/orders --cut-file orders.cut",
    )
)
@arguments.stream
@arguments.controller
@click.option("--start", type=POSITION, help="earliest, latest, a time, a stream cut, or @FILE.  [default: earliest]")
@click.option("--end", type=POSITION, help="latest, a time, a stream cut, or @FILE.  [default: latest]")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N events.")
@click.option("--follow", is_flag=True, help="Keep reading as events arrive; the default of --start is then latest.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line: the value and its position.")
@click.option("--bytes", "form", type=click.Choice(_BYTES), help="Form of bytes.  [default: raw; with --json base64]")
@click.option(
    "--delimiter",
    metavar="TEXT",
    default="\\n",
    show_default=True,
    help="Text after each value, with the escapes of C: \\t, \\0, \\x1e.",
)
@arguments.event_format
@arguments.registry
@arguments.registry_group
@arguments.more_options("source for the format of the events")
@click.option("--skip-bad", is_flag=True, help="Skip and count events that cannot be decoded.")
@click.option(
    "--cut-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Start at the stream cut in this file, if it exists; save the position of the run in it.",
)
@arguments.failover_timeout
@click.option("--quiet", is_flag=True, help="Print no progress bar and no counts.")
def read(
    *,
    stream: str,
    start: str | None,
    end: str | None,
    limit: int | None,
    follow: bool,
    as_json: bool,
    form: str | None,
    delimiter: str,
    more: dict[str, str],
    skip_bad: bool,
    cut_file: Path | None,
    failover_timeout: float,
    quiet: bool,
    **named: str | None,
) -> None:
    """Print the events of a stream.

    Without --format or --registry, the bytes of each event are printed, then a delimiter. With one of them, texts are
    printed as they are and other values as JSON. Events are in the order of each segment, and a segment is printed
    before its successors. SIGINT and SIGTERM end the command at once.

    With --cut-file, the next run continues after the last event. Events that were being printed when a signal arrived
    are printed again.
    """
    if follow and end is not None:
        raise click.UsageError("--follow excludes --end")
    options = arguments.event_options(stream, more, CommonOptions, **named)
    printer = _Printer(_decoder(options), _ending(delimiter), form, as_json=as_json, skip_bad=skip_bad)
    config, name = options.config, options.stream_name()
    begin = read_cut_file(cut_file, name) if cut_file is not None and cut_file.exists() else None
    with ExitStack() as stack:
        stack.enter_context(arguments.stopped_by_signals())
        client = stack.enter_context(PravegaClient(config, failover_timeout=failover_timeout))
        client.require_stream(name)
        if begin is None:
            begin = resolve_position(client, name, start or ("latest" if follow else "earliest"))
        if follow:
            source: _Source = _Following(client, begin)
        else:
            to_file = not sys.stdout.isatty()
            show = stack.enter_context(progress_bar(shown=to_file and not quiet))
            until = resolve_position(client, name, end or "latest", end=True)
            source = _Range(client, begin, until, show, cut_file is not None)
        _copy(source, printer, _CutFile(cut_file, begin), limit)
    if printer.bad and not quiet:
        click.echo(f"{printer.bad:,} events could not be decoded and were skipped", err=True)


def _copy(source: _Source, printer: _Printer, kept: _CutFile, limit: int | None) -> None:
    """Write the events, and save the cut after the last one, even after an error."""
    output = sys.stdout.buffer
    left = limit
    try:
        with closing(source.batches()) as batches:
            for batch in batches:
                if batch is not None:
                    done = printer.write(output, batch, left)
                    kept.cut = source.after(batch, done.rows)
                    if done.error is not None:
                        raise done.error
                    left = None if left is None else left - done.written
                    if left == 0:
                        return
                kept.save(at_most_every=_POLL)
        kept.cut = source.end()
    finally:
        kept.save()


# ---- sources of events ----


class _Source:
    """Batches of events and the stream cut after each. A batch is None if no event arrived for a while."""

    def batches(self) -> Generator[EventBatch | None, None, None]:
        raise NotImplementedError

    def after(self, batch: EventBatch, rows: int) -> StreamCut:
        """Return the cut after the first ``rows`` events of the last batch."""
        raise NotImplementedError

    def end(self) -> StreamCut:
        """Return the cut after all events."""
        raise NotImplementedError


class _Range(_Source):
    """Events between two cuts."""

    def __init__(
        self, client: PravegaClient, start: StreamCut, end: StreamCut, show: Callable[[int, int], object], track: bool
    ) -> None:
        """With ``track``, request the successors of each segment, which only cuts in the middle need."""
        self._client, self._end, self._show = client, end, show
        self._slices = slices_between(client.stores, start, end)
        self._positions = dict(start.positions)
        self._lineage = Lineage(client.stores, start.stream)
        self._track = track
        self._finished: set[int] = set()
        if track:
            between = client.controller.segments_between(start, end)
            self._finished = set(between) - end.positions.keys() - {piece.segment_id for piece in self._slices}
            self._advance()

    def batches(self) -> Generator[EventBatch | None, None, None]:
        done, total = 0, sum(piece.end - piece.start for piece in self._slices)
        for piece in self._slices:
            with closing(read_slice(self._client.stores, piece)) as batches:
                for batch in batches:
                    yield batch
                    self._show(done + batch.end - piece.start, total)
            done += piece.end - piece.start
            self._finish(piece)

    def _finish(self, piece: SegmentSlice) -> None:
        if self._track and piece.segment_id not in self._end.positions:
            self._finished.add(piece.segment_id)
            self._advance()

    def _advance(self) -> None:
        while self._lineage.advance(self._positions, self._finished):
            pass

    def after(self, batch: EventBatch, rows: int) -> StreamCut:
        self._positions[batch.segment_id] = _offset(batch, rows)
        return StreamCut(batch.stream, self._positions)

    def end(self) -> StreamCut:
        return self._end


class _Following(_Source):
    """Events as they arrive, until the stream is sealed."""

    def __init__(self, client: PravegaClient, start: StreamCut) -> None:
        self._reader = client.follow(start.stream, start=start)

    def batches(self) -> Generator[EventBatch | None, None, None]:
        with self._reader as reader:
            while not reader.at_end:
                yield reader.poll(_POLL)

    def after(self, batch: EventBatch, rows: int) -> StreamCut:
        return StreamCut(batch.stream, {**self._reader.position.positions, batch.segment_id: _offset(batch, rows)})

    def end(self) -> StreamCut:
        return self._reader.position


def _offset(batch: EventBatch, rows: int) -> int:
    return batch.end if rows == len(batch.events) else int(batch.offsets[rows])


class _CutFile:
    """Stream cut after the events that were written, and the file for it, if any."""

    def __init__(self, path: Path | None, cut: StreamCut) -> None:
        self._path, self.cut = path, cut
        self._saved: StreamCut | None = None
        self._at = 0.0

    def save(self, at_most_every: float = 0.0) -> None:
        """Write the file if the cut has moved, at most every ``at_most_every`` seconds. Raises OutputFileError."""
        if self._path is None or self.cut == self._saved or time.monotonic() < self._at + at_most_every:
            return
        with WholeFile(self._path) as file:
            file.write(f"{self.cut.to_text()}\n".encode())
        self._saved, self._at = self.cut, time.monotonic()


# ---- output ----


@dataclass(frozen=True, slots=True)
class _Done:
    """Result for a batch: number of rows processed, number of events written, error of the next row."""

    rows: int
    written: int
    error: DeserializationError | None = None


@dataclass(frozen=True, slots=True)
class _Decoded:
    """Value of an event; None for an event of a type that was not requested."""

    value: Any
    type: str | None = None


_Decoder = Callable[[bytes], _Decoded | None]


class _Printer:
    """Writes batches in the chosen form."""

    def __init__(
        self, decode: _Decoder | None, ending: bytes, form: str | None, *, as_json: bool, skip_bad: bool
    ) -> None:
        self._decode, self._ending = decode, ending
        self._form = form or ("base64" if as_json else "raw")
        self._as_json, self._skip_bad = as_json, skip_bad
        if as_json and self._form == "raw":
            raise click.UsageError("JSON cannot have raw bytes: use --bytes base64 or --bytes hex")
        self._is_plain = decode is None and self._form == "raw"
        self.bad = 0

    def write(self, output: BinaryIO, batch: EventBatch, limit: int | None) -> _Done:
        """Write at most ``limit`` events of a batch. A malformed event ends the batch."""
        lines: list[bytes] = []
        rows, error = 0, None
        if self._is_plain:
            lines = batch.events[:limit].to_pylist()
            rows = len(lines)
        try:
            for row, line in () if self._is_plain else self._lines(batch):
                if line is not None:
                    lines.append(line)
                rows = row + 1
                if len(lines) == limit:
                    break
        except DeserializationError as found:
            error = found
        if lines:
            output.write(self._ending.join((*lines, b"")))
            output.flush()
        return _Done(rows, len(lines), error)

    def _lines(self, batch: EventBatch) -> Iterator[tuple[int, bytes | None]]:
        """Yield the row and the text of each event; None instead of the text for an event that is skipped."""
        segment, offsets = _segment(batch), batch.offsets.tolist()
        for row, event in enumerate(batch.events.to_pylist()):
            try:
                decoded = _Decoded(event) if self._decode is None else self._decode(event)
            except DeserializationError as error:
                if not self._skip_bad:
                    raise batch.locate(error, row) from error
                self.bad += 1
                decoded = None
            if decoded is None:
                yield row, None
            elif self._as_json:
                yield row, self._object(segment, offsets[row], decoded)
            else:
                yield row, self._text(decoded.value)

    def _text(self, value: Any) -> bytes:
        if isinstance(value, bytes):
            return _as_text(value, self._form) if self._form != "raw" else value
        return value.encode(errors="replace") if isinstance(value, str) else _json.serialize(value)

    def _object(self, segment: bytes, offset: int, decoded: _Decoded) -> bytes:
        value = decoded.value
        named = b"" if decoded.type is None else b',"type":' + _json.serialize(decoded.type)
        if isinstance(value, bytes):
            named += b',"bytes":"%b"' % self._form.encode()
            text = b'"%b"' % _as_text(value, self._form)
        else:
            text = _json.serialize(value)
        return b'%b,"offset":%d%b,"value":%b}' % (segment, offset, named, text)


def _segment(batch: EventBatch) -> bytes:
    """Return the beginning of the JSON object of each event of a batch."""
    stream = batch.stream
    found = {
        "scope": stream.scope,
        "stream": stream.stream,
        "segment": segment_label(stream, batch.segment_id),
        "segment_id": batch.segment_id,
    }
    return _json.serialize(found)[:-1]


def _as_text(value: bytes, form: str) -> bytes:
    return value.hex().encode() if form == "hex" else base64.b64encode(value)


def _ending(delimiter: str) -> bytes:
    """Return the bytes of a delimiter with the escapes of C."""
    try:
        return codecs.escape_decode(delimiter.encode())[0]
    except ValueError:
        raise click.UsageError(f"invalid --delimiter {delimiter!r}: use escapes of C, such as \\t or \\x1e") from None


def _decoder(options: CommonOptions) -> _Decoder | None:
    """Return the decoder of the events, or None for bytes. Raises ConfigError, SchemaError, RegistryErrors."""
    if options.from_registry:
        return _registry_decoder(options)
    if options.format is None:
        return None
    serializer = options.serializer()
    deserialize = serializer.deserialize
    if isinstance(serializer, HasDicts):
        as_dict = serializer.as_dict
        return lambda event: _Decoded(as_dict(deserialize(event)))
    return lambda event: _Decoded(deserialize(event))


def _registry_decoder(options: CommonOptions) -> _Decoder:
    if options.encrypted_fields is not None:
        raise ConfigError(
            "this command does not decrypt events of a registry: omit option 'encrypted_fields', or use export or Spark"
        )
    given = options.given_schema(reading=True)
    reader = deserializer(
        options.registry_config(options.timeout_ms / 1000),
        group=options.registry_group(),
        schemas=() if given is None else (event_type(given[0], format=options.format, type=given[1]),),
        format=options.format,
        type=options.registry_type,
        codecs=options.codecs or (),
        values="plain",
        **options.registry_contract(),
    )

    unframed = options.framed(ByteArraySerializer()).deserialize

    def decode(event: bytes) -> _Decoded | None:
        found = reader.deserialize_with_schema(unframed(event))
        if options.registry_type not in (None, found.schema.type):
            return None
        return _Decoded(found.value, found.schema.type)

    return decode
