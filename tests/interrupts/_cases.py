"""Programs that are interrupted, and what must hold after it."""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from pravega_connector.errors import ConnectorError, ReaderOfflineError, TransactionError
from pravega_connector.operations.ingest import Sizes, ingest
from pravega_connector.tables import Insert, Put, Remove
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamCut, StreamName, TableName
from pravega_serde import serializer_for
from pravega_serde.errors import PravegaError

__all__ = ["CASES", "Case"]

_numbers: Final = itertools.count()
_TEXT: Final = serializer_for("string")
_SCOPE: Final = "interrupts"
#: Seconds until what continues must have brought all events.
_SOON: Final = 10.0


def quietly(work: Callable[[], Any]) -> Any:
    """The result of ``work``, which is not the caller's: it runs in another thread, where no line is traced."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(_SOON)
    assert found, "the helper did not end"
    return found[0]


class Case:
    """One run of a program: :meth:`act` is interrupted, :meth:`check` asserts what must hold then."""

    segments: ClassVar[int] = 2

    def __init__(self, kit: InProcessPravega) -> None:
        self.kit = kit
        self.interrupted = False
        self.name = StreamName(_SCOPE, f"stream-{next(_numbers)}")
        self.client, self.other = kit.client(), kit.client()
        self.other.create_scope(_SCOPE)
        self.other.create_stream(self.name, segments=self.segments)
        self.events: list[str] = []
        self.prepare()

    def prepare(self) -> None:
        """Make what the program uses."""

    def act(self) -> None:
        """Do what is interrupted."""

    def check(self) -> None:
        """Continue after it, and assert what must hold."""

    def end(self) -> None:
        """Close the clients."""
        self.client.close()
        self.other.close()

    # ---------------------------------------------------------------- helpers

    def add(self, count: int) -> bool:
        """Write events of another client."""
        with self.other.writer(self.name, "string") as writer:
            for n in range(len(self.events), len(self.events) + count):
                self.events.append(f"{n % 4}:{n}")
                writer.write(self.events[-1], routing_key=str(n % 4))
        return True

    def written(self, name: StreamName | None = None) -> list[str]:
        """The events that the servers have, in the order of each key."""
        return list(self.other.read(name or self.name, "string"))


def _in_order(events: list[str]) -> None:
    keys: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        key, number = event.split(":")
        keys[key].append(int(number))
    for key, numbers in keys.items():
        assert numbers == sorted(numbers), f"key {key} is out of order: {numbers}"


def _differ(got: list[str], wanted: list[str], what: str) -> None:
    lost, more = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    assert not lost, f"{what}: {len(lost)} events are lost: {sorted(lost)[:5]}"
    assert not more, f"{what}: {len(more)} events are repeated or strange: {sorted(more)[:5]}"


# ---- writers ---------------------------------------------------------------------------------------------------------


class _Writing(Case):
    """Accepted events are durable once; the one whose call was cut may be there or not."""

    def prepare(self) -> None:
        self.accepted: list[str] = []
        self.doubtful: list[str] = []
        self.number = 0
        self.writer: Any = None
        self.open()

    def open(self) -> None:
        self.writer = self.client.writer(self.name, "string")

    def put(self) -> None:
        event = f"{self.number % 4}:{self.number}"
        self.number += 1
        self.doubtful.append(event)
        self.writer.write(event, event[0])
        self.doubtful.remove(event)
        self.accepted.append(event)

    def judge(self, found: list[str]) -> None:
        _in_order(found)
        _differ([event for event in found if event not in self.doubtful], self.accepted, "what was accepted")
        for event in self.doubtful:
            assert found.count(event) < 2, f"{event} is there twice"


class Writer(_Writing):
    def act(self) -> None:
        for _ in range(3):
            for _ in range(8):
                self.put()
            self.writer.flush()
        self.put()
        self.writer.close()

    def check(self) -> None:
        try:
            self.put()
            self.writer.flush()
            self.writer.close()
        except PravegaError as error:
            _is_named(error)
            self.writer.close()  # one that was interrupted is repeated
        self.judge(self.written())


def _is_named(error: PravegaError) -> None:
    """Assert that an error says that its object is closed."""
    said = any(word in str(error) for word in ("closed", "failed", "interrupted", "has ended"))
    assert said or isinstance(error, ReaderOfflineError), f"it does not say that it is closed: {error}"


class Columns(_Writing):
    """Blocks of events at once."""

    def act(self) -> None:
        import pyarrow as pa

        for _ in range(3):
            block = [f"{n % 4}:{n}" for n in range(self.number, self.number + 8)]
            self.number += 8
            self.doubtful += block
            self.writer.write_column(pa.array(block), pa.array([event[0] for event in block]))
            self.doubtful = []
            self.accepted += block
        self.writer.flush()
        self.writer.close()

    def check(self) -> None:
        try:
            self.writer.flush()
            self.writer.close()
        except PravegaError as error:
            _is_named(error)
        self.judge(self.written())


class Transactions(_Writing):
    def open(self) -> None:
        self.transactions = self.client.transactions(self.name, "string")
        self.committed: list[str] = []

    def act(self) -> None:
        for _ in range(2):
            self.writer = self.transactions.begin()
            for n in range(5):
                self.put()
                if n == 2:
                    self.writer.flush()
            self.writer.commit()
            self.committed += self.accepted
            self.accepted = []

    def check(self) -> None:
        decided: bool | None = True
        if self.interrupted and (self.accepted or self.doubtful):
            try:
                self.writer.commit()
            except TransactionError:
                decided = False
            except ConnectorError as error:
                _is_named(error)
                decided = None
        found = self.written()
        _in_order(found)
        if decided is None:
            decided = bool(set(self.accepted) & set(found))
        self.accepted = self.committed + (self.accepted if decided else [])
        if not decided:
            self.doubtful = []
        self.judge(found)


# ---- followers -------------------------------------------------------------------------------------------------------


class Poll(Case):
    """The values of a follower, poll by poll."""

    serializer: ClassVar[str | None] = "string"
    first: ClassVar[int] = 24
    then: ClassVar[int] = 8

    def prepare(self) -> None:
        self.got: list[str] = []
        self.add(self.first)
        self.reader = self.open()

    def open(self) -> Any:
        return self.client.follow(self.name, self.serializer, start="earliest")

    def take(self, timeout: float) -> bool:
        values = self.reader.poll(timeout)
        self.got += values
        return bool(values)

    def act(self) -> None:
        while len(self.got) < len(self.events):
            self.take(5.0)
        self.take(0.05)
        if len(self.events) == self.first:
            quietly(lambda: self.add(self.then))
        while len(self.got) < len(self.events):
            self.take(5.0)

    def cuts(self) -> list[StreamCut]:
        return [self.reader.position]

    def check(self) -> None:
        self.check_position()
        end = time.monotonic() + _SOON
        while len(self.got) < len(self.events) and time.monotonic() < end:
            self.take(1.0)
        _differ(self.got, self.events, "after it went on")
        _in_order(self.got)
        self.reader.close()

    def check_position(self) -> None:
        rest: list[str] = []
        for cut in self.cuts():
            rest += self.other.read(cut.stream, "string", start=cut)
        wanted = list((Counter(self.events) - Counter(self.got)).elements())
        lost, more = Counter(wanted) - Counter(rest), Counter(rest) - Counter(wanted)
        assert not lost, f"the position is past {sum(lost.values())} events that were not handed out"
        assert not more, f"the position is before {sum(more.values())} events that were handed out"


class Iterate(Poll):
    """The values of a follower, one by one."""

    def act(self) -> None:
        for value in self.reader:
            self.got.append(value)
            if len(self.got) == self.first and len(self.events) == self.first:
                quietly(lambda: self.add(self.then))
            if len(self.got) == self.first + self.then:
                break


class Batches(Poll):
    """The columns of a follower."""

    serializer = None

    def take(self, timeout: float) -> bool:
        batch = self.reader.poll(timeout)
        if batch is not None:
            self.got += [event.decode() for event in batch.events.to_pylist()]
        return batch is not None


class Scaled(Iterate):
    """A stream that was scaled and sealed, to its end."""

    segments = 1

    def prepare(self) -> None:
        self.got = []
        self.add(12)
        self.other.scale_stream(self.name, 2)
        self.add(12)
        self.other.seal_stream(self.name)
        self.reader = self.open()

    def act(self) -> None:
        for value in self.reader:
            self.got.append(value)
        assert self.reader.at_end

    def check(self) -> None:
        self.check_position()
        for value in self.reader:
            self.got.append(value)
        _differ(self.got, self.events, "after it went on")
        _in_order(self.got)
        self.reader.close()


class Several(Poll):
    """Two streams as one."""

    def prepare(self) -> None:
        self.second = StreamName(_SCOPE, f"{self.name.stream}-b")
        self.other.create_stream(self.second)
        super().prepare()

    def add(self, count: int) -> bool:
        super().add(count)
        with self.other.writer(self.second, "string") as writer:
            for _ in range(count):
                self.events.append(f"b:{len(self.events)}")
                writer.write(self.events[-1], routing_key="b")
        return True

    first = 16

    def act(self) -> None:
        while len(self.got) < len(self.events):
            self.take(5.0)
        if len(self.events) == 2 * self.first:
            quietly(lambda: self.add(self.then))
        while len(self.got) < len(self.events):
            self.take(5.0)

    def open(self) -> Any:
        return self.client.follow([self.name, self.second], "string", start="earliest")

    def cuts(self) -> list[StreamCut]:
        return list(self.reader.positions)


class Read(Case):
    """All events once; a read that was cut is started again."""

    def prepare(self) -> None:
        self.add(24)

    def act(self) -> None:
        assert len(list(self.client.read(self.name, "string"))) == 24

    def check(self) -> None:
        _differ(list(self.client.read(self.name, "string")), self.events, "read again")


# ---- groups ----------------------------------------------------------------------------------------------------------


class GroupPoll(Poll):
    """A reader of a group, poll by poll."""

    def open(self) -> Any:
        self.group = self.other.reader_group(f"{_SCOPE}/group-{next(_numbers)}", [self.name])
        self.mine = self.client.reader_group(f"{_SCOPE}/{self.group.name}")
        return self.mine.reader("r1", "string")

    def take(self, timeout: float) -> bool:
        found = self.reader.poll(timeout)
        self.got += [event.value for event in found if event.checkpoint is None]
        return bool(found)

    def cuts(self) -> list[StreamCut]:
        positions = self.reader.position.positions
        at = {segment.id: offset for segment, offset in positions.items()}
        if not at:  # none acquired, so none handed out
            return [self.other.head(self.name)]
        assert len(at) == self.segments, f"it owns {len(at)} segments"
        return [StreamCut(self.name, at)]

    def check(self) -> None:
        super().check()
        position = self.group.state.unassigned
        rest = StreamCut(self.name, {segment.id: offset for segment, offset in position.items()})
        assert not list(self.other.read(self.name, start=rest)), "the group is before what was handed out"
        assert rest == self.other.tail(self.name), "the group has lost its place"


class GroupIterate(GroupPoll):
    """A reader of a group, event by event."""

    def act(self) -> None:
        for event in self.reader:
            if event.checkpoint is not None:
                continue
            self.got.append(event.value)
            if len(self.got) == self.first and len(self.events) == self.first:
                quietly(lambda: self.add(self.then))
            if len(self.got) == self.first + self.then:
                break


class GroupColumns(GroupPoll):
    """A reader of a group, block by block."""

    def take(self, timeout: float) -> bool:
        found = self.reader.poll_columns(timeout)
        if found is None or hasattr(found, "checkpoint"):
            return False
        self.got += [event.decode() for event in found.events.to_pylist()]
        return True


class GroupLeft(GroupPoll):
    """A reader of a group that leaves it by the interrupt: what it had handed out last may come again."""

    def act(self) -> None:
        with self.reader:
            super().act()

    def check(self) -> None:
        if self.mine.online_readers():
            assert self.interrupted
            self.mine.reader_offline("r1")
        with self.other.reader_group(f"{_SCOPE}/{self.group.name}").reader("r2", "string") as reader:
            end = time.monotonic() + _SOON
            while time.monotonic() < end and set(self.got) < set(self.events):
                self.got += [event.value for event in reader.poll(1.0) if event.checkpoint is None]
        assert not set(self.events) - set(self.got), "events are lost"


class ExactlyOnce(Case):
    """A reader of a group with an output."""

    def prepare(self) -> None:
        self.output = StreamName(_SCOPE, f"{self.name.stream}-out")
        self.other.create_stream(self.output)
        self.add(16)
        self.group = self.client.reader_group(f"{_SCOPE}/group-{next(_numbers)}", [self.name])
        self.reader = self.open(self.group, "r1")
        self.writes = False
        self.doubtful: str | None = None

    def open(self, group: Any, name: str) -> Any:
        return group.exactly_once(name, "string", to=self.output, output="string", interval=0.02, lease=10.0)

    def work(self, reader: Any, timeout: float = 1.0) -> int:
        found = reader.poll(timeout)
        self.writes = True
        for event in found:
            reader.write(event.value, "k")
        self.writes = False
        return len(found)

    def act(self) -> None:
        count = 0
        while count < len(self.events):
            count += self.work(self.reader)
        self.reader.commit()
        quietly(lambda: self.add(4))
        while count < len(self.events):
            count += self.work(self.reader)
        self.reader.finish()

    def check(self) -> None:
        if not self.writes:
            try:
                self.go_on(self.reader)
                self.reader.close()
            except ConnectorError as error:
                if not self.interrupted:
                    raise
                _is_named(error)
        if self.interrupted:
            try:
                self.reader.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
            except ReaderOfflineError:
                pass
        group = self.other.reader_group(f"{_SCOPE}/{self.group.name}")
        for name in group.online_readers():
            group.reader_offline(name)
        with self.open(group, "r2") as reader:
            self.go_on(reader)
        _differ(self.written(self.output), self.events, "the output")

    def go_on(self, reader: Any) -> None:
        end = time.monotonic() + _SOON
        while time.monotonic() < end:
            if not self.work(reader, 0.1):
                reader.commit()
                positions = reader._reader.position.positions
                if positions and {s.id: o for s, o in positions.items()} == self.other.tail(self.name).positions:
                    break


# ---- states ----------------------------------------------------------------------------------------------------------


class Synchronizer(Case):
    """Updates of a shared state."""

    segments = 1

    def prepare(self) -> None:
        self.accepted: list[str] = []
        self.doubtful: list[str] = []
        self.theirs: list[str] = []
        self.mine, self.second = self.open(self.client), self.open(self.other)
        self.second.initialize("0")

    def open(self, client: Any) -> Any:
        return client.synchronizer(
            self.name,
            create=lambda text: text.split(),
            apply=lambda words, word: [*words, word],
            init_serializer=_TEXT,
            update_serializer=_TEXT,
        )

    def put(self, word: str) -> None:
        self.doubtful.append(word)
        self.mine.update_state(lambda _: [word])
        self.doubtful.remove(word)
        self.accepted.append(word)

    def put_theirs(self, word: str) -> bool:
        self.theirs.append(word)
        self.second.update_state(lambda _: [word])
        return True

    def act(self) -> None:
        self.put("a")
        self.put("b")
        quietly(lambda: self.put_theirs("x"))
        self.put("c")
        self.mine.compact(" ".join)
        quietly(lambda: self.put_theirs("y"))
        self.mine.fetch_updates()
        self.mine.update_state_unconditionally(["d"])
        self.accepted.append("d")
        self.mine.compact(" ".join)
        self.put("e")

    def check(self) -> None:
        self.put("last")
        self.mine.fetch_updates()
        self.second.fetch_updates()
        assert self.mine.state == self.second.state, f"{self.mine.state} is not {self.second.state}"
        words = [word for word in self.mine.state if word not in [*self.doubtful, "d"]]
        wanted = [word for word in self.accepted if word != "d"]
        _differ(words, ["0", *wanted, *self.theirs], "the state")
        assert all(self.mine.state.count(word) < 2 for word in [*self.doubtful, "d"])
        assert "d" not in self.accepted or "d" in self.mine.state
        self.mine.close()
        self.second.close()


class Revisions(Case):
    """Entries of a revisioned stream."""

    segments = 1

    def prepare(self) -> None:
        self.log = self.client.revisioned(self.name, "string")
        self.accepted: list[str] = []
        self.doubtful: list[str] = []

    def put(self, text: str, write: Callable[[str], Any]) -> None:
        self.doubtful.append(text)
        assert write(text) is not None
        self.doubtful.remove(text)
        self.accepted.append(text)

    def put_last(self, text: str) -> Any:
        # The interrupted write may come first: it is in flight.
        tries = (self.log.write_conditionally(self.log.latest_revision(), text) for _ in range(5))
        return next((revision for revision in tries if revision is not None), None)

    def put_always(self, text: str) -> bool:
        self.log.write_unconditionally(text)
        return True

    def act(self) -> None:
        self.put("a", lambda text: self.log.write_conditionally(self.log.latest_revision(), text))
        self.put("b", self.put_always)
        self.put("c", lambda text: self.log.write_once(self.log.latest_revision(), text))
        assert self.log.write_conditionally(self.log.oldest_revision(), "d") is None
        assert len(list(self.log.read_from(self.log.oldest_revision()))) == 3
        self.log.compare_and_set_mark(self.log.mark(), self.log.latest_revision())
        self.put("e", self.put_always)

    def check(self) -> None:
        self.put("f", self.put_last)
        self.put("g", self.put_always)
        found = [text for _, text in self.log.read_from(self.log.oldest_revision())]
        _differ([text for text in found if text not in self.doubtful], self.accepted, "the entries")
        assert all(found.count(text) < 2 for text in self.doubtful)
        self.log.close()


class Entries(Case):
    """Entries of a key-value table: the update that was cut is made as a whole, or not at all."""

    def prepare(self) -> None:
        name = TableName(_SCOPE, self.name.stream)
        self.other.create_table(name, 4, 1, partitions=2)
        self.table = self.client.table(name, key="string", value="string")
        self.theirs = self.other.table(name, key="string", value="string")
        self.known: dict[Any, str] = {}
        self.doubtful: dict[Any, str] | None = None

    def change(self, make: Callable[[], Any], **entries: str | None) -> Any:
        """Make a change after which these entries, by primary and secondary key together, have these values."""
        changed = self.known | {(key[:4], key[4:]): value for key, value in entries.items()}
        self.doubtful = {key: value for key, value in changed.items() if value is not None}
        made = make()
        self.known, self.doubtful = self.doubtful, None
        return made

    def act(self) -> None:
        table = self.table
        version = self.change(lambda: table.put(("anna", "a"), "1"), annaa="1")
        self.change(lambda: table.insert(("bert", "a"), "1"), berta="1")
        self.change(lambda: table.put(("anna", "a"), "2", version), annaa="2")
        several = [Put(("cora", "a"), "1"), Insert(("cora", "b"), "2"), Put(("cora", "c"), "3")]
        self.change(lambda: table.update(several), coraa="1", corab="2", corac="3")
        assert [entry and entry.value for entry in table.get_all([("anna", "a"), ("dora", "a")])] == ["2", None]
        assert {entry.key: entry.value for entry in table.entries(batch_size=2)} == self.known
        self.change(lambda: table.remove(("bert", "a")), berta=None)
        self.change(lambda: table.update([Remove(("cora", "a")), Remove(("cora", "b"))]), coraa=None, corab=None)

    def check(self) -> None:
        found = {entry.key: entry.value for entry in self.theirs.entries()}
        assert found in (self.known, self.doubtful), f"{found} is neither {self.known} nor {self.doubtful}"
        self.table.put(("last", "a"), "1")
        entry = self.table.get(("last", "a"))
        assert entry is not None
        assert entry.value == "1"
        assert self.theirs.get(("last", "a")) == entry


# ---- bytes -----------------------------------------------------------------------------------------------------------


class ByteWriter(Case):
    """A file to which bytes are appended: a flush that is repeated writes nothing twice."""

    segments = 1

    def prepare(self) -> None:
        self.file = self.client.byte_writer(self.name)
        self.accepted = b""
        self.doubtful = b""
        self.closing = False

    def put(self, piece: bytes) -> None:
        self.doubtful = piece
        self.file.write(piece)
        self.accepted += piece
        self.doubtful = b""

    def act(self) -> None:
        for n in range(4):
            self.put(b"%d," % n * 100)
            self.file.flush()
        self.file.tell()
        self.closing = True  # what is buffered is lost when Python's close() is interrupted, so there is nothing
        self.file.close()

    def check(self) -> None:
        if not self.closing:
            self.file.flush()
            self.put(b"more")
            self.file.close()
        with self.other.byte_reader(self.name) as file:
            found = file.read()
        assert found in (self.accepted, self.accepted + self.doubtful), (
            f"{found!r:.2000} is not {self.accepted!r:.2000}"
        )


class RawWriter(ByteWriter):
    """Bytes without a buffer: the piece that was cut, again."""

    def prepare(self) -> None:
        super().prepare()
        self.file = self.file.detach()

    def check(self) -> None:
        if self.doubtful:
            self.put(self.doubtful)
        if not self.closing:
            self.put(b"more")
        self.file.close()
        with self.other.byte_reader(self.name) as file:
            found = file.read()
        assert found == self.accepted, f"{found!r:.2000} is not {self.accepted!r:.2000}"


class ByteReader(Case):
    """A file whose bytes are read: its offset is the next byte's."""

    segments = 1

    def prepare(self) -> None:
        self.bytes = b"".join(b"%d," % n for n in range(2000))
        with self.other.byte_writer(self.name) as file:
            file.write(self.bytes[:5000])
            file.flush()
            file.write(self.bytes[5000:])
        self.file: Any = self.client.byte_reader(self.name).detach()
        self.got = b""

    def act(self) -> None:
        while len(self.got) < 4000:
            self.got += self.file.read(700)
        at = self.file.tell()
        assert self.file.seek(0) == 0
        assert self.file.read(10) == self.bytes[:10]
        assert self.file.seek(at) == at
        while piece := self.file.read(700):
            self.got += piece

    def check(self) -> None:
        at = self.file.tell()
        assert at in (len(self.got), 0, 10), f"it is at {at}, {len(self.got)} were read"
        if at != len(self.got):
            self.file.seek(len(self.got))
        while piece := self.file.read(700):
            self.got += piece
        assert self.got == self.bytes
        self.file.close()


# ---- ingestion -------------------------------------------------------------------------------------------------------


class Ingest(Case):
    """Files into a stream, and again after the interrupt."""

    def prepare(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        for file in range(2):
            lines = "".join(f"{n % 4},{n}\n" for n in range(file * 6, file * 6 + 6))
            (Path(self.folder.name) / f"{file}.csv").write_text("key,number\n" + lines)

    def ingest(self, client: Any) -> Any:
        return ingest(self.folder.name, self.name, client=client, sizes=Sizes(variant="count", records=4))

    def act(self) -> None:
        self.ingest(self.client)

    def check(self) -> None:
        self.ingest(self.other)
        found = [str(event["number"]) for event in self.other.read(self.name, "json")]
        _differ(found, [str(n) for n in range(12)], "the stream")

    def end(self) -> None:
        super().end()
        self.folder.cleanup()


CASES: Final[dict[str, Callable[[InProcessPravega], Case]]] = {
    "write": Writer,
    "write-column": Columns,
    "transaction": Transactions,
    "poll": Poll,
    "iterate": Iterate,
    "batches": Batches,
    "scaled": Scaled,
    "several": Several,
    "read": Read,
    "group-poll": GroupPoll,
    "group-iterate": GroupIterate,
    "group-columns": GroupColumns,
    "group-left": GroupLeft,
    "exactly-once": ExactlyOnce,
    "synchronizer": Synchronizer,
    "revisions": Revisions,
    "table": Entries,
    "byte-writer": ByteWriter,
    "raw-writer": RawWriter,
    "byte-reader": ByteReader,
    "ingest": Ingest,
}
