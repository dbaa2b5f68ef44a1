"""``pravega-serde registry``: inspect a schema registry, check a schema before it is registered, decode an event."""

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
from pravega_serde.errors import SerdeError
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
from pravega_serde.serializer import registry_formats

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Policies without versions as arguments.
_POLICIES: Final = (
    *("AllowAny", "DenyAll", "Backward", "BackwardTransitive", "Forward", "ForwardTransitive", "Full"),
    "FullTransitive",
)


_address: Final = click.option(
    "--registry",
    "--uri",
    "uri",
    help="Address of the registry, such as http://host:9092.  [default: PRAVEGA_REGISTRY_URI, or the profile's]",
)


def _configured(command: _Command) -> _Command:
    """Give a command the configuration; it takes the address as well, where other commands take it."""

    @_address
    @click.pass_obj
    @functools.wraps(command)
    def configured(settings: dict[str, Any], /, *args: Any, uri: str | None, **options: Any) -> Any:
        return command(RegistryConfig.resolve(**settings | ({} if uri is None else {"uri": uri})), *args, **options)

    return cast("_Command", configured)


@click.group()
@_address
@click.option("--namespace", help="Of the groups; the default one if left out.")
@click.option("--ca-file", help="The authorities' certificates in PEM.")
@click.option("--timeout", default=15.0, show_default=True, help="Seconds for a call with all its tries.")
@click.pass_context
def registry(
    context: click.Context, *, uri: str | None, namespace: str | None, ca_file: str | None, timeout: float
) -> None:
    """Look into a schema registry. Credentials: PRAVEGA_REGISTRY_USERNAME, _PASSWORD or _TOKEN, or the profile's."""
    context.obj = {"uri": uri, "namespace": namespace, "ca_file": ca_file, "timeout": timeout}


@registry.command()
@arguments.as_json
@_configured
def groups(config: RegistryConfig, *, as_json: bool) -> None:
    """List the groups."""
    with SchemaRegistryClient(config) as client:
        found = sorted(client.groups())
    rows: list[tuple[str, ...]] = [
        (name, group.format.name, group.compatibility.policy, "many" if group.allow_multiple_types else "one")
        for name, group in found
    ]
    _print_table(("group", "format", "policy", "types"), rows, as_json=as_json)


@registry.command()
@click.argument("group")
@click.option("--type", "schema_type", help="Schemas of this type only.")
@click.option("--text", is_flag=True, help="With the schemas themselves.")
@arguments.as_json
@_configured
def schemas(config: RegistryConfig, group: str, *, schema_type: str | None, text: bool, as_json: bool) -> None:
    """Show the schemas of a group that are not deleted, in the order of their adding."""
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


@registry.command()
@click.argument("group")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--type", "schema_type", help="The schema's name in the registry; Avro schemas have their own.")
@click.option("--format", "format_name", type=click.Choice(registry_formats()), help="That of the group.")
@click.option("--policy", type=click.Choice(_POLICIES), help="Instead of the group's own.")
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
    """Tell whether a schema may follow those of a group; exit code 1 if not.

    FILE is an Avro schema, a JSON schema, or a Protobuf descriptor set (protoc --descriptor_set_out).
    """
    with SchemaRegistryClient(config) as client:
        properties, known = client.group_properties(group), client.schema_versions(group)
        compatibility = Compatibility(policy) if policy else properties.compatibility
        schema = _schema(file, format_name or _format(properties.format, file), schema_type, known)
        same = [item for item in known if (item.schema.type, item.schema.format) == (schema.type, schema.format)]
        reasons = check_compatibility(same, schema, compatibility)
        if not reasons and not client.validate(group, schema, compatibility):
            reasons = ["the server refuses it"]
    what = f"{schema.type} and the {len(same)} schema(s) of that type in group {group!r}"
    if reasons:
        click.echo(f"Not compatible under {compatibility.policy}: {what}")
        for reason in reasons:
            click.echo(f"  {reason}")
        raise SystemExit(1)
    click.echo(f"Compatible under {compatibility.policy}: {what}")


@registry.command()
@click.argument("group")
@click.argument("event", required=False)
@click.option("--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The event's bytes.")
@_configured
def decode(config: RegistryConfig, group: str, event: str | None, *, file: Path | None) -> None:
    """Decode an event with its registry header, given as hex or in a file."""
    if (event is None) == (file is None):
        raise click.UsageError("give the event either as hex or with --file")
    data = _from_hex(event) if event is not None else file.read_bytes() if file is not None else b""
    # A codec that only other programs know is an error only if this event has it.
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
    raise SerdeError(f"the group takes several formats, and {file.name} does not tell its own; give --format")


def _from_hex(text: str) -> bytes:
    try:
        return binascii.unhexlify("".join(text.split()).removeprefix("0x"))
    except ValueError as error:
        raise click.UsageError(f"invalid hex of an event: {error}") from error


def _plain(value: Any) -> Any:
    """JSON value for one that JSON does not have."""
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
