"""Read path and write path of events, from segments to columns and back."""

from __future__ import annotations

from typing import Final

from tools.pictures.drawing import Drawing, Kind

_READ: Final[list[tuple[Kind, list[str]]]] = [
    ("pravega", ["Segment", "of a stream", "bytes"]),
    ("ours", ["Slice", "one task,", "reads ahead"]),
    ("ours", ["Frames", "Arrow array over", "the same memory"]),
    ("ours", ["Serializer", "decodes all events", "of a block"]),
    ("other", ["Rows", "Spark, pandas,", "your loop"]),
]
_WRITE: Final[list[tuple[Kind, list[str]]]] = [
    ("other", ["Rows", "Spark, pandas,", "your loop"]),
    ("ours", ["Serializer", "encodes all rows", "of a block"]),
    ("ours", ["Routing", "hash of the key", "names a segment"]),
    ("ours", ["Writer", "appends, resumes", "after failover"]),
    ("pravega", ["Segment", "or transaction,", "then commit"]),
]


def picture() -> str:
    """Return the picture."""
    drawing = Drawing(760, 266, "The read path from segments to rows, and the write path from rows to segments")
    for top, name, steps in ((40, "Read path", _READ), (164, "Write path", _WRITE)):
        drawing.text(20, top - 14, name, classes="bold")
        for place, (kind, lines) in enumerate(steps):
            x = 20 + place * 148
            drawing.box(x, top, 128, 76, kind, lines)
            if place:
                drawing.arrow((x - 20, top + 38), (x, top + 38))
    return drawing.svg()
