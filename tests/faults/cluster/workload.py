"""Plain clients, each in a thread of this process and with a separate connection. ``workload SPEC.json``.

They work until standard input ends. A line there is answered with a line: the results that are certain.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any, Final

from pravega_connector.client import EventBatch, EventWriter, PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import OutcomeUnknownError, TableVersionError
from pravega_connector.tables import TableName
from pravega_serde.errors import PravegaError
from tests.faults.cluster.timeline import Notes
from tests.faults.verdict import Tally

_KEYS: Final = 16
_EVENTS: Final = 20
_TRANSACTION: Final = 10
_PATIENCE: Final = 60.0
_COUNTER: Final = "counter"
#: Length of the keys of the table.
KEY: Final = len(_COUNTER)


def parse(event: bytes) -> tuple[str, int]:
    """Key and number of an event."""
    key, _, number = event.rpartition(b"|")
    return key.decode(), int(number)


def table_of(stream: StreamName) -> TableName:
    """Name of the key-value table in the scope of a stream."""
    return TableName(stream.scope, "entries")


class Worker(threading.Thread):
    """One client: repeats its step, and continues after errors as a patient user would, with the same objects."""

    pace = 0.5

    def __init__(self, name: str, config: PravegaConfig, streams: dict[str, StreamName], notes: Notes) -> None:
        super().__init__(name=name)
        self.client, self.streams, self.notes = PravegaClient(config), streams, notes
        self.stopping = threading.Event()
        # An answer is always taken between two steps.
        self.lock = threading.Lock()

    def run(self) -> None:
        while not self.stopping.wait(self.pace):
            try:
                with self.lock:
                    done = self.step()
                if done:
                    self.notes.done(self.name)
            except (PravegaError, OSError) as error:
                self.notes.error(self.name, error)
            except Exception as error:
                self.notes.error(self.name, f"NOT AN ERROR OF THE CLIENT'S KIND {error!r}")
        self.end()

    @abstractmethod
    def step(self) -> bool:
        """Do something; return True if it was done."""

    @abstractmethod
    def results(self, unsure: list[tuple[str, int]]) -> dict[str, Any]:
        """Return the results that are certain; ``unsure`` are events of the writer that may be lost."""

    def ask(self, unsure: list[tuple[str, int]]) -> dict[str, Any]:
        """Return the results that are certain, or ``hung`` if the client stays in one step."""
        if not self.lock.acquire(timeout=_PATIENCE):
            return {"hung": True}
        try:
            return self.results(unsure)
        finally:
            self.lock.release()

    def end(self) -> None:
        self.client.close()


class Producer(Worker):
    """Writes numbered events with routing keys, some of them in each step."""

    size = _EVENTS

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.next = 0
        self.unsure: list[tuple[str, int]] = []

    @abstractmethod
    def write(self, events: dict[bytes, str]) -> None:
        """Write events with their keys; they are durable on return."""

    def step(self) -> bool:
        numbered = [(f"w{n % _KEYS}", n // _KEYS) for n in range(self.next, self.next + self.size)]
        self.next += self.size
        try:
            self.write({f"{key}|{number}".encode(): key for key, number in numbered})
        except PravegaError:
            self.unsure += numbered
            raise
        return True

    def results(self, unsure: list[tuple[str, int]]) -> dict[str, Any]:
        marks = {f"w{n % _KEYS}": n // _KEYS for n in range(max(0, self.next - _KEYS), self.next)}
        return {"marks": marks, "unsure": self.unsure}


class Writer(Producer):
    """Waits for the acknowledgement of its events."""

    writer: EventWriter[bytes] | None = None

    def write(self, events: dict[bytes, str]) -> None:
        if self.writer is None:
            self.writer = self.client.writer(self.streams["events"])
        try:
            for event, key in events.items():
                self.writer.write(event, routing_key=key)
            self.writer.flush()
        except PravegaError:
            # The events may be written, and another writer begins after them.
            self.writer.abandon()
            self.writer = None
            raise

    def end(self) -> None:
        if self.writer is not None:
            self.writer.close()
        super().end()


class Transactions(Producer):
    """Writes one transaction after another, and waits until each is committed."""

    pace = 1.0
    size = _TRANSACTION

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.writer = self.client.transactions(self.streams["transactions"], lease=120.0)

    def write(self, events: dict[bytes, str]) -> None:
        with self.writer.begin() as transaction:
            for event, key in events.items():
                transaction.write(event, routing_key=key)
            transaction.commit()


class Reader(Worker):
    """Counts the writer's events."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tally = Tally()

    def count(self, events: list[bytes]) -> bool:
        for event in events:
            self.tally.add(*parse(event))
        return bool(events)

    def results(self, unsure: list[tuple[str, int]]) -> dict[str, Any]:
        return {"seen": self.tally.take({}, unsure)}


class Follower(Reader):
    """Follows the writer's stream with one reader."""

    pace = 0.02

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reader = self.client.follow(self.streams["events"], start=self.client.head(self.streams["events"]))

    def step(self) -> bool:
        batch: EventBatch | None = self.reader.poll(0.5)
        return batch is not None and self.count(batch.values(None))

    def end(self) -> None:
        self.reader.close()
        super().end()


class BoundedReader(Reader):
    """Reads up to the present tail, repeatedly."""

    pace = 1.0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.position = self.client.head(self.streams["events"])

    def step(self) -> bool:
        end = self.client.tail(self.streams["events"])
        events = list(self.client.read(self.streams["events"], start=self.position, end=end))
        self.position = end
        self.count(events)
        return True


class _Number:
    def serialize(self, value: int, /) -> bytes:
        return b"%d" % value

    def deserialize(self, data: bytes, /) -> int:
        return int(data)


class Synchronizer(Worker):
    """Counts in a shared state; after an unknown outcome it fetches the updates, as the error says."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.next, self.wrong = 1, 0
        self.state = self.client.synchronizer(
            self.streams["state"],
            create=lambda value: (value, 0),
            # The state is the last number, and how many did not follow upon the one before.
            apply=lambda state, n: (n, state[1] + (n != state[0] + 1)),
            init_serializer=_Number(),
            update_serializer=_Number(),
        )
        self.state.initialize(0)

    def step(self) -> bool:
        try:
            self.state.update_state(lambda state: [] if state[0] >= self.next else [self.next])
        except OutcomeUnknownError:
            self.state.fetch_updates()
        assert self.state.state is not None
        last, self.wrong = self.state.state
        if last >= self.next:
            self.next += 1
            return True
        return False

    def results(self, unsure: list[tuple[str, int]]) -> dict[str, Any]:
        return {"updates": self.next - 1, "wrong": self.wrong}

    def end(self) -> None:
        self.state.close()
        super().end()


class TableUser(Worker):
    """Counts in an entry of a key-value table, by versions; after a refusal it gets the entry, as the error says."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.next, self.wrong = 1, 0
        table = table_of(self.streams["state"])
        self.table = self.client.table(table, key="string", value=_Number())

    def step(self) -> bool:
        entry = self.table.get(_COUNTER)
        found = 0 if entry is None else entry.value
        self.wrong += found not in (self.next - 1, self.next)
        if found >= self.next:
            self.next = found + 1
            return True
        try:
            if entry is None:
                self.table.insert(_COUNTER, self.next)
            else:
                self.table.put(_COUNTER, self.next, entry.version)
        except (OutcomeUnknownError, TableVersionError):  # no other client counts: an attempt without an answer did
            return False
        self.next += 1
        return True

    def results(self, unsure: list[tuple[str, int]]) -> dict[str, Any]:
        return {"updates": self.next - 1, "wrong": self.wrong}


CLIENTS: Final[dict[str, type[Worker]]] = {
    "writer": Writer,
    "follower": Follower,
    "transactions": Transactions,
    "reader": BoundedReader,
    "synchronizer": Synchronizer,
    "table": TableUser,
}


def main(file: str) -> None:
    spec = json.loads(Path(file).read_text())
    config, notes = PravegaConfig.from_env(), Notes(Path(spec["notes"]))
    streams = {name: StreamName.parse(stream) for name, stream in spec["streams"].items()}
    workers = [kind(name, config, streams, notes) for name, kind in CLIENTS.items()]
    for worker in workers:
        worker.start()
    for _ in sys.stdin:
        answer: dict[str, Any] = {}
        for worker in workers:
            answer[worker.name] = worker.ask(answer.get("writer", {}).get("unsure", []))
        print(json.dumps(answer), flush=True)
    for worker in workers:
        worker.stopping.set()
    deadline = time.monotonic() + 60
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
    os._exit(any(worker.is_alive() for worker in workers))


if __name__ == "__main__":
    main(sys.argv[1])
