"""Reader group through a join, a failure and a scaling: which reader has which segment."""

from __future__ import annotations

from typing import Final, NamedTuple

from tools.pictures.drawing import Drawing


class _Panel(NamedTuple):
    """State of the group."""

    heading: str
    segments: list[tuple[str, int]]  # number, and the reader's place
    readers: list[bool | None]  # whether each is up; None draws nothing
    lines: list[str]


_PANELS: Final = [
    _Panel(
        "Two readers", [("0", 0), ("1", 0), ("2", 1), ("3", 1)], [True, True, None], ["Each segment has", "one reader."]
    ),
    _Panel(
        "A reader joins",
        [("0", 0), ("1", 0), ("2", 1), ("3", 2)],
        [True, True, True],
        ["Readers with more give", "segments to it."],
    ),
    _Panel(
        "B fails, is removed",
        [("0", 0), ("1", 0), ("2", 2), ("3", 2)],
        [True, False, True],
        ["Others resume at its last", "recorded position."],
    ),
    _Panel(
        "Segment 3 splits",
        [("0", 0), ("1", 0), ("2", 2), ("4", 2), ("5", 2)],
        [True, None, True],
        ["Successors are read after", "segment 3 was read."],
    ),
]
_CLASSES: Final = ("first", "second", "third")


def picture() -> str:
    """Return the picture."""
    drawing = Drawing(
        760, 326, "A reader group divides segments among its readers, through joins, failures and scaling"
    )
    for place, (heading, segments, readers, lines) in enumerate(_PANELS):
        left = 16 + place * 184
        drawing.box(left, 14, 176, 298, "plain")
        drawing.text(left + 88, 36, heading, anchor="middle", classes="bold")
        step = 172 / len(segments)
        rows = {reader: 80 + reader * 66 for reader in range(3)}
        for number, (segment, reader) in enumerate(segments):
            y = 58 + number * step
            drawing.line((left + 72, y + step / 2 - 3), (left + 114, rows[reader]), classes=_CLASSES[reader], width=2)
            drawing.box(left + 10, y, 62, step - 6, "pravega", [f"seg. {segment}"])
        for reader, up in enumerate(readers):
            name = chr(ord("A") + reader)
            if up is not None:
                drawing.box(
                    left + 114, rows[reader] - 18, 54, 36, "ours" if up else "note", [name] if up else [name, "failed"]
                )
        for number, line in enumerate(lines):
            drawing.text(left + 88, 264 + number * 18, line, anchor="middle", size=12, classes="muted")
    return drawing.svg()
