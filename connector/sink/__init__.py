"""The Spark sink: batch and streaming writes to a stream.

``options`` and ``encoding`` (rows as events; ``registry`` for those of a schema registry) need no Spark, and load none.
``writers`` is what Spark calls, ``targets`` the streams that rows go to, ``exactly_once`` the transactions of its tasks
and their commit, ``contents`` the totals by which a repeated batch is compared with the committed one.
"""

from typing import TYPE_CHECKING, Any

from .encoding import EventEncoder, encoder_for
from .options import SinkOptions

if TYPE_CHECKING:
    from .writers import PravegaBatchWriter, PravegaStreamWriter

__all__ = ["EventEncoder", "PravegaBatchWriter", "PravegaStreamWriter", "SinkOptions", "encoder_for"]


def __getattr__(name: str) -> Any:
    if name in ("PravegaBatchWriter", "PravegaStreamWriter"):
        from . import writers  # noqa: PLC0415 - ingestion encodes rows where there is no Spark

        return getattr(writers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
