"""``pravega-serde local``: a Pravega server in the background, and a schema registry if requested."""

from __future__ import annotations

import datetime
import json
import os
import time
from typing import Any, Final

import click

from pravega_connector.errors import LocalServerError
from pravega_connector.local import (
    REPOSITORY_VARIABLE,
    ClusterOptions,
    ClusterProcess,
    DetachedServer,
    RegistryOptions,
    ServerOptions,
    detached_registry,
    detached_server,
    start_detached,
    start_detached_registry,
    stop_detached,
    stop_detached_registry,
)
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import CommandGroup, examples

# Port of the controller that clients use by default.
_USUAL_PORT: Final = 9090
# Default port of the registry.
_REGISTRY_PORT: Final = 9092


def _default(name: str, text: str) -> str:
    one, many = getattr(ServerOptions(), name), getattr(ClusterOptions(), name)
    return f"{text}  [default: {one}; with --cluster {many}]"


def _use_repository(_context: click.Context, _parameter: click.Parameter, url: str | None) -> None:
    if url is not None:
        # This process may start two servers.
        os.environ[REPOSITORY_VARIABLE] = url


@click.group(cls=CommandGroup, epilog=examples("pravega-serde local up --registry", "pravega-serde local down"))
def local() -> None:
    """Run a Pravega server on this machine.

    Its data is deleted when it ends.
    """


@local.command(epilog=examples("pravega-serde local up", "pravega-serde local up --registry --port 0"))
@click.option("--port", default=_USUAL_PORT, show_default=True, help="Port of the controller; 0 for any free port.")
@click.option(
    "--cluster", is_flag=True, help="Start a process for each part: ZooKeeper, bookies, controllers, segment stores."
)
@click.option("--controllers", default=1, show_default=True, help="Number of controllers, with --cluster.")
@click.option(
    "--heap-mb", type=int, help=_default("heap_mb", "Java heap of the server or of each segment store, in MiB.")
)
@click.option(
    "--cache-mb", type=int, help=_default("cache_mb", "Cache of the server or of each segment store, in MiB.")
)
@click.option("--quick-scaling", is_flag=True, help="Let scaling policies take effect after two minutes.")
@click.option("--registry", is_flag=True, help="Start a schema registry too.")
@click.option(
    "--registry-port", default=_REGISTRY_PORT, show_default=True, help="Port of the registry; 0 for any free port."
)
@click.option(
    "--registry-store",
    type=click.Choice(["memory", "pravega"]),
    default="memory",
    show_default=True,
    help="Storage of the registry.",
)
@click.option(
    "--maven-repository",
    metavar="URL",
    expose_value=False,
    callback=_use_repository,
    help=f"Mirror of Maven Central for the servers' jars.  [default: {REPOSITORY_VARIABLE}, or Maven Central]",
)
def up(
    *, cluster: bool, controllers: int, registry: bool, registry_port: int, registry_store: str, **options: Any
) -> None:
    """Start a server in the background.

    It runs until 'pravega-serde local down'. If it is running already, the command prints its address.
    """
    given = {name: value for name, value in options.items() if value is not None}
    wanted = ClusterOptions(controllers=controllers, **given) if cluster else ServerOptions(**given)
    before = detached_server()
    if before is None:
        click.echo("Starting Pravega ...", err=True)
    server = start_detached(wanted)
    click.echo(f"Pravega {_is_up(before)} at {server.uri}")
    if before is not None and wanted.port and f":{wanted.port}" not in server.uri:
        click.echo(
            f"A user can run one server, so none was started on port {wanted.port}: run 'local down' first",
            err=True,
        )
    if not server.uri.endswith(f":{_USUAL_PORT}"):
        click.echo(f"export PRAVEGA_CONTROLLER_URI={server.uri}")
    if registry:
        _registry_up(
            RegistryOptions(port=registry_port, controller=server.uri if registry_store == "pravega" else None)
        )


@local.command(epilog=examples("pravega-serde local status --json"))
@arguments.as_json
def status(*, as_json: bool) -> None:
    """Show the servers and their addresses.

    The exit code is 1 if no Pravega server is running.
    """
    server, registry = detached_server(), detached_registry()
    if as_json:
        click.echo(json.dumps({"pravega": _value(server), "registry": _value(registry)}))
        raise SystemExit(server is None)
    if server is None:
        click.echo("No Pravega server is up; start one with: pravega-serde local up")
    for running in (server, registry):
        if running is not None:
            click.echo(_describe(running))
    if server is None:
        raise SystemExit(1)
    for process in server.processes.values():
        click.echo(_describe_process(process))


def _command(name: str, about: str) -> None:
    """Add a command for one process of a cluster."""

    @local.command(
        name,
        help=f"{about}\n\n'pravega-serde local status' lists the names.",
        epilog=examples(f"pravega-serde local {name} store-1"),
    )
    @click.argument("process", metavar="NAME")
    def command(process: str) -> None:
        server = detached_server()
        if server is None or not server.processes:
            raise LocalServerError("no local cluster is up; start one with: pravega-serde local up --cluster")
        if process not in server.processes:
            raise LocalServerError(f"the cluster has no process {process!r}; it has {', '.join(server.processes)}")
        chosen = server.processes[process]
        getattr(chosen, name)()
        click.echo(_describe_process(chosen))


_command("terminate", "Terminate a process of the cluster (SIGTERM).")
_command("kill", "Kill a process of the cluster (SIGKILL).")
_command("pause", "Pause a process of the cluster (SIGSTOP).")
_command("resume", "Resume a paused process of the cluster (SIGCONT).")
_command("restart", "Kill a process of the cluster if it runs, and start it again.")


@local.command(epilog=examples("pravega-serde local down"))
def down() -> None:
    """Stop the server and the registry.

    Their data is deleted.
    """
    # The registry ends first: it may store its groups in the server.
    registry = stop_detached_registry()
    if registry is not None:
        click.echo(f"The schema registry at {registry.uri} is down")
    server = stop_detached()
    click.echo(
        "No Pravega server was up" if server is None else f"Pravega at {server.uri} is down, and its data is deleted"
    )


def _registry_up(options: RegistryOptions) -> None:
    before = detached_registry()
    if before is None:
        click.echo("Starting the schema registry ...", err=True)
    server = start_detached_registry(options)
    click.echo(f"The schema registry {_is_up(before)} at {server.uri}")
    click.echo(f"export PRAVEGA_REGISTRY_URI={server.uri}")


def _is_up(before: DetachedServer | None) -> str:
    return "is up" if before is None else "was up already"


def _describe_process(process: ClusterProcess) -> str:
    if not process.running:
        return f"  {process.name}  ended  log {process.log}"
    return f"  {process.name}  pid {process.pid}{'  paused' if process.paused else ''}  log {process.log}"


def _value(server: DetachedServer | None) -> dict[str, Any] | None:
    if server is None:
        return None
    found = {"uri": server.uri, "pid": server.pid, "started": server.started, "log": str(server.log)}
    if server.processes:
        found["processes"] = {
            name: {"pid": each.pid, "running": each.running, "paused": each.paused, "log": str(each.log)}
            for name, each in server.processes.items()
        }
    return found


def _describe(server: DetachedServer) -> str:
    uptime = datetime.timedelta(seconds=max(0, round(time.time() - server.started)))
    return f"{server.uri}  pid {server.pid}  up {uptime}  log {server.log}"
