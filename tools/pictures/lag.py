"""Lag of a reader through a burst and a pause: the two panels of the Grafana dashboard that show it.

``python -m tools.pictures record`` records the numbers, in 90 seconds, with a writer and a reader on a server in the
process. The picture is drawn from the recorded numbers.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pravega_connector.operations.monitoring import stream_lag
from pravega_connector.testing import InProcessPravega
from tools.pictures.drawing import Drawing

_RECORDED: Final = Path(__file__).with_name("lag.json")
_SECONDS: Final = 90
_BURST: Final = range(20, 32)  # seconds with five times as many events
_PAUSE: Final = range(50, 65)  # seconds in which the reader is stopped
_RATE: Final = 300  # events a second
_LEFT, _RIGHT, _TALL = 70, 740, 120


def record() -> None:
    """Record, for each second, the events sent and consumed in it and the lag in bytes at its end."""
    sent, consumed, lag = [], [], []
    counts = [0, 0]
    ended = threading.Event()
    with InProcessPravega() as server, server.client() as client:
        client.create_stream("shop/orders", 2)
        begin = time.monotonic()

        def write() -> None:
            with client.writer("shop/orders", "json") as writer:
                while not ended.is_set():
                    rate = _RATE * (5 if int(time.monotonic() - begin) in _BURST else 1)
                    for _ in range(rate // 20):
                        writer.write({"order": counts[0], "item": "tea"}, routing_key=str(counts[0] % 50))
                        counts[0] += 1
                    writer.flush()
                    ended.wait(0.05)

        thread = threading.Thread(target=write)
        thread.start()
        with client.follow("shop/orders", "json", start="earliest") as reader:
            second, last = 1, (0, 0)
            while second <= _SECONDS:
                if int(time.monotonic() - begin) not in _PAUSE and counts[1] - last[1] < 3 * _RATE:
                    counts[1] += len(reader.poll(timeout=0.05))
                else:
                    time.sleep(0.02)
                if time.monotonic() - begin >= second:
                    sent.append(counts[0] - last[0])
                    consumed.append(counts[1] - last[1])
                    lag.append(stream_lag(client, reader.position).bytes)
                    second, last = second + 1, (counts[0], counts[1])
        ended.set()
        thread.join()
    _RECORDED.write_text(json.dumps({"sent": sent, "consumed": consumed, "lag": lag}) + "\n")


def picture() -> str:
    """Return the picture."""
    numbers = json.loads(_RECORDED.read_text())
    drawing = Drawing(760, 400, "A burst and a stopped reader, as events per second and as lag in bytes")
    _panel(drawing, 44, "Events per second", [("first", numbers["sent"]), ("second", numbers["consumed"])], 1)
    drawing.line((560, 24), (584, 24), classes="first", width=2)
    drawing.text(590, 28, "sent", size=12)
    drawing.line((640, 24), (664, 24), classes="second", width=2)
    drawing.text(670, 28, "consumed", size=12)
    _panel(drawing, 226, "Lag in bytes", [("third", numbers["lag"])], 1000)
    for begin, text in ((_BURST[0], "burst of the writer"), (_PAUSE[0], "reader stopped")):
        drawing.line((_x(begin), 44), (_x(begin), 346), dashed=True)
        drawing.text(_x(begin) + 5, 240, text, size=12, classes="muted")
    for second in range(0, _SECONDS + 1, 15):
        drawing.text(_x(second), 366, str(second), anchor="middle", size=12, classes="muted")
    drawing.text((_LEFT + _RIGHT) / 2, 386, "seconds", anchor="middle", size=12, classes="muted")
    return drawing.svg()


def _x(second: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * second / _SECONDS


def _panel(drawing: Drawing, top: int, title: str, lines: Sequence[tuple[str, list[int]]], unit: int) -> None:
    """Draw a panel with one line for each series, and four levels."""
    drawing.text(_LEFT, top - 14, title, classes="bold")
    highest = max(max(values) for _, values in lines)
    step = next(s for d in range(9) for s in (10**d, 2 * 10**d, 5 * 10**d) if s * 4 >= highest)
    for level in range(0, step * 5, step):
        y = top + _TALL * (1 - level / (step * 4))
        drawing.line((_LEFT, y), (_RIGHT, y), classes="grid", width=1)
        label = f"{level // unit:,} kB" if unit == 1000 else f"{level:,}"
        drawing.text(_LEFT - 8, y + 4, label, anchor="end", size=12, classes="muted")
    for classes, values in lines:
        points = [(round(_x(n + 1), 1), round(top + _TALL * (1 - v / (step * 4)), 1)) for n, v in enumerate(values)]
        drawing.line(*points, classes=classes, width=2)
