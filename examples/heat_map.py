"""Heat map of a stream: bytes per second of each segment over time, as a page that reloads itself.

python -m examples.heat_map --stream taxi/trips --output heat.html

Open heat.html in a browser. Each poll of the stream adds a column. Splits and merges of segments appear as borders.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from pravega_connector.client import PravegaClient
from pravega_connector.monitoring import History, scaling_history

_WIDTH, _HEIGHT, _TOP = 900, 400, 30
_HOTTEST = 12.0  # hue of the busiest segment; an idle segment has 220
_LOOKS = 500  # number of kept polls


@dataclass(slots=True)
class HeatMap:
    """Lengths of a stream's segments over time."""

    stream: str
    looks: list[tuple[float, History]] = field(default_factory=list)

    def look(self, client: PravegaClient) -> None:
        """Record the present lengths of the segments. Drop the oldest poll if there are too many."""
        self.looks.append((time.monotonic(), scaling_history(client, client.name(self.stream))))
        del self.looks[:-_LOOKS]

    def rates(self) -> list[tuple[float, float, dict[tuple[float, float], float]]]:
        """Return one entry for each two polls in a row.

        It has their seconds since the first poll, and the bytes per second by key range.
        """
        columns = []
        for (begin, before), (end, after) in zip(self.looks, self.looks[1:], strict=False):
            known = {life.range.id: life.length or 0 for life in before.segments}
            cells = {}
            for life in after.segments:
                grown = (life.length or 0) - known.get(life.range.id, 0)
                if life.state == "open" or grown > 0:
                    cells[life.range.low, life.range.high] = grown / (end - begin)
            columns.append((begin - self.looks[0][0], end - self.looks[0][0], cells))
        return columns

    def _repr_svg_(self) -> str:
        """Draw time to the right, and keys upwards.

        A segment that ended between two polls is drawn below its successors.
        """
        columns = self.rates()
        top = max((rate for *_, cells in columns for rate in cells.values()), default=0.0)
        scale = _WIDTH / columns[-1][1] if columns else 1.0
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + _TOP}" font-family="Arial">',
            f'<text x="4" y="20">{escape(self.stream)}: at most {top:,.0f} bytes/s in a segment</text>',
        ]
        for begin, end, cells in columns:
            for (low, high), rate in cells.items():
                heat = math.log1p(rate) / math.log1p(top) if top else 0.0
                place = f'x="{begin * scale:.1f}" y="{_TOP + (1 - high) * _HEIGHT:.1f}"'
                size = f'width="{(end - begin) * scale:.1f}" height="{(high - low) * _HEIGHT:.1f}"'
                colour = f"hsl({220 - (220 - _HOTTEST) * heat:.0f} 80% {90 - 40 * heat:.0f}%)"
                parts.append(f'<rect {place} {size} fill="{colour}" stroke="#fff" stroke-width="0.5">')
                parts.append(f"<title>keys {low:.3g} to {high:.3g}: {rate:,.0f} bytes/s</title></rect>")
        return "\n".join([*parts, "</svg>\n"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Draw which segments of a stream are busy, over time")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--stream", required=True, help="scope/stream")
    parser.add_argument("--output", type=Path, required=True, help="page to write, anew after each look")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
    parser.add_argument("--looks", type=int, help="end after so many; without it, at Ctrl-C")
    given = parser.parse_args(arguments)
    heat, looks = HeatMap(given.stream), 0
    with PravegaClient(given.controller) as client:
        while given.looks is None or looks < given.looks:
            if looks:
                time.sleep(given.every)
            heat.look(client)
            looks += 1
            page = f'<meta charset="utf-8"><meta http-equiv="refresh" content="{math.ceil(given.every)}">\n'
            given.output.write_text(page + heat._repr_svg_(), encoding="utf-8")


if __name__ == "__main__":
    main()
