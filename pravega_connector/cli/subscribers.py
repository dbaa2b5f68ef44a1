"""``pravega-serde subscribers``: reader groups that hold back the retention of a stream."""

from __future__ import annotations

import json

import click

from pravega_connector.cli import arguments
from pravega_connector.errors import ConfigError


@click.command()
@arguments.stream
@arguments.controller
@click.option("--remove", metavar="NAME", help="End a query's subscription: NAME is its option publish_position.")
@arguments.as_json
def subscribers(stream: str, controller: str | None, remove: str | None, *, as_json: bool) -> None:
    """List the reader groups whose position retention waits for, Java's as well.

    The server does not tell their positions. One that is left behind holds data up to the policy's upper limit, or
    for ever without such a limit: remove it.
    """
    with arguments.client_of(controller) as client:
        name = client.require_stream(stream)
        if remove is not None and not client.subscriber(name, remove).remove():
            raise ConfigError(
                f"stream {name} has no subscriber {remove!r}: pravega-serde subscribers {name} lists them"
            )
        groups = client.controller.subscribers(name)
    if as_json:
        click.echo(json.dumps(groups))
    else:
        for group in groups:
            click.echo(group)
