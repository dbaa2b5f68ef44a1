"""``pravega-serde table``: create, list and delete key-value tables, and get, set, remove and list their entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any, Final, TypeVar

import click

from pravega_connector.client import PravegaClient
from pravega_connector.errors import ConfigError, TableNotFoundError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import CommandGroup, examples
from pravega_connector.operations.cli.exit_codes import ExitCode
from pravega_connector.tables import Table, TableEntry, Version

_Command = TypeVar("_Command", bound=Callable[..., Any])
_table: Final = click.argument("table", metavar="SCOPE/TABLE")
_key: Final = click.argument("key")
_secondary: Final = click.option("--secondary", metavar="KEY", help="Secondary key, in a table with secondary keys.")
_hexadecimal: Final = click.option(
    "--hex", "hexadecimal", is_flag=True, help="Keys and values are hexadecimal.  [default: UTF-8 text]"
)
_version: Final = click.option(
    "--if-version", "version", metavar="VERSION", help="Fail unless the entry has this version, such as 0:27."
)


class _Text:
    """Serializer of text on the command line: UTF-8 or hexadecimal."""

    def __init__(self, *, hexadecimal: bool) -> None:
        self._hexadecimal = hexadecimal

    def serialize(self, value: str) -> bytes:
        """Return the bytes of a text. Raises ConfigError."""
        try:
            return bytes.fromhex(value) if self._hexadecimal else value.encode()
        except ValueError:
            raise ConfigError(f"{value[:80]!r} is not hexadecimal: write two digits for each byte") from None

    def deserialize(self, data: bytes) -> str:
        """Return the text of bytes. Raises ConfigError."""
        try:
            return data.hex() if self._hexadecimal else data.decode()
        except UnicodeDecodeError:
            raise ConfigError(f"the bytes {data[:40]!r} are not UTF-8: pass --hex to print them") from None


def _opened(client: PravegaClient, table: str, *, hexadecimal: bool) -> Table[str]:
    text = _Text(hexadecimal=hexadecimal)
    return client.table(table, key=text, value=text)


def _whole(key: str, secondary: str | None) -> str | tuple[str, str]:
    return key if secondary is None else (key, secondary)


def _shown(entry: TableEntry[str]) -> dict[str, str]:
    key = entry.key if isinstance(entry.key, tuple) else (entry.key,)
    return {**dict(zip(("key", "secondary"), key, strict=False)), "value": entry.value, "version": str(entry.version)}


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "pravega-serde table create shop/stock --primary-key 4", "pravega-serde table put shop/stock milk 12"
    ),
)
def table() -> None:
    """Create, list and delete key-value tables, and change their entries."""


@table.command("list", epilog=examples("pravega-serde table list shop --json"))
@click.argument("scope", required=False)
@arguments.controller
@arguments.as_json
def list_tables(scope: str | None, controller: str | None, *, as_json: bool) -> None:
    """List the key-value tables of a scope, by default the configured one."""
    with arguments.client_of(controller) as client:
        names = sorted(map(str, client.tables(scope)))
    click.echo(json.dumps(names) if as_json else "\n".join(names), nl=as_json or bool(names))


@table.command(epilog=examples("pravega-serde table create shop/carts --primary-key 8 --secondary-key 4"))
@_table
@click.option("--primary-key", type=int, required=True, metavar="BYTES", help="Length of each primary key.")
@click.option(
    "--secondary-key", type=int, default=0, metavar="BYTES", help="Length of each secondary key.  [default: none]"
)
@click.option("--partitions", type=int, default=1, show_default=True, metavar="N", help="Number of segments.")
@click.option("--exist-ok", is_flag=True, help="Succeed if the table exists already; its settings do not change.")
@arguments.controller
def create(
    table: str, controller: str | None, *, primary_key: int, secondary_key: int, partitions: int, exist_ok: bool
) -> None:
    """Create a key-value table, and its scope if it does not exist."""
    with arguments.client_of(controller) as client:
        if not client.create_table(table, primary_key, secondary_key, partitions=partitions) and not exist_ok:
            raise ConfigError(f"table {client.table_name(table)} exists already: to use it, pass --exist-ok")


@table.command(epilog=examples("pravega-serde table delete shop/stock --yes"))
@_table
@arguments.yes
@arguments.controller
def delete(table: str, controller: str | None, *, yes: bool) -> None:
    """Delete a key-value table with all its entries."""
    with arguments.client_of(controller) as client:
        name = client.table_name(table)
        if not client.table_exists(name):
            raise TableNotFoundError.of(name)
        arguments.confirmed(f"Delete table {name} with all its entries", yes=yes)
        client.delete_table(name)


@table.command(
    epilog=examples("pravega-serde table get shop/stock milk", "pravega-serde table get shop/stock milk --json")
)
@_table
@_key
@_secondary
@_hexadecimal
@arguments.controller
@arguments.as_json
def get(
    table: str, key: str, controller: str | None, *, secondary: str | None, hexadecimal: bool, as_json: bool
) -> None:
    """Print the value of a key. Exit with 4 if the table has no such entry."""
    with arguments.client_of(controller) as client:
        opened = _opened(client, table, hexadecimal=hexadecimal)
        entry = opened.get(_whole(key, secondary))
    if entry is None:
        click.echo(f"table {opened.name} has no entry for key {key!r}", err=True)
        raise SystemExit(ExitCode.NOT_FOUND)
    click.echo(json.dumps(_shown(entry)) if as_json else entry.value)


@table.command(
    epilog=examples(
        "pravega-serde table put shop/stock milk 12", "pravega-serde table put shop/stock milk 11 --if-version 0:27"
    )
)
@_table
@_key
@click.argument("value")
@_secondary
@_version
@click.option("--insert", is_flag=True, help="Fail if the key exists.")
@_hexadecimal
@arguments.controller
def put(
    table: str,
    key: str,
    value: str,
    controller: str | None,
    *,
    secondary: str | None,
    version: str | None,
    insert: bool,
    hexadecimal: bool,
) -> None:
    """Set the value of a key, and print the version of the entry."""
    if insert and version is not None:
        raise click.UsageError("--insert and --if-version exclude each other: pass one")
    condition = None if version is None else Version.parse(version)
    with arguments.client_of(controller) as client:
        opened, whole = _opened(client, table, hexadecimal=hexadecimal), _whole(key, secondary)
        click.echo(opened.insert(whole, value) if insert else opened.put(whole, value, condition))


@table.command(epilog=examples("pravega-serde table remove shop/stock milk"))
@_table
@_key
@_secondary
@_version
@_hexadecimal
@arguments.controller
def remove(
    table: str, key: str, controller: str | None, *, secondary: str | None, version: str | None, hexadecimal: bool
) -> None:
    """Remove the entry of a key, if there is one."""
    condition = None if version is None else Version.parse(version)
    with arguments.client_of(controller) as client:
        _opened(client, table, hexadecimal=hexadecimal).remove(_whole(key, secondary), condition)


@table.command(
    epilog=examples(
        "pravega-serde table scan shop/stock --prefix mi", "pravega-serde table scan shop/carts --primary ann --json"
    )
)
@_table
@click.option("--primary", metavar="KEY", help="Only the entries of this primary key.")
@click.option("--from-key", "start", metavar="KEY", help="First primary key; with --primary, first secondary key.")
@click.option("--to-key", "end", metavar="KEY", help="Last primary key; with --primary, last secondary key.")
@click.option("--prefix", metavar="KEY", help="First bytes of the primary key; with --primary, of the secondary key.")
@click.option("--limit", type=click.IntRange(0), metavar="N", help="Print at most this many entries.")
@_hexadecimal
@arguments.controller
@arguments.as_json
def scan(
    table: str,
    controller: str | None,
    *,
    primary: str | None,
    start: str | None,
    end: str | None,
    prefix: str | None,
    limit: int | None,
    hexadecimal: bool,
    as_json: bool,
) -> None:
    """Print entries in the order of their keys.

    A line has the keys and the value, separated by tabs. With --json, it is an object that also has the version.
    """
    first = None if prefix is None else _Text(hexadecimal=hexadecimal).serialize(prefix)
    with arguments.client_of(controller) as client:
        opened = _opened(client, table, hexadecimal=hexadecimal)
        for entry in islice(opened.entries(primary, start=start, end=end, prefix=first), limit):
            shown = _shown(entry)
            columns = [text for name, text in shown.items() if name != "version"]
            click.echo(json.dumps(shown) if as_json else "\t".join(columns))
