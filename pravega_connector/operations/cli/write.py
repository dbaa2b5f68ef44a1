"""``pravega-serde write``: write lines of standard input, files or TCP connections to a stream."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import IO, Any, Final

import click
import msgspec
import pyarrow as pa

from pravega_connector.client import LeaseKeeper, PravegaClient, StreamName
from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.exit_codes import SIGNAL, exit_code
from pravega_connector.operations.pipe import (
    MAX_UNACKNOWLEDGED,
    ByJsonField,
    ByPattern,
    Encode,
    Input,
    Pipe,
    PipeSummary,
    listening,
    of_files,
    standard_input,
)
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.registry_encoding import registry_serializer
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.transactions import DEFAULT_LEASE, OpenTransaction
from pravega_serde.errors import DeserializationError, SchemaError, SerializationError
from pravega_serde.json import JsonSerializer
from pravega_serde.routing import ByConstant, EventRouter
from pravega_serde.serializer_interface import Serializer

_STDOUT: Final = 1
_json: Final = JsonSerializer()


@click.command(
    epilog=examples(
        "pravega-serde write shop/orders orders.jsonl --key-field customer",
        "printf 'ann:tea\\nbob:milk\\n' | pravega-serde write shop/notes -K :",
        "pravega-serde write shop/sensors --listen tcp://0.0.0.0:9000",
    )
)
@arguments.stream
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.File("rb"))
@arguments.controller
@click.option("--listen", metavar="ADDRESS", help="Accept connections at tcp://host:port until SIGTERM.")
@arguments.event_format
@arguments.registry
@arguments.registry_group
@arguments.more_options("sink for the format of the events")
@click.option("--routing-key", metavar="TEXT", help="Routing key of all events.")
@click.option("--key-field", metavar="PATH", help="Field of JSON lines with the routing key, such as order.id.")
@click.option(
    "--key-pattern", metavar="REGEX", help="Regular expression that finds the routing key: group 'key', or group 1."
)
@click.option("-K", "--key-separator", metavar="TEXT", help="Separator after the routing key in a line.")
@click.option("--transaction", is_flag=True, help="Write all lines or none, in one transaction.")
@click.option(
    "--lease",
    metavar="SECONDS",
    default=DEFAULT_LEASE,
    show_default=True,
    help="Transaction timeout, with --transaction.",
)
@click.option(
    "--acknowledge", is_flag=True, help="Report the number of durable events to standard output or the connection."
)
@arguments.create
@click.option(
    "--max-event-size", metavar="BYTES", default=MAX_EVENT_SIZE, show_default=True, help="Maximum length of a line."
)
@click.option(
    "--buffer",
    metavar="BYTES",
    default=MAX_UNACKNOWLEDGED,
    show_default=True,
    help="Maximum number of bytes that were read and are not durable.",
)
@arguments.failover_timeout
@arguments.metrics
@click.option("--quiet", is_flag=True, help="Print no summary.")
def write(
    *,
    stream: str,
    files: tuple[IO[bytes], ...],
    listen: str | None,
    routing_key: str | None,
    key_field: str | None,
    key_pattern: str | None,
    key_separator: str | None,
    more: dict[str, str],
    transaction: bool,
    lease: float,
    acknowledge: bool,
    create: int | None,
    max_event_size: int,
    buffer: int,
    failover_timeout: float,
    metrics_port: int | None,
    metrics_host: str,
    quiet: bool,
    **named: str | None,
) -> None:
    """Write lines of files, standard input or TCP connections to a stream.

    Without --format or --registry, a line is an event. With --format string, a line must be UTF-8. With another format
    or --registry, a line is JSON and its value is encoded.

    With exit code 0 all lines are durable. A malformed line ends the command with code 6, or ends its connection; the
    lines before it are written. SIGTERM and SIGINT end the input, and the lines read so far are written.
    """
    options = arguments.event_options(stream, more, SinkOptions, **named)
    arguments.check_schema(options)
    router = _router(routing_key, key_field, key_pattern, key_separator)
    if listen is not None and (files or transaction):
        raise click.UsageError("--listen excludes files and --transaction")
    if acknowledge and (files or transaction):
        raise click.UsageError("--acknowledge excludes files and --transaction")
    opened = _input(listen, files, acknowledge=acknowledge)
    stop = _Stop(opened)
    with (
        contextlib.closing(opened),
        arguments.serving_metrics(metrics_port, metrics_host),
        PravegaClient(options.config, failover_timeout=failover_timeout) as client,
        arguments.take_signals(stop),
    ):
        name = options.stream_name()
        if create is not None:
            client.create_stream(name, create)
        client.require_stream(name)
        encode = _without_keys(_encoder(options), key_separator)
        settings = {"max_event_size": max_event_size, "max_in_flight": buffer}
        summary = PipeSummary()
        try:
            with _opened(client, name, lease if transaction else None, settings) as writer:
                if listen is not None:
                    click.echo(f"listening at {opened.name}", err=True)
                job = Pipe(
                    opened,
                    writer,
                    encode=encode,
                    router=router,
                    max_line_size=max_event_size,
                    max_unacknowledged=buffer,
                    failover_timeout=failover_timeout,
                )
                if not transaction:
                    summary = job.summary
                job.run()
                if transaction and stop.code:
                    raise arguments.Stopped(stop.code)
            summary = job.summary
        finally:
            if not quiet:
                _show(summary, name, keyed=router is not None)
    if summary.errors:
        for error in summary.errors:
            click.echo(str(error), err=True)
        sys.exit(exit_code(summary.errors[0]))
    # A signal is the normal end of a command that listens.
    sys.exit(stop.code if listen is None else 0)


class _Stop:
    """Signal handler: the first signal ends the input, the second signal ends the program."""

    def __init__(self, opened: Input) -> None:
        self._opened = opened
        self.code = 0  # exit code of the signal; 0 without one

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        again, self.code = bool(self.code), SIGNAL + number
        self._opened.stop()
        if again:
            raise arguments.Stopped(self.code)


@contextlib.contextmanager
def _opened(
    client: PravegaClient, stream: StreamName, lease: float | None, settings: dict[str, Any]
) -> Iterator[EventWriter[bytes] | OpenTransaction[bytes]]:
    """Yield a writer, or with a lease a transaction: committed at the end of the block, aborted after an error."""
    if lease is None:
        # Not closed: the pipe has flushed the writer or has failed.
        writer = client.writer(stream, **settings)
        try:
            yield writer
        finally:
            writer.abandon()
        return
    begun: OpenTransaction[bytes] = client.transactions(stream, lease=lease, **settings).begin()
    with LeaseKeeper() as keeper, begun as opened:
        keeper.add(opened)
        yield opened
        keeper.check()


def _input(listen: str | None, files: tuple[IO[bytes], ...], *, acknowledge: bool) -> Input:
    if listen is not None:
        return listening(listen, acknowledge=acknowledge)
    if files:
        return of_files(files)
    if sys.stdin is None:  # its number may be that of another file by now
        raise click.UsageError("standard input is closed: redirect it, name files, or set --listen")
    return standard_input(acknowledge=functools.partial(os.write, _STDOUT) if acknowledge else None)


def _show(summary: PipeSummary, stream: StreamName, *, keyed: bool) -> None:
    lines = [f"{summary.acknowledged:,} events ({summary.bytes:,} bytes) are in {stream}"]
    if summary.not_acknowledged:
        lines.append(
            f"{summary.not_acknowledged:,} more events were read and may not be in the stream: write them again"
        )
    if keyed and summary.without_key:
        lines.append(f"{summary.without_key:,} events have no routing key")
    if summary.bytes_left:
        lines.append(f"{summary.bytes_left:,} bytes at the end of an input were not a whole line")
    for line in lines:
        click.echo(line, err=True)


# ---- routing keys ----


def _router(key: str | None, field: str | None, pattern: str | None, separator: str | None) -> EventRouter | None:
    if sum(each is not None for each in (key, field, pattern, separator)) > 1:
        raise click.UsageError(
            "--routing-key, --key-field, --key-pattern and --key-separator exclude each other: choose one"
        )
    if separator is not None:
        if not separator:
            raise click.UsageError("--key-separator is empty")
        return ByPattern(f"(?s)^(.*?){re.escape(separator)}")
    if field is not None:
        return ByJsonField(field)
    if pattern is not None:
        return ByPattern(pattern)
    if key is None:
        return None
    try:
        key.encode()
    except UnicodeEncodeError:
        raise click.UsageError("--routing-key is not UTF-8") from None
    return ByConstant(key)


def _without_keys(encode: Encode, separator: str | None) -> Encode:
    """Return an encoder of the text after the separator in each line; without a separator, of the whole line."""
    if separator is None:
        return encode
    between = separator.encode(errors="surrogateescape")

    def encode_rest(lines: list[bytes]) -> pa.Array:
        parts = [line.partition(between) for line in lines]
        return encode([after if found else before for before, found, after in parts])

    return encode_rest


# ---- events ----


def _encoder(options: SinkOptions) -> Encode:
    """Return the encoder of the lines. Raises ConfigError, SchemaError, RegistryErrors."""
    if options.from_registry:
        return _json_encoder(options.complete(registry_serializer(options)))
    if options.format is None or (options.format == "bytes" and options.framing is None):
        return lambda lines: pa.array(lines, pa.large_binary())
    serializer = options.serializer()
    return _by_row(serializer, bytes.decode) if options.format == "string" else _json_encoder(serializer)


def _json_encoder(serializer: Serializer[Any]) -> Encode:
    """Return an encoder by columns if the types of the format are known, otherwise by row."""
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
            raise SerializationError("null is not an event", row=pa.compute.index(column.is_null(), value=True).as_py())
        return serializer.encode_column(column)

    return encode


def _by_row(serializer: Serializer[Any], parse: Callable[[bytes], Any]) -> Encode:
    def encode(lines: list[bytes]) -> pa.Array:
        events: list[bytes] = []
        try:
            for line in lines:
                events.append(serializer.serialize(parse(line)))
        except (SerializationError, DeserializationError) as error:
            raise SerializationError(error.reason, row=len(events), field_path=error.field_path) from error
        except UnicodeDecodeError:
            raise SerializationError("the line is not UTF-8", row=len(events)) from None
        return pa.array(events, pa.binary())

    return encode


_names_of: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _check_names(lines: list[bytes], known: set[str]) -> None:
    """Raise SerializationError for an object with an unknown field, which would be lost."""
    for row, line in enumerate(lines):
        try:
            unknown = _names_of(line).keys() - known
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # not an object or not JSON: the reader raises the error
        if unknown:
            raise SerializationError(
                f"the events have no field {min(unknown)!r}; they have: {', '.join(sorted(known))}", row=row
            )
