"""Standard output of the commands that print tables."""

from __future__ import annotations

import os
import sys
from typing import Final

from rich.console import Console

_UNLIMITED: Final = 10_000


def standard_output() -> Console:
    """Return a console for standard output, with the width of the terminal.

    In a pipe or a file, no line is wrapped, so that the output can be searched. The variable COLUMNS limits it there.
    """
    wraps = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if wraps else _UNLIMITED)
