"""Ingestion in steps: records of sources in transactions, one after the other.

The protocol is in :mod:`pravega_connector.exactly_once.steps`, and the run in its ``leader``. A source is an item, and
its position a :class:`~.feed.Progress`.

benchmarks/results/ingestion.md describes all cases.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from pravega_connector import metrics
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import DataLossError, IngestError, SourceError, StepsStateError
from pravega_connector.exactly_once.steps import Outcome, Step, StepLog, Turn
from pravega_connector.exactly_once.steps.leader import POLL, Leader
from pravega_connector.exactly_once.steps.state import owed_item
from pravega_connector.exactly_once.steps.takeover import Owner
from pravega_connector.operations.ingest.content import ContentWriter, Counts, DeadLetters
from pravega_connector.operations.ingest.encode import Columns, Encoding
from pravega_connector.operations.ingest.feed import Draft, Drafts, Move, Piece, Progress
from pravega_connector.operations.ingest.replayable import RecordSource
from pravega_connector.operations.ingest.targets import Parts
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import TransactionalWriter

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of an ingester, for all kinds of sources."""

    lease: float = 30.0
    """Seconds that a transaction stays open after its ingester has ended."""
    follow: bool = False
    """If True, wait for new sources and records."""
    keep_going: bool = False
    """If True, leave out a source with errors; otherwise they end the run."""


class Ingester(Leader):
    """One run of an ingestion. Not thread safe."""

    final = (DataLossError, IngestError)

    def __init__(
        self,
        client: PravegaClient,
        target: StreamName,
        source: RecordSource,
        *,
        steps: StepLog,
        feed: Drafts,
        encoding: Callable[[pa.Schema], Encoding],
        me: Owner,
        require: Callable[[StreamName], object],
        settings: Settings,
        dead_letters: DeadLetters | None = None,
        takeover_after: float | None = None,
        resolution: Mapping[UUID, bool] | None = None,
        on_progress: Callable[[str, Counts], None] = lambda _what, _counts: None,
    ) -> None:
        super().__init__(
            client.stores,
            target,
            steps,
            me,
            label=f"ingestion into {target}",
            log=_log,
            lease=settings.lease,
            takeover_after=takeover_after,
            resolution=resolution,
        )
        self.counts = Counts()
        self._label, self._feed, self._settings, self._on_progress = str(target), feed, settings, on_progress
        self._columns = Columns(source, encoding)
        self._transactions: TransactionalWriter[bytes] = client.transactions(target, lease=settings.lease)
        self._require_part = require
        self._parts = Parts(client, self._keeper, settings.lease, self._known)
        self._content = ContentWriter(source, self._keeper, dead_letters, self._parts)

    def _known(self, stream: StreamName) -> None:
        """Note that the run needs a stream, and create it if that is allowed."""
        self._others.add(stream)
        self._require_part(stream)

    def _report(self, what: str) -> None:
        self._on_progress(what, self.counts)

    def _count_step(self, outcome: str) -> None:
        setattr(self.counts, outcome, getattr(self.counts, outcome) + 1)
        metrics.INGEST_STEPS.add(1, outcome, self._label)

    def _content_of(self, step: Step) -> str:
        content = step.content
        if content is None and owed_item(step.stream) in step.moves:
            content, _ = step.moves[owed_item(step.stream)]
        if content is None:
            pieces = [[item, *_bounds(before, after)] for item, (before, after) in step.moves.items()]
        else:
            pieces = content["pieces"]
        return ", ".join(
            f"{id_} from record {first}{'' if end is None else f' to {end}'}" for id_, first, end, *_ in pieces
        )

    def _lead(self) -> bool:
        self._begin_feed()
        while True:
            for stream, content in self._owed().items():
                if not self._write_again(stream, content):
                    return False
            try:
                draft = self._feed.next()
            except SourceError as error:
                self._leave_out(error)
                continue
            if draft is not None:
                if not self._step(draft):
                    return False
                continue
            if (self._last is not None or self._feed.settled) and not self._settle(settled=self._settled()):
                return False
            if not self._settings.follow:
                return True
            if not self._await_sources():
                return False

    def _begin_feed(self) -> None:
        while True:
            try:
                self._columns.fix(self._steps.state.note.get("schema"))
                self._feed.begin(self._steps.state.positions)
            except SourceError as error:
                self._leave_out(error)
            else:
                metrics.INGEST_PENDING.set(len(self._feed.pending), self._label)
                return

    def _leave_out(self, error: SourceError) -> None:
        if not self._settings.keep_going or error.source_id is None:
            raise error
        self._feed.fail(error.source_id, error)

    def _await_sources(self) -> bool:
        """Wait for new sources. Return False if another run has changed the state."""
        while True:
            began = time.monotonic()
            revision = self._steps.revision
            self._steps.read()
            if self._steps.revision != revision:
                return False
            self._trouble.is_over()
            self._begin_feed()
            if self._feed.pending or self._feed.settled:
                return True
            self._on_progress("waiting for new sources", self.counts)
            # Listing many files takes time; spend at most a tenth of the time on it.
            time.sleep(max(2 * POLL, 9 * (time.monotonic() - began)))

    # ---------------------------------------------------------------- one step

    def _step(self, draft: Draft) -> bool:
        """Make a step. Return False if it failed, or if another run is in the way."""
        columns, encoding = self._columns.agree(self._steps.state.note.get("schema"))
        transaction = self._transactions.begin()
        note = {} if columns is None else {"schema": columns}
        pieces = [piece.to_json() for piece in draft.pieces]
        content = None if encoding.target is None else {"column": encoding.target.name, "pieces": pieces}
        step = self._new_step(transaction, dict(draft.moves), content)
        update = self._update(settled=self._settled(), step=step, note=note)
        done = Counts()

        def write() -> None:
            nonlocal done
            done = self._content.write(transaction, draft, encoding, self._tell_content)

        try:
            if not self._make(
                transaction, update, write, lambda: self._content.settle(draft), lambda: self._parts.open
            ):
                return False
        except SourceError as error:
            self._trouble.note(error.message)
            self._leave_out(error)
            return False
        finally:
            self._content.forget()
        self._count(draft, done)
        return True

    def _write_again(self, stream: str, content: Any) -> bool:
        """Make a step that writes a part of a committed step again. Return False as :meth:`_step` does."""
        _, encoding = self._columns.agree(self._steps.state.note.get("schema"))
        if encoding.target is None or encoding.target.name != content["column"]:
            raise StepsStateError(
                f"{self._label}: stream {stream} lacks records of a committed step, which named their streams in "
                f"column {content['column']!r}: set target_column to it once more"
            )
        self._log.warning("%s: writing records to %s again, as their transaction expired", self._label, stream)
        draft = self._feed.again([Piece(*piece) for piece in content["pieces"]])
        transaction = self._parts.begin(StreamName.parse(stream))
        step = self._new_step(transaction, {owed_item(stream): (content, None)})

        def write() -> None:
            self._content.write(transaction, draft, encoding, lambda _id, _done: None, again=True)

        done = self._make(transaction, self._update(step=step), write, lambda: self._content.check(draft))
        if done:
            self._count_step("rewritten")
        return done

    def _settled(self) -> dict[str, Move]:
        return dict(self._feed.settled)

    def _record(self, turn: Turn) -> Turn:
        turn = super()._record(turn)
        if turn.outcome is Outcome.WRITTEN:
            settled = self._feed.settled
            ended = sum(Progress.from_json(settled.pop(id_)[1]).finished for id_ in turn.update.settled)
            self.counts.sources += ended
            metrics.INGESTED_SOURCES.add(ended, self._label)
        return turn

    def _tell_content(self, id_: str, done: Counts) -> None:
        self._trouble.moves()
        self._on_progress(id_, self.counts.with_content(done))

    def _count(self, draft: Draft, done: Counts) -> None:
        self.counts = self.counts.with_content(done)
        self.counts.transactions += 1
        metrics.INGEST_STEPS.add(1, "committed", self._label)
        metrics.INGESTED_EVENTS.add(done.events, self._label)
        metrics.INGESTED_BYTES.add(done.bytes, self._label)
        metrics.BAD_RECORDS.add(done.rejected, "ingest", self._label)
        metrics.INGEST_PENDING.set(len(self._feed.pending), self._label)
        self._feed.committed(draft)


def _bounds(before: Any, after: Any) -> tuple[int, int | None]:
    end = Progress.from_json(after).offset
    return 0 if before is None else Progress.from_json(before).offset, None if end < 0 else end
