"""Options of SQL tables, stored in the schema because Spark drops them elsewhere.

``CREATE TABLE t USING pravega OPTIONS (…)`` passes its options to the instance that returns the schema. The instances
that read and write get none (Spark 4.2 and 4.3: ``PythonDataSourceV2.getTable`` keeps only the schema). Spark stores
the schema with the table and passes it each time. So the options are stored in the metadata of its columns.

A writer cannot be certain that the options there belong to its table. Spark casts a query to the columns of a table,
metadata included, unless names and types are already equal. If they are equal, Spark passes the columns of the query,
with the options of the table that the query *reads*.

So string columns are VARCHAR in the table. Their length differs from table to table and exceeds every text. No query
has exactly this type, so Spark always casts. A column that was cast has lost the metadata by which Spark marks a
VARCHAR. A column that still has it comes from another table, and its options are not used. The options of a table
without string columns are not used either, because its origin is not known. In these cases, set the options in the
write: ``INSERT INTO t WITH (…) …``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Final

from pyspark.sql.types import StringType, StructField, StructType, VarcharType

from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.rows.options import overridden
from pravega_connector.rows.options.sink import TARGET_STREAM
from pravega_connector.rows.options.source import SourceOptions

_KEY: Final = "pravega.options"
# Schemas are shown and logged: secrets stay out of them and come from the environment of the processes.
_SECRET: Final = frozenset(
    {"username", "registry_username", "also_registry_username", "auth_method"}
    | {f.name for f in fields(SourceOptions) if f.metadata.get("secret")}
)
# What a table always has: the name of its format, and the path of its directory.
_ALWAYS: Final = frozenset({"provider", "path"})
# Prefix of the names under which Spark repeats the options of a table.
_REPEATED: Final = "option."
# Options that Spark adds to a write. A write with only these has no options of its user.
_OF_QUERIES: Final = frozenset({"checkpointlocation", "queryname"})
# Metadata by which Spark marks a column of strings as VARCHAR (CharVarcharUtils.scala).
_VARCHAR: Final = "__CHAR_VARCHAR_TYPE_STRING"
# Smallest length of VARCHAR: longer than any event, and within Spark's int.
_SHORTEST: Final = 1_000_000_000


def is_table(options: Mapping[str, str]) -> bool:
    """Return True if the options are those of a table: Spark adds the provider to them."""
    return "provider" in options


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a SQL table as it is created, without its properties (``TBLPROPERTIES``, comment, owner).

    Spark passes all of them together, and repeats each option with a prefix. Other options stay as they are.
    """
    if not is_table(options):
        return dict(options)
    return {name: value for name, value in options.items() if name in _ALWAYS or _REPEATED + name in options}


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Store the options in the metadata of the columns."""
    kept = {k: v for k, v in options.items() if k not in _SECRET | _ALWAYS}
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
    """Return the effective options of a read: the options of the table, overridden by the options that are set.

    A read that names its stream or key-value table may have the schema of a SQL table. Then only the options of the
    read apply.

    Raises ConfigError if there are neither: the table was created with a list of columns.
    """
    options = own_options(options)  # the JVM reader is asked for the schema of a new table with these
    carried = None if _names_stream(options) else next((f.metadata[_KEY] for f in schema if _KEY in f.metadata), None)
    given = {k: v for k, v in options.items() if carried is None or k != "path"}
    if carried is None and not given:
        raise ConfigError(
            "the options of this table are lost: Spark keeps them only for tables that are created without a list of "
            "columns, and without ALTER TABLE … REPLACE COLUMNS; DROP TABLE, and omit the columns in CREATE TABLE, or "
            "use CREATE TEMPORARY VIEW"
        )
    return overridden(_carried(carried or "{}", given), given, SourceOptions)


def _carried(metadata: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the options in the metadata of columns, which files and other tables keep, too."""
    carried: dict[str, str] = json.loads(metadata)
    if ":" in carried.get("format", "") and "format" not in given:
        raise ConfigError(
            f"the metadata of the columns names the format {carried['format']!r}, and metadata must not choose code to "
            "import: set option 'format' in the read or write, or install the format under a name (an entry point)"
        )
    return carried


@contextmanager
def explains_alterations(schema: StructType) -> Iterator[None]:
    """Add the way back to the error for a column of a SQL table that the events do not have.

    Spark's catalog accepts ALTER TABLE without asking the source. Errors about options and names stay as they are.
    """
    try:
        yield
    except ConfigError as error:
        if type(error) not in (ConfigError, ColumnTypeError) or not any(_KEY in field.metadata for field in schema):
            raise
        raise ConfigError(
            f"{error.message}; the format of a SQL table defines its columns: undo ALTER TABLE with DROP COLUMN or "
            "RENAME COLUMN, or DROP TABLE and create it again, which keeps the stream"
        ) from None


def options_to_write(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the effective options of a write.

    If the schema certainly belongs to the target, they are the options in it, overridden by the options that are set.
    Otherwise only the options that are set apply.

    Raises ConfigError if there are neither.
    """
    names_stream = "stream" in options or "table" in options or "path" in options
    if not names_stream and _is_fitted(schema):
        return options_to_read(options, schema)
    if not options.keys() - _OF_QUERIES and not names_stream and TARGET_STREAM not in schema.names:
        raise ConfigError(
            "no stream is set, such as start('scope/stream') or save('scope/stream'); if it is to a SQL table, the "
            "options of this table are lost: Spark does not tell the writer which table is meant in CREATE TABLE … "
            "AS SELECT (create the table first, then INSERT), in a streaming query's toTable, if the query returns "
            "the columns of the table unchanged (INSERT INTO t SELECT * FROM t), if the table has no column of text, "
            "or if it was created with a list of columns or changed with ALTER TABLE; give them with the write "
            "(INSERT INTO t WITH (controller = '…', stream = '…', …) …, or options of writeStream)"
        )
    return dict(options)


def _names_stream(options: Mapping[str, str]) -> bool:
    """Return True if a read names its stream or key-value table. A SQL table's path is its directory in the catalog."""
    path = options.get("path", "")
    return "stream" in options or "table" in options or (path != "" and ":" not in path and not path.startswith("/"))


def _is_fitted(schema: StructType) -> bool:
    """Return True if Spark has cast the columns to those of a table."""
    one = len({f.metadata.get(_KEY) for f in schema}) == 1
    has_text = any(isinstance(f.dataType, StringType) and _KEY in f.metadata for f in schema)
    return one and has_text and not any(_VARCHAR in f.metadata for f in schema)
