"""A stream and its table: each commit has rows and the stream cut after them."""

from __future__ import annotations

from typing import Final

from tools.pictures.drawing import Drawing

_LEFT, _WIDE, _EVENTS = 30, 38, 18
_CUTS: Final = (6, 13)  # events before each cut


def picture() -> str:
    """Return the picture."""
    drawing = Drawing(
        760, 330, "A stream with two cuts, a table with two commits, each of rows and a cut, and a read of both"
    )
    drawing.text(_LEFT, 30, "Stream", classes="bold")
    for number in range(_EVENTS):
        kind = "pravega" if number < _CUTS[1] else "note"
        drawing.box(_x(number) + 2, 42, _WIDE - 4, 32, kind, [str(number + 1)])
    for number, cut in enumerate(_CUTS):
        drawing.line((_x(cut), 34), (_x(cut), 112), classes="third", dashed=True)
        drawing.text(_x(cut) - 4, 108, f"stream cut {number + 1}", anchor="end", size=12, classes="bold")
    drawing.text(_x(_CUTS[1]) + 8, 96, "tail: not in the table yet", size=12, classes="muted")

    drawing.text(_LEFT, 140, "Table", classes="bold")
    begin = 0
    for number, cut in enumerate(_CUTS):
        middle = (_x(begin) + _x(cut)) / 2
        drawing.arrow((middle, 78), (middle, 150))
        lines = [f"commit {number + 1}", f"rows {begin + 1} to {cut}", f"stream cut {number + 1}"]
        drawing.box(_x(begin) + 2, 152, _x(cut) - _x(begin) - 4, 68, "ours", lines)
        begin = cut
    drawing.box(
        _x(begin) + 6,
        152,
        _x(_EVENTS) - _x(begin) - 8,
        68,
        "plain",
        ["after a kill", "the next run begins", "at stream cut 2"],
    )

    middle = _x(_CUTS[1])
    drawing.arrow((middle / 2 + 15, 222), (middle / 2 + 15, 268))
    right = _x(_EVENTS)
    drawing.arrow((right, 58), (right + 22, 58), (right + 22, 290), (right, 290))
    drawing.box(
        _LEFT + 2,
        270,
        _x(_EVENTS) - _LEFT - 4,
        40,
        "other",
        ["read_table_and_tail: rows 1 to 13, then events 14 to 18"],
    )
    return drawing.svg()


def _x(event: int) -> int:
    return _LEFT + _WIDE * event
