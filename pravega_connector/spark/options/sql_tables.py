"""Options of SQL tables. They travel in the schema, because Spark drops them.

``CREATE TABLE t USING pravega OPTIONS (…)`` hands its options to the instance that gives the schema, but the instances
that read and write get none (Spark 4.2 and 4.3: ``PythonDataSourceV2.getTable`` keeps only the schema). The schema
itself is stored with the table and comes back each time, so the options travel in the metadata of its columns.

Whose options a writer finds there is not certain. Spark fits a query to a table's columns, metadata included, unless
names and types are the same already; then it hands over the query's own columns, and with them the options of the table
that the query *reads*. So columns of text are VARCHAR in the table, of a length that differs from table to table and
that no text reaches: no query has that very type, and Spark always fits. What has been fitted has lost the mark by
which Spark knows a VARCHAR; what still has it comes from elsewhere, and its options are not used. Nor are those of a
table without any text, where nothing tells. The options are then given with the write: ``INSERT INTO t WITH (…) …``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from pyspark.sql.types import StringType, StructField, StructType, VarcharType

from pravega_connector.errors import ConfigError
from pravega_connector.spark.options import CommonOptions

_KEY: Final = "pravega.options"
# Schemas are shown and logged: secrets stay out of them and come from the environment of the processes.
_SECRET: Final = frozenset(
    {"username", "registry_username", "auth_method"}
    | {f.name for f in fields(CommonOptions) if f.metadata.get("secret")}
)
_SPARKS_OWN: Final = frozenset({"provider", "owner", "path"})
# Spark's own options of a write; one with only these was given none.
_OF_QUERIES: Final = frozenset({"checkpointlocation", "queryname"})
# Metadata by which Spark marks a column of strings as VARCHAR (CharVarcharUtils.scala).
_VARCHAR: Final = "__CHAR_VARCHAR_TYPE_STRING"
# Lengths of VARCHAR: longer than any event, and within Spark's int.
_SHORTEST: Final = 1_000_000_000


def is_table(options: Mapping[str, str]) -> bool:
    """Whether the options are those of a table: Spark adds the provider to these."""
    return "provider" in options


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Put the options into the metadata of the columns."""
    kept = {k: v for k, v in options.items() if k not in _SECRET | _SPARKS_OWN and not k.startswith("option.")}
    carried = json.dumps(kept, sort_keys=True)
    text = VarcharType(_SHORTEST + zlib.crc32(carried.encode()) % _SHORTEST)
    return StructType(
        [
            StructField(
                f.name,
                text if isinstance(f.dataType, StringType) else f.dataType,
                f.nullable,
                {**f.metadata, _KEY: carried},
            )
            for f in schema
        ]
    )


def options_to_read(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Effective options of a read: those of the table's schema, overridden by those given.

    A read that names its stream may have the schema of a table: then only the given options count.

    Raises ConfigError if there are neither: the table was created with a list of columns.
    """
    carried = None if _names_stream(options) else next((f.metadata[_KEY] for f in schema if _KEY in f.metadata), None)
    given = {k: v for k, v in options.items() if carried is None or k != "path"}
    if carried is None and not given:
        raise ConfigError(
            "the options of this table are lost: Spark keeps them only for tables that are created without a list of "
            "columns; leave the columns out of CREATE TABLE, or use CREATE TEMPORARY VIEW"
        )
    return {**json.loads(carried or "{}"), **given}


def options_to_write(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Effective options of a write: those in the schema if it is certainly the target's, overridden by those given.

    Raises ConfigError if there are neither.
    """
    names_stream = "stream" in options or "path" in options
    if not names_stream and _is_fitted(schema):
        return options_to_read(options, schema)
    if not options.keys() - _OF_QUERIES and not names_stream:
        raise ConfigError(
            "the write names no stream, such as start('scope/stream') or save('scope/stream'); if it is to a table, "
            "the options of this table are lost: Spark does not tell the writer which table is meant in CREATE TABLE … "
            "AS SELECT (create the table first, then INSERT), in a streaming query's toTable, if the query reads the "
            "table that it writes to, if that has no column of text, or was created with a list of columns; give them "
            "with the write (INSERT INTO t WITH (controller = '…', stream = '…', …) …, or options of writeStream)"
        )
    return dict(options)


def _names_stream(options: Mapping[str, str]) -> bool:
    """Whether a read names its stream. A table's path is that of its files in Spark's catalog."""
    path = options.get("path", "")
    return "stream" in options or (path != "" and ":" not in path and not path.startswith("/"))


def _is_fitted(schema: StructType) -> bool:
    """Whether Spark has fitted the columns to a table's."""
    one = len({f.metadata.get(_KEY) for f in schema}) == 1
    has_text = any(isinstance(f.dataType, StringType) and _KEY in f.metadata for f in schema)
    return one and has_text and not any(_VARCHAR in f.metadata for f in schema)
