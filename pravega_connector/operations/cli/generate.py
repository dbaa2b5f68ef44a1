"""``pravega-serde generate``: generate code and schemas for events."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Final

import click

from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.scanned_events import scan_options, scanned
from pravega_serde.generating import generate as generate_code
from pravega_serde.generating.targets import TARGETS
from pravega_serde.registry import RegistryConfig, latest_schema
from pravega_serde.sniffing.results import printable

#: Options that apply to --from sniff only.
_SCAN: Final = ("controller", "start", "end", "form", "limit", "max_size", "timeout")


@click.command(
    epilog=examples(
        "pravega-serde generate order.avsc --from file --to dataclass --output a.py",
        "pravega-serde generate orders --from registry --to pydantic",
        "pravega-serde generate shop/orders --from sniff --to java --output src",
        "pravega-serde generate @orders.hex --bytes hex --from sniff --to dataclass",
        "pravega-serde generate a.proto --from file --to avsc --check --output a.avsc",
    )
)
@click.argument("source", metavar="SOURCE")
@click.option(
    "--from",
    "kind",
    type=click.Choice(["file", "registry", "sniff"]),
    required=True,
    help="Source: a schema file, a group of the registry, or events that are examined.",
)
@click.option("--to", type=click.Choice(TARGETS), required=True, help="Code or schema to generate.")
@click.option("--type", "type_name", metavar="NAME", help="Type of the events, if the source has several.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder, or the file if only one is generated.  [default: print the text]",
)
@click.option("--check", is_flag=True, help="Write nothing, and fail if a file in --output differs.")
@arguments.registry
@scan_options
@click.pass_context
def generate(
    context: click.Context,
    /,
    *,
    source: str,
    kind: str,
    to: Any,
    type_name: str | None,
    output: Path | None,
    check: bool,
    registry: str | None,
    **scan: Any,
) -> None:
    """Generate code or a schema for events.

    SOURCE is a schema file (--from file), a group of the schema registry (--from registry), or SCOPE/STREAM, @FILE or -
    (--from sniff). With --from sniff, a sample of the events is examined, as by the command sniff.

    Schemas become Python classes (dataclass, msgspec, pydantic) for typed, or a schema of another format (avsc, proto,
    json-schema). Java objects become Java's source (java), or Python classes (dataclass, msgspec).

    With --check, for CI, the exit code is 1 if a file is missing or differs, and the message names it.
    """
    if check and output is None:
        raise click.UsageError("--check requires --output")
    _check_options(context, kind, registry)
    command = _command(source, kind, to, type_name, scan["form"])
    found: Any
    if kind == "sniff":
        name, found = scanned(source, **scan)
        name = name.rpartition("/")[2]
    elif kind == "registry":
        name = source
        found = latest_schema(RegistryConfig.resolve(uri=registry), group=source, type=type_name)
    else:
        name, found = Path(source).stem, Path(source)
    code = generate_code(found, to=to, name=_file_name(name), type=type_name, command=command)
    for note in code.notes:
        click.echo(printable(f"note: {note}"), err=True)
    if output is None:
        if len(code.files) > 1:
            raise click.UsageError(f"{len(code.files)} files are generated: set --output to their folder")
        click.echo(next(iter(code.files.values())), nl=False)
    elif check:
        code.check(output)
    else:
        for path in code.write(output):
            click.echo(str(path))


def _check_options(context: click.Context, kind: str, registry: str | None) -> None:
    """Raise UsageError for an option that the source does not use."""
    if kind != "registry" and registry is not None:
        raise click.UsageError("--registry applies to --from registry only")
    given = click.core.ParameterSource.COMMANDLINE
    for name in () if kind == "sniff" else _SCAN:
        if context.get_parameter_source(name) is given:
            option = next(each for each in context.command.params if each.name == name)
            raise click.UsageError(f"{option.opts[0]} applies to --from sniff only")


def _command(source: str, kind: str, to: str, type_name: str | None, form: str) -> str:
    """Return the command for the header of the files. It has no folder and no address, which differ between users."""
    if kind == "file":
        source = Path(source).name
    elif source.startswith("@"):
        source = f"@{Path(source[1:]).name}"
    words = ["pravega-serde", "generate", source, "--from", kind, "--to", to]
    words += ["--type", type_name] if type_name is not None else []
    words += ["--bytes", form] if kind == "sniff" and form != "raw" else []
    return shlex.join(words)


def _file_name(name: str) -> str:
    """Return the name of a module for a stream, a group or a file."""
    return "".join(each if each.isalnum() or each == "_" else "_" for each in name)
