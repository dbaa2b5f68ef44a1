"""The whole system: who writes and reads streams, and what connects them."""

from __future__ import annotations

from tools.pictures.drawing import Drawing


def picture() -> str:
    """Return the picture."""
    drawing = Drawing(760, 400, "Java, Flink, Python and Spark programs share Pravega's streams and schema registry")
    drawing.box(20, 30, 170, 96, "other", ["Java, Flink, Rust", "writers and readers", "of the other teams"])
    drawing.box(20, 176, 170, 116, "ours", ["Python client", "writers, readers,", "reader groups,", "command line"])

    drawing.box(280, 20, 200, 282, "pravega", ["Pravega", "streams of events"], top=True)
    for place, (label, kinds) in enumerate([("segment 0", "a, d"), ("segment 1", "b, e"), ("segment 2", "c, f")]):
        y = 76 + place * 50
        drawing.box(300, y, 160, 38, "plain")
        drawing.text(310, y + 16, label, size=12, classes="bold")
        drawing.text(310, y + 31, f"keys {kinds}: in order", size=11, classes="muted")
    drawing.text(380, 244, "controller: where segments are", anchor="middle", size=12, classes="muted")
    drawing.text(380, 262, "segment stores: the bytes", anchor="middle", size=12, classes="muted")
    drawing.text(380, 288, "same bytes for all clients", anchor="middle", size=12, classes="bold")

    drawing.box(570, 20, 170, 282, "other", ["Spark", "driver and executors"], top=True)
    drawing.box(586, 76, 138, 84, "ours", ["Source", "tasks read slices", "at exact offsets"])
    drawing.box(586, 196, 138, 84, "ours", ["Sink", "a transaction per", "task, and a ledger"])

    drawing.arrow((190, 78), (280, 78), both=True, label="events")
    drawing.arrow((190, 234), (280, 234), both=True, label="events")
    drawing.arrow((480, 118), (586, 118), label="batches", at=(526, 112))
    drawing.arrow((586, 238), (480, 238), label="exactly once", at=(526, 232))

    drawing.box(280, 336, 200, 46, "pravega", ["Schema registry", "Avro, Protobuf, JSON"])
    drawing.arrow((105, 292), (105, 359), (280, 359), both=True, dashed=True, label="schemas", at=(194, 352))
    drawing.arrow((655, 302), (655, 359), (480, 359), both=True, dashed=True, label="schemas", at=(566, 352))
    drawing.box(520, 372, 12, 12, "ours")
    drawing.text(538, 382, "pravega-serde", size=12, classes="muted")
    return drawing.svg()
