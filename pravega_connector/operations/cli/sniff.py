"""``pravega-serde sniff``: report the formats, framings and schemas of a stream or of a file of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.scanned_events import scan_options, scanned
from pravega_serde.atomic_file import WholeFile
from pravega_serde.registry import RegistryConfig
from pravega_serde.registry.settings import serializer_config
from pravega_serde.registry.stores import store_of
from pravega_serde.sniffing import Sniffed
from pravega_serde.sniffing.registered import with_schemas
from pravega_serde.sniffing.results import printable


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

    With --registry, the schemas of the ids before the events are looked up. The registry is Pravega's, Confluent's or
    Apicurio's.
    """
    known = None if registry is None else (registry, group)
    name, found = scanned(source, avro_schema=avro_schema, registry=known, **scan)
    encodings: dict[int, str] = {}
    if registry is not None:
        found, encodings = _with_schemas(found, registry, group, name.rpartition("/")[2])
    if as_json:
        click.echo(json.dumps(found.to_dict() | {"encodings": encodings}))
    else:
        click.echo("\n".join((str(found), *(printable(f"id {key}: {text}") for key, text in encodings.items()))))
    if schema_file is not None:
        _write_schema(found, schema_file)


# ---- schemas ----


def _with_schemas(found: Sniffed, uri: str, group: str | None, stream: str) -> tuple[Sniffed, dict[int, str]]:
    """Return the result with the schemas that the registry has, and a text for each id."""
    config = RegistryConfig.resolve(uri=uri)
    return with_schemas(found, store_of(serializer_config(config, group or config.default_group(stream), {})))


def _write_schema(found: Sniffed, path: Path) -> None:
    """Write the first schema that is known, in ASCII. Raises ConfigError if none is known, OutputFileError."""
    schemas = [part.proposal.schema_file for part in found.parts if part.proposal.schema_file]
    if not schemas:
        raise ConfigError(f"the events define no schema, so {path} was not written; omit --schema-file")
    with WholeFile(path) as file:
        file.write(f"{json.dumps(json.loads(schemas[0]), indent=2)}\n".encode())
