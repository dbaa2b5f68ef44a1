"""Options of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.errors import ConfigError
from connector.options import CommonOptions, choice, flag, number, option, registry_option
from connector.source._bad_records import CORRUPT_RECORD

__all__ = ["METADATA_COLUMNS", "SourceOptions"]

# The Scala connector's columns, in its order.
METADATA_COLUMNS: Final = ("event", "scope", "stream", "segment_id", "offset")
# Beside those: what a registry's events begin with.
_ENCODING_ID: Final = "encoding_id"
_MAX_LONG: Final = 2**63 - 1


def _columns(name: str, value: str) -> tuple[str, ...]:
    columns = tuple(column.strip().lower() for column in value.split(","))
    known = (*METADATA_COLUMNS, _ENCODING_ID)
    for column in columns:
        if column not in known:
            raise ConfigError(f"option {name!r} has no column {column!r}; there are: {', '.join(known)}")
    if len(set(columns)) < len(columns):
        raise ConfigError(f"option {name!r} names a column twice: {value!r}")
    return columns


@dataclass(frozen=True, kw_only=True)
class SourceOptions(CommonOptions):
    """Options of ``spark.read`` and ``spark.readStream``."""

    start_stream_cut: str | None = option(
        None,
        "where to start: `earliest`, `latest`, or a stream cut as text (default: batch earliest, streaming latest)",
    )
    end_stream_cut: str | None = option(
        None,
        "where to end: `latest`, `unbounded`, or a stream cut as text (default: batch latest, streaming unbounded)",
    )
    columns: tuple[str, ...] | None = option(
        None,
        "which of `event,scope,stream,segment_id,offset` to deliver: without `format` all five, with it none of them "
        "beside the decoded ones; `event` alone is the fastest. Also `encoding_id`: that of a registry's event, null "
        "where an event begins with none",
        _columns,
    )
    mode: str = option(
        "FAILFAST",
        "what to do with events that cannot be decoded: `FAILFAST` stops with their coordinates, `PERMISSIVE` gives "
        "nulls, the event in `_corrupt_record` and its error in `_corrupt_record_error`, `DROPMALFORMED` leaves them "
        "out",
        choice("FAILFAST", "PERMISSIVE", "DROPMALFORMED"),
    )
    column_name_of_corrupt_record: str = option(
        CORRUPT_RECORD,
        "another name for the column of events that cannot be decoded, and with `_error` after it for that of their "
        "errors; also `columnNameOfCorruptRecord`, as Spark has it",
        alias="columnNameOfCorruptRecord",
    )
    schema_evolution: str = registry_option(
        "resolve",
        "what to do with events of another version of the schema than the query's, later ones too: `resolve` them to "
        "the query's, or take them for `corrupt`: see `mode`",
        choice("resolve", "corrupt"),
    )
    unknown_encoding_ids: str = registry_option(
        "fail",
        "what to do with events whose encoding id the registry does not know: `fail`, or take them for `corrupt`",
        choice("fail", "corrupt"),
    )
    fail_on_codec_mismatch: bool = registry_option(
        True, "whether to refuse a group with codecs other than gzip and snappy, whether or not events have them", flag
    )
    max_bytes_per_trigger: int | None = option(
        None, "most bytes of one micro-batch, to the last whole event of each segment", number(1, _MAX_LONG)
    )
    max_rows_per_trigger: int | None = option(None, "most events of one micro-batch", number(1, _MAX_LONG))

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        """Undecoded columns, in the order in which they are delivered."""
        if self.columns is not None:
            return self.columns
        return METADATA_COLUMNS if self.format is None and not self.from_registry else ()
