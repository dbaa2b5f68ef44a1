"""From sources that forget (standard input, sockets) into a stream."""

from connector.pipe._frames import FRAMES, Frames, LengthFrames, LineFrames
from connector.pipe._inputs import Input, connected, listening, standard_input
from connector.pipe._keys import ByJsonField, ByPattern
from connector.pipe._pipe import MAX_UNACKNOWLEDGED, Pipe, PipeSummary

__all__ = [
    "FRAMES",
    "MAX_UNACKNOWLEDGED",
    "ByJsonField",
    "ByPattern",
    "Frames",
    "Input",
    "LengthFrames",
    "LineFrames",
    "Pipe",
    "PipeSummary",
    "connected",
    "listening",
    "standard_input",
]
