"""The answering side of the driver protocol, for peers written in Python.

Standard library only: one of the peers runs under an interpreter that has nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Stopwatch", "serve"]

Handler = Callable[..., Mapping[str, Any]]


class Stopwatch:
    """Starts when it is made."""

    def __init__(self) -> None:
        self._start, self._cpu = time.perf_counter(), time.process_time()

    def answer(self, events: int, size: int) -> dict[str, Any]:
        """What a run answers: its seconds, this process's CPU seconds, the events and the bytes of their payloads."""
        seconds, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        return {"seconds": seconds, "cpu": cpu, "events": events, "bytes": size}


def serve(ready: str, handlers: Mapping[str, Handler]) -> None:
    """Answer requests, one JSON object a line, until standard input ends.

    ``{"do": NAME, ...}`` calls ``handlers[NAME](**rest)``. Its result is the answer, an exception ``{"error": text}``.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever libraries and child processes print must not mix with the answers
    answers.write(json.dumps({"ready": ready}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(_answer(handlers, json.loads(line))) + "\n")


def _answer(handlers: Mapping[str, Handler], request: dict[str, Any]) -> Mapping[str, Any]:
    try:
        return handlers[request.pop("do")](**request)
    except Exception as e:  # noqa: BLE001  # the driver decides what a failed run means
        return {"error": f"{type(e).__name__}: {e}"}
