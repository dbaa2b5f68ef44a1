"""``pravega-serde pipe``: standard input, or what comes over sockets, as events."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from types import FrameType
from typing import Any, Final

import click

from pravega_connector.cli import arguments
from pravega_connector.cli.exit_codes import exit_code
from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.errors import ConfigError
from pravega_connector.pipe import (
    FRAMES,
    MAX_UNACKNOWLEDGED,
    ByJsonField,
    ByPattern,
    Input,
    Pipe,
    PipeSummary,
    connected,
    listening,
    standard_input,
)
from pravega_serde.routing import ByConstant, EventRouter

__all__ = ["pipe"]

_STDOUT: Final = 1


@click.command()
@arguments.stream
@arguments.controller
@click.option("--listen", metavar="ADDRESS", help="Take connections at tcp://host:port or unix:/path, until SIGTERM.")
@click.option("--connect", metavar="ADDRESS", help="Read from tcp://host:port or unix:/path instead of standard input.")
@click.option(
    "--frames", type=click.Choice(tuple(FRAMES)), default="lines", show_default=True, help="What an event is."
)
@click.option("--key", help="The routing key of all events.")
@click.option("--key-field", metavar="PATH", help="The routing key is this field of JSON events: customer, order.id.")
@click.option("--key-pattern", metavar="REGEX", help="The routing key is what this finds: group 'key', or the first.")
@click.option("--acknowledge", is_flag=True, help="Tell how many events are durable: standard output, or the socket.")
@click.option("--max-event-size", default=MAX_EVENT_SIZE, show_default=True, help="Largest event, in bytes.")
@click.option("--buffer", default=MAX_UNACKNOWLEDGED, show_default=True, help="Bytes read and not durable, at most.")
@arguments.create
@arguments.failover_timeout
@arguments.metrics
@click.option("--quiet", is_flag=True, help="No summary.")
def pipe(
    *,
    stream: str,
    controller: str | None,
    listen: str | None,
    connect: str | None,
    frames: str,
    key: str | None,
    key_field: str | None,
    key_pattern: str | None,
    acknowledge: bool,
    max_event_size: int,
    buffer: int,
    create: int | None,
    failover_timeout: float,
    metrics_port: int | None,
    metrics_host: str,
    quiet: bool,
) -> None:
    """Write standard input, or what comes over sockets, to a stream, as it comes.

    Exit code 0: the input has ended (or SIGTERM or SIGINT has stopped it), and all events that were read are durable.
    Otherwise some are not, or a part of the input was no event (6); the summary counts them.
    """
    router = _router(key, key_field, key_pattern)
    opened = _input(listen, connect, acknowledge=acknowledge)
    with (
        contextlib.closing(opened),
        arguments.serving_metrics(metrics_port, metrics_host),
        arguments.client_of(controller, failover_timeout) as client,
        arguments.take_signals(functools.partial(_stop, opened)),
        _Abandoned(client, stream, create, max_event_size=max_event_size, max_in_flight=buffer) as writer,
    ):
        if listen is not None:
            click.echo(f"listening at {opened.name}", err=True)
        job = Pipe(
            opened,
            writer,
            functools.partial(FRAMES[frames], max_event_size),
            router=router,
            max_unacknowledged=buffer,
            failover_timeout=failover_timeout,
        )
        try:
            job.run()
        finally:
            if not quiet:
                _show(job.summary, client.name(stream), keyed=router is not None)
    if job.summary.errors:
        raise SystemExit(exit_code(job.summary.errors[0]))


class _Abandoned:
    """Writer that is abandoned at the end: the pipe has flushed it, or has given up."""

    def __init__(self, client: PravegaClient, stream: str, create: int | None, **options: Any) -> None:
        if create is not None:
            client.create_stream(stream, create)
        self._writer = client.writer(stream, **options)

    def __enter__(self) -> Any:
        return self._writer

    def __exit__(self, *_: object) -> None:
        self._writer.abandon()


def _router(key: str | None, field: str | None, pattern: str | None) -> EventRouter | None:
    given: list[EventRouter] = []
    if key is not None:
        given.append(ByConstant(key))
    if field is not None:
        given.append(ByJsonField(field))
    if pattern is not None:
        given.append(ByPattern(pattern))
    if len(given) > 1:
        raise ConfigError("--key, --key-field and --key-pattern all give the routing key: choose one")
    return given[0] if given else None


def _input(listen: str | None, connect: str | None, *, acknowledge: bool) -> Input:
    if listen is not None and connect is not None:
        raise ConfigError("--listen and --connect both tell where events come from: choose one")
    if listen is not None:
        return listening(listen, acknowledge=acknowledge)
    if connect is not None:
        return connected(connect, acknowledge=acknowledge)
    return standard_input(acknowledge=functools.partial(os.write, _STDOUT) if acknowledge else None)


def _stop(opened: Input, number: int, frame: FrameType | None) -> None:
    """End the input at the first signal, so that events read become durable, and the program at the second."""
    if opened.stopped:
        signal.default_int_handler(number, frame)
    opened.stop()


def _show(summary: PipeSummary, stream: StreamName, *, keyed: bool) -> None:
    lines = [f"{summary.acknowledged:,} events ({summary.bytes:,} bytes read) are in {stream}"]
    if summary.not_acknowledged:
        lines.append(
            f"{summary.not_acknowledged:,} more events were read and may not be in the stream: send them again"
        )
    if keyed and summary.without_key:
        lines.append(f"{summary.without_key:,} events have no routing key")
    if summary.bytes_left:
        lines.append(f"{summary.bytes_left:,} bytes at the end of an input were no whole event")
    for line in (*lines, *map(str, summary.errors)):
        click.echo(line, err=True)
