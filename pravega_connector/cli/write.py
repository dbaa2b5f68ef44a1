"""``pravega-serde write``: lines of standard input, files or TCP connections, as events of a format."""

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

from pravega_connector.cli import arguments
from pravega_connector.cli.exit_codes import SIGNAL, exit_code
from pravega_connector.client import LeaseKeeper, PravegaClient, StreamName
from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.pipe import (
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
from pravega_connector.spark.options.sink import SinkOptions
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.transactions import DEFAULT_LEASE, OpenTransaction
from pravega_serde.errors import DeserializationError, SchemaError, SerializationError
from pravega_serde.json import JsonSerializer
from pravega_serde.routing import ByConstant, EventRouter
from pravega_serde.serializer_interface import Serializer

_STDOUT: Final = 1
_json: Final = JsonSerializer()


@click.command()
@arguments.stream
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.File("rb"))
@arguments.controller
@click.option("--listen", metavar="ADDRESS", help="Accept connections at tcp://host:port until SIGTERM.")
@click.option("--format", help="Format of the events; without it, and without a registry, a line is an event.")
@arguments.registry
@arguments.group
@arguments.more_options("sink that describes the events")
@click.option("--key", help="The routing key of all events.")
@click.option("--key-field", metavar="PATH", help="The routing key is this field of JSON lines: customer, order.id.")
@click.option("--key-pattern", metavar="REGEX", help="The routing key is what this finds: group 'key', or the first.")
@click.option("-K", "--key-separator", metavar="TEXT", help="The routing key is the text before this in a line.")
@click.option("--transaction", is_flag=True, help="All lines or none, in one transaction.")
@click.option(
    "--lease", default=DEFAULT_LEASE, show_default=True, help="Seconds after which an abandoned transaction ends."
)
@click.option("--acknowledge", is_flag=True, help="Report the number of durable events to stdout or the connection.")
@arguments.create
@click.option("--max-event-size", default=MAX_EVENT_SIZE, show_default=True, help="Longest line, in bytes.")
@click.option("--buffer", default=MAX_UNACKNOWLEDGED, show_default=True, help="Bytes read and not durable, at most.")
@arguments.failover_timeout
@arguments.metrics
@click.option("--quiet", is_flag=True, help="No summary.")
def write(
    *,
    stream: str,
    files: tuple[IO[bytes], ...],
    listen: str | None,
    key: str | None,
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
    """Write the lines of files, standard input or TCP connections to a stream, as they come.

    Without a format a line is an event. With --format string it must be UTF-8; with any other format, or with
    --registry, it is JSON, and becomes the event of its value. With code 0 all lines are durable events. A malformed
    line ends the command with code 6, or its connection; the lines before it are in the stream. SIGTERM and SIGINT end
    the input, and lines that were read become durable.
    """
    options = arguments.event_options(stream, more, SinkOptions, **named)
    router = _router(key, key_field, key_pattern, key_separator)
    if listen is not None and (files or transaction):
        raise click.UsageError("--listen takes neither files nor --transaction")
    if acknowledge and (files or transaction):
        raise click.UsageError("--acknowledge takes neither files nor --transaction")
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
    # A signal is the normal end of what listens.
    sys.exit(stop.code if listen is None else 0)


class _Stop:
    """Signal handler: the first signal ends the input, the second one the program."""

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
    """Writer, or transaction with a lease: it is committed at the end of the block, and aborted after an error."""
    if lease is None:
        # Not closed: a pipe has flushed it, or has given up.
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
    return standard_input(acknowledge=functools.partial(os.write, _STDOUT) if acknowledge else None)


def _show(summary: PipeSummary, stream: StreamName, *, keyed: bool) -> None:
    lines = [f"{summary.acknowledged:,} events ({summary.bytes:,} bytes) are in {stream}"]
    if summary.not_acknowledged:
        lines.append(
            f"{summary.not_acknowledged:,} more events were read and may not be in the stream: send them again"
        )
    if keyed and summary.without_key:
        lines.append(f"{summary.without_key:,} events have no routing key")
    if summary.bytes_left:
        lines.append(f"{summary.bytes_left:,} bytes at the end of an input were no whole line")
    for line in lines:
        click.echo(line, err=True)


# ---- routing keys ----


def _router(key: str | None, field: str | None, pattern: str | None, separator: str | None) -> EventRouter | None:
    if sum(each is not None for each in (key, field, pattern, separator)) > 1:
        raise click.UsageError(
            "--key, --key-field, --key-pattern and --key-separator all give the routing key: choose one"
        )
    if separator is not None:
        if not separator:
            raise click.UsageError("--key-separator is empty")
        return ByPattern(f"(?s)^(.*?){re.escape(separator)}")
    if field is not None:
        return ByJsonField(field)
    if pattern is not None:
        return ByPattern(pattern)
    return None if key is None else ByConstant(key)


def _without_keys(encode: Encode, separator: str | None) -> Encode:
    """Encoder of the text after the separator in each line; of the whole line without one."""
    if separator is None:
        return encode
    between = separator.encode()

    def encode_rest(lines: list[bytes]) -> pa.Array:
        parts = [line.partition(between) for line in lines]
        return encode([after if found else before for before, found, after in parts])

    return encode_rest


# ---- events ----


def _encoder(options: SinkOptions) -> Encode:
    """Encoder of the lines. Raises ConfigError, SchemaError, RegistryErrors."""
    if options.from_registry:
        from pravega_connector.spark.sink.registry_schema import registry_serializer  # noqa: PLC0415 - a second that only its streams need

        return _json_encoder(registry_serializer(options))
    if options.format in (None, "bytes"):
        return lambda lines: pa.array(lines, pa.large_binary())
    serializer = options.serializer()
    return _by_row(serializer, bytes.decode) if options.format == "string" else _json_encoder(serializer)


def _json_encoder(serializer: Serializer[Any]) -> Encode:
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


def _by_row(serializer: Serializer[Any], parse: Callable[[bytes], Any]) -> Encode:
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
