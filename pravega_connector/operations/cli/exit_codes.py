"""Exit codes of all commands. docs/tools/command-line.md has the same table."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from pravega_connector.errors import (
    DataLossError,
    KafkaTopicNotFoundError,
    OutcomeUnknownError,
    ReaderGroupNotFoundError,
    ScopeNotFoundError,
    StepUndecidedError,
    StreamNotFoundError,
    TableNotFoundError,
    TransactionUnknownError,
)
from pravega_serde.errors import PravegaError, RegistryNotFoundError

#: Added to the number of the signal that ended a command: 130 for SIGINT, 141 for a closed pipe, 143 for SIGTERM.
SIGNAL: Final = 128


class ExitCode(IntEnum):
    """Outcome of a command. A number has one meaning in all commands."""

    DONE = 0
    """The command succeeded."""
    FAILED = 1
    """The command failed for a reason without a separate code: a setting, a permission, a refusal."""
    USAGE = 2
    """The command line is invalid."""
    DATA_LOSS = 3
    """Data was lost that was not read."""
    NOT_FOUND = 4
    """The stream, scope, group, table or entry does not exist, or was deleted, even if another has its name."""
    BEHIND = 5
    """The lag of a reader is larger than ``--max-bytes``."""
    BAD_DATA = 6
    """An event, a record or an input file is malformed."""
    UNDECIDED = 7
    """The outcome of a step is unknown, or an operator must choose."""
    UNAVAILABLE = 8
    """Servers, a network or a disk failed. The same command may succeed later."""


_CODES: Final[tuple[tuple[type[PravegaError], ExitCode], ...]] = (
    (DataLossError, ExitCode.DATA_LOSS),
    (StreamNotFoundError, ExitCode.NOT_FOUND),
    (ScopeNotFoundError, ExitCode.NOT_FOUND),
    (RegistryNotFoundError, ExitCode.NOT_FOUND),
    (ReaderGroupNotFoundError, ExitCode.NOT_FOUND),
    (TableNotFoundError, ExitCode.NOT_FOUND),
    (KafkaTopicNotFoundError, ExitCode.NOT_FOUND),
    (StepUndecidedError, ExitCode.UNDECIDED),
    (OutcomeUnknownError, ExitCode.UNDECIDED),
    (TransactionUnknownError, ExitCode.UNDECIDED),
)


def exit_code(error: PravegaError) -> ExitCode:
    """Return the code of a command that an error ended."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    if error.fault == "data":
        return ExitCode.BAD_DATA
    return ExitCode.UNAVAILABLE if error.retriable else ExitCode.FAILED
