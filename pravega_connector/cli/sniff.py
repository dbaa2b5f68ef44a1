"""``pravega-serde sniff``: report the formats, framings and schemas of a stream or of a file of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pravega_connector.atomic_file import WholeFile
from pravega_connector.cli import arguments
from pravega_connector.cli.command_group import examples
from pravega_connector.cli.scanned_events import scan_options, scanned
from pravega_connector.errors import ConfigError
from pravega_serde.errors import RegistryNotFoundError
from pravega_serde.sniffing import Sniffed


@click.command(
    epilog=examples(
        "pravega-serde sniff shop/orders",
        "pravega-serde sniff shop/orders --start 2026-11-21T10:00:00Z --json",
        "pravega-serde sniff shop/orders --avro-schema order.avsc",
        "pravega-serde sniff @orders.hex --bytes hex",
        "pravega-serde sniff @events.jsonl --schema-file events.json",
    )
)
@click.argument("source", metavar="SCOPE/STREAM|@FILE|-")
@scan_options
@click.option("--avro-schema", metavar="SCHEMA", help="Schema of Avro events, as text or path, to confirm it.")
@click.option(
    "--schema-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the schema of the largest part that has one to this file.",
)
@arguments.registry
@arguments.registry_group
@arguments.as_json
def sniff(
    *,
    source: str,
    avro_schema: str | None,
    schema_file: Path | None,
    registry: str | None,
    group: str | None,
    as_json: bool,
    **scan: Any,
) -> None:
    """Report the formats, framings and schemas of a stream.

    Pass @FILE to examine a file of events, or - for standard input. The result proposes options for Spark, a call of
    the client, and a group in the schema registry. Of a stream, the first events of each segment are read, up to the
    limits. A random sample of 1,000 of them is examined. A format without sufficient evidence is unknown.

    With --registry, the schemas of Pravega's encoding ids are looked up.
    """
    name, found = scanned(source, avro_schema=avro_schema, **scan)
    encodings = {} if registry is None else _encodings(found, registry, group or name.rpartition("/")[2])
    if as_json:
        click.echo(json.dumps(found.to_dict() | {"encodings": encodings}))
    else:
        click.echo("\n".join((str(found), *(f"encoding id {key}: {text}" for key, text in encodings.items()))))
    if schema_file is not None:
        _write_schema(found, schema_file)


# ---- schemas ----


def _encodings(found: Sniffed, uri: str, group: str) -> dict[str, str]:
    """Return what the registry has for each encoding id. Raises the errors of the registry."""
    from pravega_serde.registry import RegistryConfig, SchemaRegistryClient  # noqa: PLC0415 - takes a second to import

    ids = sorted({each for part in found.parts if part.framing[:1] == ("pravega-registry",) for each in part.ids})
    encodings = {}
    with SchemaRegistryClient(RegistryConfig.resolve(uri=uri)) as client:
        for each in ids:
            try:
                info = client.encoding_info(group, each)
            except RegistryNotFoundError:
                encodings[str(each)] = f"not in the group {group}"
                continue
            codec = f", codec {info.codec.name}" if info.codec.name else ""
            encodings[str(each)] = f"{info.version.format} {info.version.type}, version {info.version.version}{codec}"
    return encodings


def _write_schema(found: Sniffed, path: Path) -> None:
    """Write the first schema that is known, in ASCII. Raises ConfigError if none is known, OutputFileError."""
    schemas = [part.proposal.schema_file for part in found.parts if part.proposal.schema_file]
    if not schemas:
        raise ConfigError(f"the events define no schema, so {path} was not written; omit --schema-file")
    with WholeFile(path) as file:
        file.write(f"{json.dumps(json.loads(schemas[0]), indent=2)}\n".encode())
