"""``pravega-serde write``: lines as events of a format."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import IO, Any, Final, Protocol

import click
import msgspec
import pyarrow as pa

from pravega_connector.cli import arguments
from pravega_connector.cli.exit_codes import SIGNAL
from pravega_connector.client import LeaseKeeper, PravegaClient
from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.errors import BadRecordError
from pravega_connector.pipe import ByJsonField, LineFrames
from pravega_connector.spark.sink.options import SinkOptions
from pravega_connector.writer.transactions import DEFAULT_LEASE, OpenTransaction
from pravega_serde.errors import DeserializationError, SchemaError, SerializationError
from pravega_serde.interface import Serializer
from pravega_serde.json import JsonSerializer
from pravega_serde.routing import ByConstant, EventRouter

__all__ = ["write"]

_CHUNK: Final = 1 << 20
_json: Final = JsonSerializer()


@click.command()
@arguments.stream
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.File("rb"))
@arguments.controller
@click.option("--format", help="Format of the events; without it, and without a registry, a line is an event.")
@arguments.registry
@arguments.group
@arguments.more_options("sink that says what the events are")
@click.option("--key", help="The routing key of all events.")
@click.option("--key-field", metavar="PATH", help="The routing key is this field of JSON lines: customer, order.id.")
@click.option("-K", "--key-separator", metavar="TEXT", help="The routing key is what comes before this in a line.")
@click.option("--transaction", is_flag=True, help="All lines or none, in one transaction.")
@click.option(
    "--lease", default=DEFAULT_LEASE, show_default=True, help="Seconds after which an abandoned transaction ends."
)
@arguments.create
@click.option("--max-event-size", default=MAX_EVENT_SIZE, show_default=True, help="Longest line, in bytes.")
@arguments.failover_timeout
@click.option("--quiet", is_flag=True, help="No summary.")
def write(
    *,
    stream: str,
    files: tuple[IO[bytes], ...],
    key: str | None,
    key_field: str | None,
    key_separator: str | None,
    more: dict[str, str],
    transaction: bool,
    lease: float,
    create: int | None,
    max_event_size: int,
    failover_timeout: float,
    quiet: bool,
    **named: str | None,
) -> None:
    """Write the lines of files, or of standard input, to a stream.

    Without a format a line is an event. With --format string it must be UTF-8; with any other format, or with
    --registry, it is JSON, and becomes the event of its value. When the command ends with code 0, all events are
    durable; a line that is no event ends it with code 6, and those before it are in the stream.
    """
    options = arguments.event_options(stream, more, SinkOptions, **named)
    keys = _Keys.of(key, key_field, key_separator)
    lines = _Lines(files or (sys.stdin.buffer,), max_event_size)
    with PravegaClient(options.config, failover_timeout=failover_timeout) as client:
        name = options.stream_name()
        if create is not None:
            client.create_stream(name, create)
        client.require_stream(name)
        encoder = _encoder(options)
        counts = _Counts()
        try:
            with arguments.take_signals(lines.stop), _opened(client, str(name), lease, transaction) as writer:
                _copy(lines, keys, encoder, writer, counts)
                if transaction and lines.stopped:
                    raise arguments.Stopped(lines.stopped)
        except BaseException:
            if transaction:
                counts = _Counts()
            raise
        finally:
            if not quiet:
                click.echo(f"{counts.events:,} events ({counts.bytes:,} bytes) are in {name}", err=True)
    sys.exit(lines.stopped)


@dataclass(slots=True)
class _Counts:
    """Events that are in the stream when the writer has been closed, and their bytes."""

    events: int = 0
    bytes: int = 0


class _Writer(Protocol):
    def write_column(self, events: pa.Array, routing_keys: pa.Array | None = None) -> None: ...


@contextlib.contextmanager
def _opened(client: PravegaClient, stream: str, lease: float, transaction: bool) -> Iterator[_Writer]:
    """Writer whose events are durable at the end of the block; of a transaction none are after an error."""
    if not transaction:
        with client.writer(stream) as writer:
            yield writer
        return
    begun: OpenTransaction[bytes] = client.transactions(stream, lease=lease).begin()
    with LeaseKeeper() as keeper, begun as opened:
        keeper.add(opened)
        yield opened
        keeper.check()


def _copy(lines: _Lines, keys: _Keys, encode: _Encoder, writer: _Writer, counts: _Counts) -> None:
    for chunk in lines:
        found, events_of = keys.split(chunk.lines)
        events, error = _encoded(encode, events_of, chunk)
        if len(events):
            writer.write_column(events, None if found is None else found[: len(events)])
            counts.events += len(events)
            counts.bytes += int(pa.compute.sum(pa.compute.binary_length(events)).as_py())
        if error is not None:
            raise error


# ---- lines ----


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Lines that follow each other in a file, and the number of the first one."""

    lines: list[bytes]
    file: str
    first: int


class _Lines:
    """Lines of files, as they come. A signal ends them: at once while they wait, else after the present chunk."""

    def __init__(self, files: tuple[IO[bytes], ...], longest: int) -> None:
        self._files, self._longest = files, longest
        self._waits = False
        self.stopped = 0
        """Exit code of the signal; 0 without one."""

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal; a second one ends the program."""
        if self.stopped or self._waits:
            again = bool(self.stopped)
            self.stopped = SIGNAL + number
            raise arguments.Stopped(self.stopped) if again else _EndOfInput
        self.stopped = SIGNAL + number

    def __iter__(self) -> Iterator[_Chunk]:
        for file in self._files:
            yield from self._of(file)

    def _of(self, file: IO[bytes]) -> Iterator[_Chunk]:
        frames, first, name = LineFrames(self._longest), 1, str(getattr(file, "name", "standard input"))
        while data := self._next(file):
            lines = frames.feed(data)
            if lines:
                yield _Chunk(lines, name, first)
                first += len(lines)
            if frames.broken is not None:
                raise frames.broken
        if not self.stopped and (lines := frames.finish()):
            yield _Chunk(lines, name, first)

    def _next(self, file: IO[bytes]) -> bytes:
        if self.stopped:
            return b""
        read: Callable[[int], bytes] = getattr(file, "read1", file.read)
        try:
            self._waits = True
            return read(_CHUNK)
        except _EndOfInput:
            return b""
        finally:
            self._waits = False


class _EndOfInput(BaseException):
    """A signal came while the input was waited for."""


# ---- routing keys ----


@dataclass(frozen=True, slots=True)
class _Keys:
    """What gives the routing keys of lines."""

    router: EventRouter | None = None
    separator: bytes | None = None

    @classmethod
    def of(cls, key: str | None, field: str | None, separator: str | None) -> _Keys:
        """By the options of the command, of which at most one may be given."""
        if sum(each is not None for each in (key, field, separator)) > 1:
            raise click.UsageError("--key, --key-field and --key-separator all give the routing key: choose one")
        if separator is not None:
            if not separator:
                raise click.UsageError("--key-separator is empty")
            return cls(separator=separator.encode())
        return cls(ByJsonField(field) if field is not None else None if key is None else ByConstant(key))

    def split(self, lines: list[bytes]) -> tuple[pa.Array | None, list[bytes]]:
        """Keys of the lines, and what is left of the lines; a line without the separator has no key."""
        if self.separator is not None:
            parts = [line.partition(self.separator) for line in lines]
            keys = [before.decode(errors="replace") if found else None for before, found, _ in parts]
            return pa.array(keys, pa.string()), [after if found else before for before, found, after in parts]
        if self.router is None:
            return None, lines
        return self.router.keys(pa.RecordBatch.from_arrays([pa.array(lines, pa.binary())], ["event"])), lines


# ---- events ----

#: Makes a column of events of lines. Raises SerializationError or DeserializationError with the row.
_Encoder = Callable[[list[bytes]], pa.Array]


def _encoded(encode: _Encoder, lines: list[bytes], chunk: _Chunk) -> tuple[pa.Array, BadRecordError | None]:
    """Events of the lines, up to the first one that is none, and its error."""
    try:
        return encode(lines), None
    except (SerializationError, DeserializationError) as error:
        row = error.row or 0
        where = f"{chunk.file}, line {chunk.first + row}"
        place = f" (field {error.field_path})" if error.field_path else ""
        said = BadRecordError(f"{where} is no event: {error.reason}{place}")
        return (encode(lines[:row]) if row else pa.array([], pa.binary())), said


def _encoder(options: SinkOptions) -> _Encoder:
    """Encoder of the lines. Raises ConfigError, SchemaError, RegistryErrors."""
    if options.from_registry:
        from pravega_connector.spark.sink.registry_schema import registry_serializer  # noqa: PLC0415 - a second that only its streams need

        return _json_encoder(registry_serializer(options))
    if options.format in (None, "bytes"):
        return lambda lines: pa.array(lines, pa.binary())
    serializer = options.serializer()
    return _by_row(serializer, bytes.decode) if options.format == "string" else _json_encoder(serializer)


def _json_encoder(serializer: Serializer[Any]) -> _Encoder:
    """By columns where the format's types are known, for they say what texts and numbers mean; else by row."""
    try:
        kind = serializer.arrow_type
        reader = JsonSerializer(arrow_type=kind)
        serializer.check_encodable(kind)
    except SchemaError:
        return _by_row(serializer, _json.deserialize)

    def encode(lines: list[bytes]) -> pa.Array:
        if pa.types.is_struct(kind):
            _check_names(lines, {field.name for field in kind})
        column = reader.decode_column(pa.array(lines, pa.binary()))
        if column.null_count:
            raise SerializationError("null is no event", row=pa.compute.index(column.is_null(), value=True).as_py())
        return serializer.encode_column(column)

    return encode


def _by_row(serializer: Serializer[Any], parse: Callable[[bytes], Any]) -> _Encoder:
    def encode(lines: list[bytes]) -> pa.Array:
        events: list[bytes] = []
        try:
            for line in lines:
                events.append(serializer.serialize(parse(line)))  # noqa: PERF401 - the count says which line is bad
        except (SerializationError, DeserializationError) as error:
            raise SerializationError(error.reason, row=len(events), field_path=error.field_path) from error
        except UnicodeDecodeError:
            raise SerializationError("it is not UTF-8", row=len(events)) from None
        return pa.array(events, pa.binary())

    return encode


_names_of: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _check_names(lines: list[bytes], known: set[str]) -> None:
    """Raise SerializationError for an object with a field that the events do not have: it would be lost."""
    for row, line in enumerate(lines):
        try:
            unknown = _names_of(line).keys() - known
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # no object, or no JSON: the reader says what is wrong
        if unknown:
            raise SerializationError(
                f"the events have no field {min(unknown)!r}; they have: {', '.join(sorted(known))}", row=row
            )
