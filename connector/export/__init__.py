"""Events of a stream as files: Parquet, JSON lines or Avro."""

from connector.export._export import ExportSummary, export
from connector.export._files import FILE_FORMATS, file_format

__all__ = ["FILE_FORMATS", "ExportSummary", "export", "file_format"]
