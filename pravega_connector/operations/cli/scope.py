"""``pravega-serde scope``: list, create and delete scopes."""

from __future__ import annotations

import json

import click

from pravega_connector.errors import ConfigError, ControllerError, ScopeNotFoundError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import CommandGroup, examples

_name = click.argument("name", metavar="SCOPE")


@click.group(cls=CommandGroup, epilog=examples("pravega-serde scope list"))
def scope() -> None:
    """List, create and delete scopes."""


@scope.command("list", epilog=examples("pravega-serde scope list --json"))
@click.option("--internal", is_flag=True, help="Include Pravega's internal scopes, which begin with _.")
@arguments.controller
@arguments.as_json
def list_scopes(controller: str | None, *, internal: bool, as_json: bool) -> None:
    """List the scopes of the cluster."""
    with arguments.client_of(controller) as client:
        names = [name for name in client.controller.list_scopes() if internal or not name.startswith("_")]
    click.echo(json.dumps(names) if as_json else "\n".join(names), nl=as_json or bool(names))


@scope.command(epilog=examples("pravega-serde scope create shop"))
@_name
@click.option("--exist-ok", is_flag=True, help="Succeed if the scope exists already.")
@arguments.controller
def create(name: str, controller: str | None, *, exist_ok: bool) -> None:
    """Create a scope."""
    with arguments.client_of(controller) as client:
        if not client.controller.create_scope(name) and not exist_ok:
            raise ConfigError(f"scope {name} exists already: to use it, pass --exist-ok")


@scope.command(
    epilog=examples("pravega-serde scope delete shop --yes", "pravega-serde scope delete trial --recursive --yes")
)
@_name
@click.option("--recursive", is_flag=True, help="Delete all its streams, tables and reader groups first.")
@arguments.yes
@arguments.controller
def delete(name: str, controller: str | None, *, recursive: bool, yes: bool) -> None:
    """Delete a scope.

    It must have no streams. With --recursive, its streams are deleted with all events.
    """
    with arguments.client_of(controller) as client:
        if not client.controller.scope_exists(name):
            raise ScopeNotFoundError.of(name)
        streams = client.controller.list_streams(name)
        if streams and not recursive:
            raise ControllerError(
                f"cannot delete scope {name}: it has {len(streams)} streams, such as {streams[0]}; delete them first, "
                "or pass --recursive"
            )
        contents = f" with all events of its {len(streams)} streams" if streams else ""
        arguments.confirmed(f"Delete scope {name}{contents}", yes=yes)
        client.delete_scope(name, recursive=recursive)
