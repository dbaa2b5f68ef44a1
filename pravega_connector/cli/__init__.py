"""The command ``pravega-serde``.

``root`` has the group of all commands. Each command is in the module of its name. ``arguments`` has the arguments and
options that mean the same in several commands, ``exit_codes`` how they end. Commands need the extra ``cli``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from pravega_serde.errors import MissingExtraError

__all__ = ["COMMANDS", "main"]

#: Name of a command, of its module and of the click command in it -> one-line help.
COMMANDS: Final = {
    "cut": "Print, compare, convert and take stream cuts.",
    "export": "Write events of a stream to a file: Parquet, JSON lines, Avro.",
    "group": "List, describe, reset and delete reader groups, and show how far they are behind.",
    "ingest": "Put files into a stream, each record exactly once.",
    "lag": "Show how far a Spark query, or a reader with a stream cut, is behind.",
    "local": "Run a Pravega server on this machine.",
    "options": "Show the options of the Spark source and sink.",
    "pipe": "Write standard input, or what comes over sockets, to a stream.",
    "read": "Print the events of a stream.",
    "recover": "Look at the ledger of a stream, and finish what a crash has left.",
    "registry": "Look into a schema registry.",
    "scaling": "Draw how a stream was scaled.",
    "scope": "List, create and delete scopes.",
    "stream": "List, create, describe, change and delete streams.",
    "subscribers": "List and end the subscribers of a stream.",
    "watch": "Show a stream's segments and rates, live.",
    "write": "Write lines to a stream, as events of a format.",
}


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; an error of this project is one line on standard error, and an exit code of its own."""
    try:
        from pravega_connector.cli.root import command_line  # noqa: PLC0415 - this function reports that click is missing
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print(MissingExtraError("click", "cli", purpose="the command pravega-serde"), file=sys.stderr)  # noqa: T201
        sys.exit(1)
    command_line.main(args=args, prog_name="pravega-serde")
