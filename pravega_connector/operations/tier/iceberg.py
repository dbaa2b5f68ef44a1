"""Iceberg tables. The position of a stream is in the summary of a snapshot, and a property of the table.

Snapshots expire, so the property keeps the last position; both are in one commit. The commit requires that the table's
current snapshot is the one that was loaded. So of two runs that write the same stream, the second one adds nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import parquet_file_to_data_file, schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform

from pravega_connector.errors import LakeTableError
from pravega_connector.operations.tier.lake_table import (
    ConflictError,
    TierPosition,
    library_errors,
    no_merge,
    not_plain,
    stream_of,
)
from pravega_connector.operations.tier.merge import TierMerge

# Key of a snapshot's summary, and begin of the key of a table's property.
_POSITION: Final = "pravega.tier"


class IcebergTable:
    """Iceberg table ``CATALOG.namespace.table``; ``properties`` are added to those of pyiceberg's settings."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self._catalog_name, _, self._name = name.partition(".")
        self._properties = dict(properties)
        self._catalog: Catalog | None = None
        self._table: Table | None = None

    def __str__(self) -> str:
        return f"iceberg:{self._catalog_name}.{self._name}"

    def schema(self) -> pa.Schema | None:
        """Return the columns of the loaded table, or None if it did not exist."""
        return None if self._table is None else schema_to_pyarrow(self._table.schema(), include_field_ids=False)

    def create(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Create the table and its namespace, unless another program has created them in the meantime."""
        catalog = self._connect()
        with library_errors(self):
            try:
                catalog.create_namespace(self._name.rpartition(".")[0])
            except NamespaceAlreadyExistsError:
                pass
            try:
                with (
                    catalog.create_table_transaction(self._name, schema) as transaction,
                    transaction.update_spec() as spec,
                ):
                    for column in partition_by:
                        spec.add_field(column, IdentityTransform(), column)
            except (TableAlreadyExistsError, CommitFailedException):
                pass

    def position(self, stream: str) -> TierPosition | None:
        """Load the table, and return the position of a stream ``scope/stream``, or None without one."""
        table = self._load()
        text = None if table is None else table.properties.get(f"{_POSITION}.{stream}")
        return None if text is None else TierPosition.from_text(text, str(self))

    def commit(self, rows: pa.Table, position: TierPosition) -> None:
        """Add the rows and the position in one commit."""
        table = self._table
        assert table is not None, "load the position first"
        text = position.to_text()
        with library_errors(self), table.transaction() as transaction:
            with transaction.update_schema() as columns:
                columns.union_by_name(rows.schema)
            with transaction.update_snapshot(snapshot_properties={_POSITION: text}).fast_append() as files:
                for values, part in _partitions(rows, transaction.table_metadata):
                    path = _write(part, table.io, transaction.table_metadata)
                    file = parquet_file_to_data_file(table.io, transaction.table_metadata, path)
                    if [file.partition[at] for at in range(len(values))] != values:
                        raise LakeTableError(f"{self}: {values} cannot be values of its partition columns")
                    files.append_data_file(file)
            transaction.set_properties({f"{_POSITION}.{stream_of(position)}": text})

    def merge(self, rows: pa.Table, position: TierPosition, merge: TierMerge) -> None:
        """Raise ConfigError: the library has no merge with deletions in one commit."""
        raise no_merge(self)

    def positions(self, stream: str) -> Iterator[tuple[int, TierPosition]]:
        """Yield the snapshots that have not expired, the newest first."""
        assert self._table is not None, "load the position first"
        for snapshot in sorted(self._table.snapshots(), key=lambda each: each.sequence_number or 0, reverse=True):
            text = None if snapshot.summary is None else snapshot.summary.additional_properties.get(_POSITION)
            if text is not None:
                position = TierPosition.from_text(text, str(self))
                if stream_of(position) == stream:
                    yield snapshot.timestamp_ms, position

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the loaded table."""
        assert self._table is not None, "load the position first"
        with library_errors(self):
            yield from self._table.scan().to_arrow_batch_reader()

    def files(self) -> list[str]:
        """Return the files of the loaded table."""
        assert self._table is not None, "load the position first"
        names = {field.field_id: field.name for field in self._table.schema().fields}
        earlier = (field for schema in self._table.metadata.schemas for field in schema.fields)
        if any(names.get(field.field_id, field.name) != field.name for field in earlier):
            raise not_plain(self, "a renamed column")
        with library_errors(self):
            tasks = list(self._table.scan().plan_files())
        if any(task.delete_files for task in tasks):
            raise not_plain(self, "deleted rows")
        return [task.file.file_path for task in tasks]

    @property
    def root(self) -> str | None:
        """None: the files have all columns."""
        return None

    def _load(self) -> Table | None:
        catalog = self._connect()
        with library_errors(self):
            try:
                self._table = catalog.load_table(self._name)
                self._table.catalog = cast("Catalog", _Commits(catalog))
            except NoSuchTableError:
                self._table = None
        return self._table

    def _connect(self) -> Catalog:
        if self._catalog is None:
            with library_errors(self):
                self._catalog = load_catalog(self._catalog_name, **self._properties)
        return self._catalog


class _Commits:
    """Catalog whose refusals of a commit are not final.

    After CommitFailedException, pyiceberg repeats the commit, also after the commit of another run. In the end it
    deletes the manifests, even if the commit was done and only its answer was lost on the way. After any other error it
    does neither.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, *args: Any) -> Any:
        try:
            return self._catalog.commit_table(*args)
        except CommitFailedException as error:
            raise ConflictError from error


# The append of pyiceberg writes a null list of structs as an empty list (apache/iceberg-python#3833).


def _write(rows: pa.Table, io: FileIO, metadata: TableMetadata) -> str:
    """Write rows to a new data file with all columns of the table, and return its path."""
    schema = schema_to_pyarrow(metadata.schema())
    known = set(rows.schema.names)
    columns = [
        rows.column(field.name).cast(field.type) if field.name in known else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    path = load_location_provider(metadata.location, metadata.properties).new_data_location(f"{uuid.uuid4()}.parquet")
    with io.new_output(path).create() as sink:
        pq.write_table(pa.table(columns, schema=schema), sink, compression="zstd", store_decimal_as_integer=True)
    return path


def _partitions(rows: pa.Table, metadata: TableMetadata) -> Iterator[tuple[list[Any], pa.Table]]:
    """Yield the values and the rows of each partition of the table."""
    names = [metadata.schema().find_column_name(field.source_id) for field in metadata.spec().fields]
    if not names:
        yield [], rows
        return
    for values in rows.select(names).group_by(names).aggregate([]).to_pylist():
        kept = pa.array(np.ones(rows.num_rows, np.bool_))
        for name, value in values.items():
            column = rows.column(name)
            kept = pc.and_(kept, pc.is_null(column) if value is None else pc.equal(column, value))
        yield [values[name] for name in names], rows.filter(pc.fill_null(kept, False))
