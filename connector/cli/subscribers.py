"""``pravega-serde subscribers``: reader groups that hold back the retention of a stream."""

from __future__ import annotations

import click

from ..client import PravegaClient, StreamName
from ..config import PravegaConfig
from ..errors import ConfigError
from . import arguments

__all__ = ["subscribers"]


@click.command()
@arguments.stream
@arguments.controller
@click.option("--remove", metavar="NAME", help="End a query's subscription: NAME is its option publish_position.")
def subscribers(stream: str, controller: str | None, remove: str | None) -> None:
    """List the reader groups whose position retention waits for, Java's as well.

    The server does not tell their positions. One that is left behind holds data up to the policy's upper limit, or
    for ever without such a limit: remove it.
    """
    with PravegaClient(PravegaConfig.resolve(controller=controller)) as client:
        name = client.require_stream(StreamName.parse(stream))
        if remove is not None and not client.subscriber(name, remove).remove():
            raise ConfigError(
                f"stream {name} has no subscriber {remove!r}: pravega-serde subscribers {name} lists them"
            )
        for group in client.controller.subscribers(name):
            click.echo(group)
