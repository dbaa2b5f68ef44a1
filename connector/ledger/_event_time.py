"""Noting how far event time has come, after a batch: advice to readers, on which the batch itself does not depend."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from connector.client import PravegaClient, StreamName
from connector.errors import ConnectorError
from connector.ledger._carry_out import await_visible
from connector.ledger._entries import Part

__all__ = ["latest_of", "note_batch", "writer_of"]

_log: Final = logging.getLogger(__name__)


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
        await_visible(client.controller, stream, transactions)
        client.controller.note_time(writer, client.tail(stream), millis)
    except ConnectorError as error:
        _log.warning("the event time %d of a batch for stream %s was not noted: %s", millis, stream, error)
