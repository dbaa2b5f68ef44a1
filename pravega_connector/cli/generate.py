"""``pravega-serde generate``: generate code for the events of a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pravega_connector.cli.command_group import examples
from pravega_connector.cli.scanned_events import scan_options, scanned
from pravega_serde.generating import generate as generate_code
from pravega_serde.generating.targets import TARGETS
from pravega_serde.sniffing.results import printable


@click.command(
    epilog=examples(
        "pravega-serde generate shop/orders --from sniff --to java --output src",
        "pravega-serde generate @orders.hex --bytes hex --from sniff --to dataclass",
        "pravega-serde generate cafe/x --from sniff --to java --output src --check",
    )
)
@click.argument("source", metavar="SCOPE/STREAM|@FILE|-")
@click.option("--from", "kind", type=click.Choice(["sniff"]), required=True, help="Source: sniff examines events.")
@click.option("--to", type=click.Choice(TARGETS), required=True, help="Code to generate.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder, or the file if only one is generated.  [default: print the text]",
)
@click.option("--check", is_flag=True, help="Write nothing, and fail if a file in --output differs.")
@scan_options
def generate(*, source: str, kind: str, to: Any, output: Path | None, check: bool, **scan: Any) -> None:  # noqa: ARG001 - one kind yet
    """Generate code for the events of a stream.

    With --from sniff, a sample of the events is examined, as by the command sniff. Java objects become Java's source
    (java), or Python classes (dataclass, msgspec) for typed(JavaSerializer(), …).

    With --check, for CI, the exit code is 1 if a file is missing or differs, and the message names it.
    """
    if check and output is None:
        raise click.UsageError("--check requires --output")
    name, found = scanned(source, **scan)
    code = generate_code(found, to=to, name=name.rpartition("/")[2].replace("-", "_"))
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
