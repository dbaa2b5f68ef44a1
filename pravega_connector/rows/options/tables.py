"""Options of key-value tables: a batch read, and a sink that sets the latest value of each key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from pravega_connector.core.values import MAX_KEY_LENGTH, TableConfig
from pravega_connector.errors import ConfigError
from pravega_connector.rows.options import ConnectionOptions, FormatOptions, choice, flag, number, option
from pravega_connector.rows.options.source import CORRUPT_RECORD
from pravega_connector.wire import TableName

_MAX_PARTITIONS = 100_000
_KEY_FORMATS = choice("bytes", "string")


@dataclass(frozen=True, kw_only=True)
class TableOptions(ConnectionOptions, FormatOptions):
    """Table, access to it, the format of its values, and the columns of its keys."""

    table: str | None = option(
        None, "key-value table: `scope/table`, or `table` with option `scope`, instead of a stream"
    )
    key_format: str = option(
        "bytes",
        "format of primary and secondary keys: `bytes` or `string` (UTF-8). Every key must have the length in bytes "
        "that the table was created with. `.schema(…)` and the columns of a write may also declare either type",
        _KEY_FORMATS,
    )
    key_column: str = option("key", "column of the primary key. It is not part of the value")
    secondary_key_column: str = option(
        "secondary_key", "column of the secondary key, if the table has them. It is not part of the value"
    )
    version_column: str = option(
        "version",
        "column of the version of the entry, such as `0:27`. In a batch write, a row with this column is written only "
        "if the entry has this version, or, if it is null, does not exist",
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for columns of one name."""
        super().__post_init__()
        names = [self.key_column, self.secondary_key_column, self.version_column]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"column {name!r} is set for two of the columns of key and version: rename one")

    def table_name(self) -> TableName:
        """Return the full name of the table. Raises ConfigError without a scope, InvalidNameError."""
        assert self.table is not None
        given = self.table.strip("/")
        if "/" in given:
            return TableName.parse(given)
        scope = self.config.scope
        if scope is None:
            raise ConfigError(f"table {given!r} has no scope: set option 'scope', or write 'scope/{given}'")
        return TableName(scope, given)

    def key_columns(self, config: TableConfig) -> tuple[str, ...]:
        """Return the names of the columns of the keys."""
        return (self.key_column, self.secondary_key_column) if config.secondary_key else (self.key_column,)

    def is_single(self, columns: Iterable[pa.Field]) -> bool:
        """Return True if the columns of a value are one column, which is not a field of a record."""
        return self.says_single and len(list(columns)) == 1


@dataclass(frozen=True, kw_only=True)
class TableSourceOptions(TableOptions):
    """Options of ``spark.read`` of a table."""

    infer_schema: bool = option(
        False,
        "with `format` `json` or `cbor`: derive the columns of the value from up to 1000 entries, instead of "
        "`.schema(…)`. Also `inferSchema`, as in Spark",
        flag,
        alias="inferSchema",
    )
    mode: str = option(
        "FAILFAST",
        "handling of values that cannot be decoded: `FAILFAST` stops with the key, `PERMISSIVE` returns nulls, the "
        "value in `_corrupt_record` and its error in `_corrupt_record_error`, `DROPMALFORMED` drops the rows",
        choice("FAILFAST", "PERMISSIVE", "DROPMALFORMED"),
    )
    column_name_of_corrupt_record: str = option(
        CORRUPT_RECORD,
        "name of the column of values that cannot be decoded, and with `_error` after it of the column of their "
        "errors. Also `columnNameOfCorruptRecord`, as in Spark",
        alias="columnNameOfCorruptRecord",
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for options that conflict."""
        super().__post_init__()
        if self.infer_schema and self.format is None:
            raise ConfigError("option 'infer_schema' requires option 'format': raw values have one column")


@dataclass(frozen=True, kw_only=True)
class TableSinkOptions(TableOptions):
    """Options of ``df.write`` and ``df.writeStream`` to a table."""

    mode: str = option(
        "upsert",
        "`upsert` sets the entry of each row's key, and removes it if all columns of the value are null",
        choice("upsert"),
    )
    order_column: str | None = option(
        None,
        "column of the value that orders the rows of a key, such as the time of the change. The row with the greatest "
        "value wins, compared with the other rows and with the entry in the table. Needs `format`. Without it, the "
        "last row of a task wins, and two tasks must not write one key",
    )
    allow_create_scope: bool = option(False, "create the scope if it does not exist", flag)
    allow_create_table: bool = option(
        False, "create the table if it does not exist, with the lengths of its keys", flag
    )
    primary_key_length: int | None = option(
        None, "with `allow_create_table`: length of each primary key in bytes", number(1, MAX_KEY_LENGTH)
    )
    secondary_key_length: int = option(
        0,
        "with `allow_create_table`: length of each secondary key in bytes; 0 for a table without secondary keys",
        number(0, MAX_KEY_LENGTH),
    )
    table_partitions: int = option(
        1,
        "with `allow_create_table`: number of segments of the table, which cannot be changed",
        number(1, _MAX_PARTITIONS),
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for options that conflict."""
        super().__post_init__()
        if self.order_column is not None and self.format is None:
            raise ConfigError("option 'order_column' requires option 'format': it is a column of the value")
        if self.allow_create_table and self.primary_key_length is None:
            raise ConfigError("option 'allow_create_table' requires option 'primary_key_length'")

    def new_table(self) -> TableConfig:
        """Return the configuration of a table that the sink creates. Raises ConfigError."""
        assert self.primary_key_length is not None
        return TableConfig(
            primary_key=self.primary_key_length,
            secondary_key=self.secondary_key_length,
            partitions=self.table_partitions,
        )
