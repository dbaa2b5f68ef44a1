"""``pravega-serde registry``: inspect and change the groups and schemas of a registry, and decode events."""

from __future__ import annotations

import binascii
import datetime
import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
import msgspec

from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import CommandGroup, examples
from pravega_serde.errors import RegistryConflictError, RegistryNotFoundError, SchemaError, SerdeError
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
    part_of,
    registry_format,
)
from pravega_serde.registry.formats import format_named
from pravega_serde.registry.pravega_store import check_accepted, check_policy, new_group
from pravega_serde.registry.rule_set import RuleSet
from pravega_serde.registry.subjects import Subjects

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


def _subjects(config: RegistryConfig) -> Subjects | None:
    """Return the subjects of another registry than Pravega's, or None."""
    return None if config.kind == "pravega" else Subjects(config)


def _schema_file(command: _Command) -> _Command:
    """Add the argument for the file of a schema, and the options for its name and format."""
    for each in (
        click.option(
            "--format",
            "format_name",
            type=click.Choice(registry_formats()),
            help="Format of the schema.  [default: from the group or the file name]",
        ),
        click.option(
            "--type", "schema_type", metavar="NAME", help="Name of the schema in the registry; not needed for Avro."
        ),
        click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
    ):
        command = each(command)
    return command


@click.group(
    cls=CommandGroup, epilog=examples("pravega-serde registry --timeout 5 groups --registry http://localhost:9092")
)
@_address
@click.option(
    "--namespace", metavar="NAME", help="Namespace of the groups.  [default: the registry's default namespace]"
)
@click.option(
    "--ca-file", metavar="FILE", help="Certificates of the trusted authorities, in PEM or a Java trust store."
)
@click.option(
    "--timeout", metavar="SECONDS", default=15.0, show_default=True, help="Timeout of a call and its retries."
)
@click.pass_context
def registry(
    context: click.Context, *, uri: str | None, namespace: str | None, ca_file: str | None, timeout: float
) -> None:
    """Inspect and change a schema registry.

    Set credentials in PRAVEGA_REGISTRY_USERNAME and PRAVEGA_REGISTRY_PASSWORD, in PRAVEGA_REGISTRY_TOKEN, or in the
    profile.
    """
    context.obj = {"uri": uri, "namespace": namespace, "ca_file": ca_file, "timeout": timeout}


@registry.command(epilog=examples("pravega-serde registry groups --registry http://localhost:9092"))
@arguments.as_json
@_configured
def groups(config: RegistryConfig, *, as_json: bool) -> None:
    """List the groups or subjects of the registry."""
    rows: list[tuple[str, ...]]
    subjects = _subjects(config)
    if subjects is not None:
        rows = [(name, subjects.latest(name).format.name, subjects.policy(name), "one") for name in subjects.names()]
    else:
        with SchemaRegistryClient(config) as client:
            found = sorted(client.groups())
        rows = [
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
    subjects = _subjects(config)
    if subjects is not None:
        _print_subject(subjects, group, schema_type=schema_type, text=text, as_json=as_json)
        return
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


def _print_subject(subjects: Subjects, subject: str, *, schema_type: str | None, text: bool, as_json: bool) -> None:
    """Print the versions of a subject, with the names of their rules."""
    headings, rows, texts = ["id", "type", "format", "version", "rules"], list[tuple[str, ...]](), list[str]()
    for each in subjects.versions(subject):
        name = subjects.type_name(each)
        if schema_type in (None, name):
            phases = each.contract.get("ruleSet", {}).values()
            rules = [str(rule.get("name")) for phase in phases if isinstance(phase, list) for rule in phase]
            rows.append((str(each.id), name, each.format.name, str(each.version), ", ".join(rules)))
            texts.append(each.text)
    if as_json and text:
        headings.append("schema")
        rows = [(*row, schema) for row, schema in zip(rows, texts, strict=True)]
    _print_table(headings, rows, as_json=as_json)
    for row, schema in zip(rows, texts, strict=True) if text and not as_json else ():
        click.echo(f"\n# id {row[0]}: {row[1]}, version {row[3]}")
        click.echo(_pretty(schema))


@registry.command(epilog=examples("pravega-serde registry check orders order.avsc"))
@click.argument("group")
@_schema_file
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
    subjects = _subjects(config)
    if subjects is not None:
        if policy is not None:
            raise click.UsageError("another registry than Pravega's checks its own policy: omit --policy")
        schema = _foreign_schema(subjects, group, file=file, format_name=format_name, schema_type=schema_type)
        _report(
            subjects.policy(group),
            f"{schema.type or file.name} and the subject {group!r}",
            subjects.incompatibilities(group, schema),
        )
        return
    with SchemaRegistryClient(config) as client:
        properties = client.group_properties(group)
        compatibility = Compatibility(policy) if policy else properties.compatibility
        schema, same = _schema(
            client, group, properties.format, file=file, format_name=format_name, schema_type=schema_type
        )
        reasons = check_compatibility(same, schema, compatibility)
        if not reasons and not client.validate(group, schema, compatibility):
            reasons = ["the registry refuses the schema"]
    _report(
        compatibility.policy, f"{schema.type} and the {len(same)} schema(s) of that type in group {group!r}", reasons
    )


def _report(policy: str, what: str, reasons: Sequence[str]) -> None:
    """Print the result of a check. Exit with 1 if there are reasons against the schema."""
    if reasons:
        click.echo(f"Not compatible under {policy}: {what}")
        for reason in reasons:
            click.echo(f"  {reason}")
        raise SystemExit(1)
    click.echo(f"Compatible under {policy}: {what}")


def _foreign_schema(
    subjects: Subjects, subject: str, *, file: Path, format_name: str | None, schema_type: str | None
) -> SchemaInfo:
    """Return the schema in a file for another registry than Pravega's."""
    if format_name is None:
        known = next((name for name in registry_formats() if file.suffix in registry_format(name).suffixes), None)
        format_name = known or subjects.latest(subject).format.name.lower()
    anonymous = schema_type is None and registry_format(format_name).anonymous
    return event_type(file, format=format_name, type="" if anonymous else schema_type, all_files=True).info


@registry.command(
    epilog=examples(
        "pravega-serde registry create orders --format avro",
        "pravega-serde registry create orders --format avro --policy Full --one-type",
    )
)
@click.argument("group")
@click.option(
    "--format",
    "format_name",
    type=click.Choice((*registry_formats(), "any")),
    required=True,
    help="Format of the schemas.",
)
@click.option(
    "--policy",
    type=click.Choice(_POLICIES),
    metavar="POLICY",
    help=f"One of {', '.join(_POLICIES)}.  [default: FullTransitive for avro, AllowAny for the others]",
)
@click.option("--one-type", is_flag=True, help="Allow only schemas of one type.")
@click.option("--exist-ok", is_flag=True, help="Succeed if the group exists already; its properties do not change.")
@_configured
def create(
    config: RegistryConfig, group: str, *, format_name: str, policy: str | None, one_type: bool, exist_ok: bool
) -> None:
    """Create a group.

    The registry compares only Avro schemas. Groups of other formats have the policy AllowAny or DenyAll.
    """
    if config.kind != "pravega":
        raise ConfigError(
            f"a subject of {config.uri} exists from its first schema on: write "
            f"'pravega-serde registry register {group} FILE'"
        )
    properties = new_group(SerializationFormat.ANY if format_name == "any" else format_named(format_name))
    compatibility = Compatibility(policy) if policy else properties.compatibility
    properties = replace(properties, compatibility=compatibility, allow_multiple_types=not one_type)
    check_policy(properties.format, compatibility)
    with SchemaRegistryClient(config) as client:
        if not client.add_group(group, properties) and not exist_ok:
            raise ConfigError(f"group {group!r} exists already: to use it, pass --exist-ok")


@registry.command(
    epilog=examples(
        "pravega-serde registry register orders order.avsc",
        "pravega-serde registry register orders refund.json --type shop.Refund",
    )
)
@click.argument("group")
@_schema_file
@click.option(
    "--allow-incompatible",
    is_flag=True,
    help="Add a JSON or Protobuf schema even if it breaks readers of the latest one.",
)
@click.option(
    "--rules",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON object with ruleSet and metadata, only for a Confluent registry.",
)
@arguments.as_json
@_configured
def register(
    config: RegistryConfig,
    group: str,
    file: Path,
    *,
    schema_type: str | None,
    format_name: str | None,
    allow_incompatible: bool,
    rules: Path | None,
    as_json: bool,
) -> None:
    """Add a schema to a group, and print its version.

    FILE is an Avro schema, a JSON schema, or a Protobuf descriptor set (protoc --descriptor_set_out). If the group has
    the schema already, nothing changes.
    """
    subjects = _subjects(config)
    if subjects is not None:
        schema = _foreign_schema(subjects, group, file=file, format_name=format_name, schema_type=schema_type)
        added = subjects.add(group, schema, _contract(rules))
        if as_json:
            click.echo(json.dumps({"type": schema.type, "version": added.version, "id": added.id}))
        else:
            click.echo(f"{schema.type or group}: version {added.version}, id {added.id}")
        return
    if rules is not None:
        raise click.UsageError("Pravega's registry has no rules: omit --rules")
    with SchemaRegistryClient(config) as client:
        properties = client.group_properties(group)
        schema, same = _schema(
            client, group, properties.format, file=file, format_name=format_name, schema_type=schema_type
        )
        is_new = not _is_known(client, group, schema)
        part = part_of(schema.format)
        if is_new and not allow_incompatible and part is not None and not part.compared_by_server:
            _check_latest(group, schema, same)
        version = client.add_schema(group, schema)
    if as_json:
        click.echo(json.dumps({**version.to_json(), "new": is_new}))
    else:
        known = "" if is_new else ", which the group has already"
        click.echo(f"{version.type}: version {version.version}, id {version.id}{known}")


def _contract(file: Path | None) -> dict[str, Any]:
    """Return the metadata and rules of a file. Raises SchemaError for other JSON, and UnsupportedRuleError."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SchemaError(f"the file of rules {file} is not JSON: {error}") from error
    if not isinstance(found, dict) or not found or found.keys() - {"metadata", "ruleSet"}:
        raise SchemaError(f"the file of rules {file} must be an object with ruleSet, metadata or both")
    RuleSet.from_json(found)
    return found


def _is_known(client: SchemaRegistryClient, group: str, schema: SchemaInfo) -> bool:
    try:
        client.find_version(group, schema)
    except RegistryNotFoundError:
        return False
    return True


def _check_latest(group: str, schema: SchemaInfo, same: Sequence[SchemaWithVersion]) -> None:
    """Raise :class:`SchemaError` for a schema that breaks readers of the latest one, which the server accepts."""
    reasons = check_compatibility(same[-1:], schema, Compatibility.FULL)
    if reasons:
        raise SchemaError(
            f"the schema of {schema.type!r} is incompatible with the latest schema of the group {group!r}: "
            f"{'; '.join(reasons)}; pass --allow-incompatible if every reader supports it"
        )


@registry.command(
    epilog=examples("pravega-serde registry policy orders", "pravega-serde registry policy orders Backward")
)
@click.argument("group")
@click.argument("policy", required=False, type=click.Choice(_POLICIES), metavar="[POLICY]")
@click.option(
    "--if", "expected", type=click.Choice(_POLICIES), metavar="POLICY", help="Fail unless the group has this policy."
)
@_configured
def policy(config: RegistryConfig, group: str, policy: str | None, *, expected: str | None) -> None:
    """Print or set the compatibility policy of a group."""
    if policy is None and expected is not None:
        raise click.UsageError("--if requires a new policy")
    subjects = _subjects(config)
    if subjects is not None:
        known = subjects.policy(group)
        if policy is None:
            click.echo(known)
        elif expected not in (None, known):
            raise RegistryConflictError(f"the subject {group!r} has the policy {known}, not {expected}")
        else:
            subjects.set_policy(group, policy)
        return
    with SchemaRegistryClient(config) as client:
        properties = client.group_properties(group)
        if policy is None:
            click.echo(properties.compatibility.policy)
            return
        compatibility = Compatibility(policy)
        check_policy(properties.format, compatibility)
        client.update_compatibility(group, compatibility, Compatibility(expected) if expected else None)


@registry.command(
    epilog=examples(
        "pravega-serde registry delete orders --schema 3 --yes", "pravega-serde registry delete orders --yes"
    )
)
@click.argument("group")
@click.option("--schema", "schema_id", type=click.IntRange(0), metavar="ID", help="Delete only the schema of this id.")
@arguments.yes
@_configured
def delete(config: RegistryConfig, group: str, *, schema_id: int | None, yes: bool) -> None:
    """Delete a group, or one of its schemas.

    Events of a deleted schema stay readable. Events of a deleted group do not.
    """
    subjects = _subjects(config)
    if subjects is not None:
        versions = subjects.versions(group)
        chosen = [each for each in versions if schema_id in (None, each.id)]
        if not chosen:
            raise RegistryNotFoundError(f"the subject {group!r} has no schema with id {schema_id}")
        what = f"all {len(versions)} versions" if schema_id is None else f"version {chosen[0].version}"
        arguments.confirmed(f"Delete {what} of the subject {group}", yes=yes)
        if schema_id is None:
            subjects.delete(group)
        else:
            subjects.delete_version(group, chosen[0].version)
        return
    with SchemaRegistryClient(config) as client:
        if schema_id is None:
            client.group_properties(group)
            arguments.confirmed(
                f"Delete group {group} with all its schemas, so that its events are unreadable", yes=yes
            )
            client.remove_group(group)
        else:
            schema = client.schema_for_id(group, schema_id)
            arguments.confirmed(f"Delete schema {schema_id} ({schema.type}) of group {group}", yes=yes)
            client.delete_schema(group, schema_id)


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
    reader = deserializer(config, group=group, fail_on_codec_mismatch=False, values="json")
    found = reader.deserialize_with_schema(data)
    click.echo(f"{found.schema.type} ({found.schema.format.full_type_name})", err=True)
    click.echo(msgspec.json.format(found.value, indent=2))


def _schema(
    client: SchemaRegistryClient,
    group: str,
    group_format: SerializationFormat,
    *,
    file: Path,
    format_name: str | None,
    schema_type: str | None,
) -> tuple[SchemaInfo, list[SchemaWithVersion]]:
    """Return the schema in a file, and the group's schemas of its type."""
    known, format_name = client.schema_versions(group), format_name or _format(group_format, file)
    wanted = {item.schema.type for item in known if item.schema.format.name.lower() == format_name}
    if schema_type is None and not registry_format(format_name).names_itself and len(wanted) == 1:
        (schema_type,) = wanted
    schema = event_type(file, format=format_name, type=schema_type).info
    check_accepted(schema)
    return schema, [item for item in known if (item.schema.type, item.schema.format) == (schema.type, schema.format)]


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
