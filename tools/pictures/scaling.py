"""Scaling history of a stream with skewed routing keys, as ``pravega-serde scaling`` draws it."""

from __future__ import annotations

import random
from typing import Final

from pravega_connector import PravegaClient
from pravega_connector.operations.monitoring import draw_history, scaling_history
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName

_STREAM: Final = StreamName("shop", "orders")
_PHASES: Final = (400, 900, 1500, 1500, 1200, 500, 300)  # events before each scaling
_DARK: Final = {
    "#ffffff": "#15181e", "#1d2733": "#e6e9ee", "#56606e": "#a3adba", "#c9ced6": "#454c57",
    "#9fb4cf": "#51647f",
}  # fmt: skip


def picture() -> str:
    """Return the picture of a stream that is split where keys are busy, then merged, and truncated once."""
    with InProcessPravega() as server, server.client() as client:
        client.create_stream(_STREAM, 2)
        keys, tails = random.Random(4), []
        for phase, count in enumerate(_PHASES):
            before = _lengths(client)
            with client.writer(_STREAM, "json") as writer:
                for number in range(count):
                    customer = f"customer {min(int(keys.expovariate(0.25)), 40)}"
                    writer.write({"order": number, "customer": customer}, routing_key=customer)
            tails.append(client.tail(_STREAM))
            if phase < len(_PHASES) - 1:
                _scale(client, before, split=phase < 4)
        client.truncate(tails[1])
        drawn = draw_history(scaling_history(client, _STREAM))
    dark = "".join(f'svg>[fill="{old}"],g>rect[fill="{old}"]{{fill:{new}}}' for old, new in _DARK.items())
    dark += 'g>text[fill="#56606e"]{fill:#a3adba}line{stroke:#2b313b}'
    head, rest = drawn.split("\n", 1)
    return f"{head}\n<style>@media (prefers-color-scheme: dark){{{dark}}}</style>\n{rest}"


def _lengths(client: PravegaClient) -> dict[int, int]:
    """Return the bytes in each segment."""
    history = scaling_history(client, _STREAM)
    return {life.range.id: life.length or 0 for life in history.segments}


def _scale(client: PravegaClient, before: dict[int, int], *, split: bool) -> None:
    """Split the segment that got most bytes, or merge the two neighbors that got least."""
    now = _lengths(client)
    current = sorted(client.controller.current_segments(_STREAM), key=lambda each: each.low)
    grown = [now[each.id] - before.get(each.id, 0) for each in current]
    if split:
        busy = current[grown.index(max(grown))]
        middle = (busy.low + busy.high) / 2
        client.controller.scale_stream(_STREAM, [busy.id], [(busy.low, middle), (middle, busy.high)])
    else:
        pairs = [grown[place] + grown[place + 1] for place in range(len(grown) - 1)]
        place = pairs.index(min(pairs))
        low, high = current[place], current[place + 1]
        client.controller.scale_stream(_STREAM, [low.id, high.id], [(low.low, high.high)])
