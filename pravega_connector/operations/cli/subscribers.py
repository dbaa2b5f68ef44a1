"""``pravega-serde subscribers``: list and remove the subscribers of a stream."""

from __future__ import annotations

import json

import click

from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples


@click.command(
    epilog=examples("pravega-serde subscribers shop/orders", "pravega-serde subscribers shop/orders --remove billing")
)
@arguments.stream
@arguments.controller
@click.option(
    "--remove", metavar="NAME", help="Remove the subscription of a query, named by its option publish_position."
)
@arguments.as_json
def subscribers(stream: str, controller: str | None, remove: str | None, *, as_json: bool) -> None:
    """List the subscribers of a stream, or remove one.

    Subscribers are queries and reader groups, Java's included. Retention keeps the events that a subscriber has not
    read, up to the upper limit of the policy. Without a limit, an abandoned subscriber keeps them forever: remove it.
    The server does not report positions.
    """
    with arguments.client_of(controller) as client:
        name = client.require_stream(stream)
        if remove is not None and not client.subscriber(name, remove).remove():
            raise ConfigError(
                f"stream {name} has no subscriber {remove!r}: run 'pravega-serde subscribers {name}' to list them"
            )
        groups = client.controller.subscribers(name)
    if as_json:
        click.echo(json.dumps(groups))
    else:
        for group in groups:
            click.echo(group)
