"""The Spark sink: batch and streaming writes to a stream."""

from connector.sink._encoding import EventEncoder, encoder_for
from connector.sink._options import SinkOptions
from connector.sink._writers import PravegaBatchWriter, PravegaStreamWriter

__all__ = ["EventEncoder", "PravegaBatchWriter", "PravegaStreamWriter", "SinkOptions", "encoder_for"]
