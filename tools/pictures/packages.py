"""Layers of the project's packages, from the contract in ``pyproject.toml`` that ``lint-imports`` checks."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from tools.pictures.drawing import Drawing, Kind

__all__ = ["layers", "picture"]

_PROJECT: Final = Path(__file__).parents[2] / "pyproject.toml"
_ABOUT: Final = {  # what the packages of a layer are, by one of them
    "pyspark_pravega": "how Spark finds the format",
    "ingest": "short names of the operations",
    "operations": "ingest, export, mirror, pipe, cli",
    "spark": "Spark; servers for tests",
    "rows": "events as columns; options",
    "deadletters": "malformed and rejected events",
    "lag": "lag and loss",
    "stream_cuts": "forms of stream cuts",
    "aio": "client for asyncio",
    "client": "blocking client",
    "exactly_once": "commit protocols",
    "reader_groups": "shared reading",
    "single_segment": "byte streams, state",
    "reader": "events in and out",
    "stores": "calls to segment stores",
    "controller": "calls to the controller",
    "core": "retries, connections",
    "config": "settings, state without I/O",
    "wire": "messages and counts",
    "tcp_ports": "files and ports of this machine",
    "errors": "errors and hints",
    "pravega_serde": "serializers, registry, routing",
}


def layers() -> list[list[str]]:
    """Return the packages by layer, from the top."""
    contracts = tomllib.loads(_PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    listed = next(contract["layers"] for contract in contracts if "pravega_serde" in contract.get("layers", ()))
    return [[name.strip().removeprefix("pravega_connector.") for name in layer.split("|")] for layer in listed]


def picture() -> str:
    """Return the picture."""
    every = layers()
    drawing = Drawing(760, 64 + len(every) * 36, "Packages in layers: each imports only from layers below its own")
    drawing.text(20, 28, "Each package imports only from the layers below it.", classes="bold")
    for place, names in enumerate(every):
        y = 44 + place * 36
        x, room = 20.0, 460 - 8 * (len(names) - 1)
        for name in names:
            width = room * (len(name) + 4) / sum(len(each) + 4 for each in names)
            kind: Kind = "ours" if name in ("pyspark_pravega", "pravega_serde") else "pravega"
            drawing.box(round(x, 1), y, round(width, 1), 30, kind, [name])
            x += width + 8
        about = next(text for name, text in _ABOUT.items() if name in names)
        drawing.text(496, y + 20, about, size=12, classes="muted")
    return drawing.svg()
