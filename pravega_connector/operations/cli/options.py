"""``pravega-serde options``: show the options of the Spark source and sink, from their declarations."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from typing import Any

import click
from rich.table import Table

from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.output import standard_output
from pravega_connector.rows.options import CommonOptions, ConnectionOptions, FormatOptions, RegistryOptions
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.options.tables import TableOptions, TableSinkOptions, TableSourceOptions


def _sides() -> list[tuple[str, list[Field[Any]]]]:
    common, formats, registry = fields(CommonOptions), fields(FormatOptions), fields(RegistryOptions)
    of_formats, of_registry = {field.name for field in formats}, {field.name for field in registry}
    shared = {field.name for field in common}
    connection = fields(ConnectionOptions)
    of_connection = {field.name for field in connection}
    of_tables = of_connection | of_formats | {field.name for field in fields(TableOptions)}
    return [
        (
            "Source and sink",
            [field for field in common if field.name not in of_registry | of_connection] + list(connection),
        ),
        ("Format of the events, source and sink", list(formats)),
        ("Schema registry, source and sink", [field for field in registry if field.name not in of_formats]),
        ("Source", [field for field in fields(SourceOptions) if field.name not in shared]),
        ("Sink", [field for field in fields(SinkOptions) if field.name not in shared]),
        (
            "Key-value tables, source and sink",
            [field for field in fields(TableOptions) if field.name not in of_connection | of_formats],
        ),
        ("Key-value tables, source", [field for field in fields(TableSourceOptions) if field.name not in of_tables]),
        ("Key-value tables, sink", [field for field in fields(TableSinkOptions) if field.name not in of_tables]),
    ]


def _default(field: Field[Any]) -> str:
    if field.default is None or field.default is MISSING:
        return ""
    return str(field.default).lower() if isinstance(field.default, bool) else str(field.default)


def _type(field: Field[Any]) -> str:
    """Return the type of an option's value."""
    names = {"bool": "boolean", "int": "integer", "tuple": "list"}
    return next((shown for name, shown in names.items() if name in str(field.type)), "string")


def option_tables(*, operator: bool) -> str:
    """Return the options as Markdown, either the options for operators or the others."""
    lines = []
    for title, side in _sides():
        shown = [field for field in side if bool(field.metadata.get("operator")) is operator]
        if shown:
            lines += ["", f"## {title}", "", "| option | type | default | meaning |", "|---|---|---|---|"]
            lines += [
                f"| `{field.name}` | {_type(field)} | {_default(field)} | {field.metadata['doc']} |" for field in shown
            ]
    return "\n".join(lines) + "\n"


@click.command(epilog=examples("pravega-serde options", "pravega-serde options --json"))
@click.option("--markdown", is_flag=True, help="Print a page of Markdown.")
@arguments.as_json
def options(*, markdown: bool, as_json: bool) -> None:
    """Show the options of the Spark source and sink.

    These are the options of spark.read, readStream, write and writeStream with format("pravega").
    """
    if as_json:
        sides = {
            title: {
                field.name: {"default": _default(field) or None, "meaning": field.metadata["doc"]} for field in side
            }
            for title, side in _sides()
        }
        click.echo(json.dumps(sides))
        return
    if markdown:
        click.echo(
            f"# Options\n{option_tables(operator=False)}\n# Operator options\n{option_tables(operator=True)}", nl=False
        )
        return
    console = standard_output()
    for title, side in _sides():
        table = Table(title=title, title_justify="left", box=None)
        for heading in ("option", "default", "meaning"):
            table.add_column(heading)
        for field in side:
            table.add_row(field.name, _default(field), field.metadata["doc"].replace("`", ""))
        console.print(table)
