"""Standard output of the commands that print tables."""

from __future__ import annotations

import sys
from typing import Final, NoReturn

from rich.console import Console

_UNLIMITED: Final = 10_000


class _Pipe(Console):
    """Console whose closed pipe ends the command as a closed pipe of ``click.echo`` does."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError, for which rich would exit with code 1."""
        raise BrokenPipeError


def standard_output() -> Console:
    """Return a console for standard output, with the width of the terminal.

    In a pipe or a file, no line is wrapped, so that each row stays one line. Shells and CI systems export COLUMNS, so
    this variable does not limit it.
    """
    return _Pipe(width=None if sys.stdout.isatty() else _UNLIMITED)
