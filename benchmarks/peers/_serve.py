"""Server side of the driver protocol, for peers in Python.

It uses only the standard library, because one peer runs under an interpreter without our packages.
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
    """Stopwatch that starts when it is created."""

    def __init__(self) -> None:
        self._start, self._cpu = time.perf_counter(), time.process_time()

    def answer(self, events: int, size: int) -> dict[str, Any]:
        """Return the answer of a run.

        It has the seconds, this process's CPU seconds, the events, and the bytes of their payloads.
        """
        seconds, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        return {"seconds": seconds, "cpu": cpu, "events": events, "bytes": size}


def serve(ready: str, handlers: Mapping[str, Handler]) -> None:
    """Answer requests until standard input ends. A request is one line with a JSON object.

    ``{"do": NAME, ...}`` calls ``handlers[NAME](**rest)``. Its result is the answer. An exception is answered as
    ``{"error": text}``.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries and child processes must not mix with the answers
    answers.write(json.dumps({"ready": ready}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(_answer(handlers, json.loads(line))) + "\n")


def _answer(handlers: Mapping[str, Handler], request: dict[str, Any]) -> Mapping[str, Any]:
    try:
        return handlers[request.pop("do")](**request)
    except Exception as e:  # the driver handles a failed run
        return {"error": f"{type(e).__name__}: {e}"}
