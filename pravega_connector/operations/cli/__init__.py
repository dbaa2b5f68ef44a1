"""The command ``pravega-serde``.

``commands`` is the table of the commands and ``root`` is their group. Each command is in the module of its name.
``arguments`` has the arguments and options that several commands share. ``exit_codes`` has the exit codes. Commands
need the extra ``cli``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pravega_connector.operations.cli.commands import COMMANDS
from pravega_serde.errors import MissingExtraError

__all__ = ["COMMANDS", "main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line. An error of this project becomes one line on standard error and an exit code."""
    try:
        from pravega_connector.operations.cli.root import command_line  # noqa: PLC0415 - this function reports a missing click
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(f"{MissingExtraError('click', 'cli', purpose='the command pravega-serde')}\n")
        sys.exit(1)
    command_line.main(args=args, prog_name="pravega-serde")
