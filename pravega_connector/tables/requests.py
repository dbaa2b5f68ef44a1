"""Requests to the segments of a key-value table: read, scan, update and remove entries as bytes.

(Java: ``TableSegmentImpl``.)

Theory of operation: an update without an answer
------------------------------------------------
If the answer to an update is lost, the update is sent again, with the same conditions. These cases apply:

- The second one is accepted. If it has a condition on a version, the first one has not taken effect and cannot take
  effect later, because the version has changed.
- The second one is refused. Then either the first one has taken effect, or another client has changed an entry. An
  entry does not record who wrote it, so the outcome is unknown: OutcomeUnknownError. (Java reports a refusal.)

A refusal of the first one is certain: no update of this call has taken effect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Final, TypeVar

from pravega_connector.core.connection import Connection
from pravega_connector.core.deadline import Deadline
from pravega_connector.errors import (
    ConnectionLostError,
    ConnectorError,
    NoSuchSegmentError,
    OutcomeUnknownError,
    TableNotFoundError,
    TableVersionError,
    UnexpectedReplyError,
)
from pravega_connector.stores.segment_stores import SegmentStores, error_of
from pravega_connector.tables.keys import after
from pravega_connector.wire import (
    ANY_VERSION,
    MAX_FRAME_SIZE,
    Message,
    ReadTable,
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
    TableEntriesRead,
    TableEntriesUpdated,
    TableKeyBadVersion,
    TableKeyDoesNotExist,
    TableKeysRead,
    TableKeysRemoved,
    TableName,
    TableRead,
    UpdateTableEntries,
    WireEntry,
    WireKey,
    encode,
    segment_name,
)
from pravega_serde.errors import PravegaError

T = TypeVar("T")
R = TypeVar("R", bound=Message)

#: Longest value in bytes (TableStore.MAXIMUM_VALUE_LENGTH).
MAX_VALUE: Final = (1 << 20) - 8192
#: Most entries of one update (TableSegment.MAXIMUM_BATCH_KEY_COUNT).
MAX_ENTRIES: Final = 256
#: Most bytes of one update (TableSegment.MAXIMUM_BATCH_LENGTH).
MAX_UPDATE: Final = MAX_FRAME_SIZE - 8192
# Most keys of one request for values: an answer with the longest values fits into a message.
_KEYS_AT_ONCE: Final = 15
# Requests on one connection that wait for their answers. The server holds the answers in memory, so there are more of
# them only if the values of the call before were short.
_IN_FLIGHT: Final = 5
_SHORT_IN_FLIGHT: Final = 17
_SHORT: Final = 16_384


class SegmentRequests:
    """Requests to the segments of one table. Thread safe.

    All methods raise TableNotFoundError if the table was deleted, and ConnectionLostError, DeadlineExceededError or
    ControllerUnavailableError if the servers stay unavailable.
    """

    def __init__(self, stores: SegmentStores, table: TableName) -> None:
        self.table = table
        self._stores, self._stream = stores, table.segments
        self._longest = MAX_VALUE  # bytes of the longest value of the last call that read values by keys

    # ---------------------------------------------------------------- reading

    def read(self, segment_id: int, keys: Sequence[bytes]) -> list[WireEntry]:
        """Return the entries of keys, in their order; a missing one has version NO_ENTRY."""
        pieces = [tuple(map(WireKey, keys[at : at + _KEYS_AT_ONCE])) for at in range(0, len(keys), _KEYS_AT_ONCE)]
        found: dict[int, Sequence[WireEntry]] = {}
        self._run(segment_id, lambda deadline: self._read_missing(segment_id, pieces, found, deadline))
        entries = [entry for place in range(len(pieces)) for entry in found[place]]
        self._longest = max((len(entry.value) for entry in entries), default=self._longest)
        return entries

    def _read_missing(
        self,
        segment_id: int,
        pieces: Sequence[tuple[WireKey, ...]],
        found: dict[int, Sequence[WireEntry]],
        deadline: Deadline,
    ) -> None:
        """Add the entries of the pieces that are not in ``found``, with several requests in flight."""
        name, missing = self._name(segment_id), [place for place in range(len(pieces)) if place not in found]
        token = self._stores.token(self._stream, write=False, deadline=deadline)
        with self._stores.pool.lease(self._stores.endpoint(self._stream, segment_id, deadline), deadline) as connection:
            place_of = {connection.next_request_id(): place for place in missing}
            requests = {number: ReadTable(number, name, token, pieces[at]) for number, at in place_of.items()}
            most = _SHORT_IN_FLIGHT if self._longest <= _SHORT else _IN_FLIGHT
            for number, reply in connection.ask_all(requests, deadline, most):
                if not isinstance(reply, TableRead):
                    raise error_of(reply, name)
                if [entry.key for entry in reply.entries] != [each.key for each in requests[number].keys]:
                    raise UnexpectedReplyError.of(f"the store of segment {name}", reply, "for other keys")
                found[place_of[number]] = reply.entries
                deadline.progress()

    # ---------------------------------------------------------------- ranges

    def pages(
        self, segment_id: int, start: bytes, end: bytes, size: int, *, values: bool = True
    ) -> Generator[Sequence[WireEntry], None, None]:
        """Yield the entries from ``start`` to ``end`` in their order, about ``size`` or 2 MiB at a time.

        Without ``values``, all values are empty. When the caller has consumed a page, the next page is requested, and
        from then on always one page ahead: it waits in the connection, which is closed if the caller stops before.
        """
        page_requests = _PageRequests(self._stores, self.table, segment_id, end, size, values=values)
        at: bytes | None = start
        first = True
        try:
            while at is not None and at <= end:
                page = self._run(segment_id, partial(page_requests.page, at))
                if not page:
                    return
                at = after(page[-1].key)
                if not first and at is not None and at <= end:
                    page_requests.send_ahead(at)
                first = False
                yield page
        finally:
            page_requests.close()

    # ---------------------------------------------------------------- updates

    def update(self, segment_id: int, entries: Sequence[WireEntry]) -> Sequence[int]:
        """Set entries of one segment, all or none, and return their versions. The entries are durable on return.

        An entry with a version other than ANY_VERSION is set only if it has this version. Raises TableVersionError if
        one of them does not have its version, and OutcomeUnknownError.
        """
        sent = tuple(entries)

        def is_right(reply: TableEntriesUpdated) -> bool:
            return len(reply.versions) == len(sent)

        return self._change(
            segment_id,
            lambda number, token: UpdateTableEntries(number, self._name(segment_id), token, sent),
            TableEntriesUpdated,
            conditional=any(entry.version != ANY_VERSION for entry in sent),
            is_right=is_right,
        ).versions

    def remove(self, segment_id: int, keys: Sequence[WireKey]) -> None:
        """Remove entries of one segment, all or none; otherwise as :meth:`update`."""
        sent = tuple(keys)
        self._change(
            segment_id,
            lambda number, token: RemoveTableKeys(number, self._name(segment_id), token, sent),
            TableKeysRemoved,
            conditional=any(key.version != ANY_VERSION for key in sent),
        )

    def _change(
        self,
        segment_id: int,
        request: Callable[[int, str], Message],
        kind: type[R],
        *,
        conditional: bool,
        is_right: Callable[[R], bool] = lambda _: True,
    ) -> R:
        """Send an update until it is accepted or refused, and return the reply. See the theory of operation."""
        in_doubt = False  # an attempt without an answer may have taken effect

        def attempt(deadline: Deadline) -> tuple[R | None, bool]:
            nonlocal in_doubt
            doubted = in_doubt

            def sent(number: int, token: str) -> Message:
                nonlocal in_doubt
                in_doubt = True
                return request(number, token)

            reply = self._ask(segment_id, sent, deadline)
            if isinstance(reply, kind):
                if not is_right(reply):
                    raise UnexpectedReplyError.of(f"the store of segment {self._name(segment_id)}", reply)
                return reply, doubted
            in_doubt = doubted
            if isinstance(reply, TableKeyBadVersion | TableKeyDoesNotExist):
                return None, doubted
            raise error_of(reply, self._name(segment_id))

        try:
            reply, doubted = self._run(segment_id, attempt)
        except TableNotFoundError:
            raise
        except ConnectorError as error:
            if in_doubt:
                raise self._unknown(error.message, conditional=conditional) from error
            raise
        if reply is not None:
            return reply
        if doubted:
            raise self._unknown("an answer was lost, and the entry was changed since", conditional=conditional)
        raise TableVersionError(
            f"an update of table {self.table} was refused: an entry has another version than required, does not exist, "
            "or exists and should be inserted; get it and decide again"
        )

    def _unknown(self, reason: str, *, conditional: bool) -> OutcomeUnknownError:
        advice = "get the entry to find out" if conditional else "update it again"
        return OutcomeUnknownError(
            f"whether an update of table {self.table} took effect is unknown ({reason}); {advice}"
        )

    # ---------------------------------------------------------------- inside

    def _name(self, segment_id: int) -> str:
        return segment_name(self._stream, segment_id)

    def _ask(self, segment_id: int, request: Callable[[int, str], Message], deadline: Deadline) -> Message:
        """Return the reply to ``request(number, token)``, which is called immediately before it is sent."""
        token = self._stores.token(self._stream, write=True, deadline=deadline)
        endpoint = self._stores.endpoint(self._stream, segment_id, deadline)
        with self._stores.pool.lease(endpoint, deadline) as connection:
            return connection.ask(request(connection.next_request_id(), token), deadline)

    def _run(self, segment_id: int, attempt: Callable[[Deadline], T]) -> T:
        try:
            return self._stores.run(self._stream, segment_id, attempt)
        except NoSuchSegmentError:
            raise TableNotFoundError.deleted(self.table) from None


class _PageRequests:
    """Requests for consecutive pages of a segment, on one connection."""

    def __init__(
        self, stores: SegmentStores, table: TableName, segment_id: int, end: bytes, size: int, *, values: bool
    ) -> None:
        self._stores, self._table, self._stream, self._segment_id = stores, table, table.segments, segment_id
        self._end, self._size, self._values = end, size, values
        self._connection: Connection | None = None
        self._request: ReadTableEntries | ReadTableKeys | None = None  # sent, and not answered

    def page(self, start: bytes, deadline: Deadline) -> Sequence[WireEntry]:
        """Return the entries from ``start``; none at the end. They may have been requested ahead."""
        if self._connection is not None and not self._connection.is_inherited:
            with suppress(ConnectionLostError):  # it may have been idle for a long time
                return self._answer(start, deadline)
        endpoint = self._stores.endpoint(self._stream, self._segment_id, deadline)
        self._connection, self._request = self._stores.pool.take(endpoint, deadline), None
        return self._answer(start, deadline)

    def send_ahead(self, start: bytes) -> None:
        """Request the page from ``start``. After an error, :meth:`page` requests it again."""
        with suppress(PravegaError):
            self._send(start, self._stores.deadline())

    def close(self) -> None:
        """Give back the connection, or close it if it owes an answer."""
        if self._connection is None:
            return
        if self._request is None:
            self._stores.pool.give_back(self._connection)
        else:
            self._connection.close()
        self._connection = None

    def _send(self, start: bytes, deadline: Deadline) -> None:
        assert self._connection is not None
        name = segment_name(self._stream, self._segment_id)
        token = self._stores.token(self._stream, write=False, deadline=deadline)
        kind = ReadTableEntries if self._values else ReadTableKeys
        number = self._connection.next_request_id()
        self._request = kind(number, name, token, self._size, b"", b"", start, self._end)
        self._connection.send(encode(self._request), deadline)

    def _answer(self, start: bytes, deadline: Deadline) -> Sequence[WireEntry]:
        """Return the page for which the connection was asked, or is asked now. An error closes the connection."""
        assert self._connection is not None
        try:
            if self._request is None:
                self._send(start, deadline)
            assert self._request is not None
            reply = self._connection.reply_to(self._request, deadline)
            entries = self._entries(start, reply)
        except BaseException:
            self._connection.close()
            self._connection = None
            raise
        self._request = None
        return entries

    def _entries(self, start: bytes, reply: Message) -> Sequence[WireEntry]:
        """Return the entries of a reply. Raises UnexpectedReplyError unless they are in order and within the range."""
        match reply:
            case TableEntriesRead(entries=entries):
                pass
            case TableKeysRead(keys=found):
                entries = tuple(WireEntry(*key, b"") for key in found)
            case _:
                raise error_of(reply, segment_name(self._stream, self._segment_id))
        keys = [entry.key for entry in entries]
        inside = all(len(key) == len(start) and start <= key <= self._end for key in keys)
        if not inside or any(first >= second for first, second in pairwise(keys)):
            raise UnexpectedReplyError.of(f"a store of table {self._table}", reply, "for other keys")
        return entries
