"""Arguments and options that mean the same in several commands, and their handling of signals."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

import click

__all__ = ["controller", "failover_timeout", "group", "more_options", "registry", "stream", "take_signals"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

stream: Final = click.argument("stream", metavar="SCOPE/STREAM")
controller: Final = click.option(
    "--controller", help="Controller URI.  [default: PRAVEGA_CONTROLLER_URI, or tcp://localhost:9090]"
)
failover_timeout: Final = click.option(
    "--failover-timeout",
    type=click.FloatRange(0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long servers that fail may take to recover, once they have answered; a warning comes after 10 s.",
)
registry: Final = click.option("--registry", help="The schema registry of the stream's events.")
group: Final = click.option("--group", help="Group in the registry.  [default: the stream's name]")


def more_options(side: str) -> Callable[[_Command], _Command]:
    """Option ``-o NAME=VALUE``: other options of Spark's ``source`` or ``sink``, as a dictionary ``more``."""
    return click.option(
        "-o",
        "--option",
        "more",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_pairs,
        help=f"Any option of the Spark {side}.",
    )


def _pairs(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"invalid {value!r}: write NAME=VALUE")
        pairs[name] = text
    return pairs


@contextmanager
def take_signals(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle SIGTERM and SIGINT during the block."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
