"""Standard output of the commands that print tables."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console

_UNLIMITED: Final = 10_000


def standard_output() -> Console:
    """Return a console for standard output, with the width of the terminal.

    In a pipe or a file, no line is wrapped, so that each row stays one line. Shells and CI systems export COLUMNS, so
    this variable does not limit it.
    """
    return Console(width=None if sys.stdout.isatty() else _UNLIMITED)
