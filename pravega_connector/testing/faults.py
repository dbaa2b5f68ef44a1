"""Faults of an in-process Pravega. Each applies to a number of requests of one kind.

A fault waits for a request of its kind. :attr:`Faults.pending` is 0 when all requested faults have happened. Assert
this at the end of a fault test.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, get_args
from uuid import UUID

from google.protobuf.message import Message

from pravega_connector.controller.rpc import grpc
from pravega_connector.errors import ConfigError
from pravega_connector.testing.controller_service import Controller, Do
from pravega_connector.testing.requests import Append, Request
from pravega_connector.testing.segment_store import SegmentStore, Session
from pravega_connector.wire import (
    ConditionalAppend,
    ConditionalBlockEnd,
    CreateTransientSegment,
    ErrorMessage,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    MergeSegments,
    ReadSegment,
    ReadTable,
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
    SetupAppend,
    TruncateSegment,
    UpdateSegmentAttribute,
    UpdateTableEntries,
    WrongHost,
    segment_number,
)

#: Kinds of requests to a segment store. ``setup`` binds a writer to a segment, ``info`` asks for a segment's bounds.
#: ``read table`` and ``update table`` are requests about key-value tables.
RequestKind = Literal[
    "any",
    "append",
    "attribute",
    "conditional append",
    "info",
    "merge",
    "read",
    "read table",
    "setup",
    "truncate",
    "update table",
]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "append": (Append,),
    "attribute": (GetSegmentAttribute, UpdateSegmentAttribute),
    "conditional append": (ConditionalAppend, ConditionalBlockEnd),
    "info": (GetStreamSegmentInfo,),
    "merge": (MergeSegments, CreateTransientSegment),
    "read": (ReadSegment,),
    "read table": (ReadTable, ReadTableEntries, ReadTableKeys),
    "setup": (SetupAppend,),
    "truncate": (TruncateSegment,),
    "update table": (RemoveTableKeys, UpdateTableEntries),
}
_UNSPECIFIED: Final = -1  # ErrorMessage.ErrorCode.UNSPECIFIED


class Faults:
    """Faults of one in-process Pravega. Thread safe.

    ``request`` selects requests to the segment store. ``method`` selects calls of the controller by their names in its
    interface, such as ``createTransaction``; None selects all. ``times`` is the number of requests that fail.
    """

    def __init__(self, store: SegmentStore, controller: Controller) -> None:
        self._store, self._controller = store, controller
        self._cleared = threading.Event()

    @property
    def pending(self) -> int:
        """Number of requested faults that have not happened yet."""
        dropped = self._controller.cluster.commits_to_drop
        return self._store.unused_rules + self._controller.unused_rules + dropped

    def clear(self) -> None:
        """End all faults. Delayed requests continue at once."""
        self._store.forget_rules()
        self._controller.forget_rules()
        self._controller.away = False
        self._controller.cluster.commits_to_drop = 0
        self._cleared.set()
        self._cleared = threading.Event()
        if self._store.frozen:
            self._store.thaw()

    # ---- the segment store ----

    def drop_connections(self) -> None:
        """End all connections to the segment store now."""
        self._store.drop_all()

    def drop_before(self, request: RequestKind = "any", times: int = 1) -> None:
        """Close the connection of a request, and do not execute the request."""
        self._meet(request, lambda session, _: session.drop(), times)

    def drop_after(self, request: RequestKind = "any", times: int = 1) -> None:
        """Execute a request, and close its connection without an answer."""

        def lose(session: Session, request: Request) -> None:
            with _copies(session, 0):
                self._store.serve(session, request)
            session.drop()

        self._meet(request, lose, times)

    def repeat_reply(self, request: RequestKind = "any", times: int = 1) -> None:
        """Answer a request twice."""

        def repeat(session: Session, request: Request) -> None:
            with _copies(session, 2):
                self._store.serve(session, request)

        self._meet(request, repeat, times)

    def delay(self, seconds: float, request: RequestKind = "any", times: int = 1) -> None:
        """Delay a request, and all later ones on its connection."""
        cleared = self._cleared

        def wait(session: Session, request: Request) -> None:
            cleared.wait(seconds)
            self._store.serve(session, request)

        self._meet(request, wait, times)

    def segment_moved(self, request: RequestKind = "any", times: int = 1) -> None:
        """Refuse a request with WrongHost, as if the segment had moved. The controller still names this store."""

        def refuse(session: Session, request: Request) -> None:
            session.reply(WrongHost(*_refused(session, request), "", ""))

        self._meet(request, refuse, times)

    def fail(self, request: RequestKind = "any", times: int = 1) -> None:
        """Answer a request with an unspecified server error."""

        def refuse(session: Session, request: Request) -> None:
            session.reply(ErrorMessage(*_refused(session, request), "asked for by the test", _UNSPECIFIED))

        self._meet(request, refuse, times)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Accept requests to the segment store in this block without an answer, like a stopped process."""
        self._store.freeze()
        try:
            yield
        finally:
            self._store.thaw()

    def _meet(self, kind: RequestKind, rule: Callable[[Session, Request], None], times: int) -> None:
        if kind not in get_args(RequestKind):
            raise ConfigError(f"there are no requests of the kind {kind!r}; there are: {', '.join(_TYPES)}, any")
        types = tuple(each for own in _TYPES.values() for each in own) if kind == "any" else _TYPES[kind]
        self._store.on(types, rule, times)

    # ---- the controller ----

    def controller_fails(
        self, method: str | None = None, times: int = 1, *, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE
    ) -> None:
        """Answer calls with a gRPC status, and do not execute them."""
        self._controller.on(method, lambda _: code, times)

    def controller_loses_answers(self, method: str | None = None, times: int = 1) -> None:
        """Execute calls, and answer that the controller is unavailable."""

        def lose(do: Do) -> grpc.StatusCode:
            do()
            return grpc.StatusCode.UNAVAILABLE

        self._controller.on(method, lose, times)

    def controller_delay(self, seconds: float, method: str | None = None, times: int = 1) -> None:
        """Delay calls."""
        cleared = self._cleared

        def wait(do: Do) -> Message:
            cleared.wait(seconds)
            return do()

        self._controller.on(method, wait, times)

    @contextmanager
    def controller_away(self) -> Iterator[None]:
        """Answer no call of the controller in this block."""
        self._controller.away = True
        try:
            yield
        finally:
            self._controller.away = False

    # ---- transactions ----

    @property
    def open_transactions(self) -> list[UUID]:
        """Ids of the open transactions, oldest first."""
        with self._store.changing():
            return [transaction.id for _, transaction in self._controller.cluster.open_transactions()]

    def end_leases(self, *transactions: UUID) -> int:
        """End the leases of these open transactions, or of all. They are aborted on return. Return their number."""
        with self._store.changing():
            cluster = self._controller.cluster
            ended = [each for each in cluster.open_transactions() if not transactions or each[1].id in transactions]
            for stream, transaction in ended:
                cluster.abort_transaction(stream.name, transaction.id)
        return len(ended)

    @contextmanager
    def commits_held(self) -> Iterator[None]:
        """Accept commits in this block without showing their events: they stay COMMITTING until :meth:`show_commit`.

        At the end of the block, the remaining events become visible segment by segment, in a random order.
        """
        cluster = self._controller.cluster
        cluster.commits_held = True
        try:
            yield
        finally:
            cluster.commits_held = False
            while self.show_commit():
                pass

    def show_commit(self, transaction: UUID | None = None, segment: int | None = None) -> bool:
        """Show the events of one segment of a COMMITTING transaction, by default a random one.

        ``segment`` is a segment number of the stream. Return False if there is no such transaction or segment.
        """
        cluster = self._controller.cluster
        with self._store.changing():
            waiting = [
                each
                for each in cluster.committing()
                if transaction in (None, each[1]) and segment in (None, segment_number(each[2]))
            ]
            if waiting:
                cluster.merge_one(*random.choice(waiting))
        return bool(waiting)

    def drop_commits(self, times: int = 1) -> None:
        """Accept the next commits without executing them: they stay COMMITTING until they are requested again."""
        with self._store.changing():
            self._controller.cluster.commits_to_drop = times

    def forget_transactions(self, *transactions: UUID) -> int:
        """Forget these committed or aborted transactions, or all, as servers do after a day. Return their number."""
        with self._store.changing():
            return self._controller.cluster.forget_transactions(*transactions)


@contextmanager
def _copies(session: Session, count: int) -> Iterator[None]:
    """Send each answer ``count`` times during the block."""
    session.copies = count
    try:
        yield
    finally:
        session.copies = 1


def _refused(session: Session, request: Request) -> tuple[int, str]:
    """Return the number of a refused request, and its segment.

    The writer's appends after a refused append fail as well. The server stores each append with the number of the
    previous one.
    """
    names = (getattr(request, name, None) for name in ("segment", "target", "parent"))
    writer = getattr(request, "writer_id", b"")
    segment = next((name for name in names if name is not None), None) or session.writers.get(writer, "")
    if isinstance(request, Append):
        session.previous.pop(writer, None)
    return getattr(request, "request_id", 0), segment
