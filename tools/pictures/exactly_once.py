"""Exactly-once commit of a micro-batch as a sequence, with the effect of a failure between its steps."""

from __future__ import annotations

from typing import Final

from tools.pictures.drawing import Drawing, Kind

_TASK, _DRIVER, _LEDGER, _TARGET = 70, 200, 325, 450
_LIVES: Final[list[tuple[int, Kind, list[str]]]] = [
    (_TASK, "other", ["Tasks", "of the batch"]),
    (_DRIVER, "other", ["Driver"]),
    (_LEDGER, "pravega", ["Ledger", "a stream"]),
    (_TARGET, "pravega", ["Target", "stream"]),
]
_NOTES: Final = [  # y of the failure, and what happens then
    (176, ["Failure here", "Transactions expire.", "Spark runs the batch again."]),
    (
        268,
        [
            "Failure here",
            "The restart reads PREPARED and",
            "commits these transactions.",
            "If they expired, it writes again.",
        ],
    ),
    (366, ["Failure here", "The pilot is committed:", "the restart commits the others."]),
    (448, ["Failure here", "The restart finds all committed,", "and appends COMMITTED."]),
]


def picture() -> str:
    """Return the picture."""
    drawing = Drawing(760, 560, "Commit of a micro-batch: transactions, PREPARED, the pilot, the others, COMMITTED")
    for x, kind, lines in _LIVES:
        drawing.line((x, 62), (x, 540), classes="grid", width=2)
        drawing.box(x - 52, 18, 104, 44, kind, lines)

    drawing.arrow((_TASK, 100), (_TARGET, 100), label="1  write and flush transactions T1, T2, T3", at=(260, 93))
    drawing.arrow((_TASK, 142), (_DRIVER, 142), label="2  ids and digest", at=(135, 135))
    drawing.arrow((_DRIVER, 222), (_LEDGER, 222), label="3  PREPARED: T1, T2, T3", at=(263, 215))
    drawing.arrow((_DRIVER, 314), (_TARGET, 314), label="4  commit T1, the pilot", at=(325, 307))
    drawing.arrow((_DRIVER, 408), (_TARGET, 408), label="5  commit T2 and T3", at=(325, 401))
    drawing.arrow((_DRIVER, 500), (_LEDGER, 500), label="6  COMMITTED: digest", at=(263, 493))
    drawing.text(_TARGET - 8, 336, "decides the batch", anchor="end", size=12, classes="bold")
    drawing.text(_TARGET - 8, 430, "all rows visible", anchor="end", size=12, classes="bold")
    drawing.text(263, 526, "never written again", anchor="middle", size=12, classes="bold")

    for y, lines in _NOTES:
        height = 16 + len(lines) * 17
        drawing.line((16, y), (512, y), classes="third", dashed=True)
        drawing.box(512, y - height / 2, 236, height, "note", lines)
    return drawing.svg()
