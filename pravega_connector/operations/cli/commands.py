"""Table of the commands."""

from __future__ import annotations

from typing import Final

#: Name of a command, of its module and of the click command in it -> one-line help.
COMMANDS: Final = {
    "cut": "Print, compare, convert and create stream cuts.",
    "doctor": "Check the installation, the servers and Spark.",
    "export": "Export events to a Parquet, JSON lines or Avro file.",
    "generate": "Generate code for the events of a stream.",
    "group": "List, describe, reset and delete reader groups.",
    "ingest": "Write the records of files to a stream, exactly once.",
    "lag": "Show the lag of a Spark query or of a stream cut.",
    "local": "Run a Pravega server on this machine.",
    "mirror": "Copy a stream to another cluster, exactly once.",
    "options": "Show the options of the Spark source and sink.",
    "read": "Print the events of a stream.",
    "recover": "Inspect and repair the ledger of a Spark sink.",
    "registry": "Inspect a schema registry.",
    "scaling": "Draw the scaling history of a stream.",
    "scope": "List, create and delete scopes.",
    "sniff": "Report the formats, framings and schemas of a stream.",
    "stream": "List, create, describe, change and delete streams.",
    "subscribers": "List and remove the subscribers of a stream.",
    "table": "Create, list and delete key-value tables, and change their entries.",
    "tier": "Write a stream into a Delta or Iceberg table, exactly once.",
    "watch": "Show the segments and rates of a stream, live.",
    "write": "Write lines of files or standard input to a stream.",
}
