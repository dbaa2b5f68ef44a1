"""Boxes, texts and arrows as SVG, in the colors of the reader's scheme."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, Literal

__all__ = ["Drawing", "Kind"]

Kind = Literal["ours", "pravega", "other", "note", "plain"]
"""What a box is: a part of this project, a part of Pravega, another program, a note, or a frame without a fill."""

_SIZE: Final = 13  # px of a text, unless it says otherwise
_LINE: Final = 1.35  # height of a line, in sizes
_CHARACTER: Final = 0.52  # average width of a character, in sizes
_FONT: Final = "-apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

_COLORS: Final = {  # selector, property, light, dark
    (".paper", "fill"): ("#ffffff", "#15181e"),
    (".paper", "stroke"): ("#d7dce3", "#333a45"),
    ("text", "fill"): ("#1d2733", "#e6e9ee"),
    (".muted", "fill"): ("#56606e", "#a3adba"),
    (".ours", "fill"): ("#dff3e9", "#15382b"),
    (".ours", "stroke"): ("#2f9e6e", "#46b98a"),
    (".pravega", "fill"): ("#e3ecfa", "#1a2c48"),
    (".pravega", "stroke"): ("#4c7fc0", "#6f9fe0"),
    (".other", "fill"): ("#f1f3f5", "#262b33"),
    (".other", "stroke"): ("#98a1ad", "#77818e"),
    (".note", "fill"): ("#fdf1dc", "#3a2b12"),
    (".note", "stroke"): ("#cf8a1c", "#d9a441"),
    (".plain", "stroke"): ("#98a1ad", "#77818e"),
    (".line", "stroke"): ("#56606e", "#a3adba"),
    (".head", "fill"): ("#56606e", "#a3adba"),
    (".first", "stroke"): ("#2f9e6e", "#46b98a"),
    (".second", "stroke"): ("#4c7fc0", "#6f9fe0"),
    (".third", "stroke"): ("#cf8a1c", "#d9a441"),
    (".grid", "stroke"): ("#e4e8ee", "#2b313b"),
}


def style() -> str:
    """Return the style sheet for both schemes."""
    light = [f"{selector}{{{name}:{colors[0]}}}" for (selector, name), colors in _COLORS.items()]
    dark = [f"{selector}{{{name}:{colors[1]}}}" for (selector, name), colors in _COLORS.items()]
    return (
        f"text{{font-family:{_FONT};font-size:{_SIZE}px}}.bold{{font-weight:600}}.plain,.line,.grid{{fill:none}}"
        f".code{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}}\n{''.join(light)}\n"
        f"@media (prefers-color-scheme: dark){{{''.join(dark)}}}"
    )


class Drawing:
    """SVG text that grows by a box, a text or an arrow at a time. Raises ValueError for a text that needs more room."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._width, self._height = width, height
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
            f'width="{width}" height="{height}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style()}\n</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"',
            'orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8Z"/></marker></defs>',
            f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        ]

    def svg(self) -> str:
        """Return the whole picture."""
        return "\n".join([*self._parts, "</svg>", ""])

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "start", size: int = _SIZE, classes: str = ""
    ) -> None:
        """Add one line; ``y`` is its base line."""
        wide = len(text) * _CHARACTER * size * (1.12 if "code" in classes else 1)
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        if left < 0 or left + wide > self._width or not 0 < y < self._height:
            raise ValueError(f"{text!r} leaves the picture")
        attributes = "" if anchor == "start" else f' text-anchor="{anchor}"'
        attributes += f' class="{classes}"' if classes else ""
        attributes += f' style="font-size:{size}px"' if size != _SIZE else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{attributes}>{escape(text, quote=False)}</text>')

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        kind: Kind,
        lines: Sequence[str] = (),
        *,
        top: bool = False,
    ) -> None:
        """Add a box with centered lines, the first in bold. With ``top``, they begin at its upper edge."""
        self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>')
        step = _SIZE * _LINE
        first = y + (18 if top else (height - step * (len(lines) - 1)) / 2 + _SIZE * 0.35)
        for place, line in enumerate(lines):
            if len(line) * _CHARACTER * (_SIZE if place == 0 else 12) > width - 6:
                raise ValueError(f"{line!r} needs a wider box")
            classes, size = ("bold", _SIZE) if place == 0 else ("muted", 12)
            self.text(x + width / 2, first + place * step, line, anchor="middle", size=size, classes=classes)

    def arrow(
        self,
        *points: tuple[float, float],
        label: str = "",
        at: tuple[float, float] | None = None,
        both: bool = False,
        dashed: bool = False,
        classes: str = "",
    ) -> None:
        """Add an arrow through the points, with a label above its middle, or centered at ``at``."""
        way = "L".join(f"{x:g} {y:g}" for x, y in points)
        more = ' marker-start="url(#head)"' if both else ""
        more += ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<path class="line{" " + classes if classes else ""}" d="M{way}" stroke-width="1.5" '
            f'marker-end="url(#head)"{more}/>'
        )
        if label:
            x, y = at or ((points[0][0] + points[-1][0]) / 2, (points[0][1] + points[-1][1]) / 2 - 6)
            self.text(x, y, label, anchor="middle", size=12, classes="muted")

    def line(self, *points: tuple[float, float], classes: str = "", width: float = 1.5, dashed: bool = False) -> None:
        """Add a line through the points."""
        way = "L".join(f"{x:g} {y:g}" for x, y in points)
        more = ' stroke-dasharray="4 4"' if dashed else ""
        self._parts.append(f'<path class="line {classes}" d="M{way}" stroke-width="{width:g}"{more}/>')
