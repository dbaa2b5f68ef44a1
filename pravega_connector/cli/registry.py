"""``pravega-serde registry``: inspect a schema registry, check schemas and decode events."""

from __future__ import annotations

import base64
import binascii
import datetime
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from pravega_connector.cli import arguments
from pravega_connector.cli.command_group import CommandGroup, examples
from pravega_serde.errors import SerdeError
from pravega_serde.format_table import registry_formats
from pravega_serde.registry import (
    Compatibility,
    RegistryConfig,
    SchemaInfo,
    SchemaRegistryClient,
    SchemaWithVersion,
    SerializationFormat,
    check_compatibility,
    deserializer,
    event_type,
    registry_format,
)

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Policies that accept no versions as arguments.
_POLICIES: Final = (
    *("AllowAny", "DenyAll", "Backward", "BackwardTransitive", "Forward", "ForwardTransitive", "Full"),
    "FullTransitive",
)


_address: Final = click.option(
    "--registry",
    "--uri",
    "uri",
    metavar="URI",
    help="URI of the registry, such as http://host:9092.  [default: PRAVEGA_REGISTRY_URI, or the profile]",
)


def _configured(command: _Command) -> _Command:
    """Pass the configuration to a command, and add the option for the address."""

    @_address
    @click.pass_obj
    @functools.wraps(command)
    def configured(settings: dict[str, Any], /, *args: Any, uri: str | None, **options: Any) -> Any:
        return command(RegistryConfig.resolve(**settings | ({} if uri is None else {"uri": uri})), *args, **options)

    return cast("_Command", configured)


@click.group(
    cls=CommandGroup, epilog=examples("pravega-serde registry --timeout 5 groups --registry http://localhost:9092")
)
@_address
@click.option(
    "--namespace", metavar="NAME", help="Namespace of the groups.  [default: the registry's default namespace]"
)
@click.option("--ca-file", metavar="FILE", help="Certificates of the trusted authorities, in PEM.")
@click.option(
    "--timeout", metavar="SECONDS", default=15.0, show_default=True, help="Timeout of a call and its retries."
)
@click.pass_context
def registry(
    context: click.Context, *, uri: str | None, namespace: str | None, ca_file: str | None, timeout: float
) -> None:
    """Inspect a schema registry.

    Set credentials in PRAVEGA_REGISTRY_USERNAME and PRAVEGA_REGISTRY_PASSWORD, in PRAVEGA_REGISTRY_TOKEN, or in the
    profile.
    """
    context.obj = {"uri": uri, "namespace": namespace, "ca_file": ca_file, "timeout": timeout}


@registry.command(epilog=examples("pravega-serde registry groups --registry http://localhost:9092"))
@arguments.as_json
@_configured
def groups(config: RegistryConfig, *, as_json: bool) -> None:
    """List the groups of the registry."""
    with SchemaRegistryClient(config) as client:
        found = sorted(client.groups())
    rows: list[tuple[str, ...]] = [
        (name, group.format.name, group.compatibility.policy, "many" if group.allow_multiple_types else "one")
        for name, group in found
    ]
    _print_table(("group", "format", "policy", "types"), rows, as_json=as_json)


@registry.command(epilog=examples("pravega-serde registry schemas orders --text"))
@click.argument("group")
@click.option("--type", "schema_type", metavar="NAME", help="Show only schemas of this type.")
@click.option("--text", is_flag=True, help="Print the text of the schemas too.")
@arguments.as_json
@_configured
def schemas(config: RegistryConfig, group: str, *, schema_type: str | None, text: bool, as_json: bool) -> None:
    """Show the schemas of a group.

    The order is the order of their registration. Deleted schemas are omitted.
    """
    with SchemaRegistryClient(config) as client:
        history = client.history(group)
    chosen = [record for record in history if schema_type in (None, record.version.type)]
    rows: list[tuple[str, ...]] = [
        (
            str(record.version.id),
            record.version.type,
            record.version.format,
            str(record.version.version),
            _time(record.timestamp),
            record.compatibility.policy,
        )
        for record in chosen
    ]
    headings = ["id", "type", "format", "version", "added", "under"]
    if as_json and text:
        headings.append("schema")
        rows = [(*row, record.schema_string) for row, record in zip(rows, chosen, strict=True)]
    _print_table(headings, rows, as_json=as_json)
    for record in chosen if text and not as_json else ():
        click.echo(f"\n# id {record.version.id}: {record.version.type}, version {record.version.version}")
        click.echo(_pretty(record.schema_string))


@registry.command(epilog=examples("pravega-serde registry check orders order.avsc"))
@click.argument("group")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--type", "schema_type", metavar="NAME", help="Name of the schema in the registry; not needed for Avro.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(registry_formats()),
    help="Format of the schema.  [default: from the group or the file name]",
)
@click.option(
    "--policy",
    type=click.Choice(_POLICIES),
    metavar="POLICY",
    help=f"One of {', '.join(_POLICIES)}.  [default: the policy of the group]",
)
@_configured
def check(
    config: RegistryConfig,
    group: str,
    file: Path,
    *,
    schema_type: str | None,
    format_name: str | None,
    policy: str | None,
) -> None:
    """Check whether a schema is compatible with a group.

    FILE is an Avro schema, a JSON schema, or a Protobuf descriptor set (protoc --descriptor_set_out). The exit code is
    1 if the schema is not compatible. Nothing is registered.
    """
    with SchemaRegistryClient(config) as client:
        properties, known = client.group_properties(group), client.schema_versions(group)
        compatibility = Compatibility(policy) if policy else properties.compatibility
        schema = _schema(file, format_name or _format(properties.format, file), schema_type, known)
        same = [item for item in known if (item.schema.type, item.schema.format) == (schema.type, schema.format)]
        reasons = check_compatibility(same, schema, compatibility)
        if not reasons and not client.validate(group, schema, compatibility):
            reasons = ["the registry refuses the schema"]
    what = f"{schema.type} and the {len(same)} schema(s) of that type in group {group!r}"
    if reasons:
        click.echo(f"Not compatible under {compatibility.policy}: {what}")
        for reason in reasons:
            click.echo(f"  {reason}")
        raise SystemExit(1)
    click.echo(f"Compatible under {compatibility.policy}: {what}")


@registry.command(
    epilog=examples(
        "pravega-serde registry decode orders 000000000104746561",
        "pravega-serde registry decode orders --file event.bin",
    )
)
@click.argument("group")
@click.argument("event", required=False)
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="File with the bytes of the event."
)
@_configured
def decode(config: RegistryConfig, group: str, event: str | None, *, file: Path | None) -> None:
    """Decode an event of a group.

    EVENT is the event in hex, with its registry header. Or pass a file with --file.
    """
    if (event is None) == (file is None):
        raise click.UsageError("pass the event either as hex or with --file")
    data = _from_hex(event) if event is not None else file.read_bytes() if file is not None else b""
    # A codec that this program does not know matters only if this event uses it.
    found = deserializer(config, group=group, fail_on_codec_mismatch=False).deserialize_with_schema(data)
    click.echo(f"{found.schema.type} ({found.schema.format.full_type_name})", err=True)
    click.echo(json.dumps(found.value, indent=2, ensure_ascii=False, default=_plain))


def _schema(file: Path, format_name: str, schema_type: str | None, known: Sequence[SchemaWithVersion]) -> SchemaInfo:
    wanted = {item.schema.type for item in known if item.schema.format.name.lower() == format_name}
    if schema_type is None and not registry_format(format_name).names_itself and len(wanted) == 1:
        (schema_type,) = wanted
    return event_type(file, format=format_name, type=schema_type).info


def _format(group: SerializationFormat, file: Path) -> str:
    if group != SerializationFormat.ANY:
        return group.name.lower()
    for name in registry_formats():
        if file.suffix in registry_format(name).suffixes:
            return name
    raise SerdeError(f"the group has several formats and the name {file.name} implies none of them: pass --format")


def _from_hex(text: str) -> bytes:
    try:
        return binascii.unhexlify("".join(text.split()).removeprefix("0x"))
    except ValueError as error:
        raise click.UsageError(f"invalid hex in EVENT: {error}") from error


def _plain(value: Any) -> Any:
    """Return a JSON value for a value that JSON does not have."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _time(milliseconds: int) -> str:
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([dict(zip(headings, row, strict=True)) for row in rows]))
        return
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    for row in (headings, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
