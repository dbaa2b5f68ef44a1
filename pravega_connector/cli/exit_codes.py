"""Exit codes of all commands; docs/cli.md has the same table."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from pravega_connector.errors import (
    DataLossError,
    IngestUndecidedError,
    OutcomeUnknownError,
    ReaderGroupNotFoundError,
    ScopeNotFoundError,
    StreamNotFoundError,
    TransactionUnknownError,
)
from pravega_serde.errors import PravegaError, RegistryNotFoundError

#: Added to the number of the signal that has ended a command: 130 for SIGINT, 141 for a closed pipe, 143 for SIGTERM.
SIGNAL: Final = 128


class ExitCode(IntEnum):
    """How a command has ended. A number has one meaning in all commands."""

    DONE = 0
    """What was asked for is done."""
    FAILED = 1
    """It is not, for a reason that has no number of its own: a setting, a permission, a refusal."""
    USAGE = 2
    """The command line cannot be right."""
    DATA_LOSS = 3
    """Data are gone that were not read."""
    NOT_FOUND = 4
    """There is no such stream, scope or group; or it was deleted, even if another has its name."""
    BEHIND = 5
    """A reader is further behind than ``--max-bytes`` allows."""
    BAD_DATA = 6
    """An event, a record or an input file is not what it should be."""
    UNDECIDED = 7
    """Whether a step took effect is not known, or an operator must choose."""
    UNAVAILABLE = 8
    """Servers (or a network, or a disk) could not do it now: the same command may succeed later."""


_CODES: Final[tuple[tuple[type[PravegaError], ExitCode], ...]] = (
    (DataLossError, ExitCode.DATA_LOSS),
    (StreamNotFoundError, ExitCode.NOT_FOUND),
    (ScopeNotFoundError, ExitCode.NOT_FOUND),
    (RegistryNotFoundError, ExitCode.NOT_FOUND),
    (ReaderGroupNotFoundError, ExitCode.NOT_FOUND),
    (IngestUndecidedError, ExitCode.UNDECIDED),
    (OutcomeUnknownError, ExitCode.UNDECIDED),
    (TransactionUnknownError, ExitCode.UNDECIDED),
)


def exit_code(error: PravegaError) -> ExitCode:
    """The code of a command that an error has ended."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    if error.fault == "data":
        return ExitCode.BAD_DATA
    return ExitCode.UNAVAILABLE if error.retriable else ExitCode.FAILED
