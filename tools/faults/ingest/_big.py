"""One large file, cut into transactions, with kills on the way and an eye on the memory."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Final

from tools.faults.ingest._scenarios import Scene
from tools.faults.ingest._stage import Ingesters, Run, Verdict, await_that

__all__ = ["big"]

_LINE: Final = 1024
_KILLS: Final = 3


def big(scene: Scene, ingesters: Ingesters, size: int) -> Verdict:
    """A file of so many bytes by 100,000 lines a transaction; killed three times on the way."""
    count = size // _LINE
    folder = scene.folder / "data"
    folder.mkdir()
    expected = _write(folder / "large.txt", count)
    scene.client.create_stream(scene.target, 1)
    began = time.monotonic()
    verdict = Verdict("big", count)
    arguments = scene.arguments("count")
    arguments[arguments.index("--events-per-transaction") + 1] = 100_000
    most = 0
    for kill in range(1, _KILLS + 1):
        run = ingesters.start(arguments)
        await_that("it gets on", lambda k=kill: _records(scene) >= k * count // (_KILLS + 1), 3600.0)
        most = max(most, _peak_memory(run))
        run.kill()
        await_that("it ends", lambda run=run: run.status is not None)
        verdict.kills += run.killed
    run = ingesters.start(arguments)
    peak = [0]

    def ended() -> bool:
        peak[0] = max(peak[0], _peak_memory(run))
        return run.status is not None

    await_that("the last one ends", ended, 3600.0)
    assert run.wait() == 0, run.text()
    verdict.faults = {"peak memory, MiB": max(most, peak[0]) >> 20, "file, MiB": size >> 20}
    verdict.runs, verdict.transactions = _KILLS + 1, scene.updates()
    verdict.seconds = round(time.monotonic() - began, 1)
    found = hashlib.blake2b()
    for event in scene.client.read(scene.target):
        verdict.read += 1
        found.update(event)
    verdict.out_of_order = int(found.hexdigest() != expected)
    verdict.lost = max(0, count - verdict.read)
    verdict.duplicated = max(0, verdict.read - count)
    return verdict


def _write(path: Path, count: int) -> str:
    """Numbered lines; the digest of all of them."""
    digest = hashlib.blake2b()
    with path.open("wb") as out:
        for number in range(count):
            line = b"%012d " % number + b"x" * (_LINE - 14)
            digest.update(line)
            out.write(line + b"\n")
    return digest.hexdigest()


def _records(scene: Scene) -> int:
    return sum(progress.offset for progress in scene.progress())


def _peak_memory(run: Run) -> int:
    """Bytes that a process has had in memory at most; 0 when it is gone."""
    try:
        for line in Path(f"/proc/{run.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0
