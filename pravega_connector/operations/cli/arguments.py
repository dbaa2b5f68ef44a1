"""Arguments and options that several commands share, their types, and the handling of signals."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.metrics import serve_metrics
from pravega_connector.operations.cli.exit_codes import SIGNAL
from pravega_connector.rows.options import known_names, option_hint, parse_options

if TYPE_CHECKING:
    from pravega_connector.rows.options import CommonOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Options = TypeVar("_Options", bound="CommonOptions")

stream: Final = click.argument("stream", metavar="SCOPE/STREAM")
controller: Final = click.option(
    "--controller",
    metavar="URI",
    help="Controller URI.  [default: PRAVEGA_CONTROLLER_URI, the profile, or tcp://localhost:9090]",
)
failover_timeout: Final = click.option(
    "--failover-timeout",
    type=click.FloatRange(0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Retry for up to this long when servers fail after their first answer; warn after 10 s.",
)
event_format: Final = click.option(
    "--format", metavar="NAME", help="Format of the events, such as json or avro. Without it and --registry: bytes."
)
registry: Final = click.option("--registry", metavar="URI", help="Schema registry that has the schemas of the events.")
registry_group: Final = click.option(
    "--registry-group", "group", metavar="NAME", help="Group in the schema registry.  [default: the stream's name]"
)
create: Final = click.option(
    "--create",
    type=click.IntRange(1),
    metavar="SEGMENTS",
    help="Create the stream with this many segments, unless it exists.",
)
as_json: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes: Final = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


# ---- values ----


class _Scaled(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.4
    """Whole number with a unit, such as 10MB."""

    def __init__(self, name: str, units: dict[str, int], example: str) -> None:
        self.name, self._units, self._example = name, units, example

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.name.upper()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        unit = self._units.get(match[2]) if match else None
        if match is None or unit is None:
            units = ", ".join(unit for unit in self._units if unit)
            self.fail(f"invalid {self.name} {value!r}: write, for example, {self._example}; units: {units}", param, ctx)
        return round(float(match[1]) * unit)


_THOUSANDS: Final = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
#: Bytes: 500MB, 10GiB.
SIZE: Final = _Scaled("size", _THOUSANDS | {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}, "10GB")
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
#: Milliseconds, written as 12h or 7d.
DURATION: Final = _Scaled("duration", {"ms": 1} | {unit: 1000 * n for unit, n in _SECONDS.items()}, "7d")


def more_options(side: str) -> Callable[[_Command], _Command]:
    """Return the option ``-o NAME=VALUE``: options of Spark's source or sink, as a dictionary ``more``."""
    return click.option(
        "-o",
        "--option",
        "more",
        multiple=True,
        metavar="NAME=VALUE",
        callback=pairs,
        help=f"Option of the Spark {side}; repeatable. 'pravega-serde options' lists them.",
    )


def pairs(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse values NAME=VALUE: the callback of a repeatable option."""
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"invalid {value!r}: write NAME=VALUE, such as timeout_ms=20000")
        found[name] = text
    return found


def metrics(command: _Command) -> _Command:
    """Add the options ``--metrics-port`` and ``--metrics-host`` for :func:`serving_metrics`."""
    host = click.option(
        "--metrics-host",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="Address to serve metrics at; 0.0.0.0 for all interfaces.",
    )
    port = click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        metavar="PORT",
        help="Serve Prometheus metrics at this port while the command runs; the usual port is 9464.",
    )
    return port(host(command))


@contextmanager
def serving_metrics(port: int | None, host: str) -> Iterator[None]:
    """Serve the metrics of this process during the block, if a port is set. Raises ConfigError, MissingExtraError."""
    if port is None:
        yield
        return
    with serve_metrics(port, host) as server:
        click.echo(f"metrics at {server.url}", err=True)
        yield


def event_options(stream: str, more: dict[str, str], kind: type[_Options], **named: str | None) -> _Options:
    """Return the options of the class ``kind`` for a stream and the format of its events.

    Raises click.UsageError for an unknown name, ConfigError for an invalid value.
    """
    known = known_names(kind)
    for name in more:
        if name.lower() not in known:
            raise click.UsageError(f"No such option -o {name}{option_hint(name, known)}")
    given = {name: value for name, value in named.items() if value is not None}
    return parse_options(kind, {"path": stream, **given, **more})


def check_schema(options: CommonOptions) -> None:
    """Load the schema in the options, to report a missing or invalid file before the connection.

    Raises ConfigError, SchemaError.
    """
    if options.format is not None and not options.from_registry and options.given_schema(reading=False) is not None:
        options.serializer()


def client_of(controller: str | None, failover_timeout: float | None = None) -> PravegaClient:
    """Return a client of the cluster that the command line, the environment or the profile names."""
    config = PravegaConfig.resolve(controller=controller)
    return (
        PravegaClient(config) if failover_timeout is None else PravegaClient(config, failover_timeout=failover_timeout)
    )


def confirmed(what: str, *, yes: bool) -> None:
    """Return if the user has confirmed or confirms now. Raises click.UsageError without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"cannot ask '{what}?': standard input is not a terminal; pass --yes to confirm")
    click.confirm(f"{what}?", abort=True)


# ---- signals ----


# Longest time from a signal to the end of a process that is interrupted.
_END_SECONDS: Final = 8.0


class Interrupted(BaseException):
    """Raised when a signal interrupts a run that another run resumes."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Raise Interrupted for SIGTERM and SIGINT, and end the process after ``_END_SECONDS`` even if it still waits."""
    timers: list[threading.Timer] = []

    def stop(number: int, _frame: object) -> None:
        timers.append(threading.Timer(_END_SECONDS, os._exit, [SIGNAL + number]))
        timers[-1].daemon = True
        timers[-1].start()
        raise Interrupted(number)

    try:
        with take_signals(stop):
            yield
    finally:
        for timer in timers:
            timer.cancel()


class Stopped(SystemExit):
    """Raised when a signal ends the command."""


@contextmanager
def take_signals(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle SIGTERM and SIGINT during the block."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise Stopped in the block for SIGTERM and SIGINT."""

    def stop(number: int, _frame: object) -> None:
        raise Stopped(SIGNAL + number)

    with take_signals(stop):
        yield
