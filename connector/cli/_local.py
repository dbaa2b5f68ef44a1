"""``pravega-serde local``: a Pravega server in the background."""

from __future__ import annotations

import datetime
import time
from typing import Final

import click

from connector.local import DetachedServer, ServerOptions, detached_server, start_detached, stop_detached

__all__ = ["local"]

# Where clients look for a controller when they are told nothing.
_USUAL_PORT: Final = 9090
_DEFAULTS: Final = ServerOptions()


@click.group()
def local() -> None:
    """Run a Pravega server on this machine. What it stores is gone when it ends."""


@local.command()
@click.option("--port", default=_USUAL_PORT, show_default=True, help="The controller's port; 0 for any free one.")
@click.option("--heap-mb", default=_DEFAULTS.heap_mb, show_default=True, help="The server's Java heap, in MiB.")
@click.option("--cache-mb", default=_DEFAULTS.cache_mb, show_default=True, help="Room for bursts of writes, in MiB.")
def up(port: int, heap_mb: int, cache_mb: int) -> None:
    """Start a server that runs until 'down'; does nothing if it runs already."""
    before = detached_server()
    if before is None:
        click.echo("Starting Pravega ...", err=True)
    server = start_detached(ServerOptions(port=port, heap_mb=heap_mb, cache_mb=cache_mb))
    if before is None:
        click.echo(f"Pravega is up at {server.controller_uri}")
    else:
        click.echo(f"Pravega was up already at {server.controller_uri}")
    if not server.controller_uri.endswith(f":{_USUAL_PORT}"):
        click.echo(f"export PRAVEGA_CONTROLLER_URI={server.controller_uri}")


@local.command()
def status() -> None:
    """Tell where the server is; exit code 1 if there is none."""
    server = detached_server()
    if server is None:
        click.echo("No Pravega server is up; start one with: pravega-serde local up")
        raise SystemExit(1)
    click.echo(_describe(server))


@local.command()
def down() -> None:
    """End the server; what it stored is gone."""
    server = stop_detached()
    click.echo("No Pravega server was up" if server is None else f"Pravega at {server.controller_uri} is down")


def _describe(server: DetachedServer) -> str:
    uptime = datetime.timedelta(seconds=max(0, round(time.time() - server.started)))
    return f"{server.controller_uri}  pid {server.pid}  up {uptime}  log {server.log}"
