"""Runs points against one Pravega."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConnectorError
from pravega_serde.errors import PravegaError
from tests.interop._java import JavaPeer
from tools.faults.exactly_once._points import Point
from tools.faults.exactly_once._scene import Scene, Source
from tools.faults.exactly_once._verdict import Verdict, judge

__all__ = ["Stage"]

ROWS: Final = 900
#: Seconds beyond a lease in which a server may abort what nobody keeps.
DELTA: Final = 15.0
#: Seconds beyond that in which a server must tell what it has.
_PATIENCE: Final = 600.0


class Stage:
    """One server, one source stream, and an independent reader for many runs. Context manager."""

    def __init__(
        self,
        config: PravegaConfig,
        folder: Path | None = None,
        *,
        rows: int = ROWS,
        restart: Callable[[], list[int]] | None = None,
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="exactly-once-", ignore_cleanup_errors=True)
        self.folder = folder or Path(self._temporary.name)
        self.config, self._restart = config, restart
        self.client = PravegaClient(config, timeout=90.0)
        self.java = JavaPeer(config.controller, self.folder)
        self.source = Source(self.client, StreamName(f"kills{time.time_ns()}", "source"), rows)
        self._ended: list[tuple[Verdict, Scene, float]] = []
        self._runs = 0

    def run(self, point: Point) -> Verdict:
        """Play one point, and count; whether transactions are left open is seen later, by :meth:`settle`."""
        self._runs += 1
        folder = self.folder / f"{self._runs}-{point.name}"
        folder.mkdir()
        verdict, began = Verdict(point.name), time.monotonic()
        scene = Scene(self.config, self.client, self.source, folder, point.lease)
        scene.restart = self._restart
        try:
            point.play(scene)
            verdict.fault = scene.proof()
        except AssertionError as error:
            verdict.failures.append(str(error))
        finally:
            scene.close()
        try:
            judge(verdict, scene, self.java)
            verdict.check()
        except (AssertionError, PravegaError, OSError) as error:
            verdict.failures.append(f"it could not be judged: {error!r}")
        verdict.seconds = round(time.monotonic() - began, 1)
        self._ended.append((verdict, scene, time.monotonic()))
        return verdict

    def settled(self) -> list[Verdict]:
        """Those of the runs so far that have no open transaction any more, or should have none; each is told once."""
        settled: list[Verdict] = []
        waiting: list[tuple[Verdict, Scene, float]] = []
        for verdict, scene, ended in self._ended:
            over = time.monotonic() - ended - scene.lease - DELTA
            try:
                left = _open(scene)
            except ConnectorError:
                if over > _PATIENCE:
                    raise
                left = None
            if left is None or (left and over < 0):
                waiting.append((verdict, scene, ended))
                continue
            verdict.left_open = left
            if left:
                verdict.failures.append(f"{left} transactions left open")
            settled.append(verdict)
        self._ended = waiting
        return settled

    def settle(self) -> list[Verdict]:
        """Count the transactions that are open although every lease is over, for all runs not yet told."""
        settled = self.settled()
        while self._ended:
            time.sleep(0.5)
            settled += self.settled()
        return settled

    def close(self) -> None:
        self.java.close()
        self.client.close()
        self._temporary.cleanup()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


def _open(scene: Scene) -> int:
    return sum(status is TransactionStatus.OPEN for status in scene.statuses().values())


def repeated(points: Iterable[Point], repeat: int) -> Iterator[Point]:
    """Every point once, then all of them again: what depends on the hour does not hit one point alone."""
    chosen = list(points)
    for _ in range(repeat):
        yield from chosen
