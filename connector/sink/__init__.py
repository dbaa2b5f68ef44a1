"""The Spark sink: batch and streaming writes to a stream. Options and encoding need no Spark, and load none."""

from typing import TYPE_CHECKING, Any

from connector.sink._encoding import EventEncoder, encoder_for
from connector.sink._options import SinkOptions

if TYPE_CHECKING:
    from connector.sink._writers import PravegaBatchWriter, PravegaStreamWriter

__all__ = ["EventEncoder", "PravegaBatchWriter", "PravegaStreamWriter", "SinkOptions", "encoder_for"]


def __getattr__(name: str) -> Any:
    if name in ("PravegaBatchWriter", "PravegaStreamWriter"):
        from connector.sink import _writers  # noqa: PLC0415 - ingestion encodes rows where there is no Spark

        return getattr(_writers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
