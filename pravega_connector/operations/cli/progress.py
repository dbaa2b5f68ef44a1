"""Progress bar on standard error: bytes done, rate, time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Callable[[int, int], object]]:
    """Yield a function that shows the bytes done and all bytes, if ``shown`` and standard error is a terminal."""
    if not shown or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda done, total: bar.update(task, completed=done, total=total)
