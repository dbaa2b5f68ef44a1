"""Noting how far event time has come, after a batch: advice to readers, on which the batch itself does not depend."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from uuid import UUID

from connector.client import PravegaClient, StreamName, TransactionStatus
from connector.errors import ConnectorError, DeadlineExceededError
from connector.ledger._entries import Part

__all__ = ["latest_of", "note_batch", "writer_of"]

_log: Final = logging.getLogger(__name__)
_CALLS: Final = 16  # at once
# A commit that is decided is carried out within a tenth of a second, unless the servers have other trouble.
_VISIBLE_SECONDS: Final = 15.0
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.25


def writer_of(app: str) -> str:
    """The id under which an application's times are noted: one writer, whatever tasks and runs it has."""
    return f"spark-{app}"


def latest_of(parts: Iterable[Part]) -> int | None:
    """The time that the parts of a batch amount to, milliseconds; None if it has none."""
    return max((part.event_time for part in parts if part.event_time is not None), default=None)


def note_batch(
    client: PravegaClient, stream: StreamName, writer: str, millis: int | None, transactions: Iterable[UUID] = ()
) -> None:
    """Note a batch's time, as soon as its transactions are visible; without a time nothing is done.

    The position is the tail after them, so the time of a batch never stands before a part of it. It is done once more
    when the batch is replayed, which changes nothing. What cannot be noted is logged: the next batch's time covers it.
    """
    if millis is None:
        return
    try:
        with ThreadPoolExecutor(_CALLS, thread_name_prefix="pravega-event-time") as pool:
            list(pool.map(lambda id_: _await_visible(client, stream, id_), transactions))
        client.controller.note_time(writer, client.tail(stream), millis)
    except ConnectorError as error:
        _log.warning("the event time %d of a batch for stream %s was not noted: %s", millis, stream, error)


def _await_visible(client: PravegaClient, stream: StreamName, id_: UUID) -> None:
    """Return when a transaction whose commit is decided can be read: readers are not told of a time before its events.

    It only asks: whether a transaction is to be committed is not for this to say.
    """
    deadline, pause = time.monotonic() + _VISIBLE_SECONDS, _FIRST_PAUSE
    while client.controller.transaction_status(stream, id_) is TransactionStatus.COMMITTING:
        if time.monotonic() > deadline:
            raise DeadlineExceededError(f"transaction {id_} was not visible within {_VISIBLE_SECONDS:g} s")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
