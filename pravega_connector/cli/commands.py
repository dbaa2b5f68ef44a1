"""Table of the commands."""

from __future__ import annotations

from typing import Final

#: Name of a command, of its module and of the click command in it -> one-line help.
COMMANDS: Final = {
    "cut": "Print, compare, convert and take stream cuts.",
    "export": "Write events of a stream to a file: Parquet, JSON lines, Avro.",
    "group": "List, describe, reset and delete reader groups, and show how far they are behind.",
    "ingest": "Put files into a stream, each record exactly once.",
    "lag": "Show how far a Spark query, or a reader with a stream cut, is behind.",
    "local": "Run a Pravega server on this machine.",
    "options": "Show the options of the Spark source and sink.",
    "read": "Print the events of a stream.",
    "recover": "Look at the ledger of a stream, and finish what a crash has left.",
    "registry": "Look into a schema registry.",
    "scaling": "Draw how a stream was scaled.",
    "scope": "List, create and delete scopes.",
    "stream": "List, create, describe, change and delete streams.",
    "subscribers": "List and end the subscribers of a stream.",
    "watch": "Show a stream's segments and rates, live.",
    "write": "Write lines of standard input, files or connections to a stream.",
}
