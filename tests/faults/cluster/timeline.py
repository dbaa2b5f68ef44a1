"""Notes of clients while they work, and their timeline: times of success, of errors and of new clients."""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

#: Seconds that a new client needs at most, on a busy machine, when the servers are well.
_SOON: Final = 8.0


class Notes:
    """A file of lines that several threads write; times are from ``time.monotonic()``, one clock for a machine.

    The file stays open, so it is written under its new name after it was renamed.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._lock = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), threading.Lock()
        weakref.finalize(self, os.close, self._file)

    def add(self, client: str, what: str, **more: Any) -> None:
        line = json.dumps({"time": time.monotonic(), "client": client, "what": what, **more})
        with self._lock:
            os.write(self._file, line.encode() + b"\n")

    def done(self, client: str) -> None:
        """The client has had a success."""
        self.add(client, "done")

    def error(self, client: str, error: BaseException | str) -> None:
        """The client has shown its user an error."""
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        self.add(client, "error", text=text.splitlines()[0][:500])


class Timeline:
    """Later notes of all clients and of the probe, in the files ``*.notes`` of a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._read = {file: file.stat().st_size for file in self._files()}
        self.done: dict[str, list[float]] = defaultdict(list)
        self.errors: dict[str, list[tuple[float, str]]] = defaultdict(list)
        #: Start and end of the probes that succeeded, by their ends.
        self.probes: list[tuple[float, float]] = []
        self.failed_probes: list[tuple[float, float, str]] = []

    def _files(self) -> list[Path]:
        return [] if self._folder is None else list(self._folder.glob("*.notes"))

    def refresh(self) -> Timeline:
        """Read the new lines of the files, complete ones only."""
        for file in self._files():
            with file.open("rb") as data:
                data.seek(self._read.get(file, 0))
                whole, end, _ = data.read().rpartition(b"\n")
            self._read[file] = self._read.get(file, 0) + len(whole) + len(end)
            for line in whole.splitlines():
                self.take(json.loads(line))
        self.probes.sort(key=lambda probe: probe[1])
        return self

    def take(self, note: Mapping[str, Any]) -> None:
        if note["what"] == "probe":
            self.probes.append((note["start"], note["time"]))
        elif note["what"] == "failed probe":
            self.failed_probes.append((note["start"], note["time"], note["text"]))
        elif note["what"] == "done":
            self.done[note["client"]].append(note["time"])
        elif note["what"] == "error":
            self.errors[note["client"]].append((note["time"], note["text"]))

    def well(self, after: float) -> float | None:
        """Return the time of the first success of a new client that was started after a moment."""
        return next((end for start, end in self.probes if start >= after), None)

    def next_done(self, client: str, after: float) -> float | None:
        """Return the time of the next success of a client."""
        return next((moment for moment in self.done[client] if moment >= after), None)

    def lag(self, client: str, moments: Iterable[float]) -> float | None:
        """Return the most seconds from a new client's success to this client's next one, over the moments of a fault.

        None: it had no further success.
        """
        lags = [0.0]
        for moment in moments:
            well = self.well(moment)
            if well is None:
                continue
            after = self.next_done(client, well)
            if after is None:
                return None
            lags.append(after - well)
        return max(lags)

    def behind(self, client: str, moments: Iterable[float]) -> float:
        """Return the most seconds by which a client was slower than new ones, over the moments of a fault.

        It is :meth:`lag` without the time in which new clients had to wait: the first success of a new client may be
        between two outages of the servers.
        """
        most = 0.0
        for moment in moments:
            well = self.well(moment)
            after = None if well is None else self.next_done(client, well)
            if well is None or after is None:
                continue
            waits = [(start, end) for start, end in self.probes if end - start > _SOON]
            waits += [(start, end) for start, end, _ in self.failed_probes]
            seconds, counted = 0.0, well
            for start, end in sorted(waits):
                if counted < min(start, after):
                    seconds += min(start, after) - counted
                counted = max(counted, end)
            most = max(most, seconds + max(0.0, after - counted))
        return most

    def stall(self, client: str, since: float, until: float) -> float:
        """Return the longest time without a success, in seconds."""
        moments = [since, *(moment for moment in self.done[client] if since < moment < until), until]
        return max(after - before for before, after in pairwise(moments))
