"""Kill Spark applications that write exactly once, at every point there is, and count what readers see."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from tools.faults.exactly_once._matrix import Record, play
from tools.faults.exactly_once._points import POINTS
from tools.faults.exactly_once._summary import summary, write_into

_DOCUMENT = Path(__file__).parents[3] / "docs" / "exactly-once-tables.md"


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Names of points, or beginnings of names.")
@click.option("--repeat", default=1, show_default=True, help="How often each point is to have passed.")
@click.option("--jobs", default=1, show_default=True, help="How many applications run side by side.")
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path),
    help="Keep the verdicts there; what has passed there already is not run again.",
)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the checkpoints and logs in this folder.")
@click.option("--list", "list_", is_flag=True, help="Only tell what points there are.")
@click.option("--summary", "summed", is_flag=True, help="Only sum up what --json has, as a table.")
@click.option("--document", is_flag=True, help="Only write that table into docs/exactly-once-tables.md.")
def main(
    only: tuple[str, ...],
    repeat: int,
    jobs: int,
    file: Path | None,
    keep: Path | None,
    list_: bool,
    summed: bool,
    document: bool,
) -> None:
    points = [point for name, point in POINTS.items() if not only or name.startswith(only)]
    if list_ or not points:
        for point in points or POINTS.values():
            print(f"{point.name:24} {point.about}")
        sys.exit(not points)
    record = Record(file)
    if summed:
        print(summary(record.verdicts))
    elif document:
        write_into(_DOCUMENT, "kills", summary(record.verdicts))
    else:
        # However it is told to end: runs that have begun are finished and kept.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        play(record, points, repeat, jobs, keep)
        sys.exit(not record.conclude(points))


if __name__ == "__main__":
    main()
