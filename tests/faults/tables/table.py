"""Scenario of key-value tables: processes of both clients count by versions, and are killed, interrupted or cut off."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks._drive import PeerError
from pravega_connector.client import PravegaClient
from pravega_connector.tables import TableEntry, TableName, Version
from tests.faults.harness import Scenario, Setup, Table
from tests.faults.processes import ROOT, Process, await_that
from tests.faults.record import Column, measured
from tests.faults.tables.counting import COUNTERS, PRIMARY, SECONDARY, STOP, Counting, Key, Note, key_of, notes_of
from tests.faults.verdict import Verdict
from tests.interop._java_tables import JavaTablePeer
from tests.support.processes import stat_of
from tests.support.proxy import Proxy

#: Clients that count at the same time.
_KINDS: Final = ("java", "java", "python", "python")
_UPDATES_SECONDS: Final = 600.0


@dataclass(frozen=True)
class TableSettings:
    updates: int = 10_000
    """Updates that must be acknowledged, by all clients together."""
    kills: int = 24
    interrupts: int = 24
    """Interrupts of our clients, which continue."""
    cuts: int = 24
    """Times that all connections of our clients to the segment store are cut, within a request."""


class JavaCounter:
    """The Java client in its own JVM, driven by a thread."""

    def __init__(self, controller: str, table: TableName, name: str, file: Path) -> None:
        self._peer = JavaTablePeer(controller)
        self._table, self._error = table, ""
        self._counting = Counting(name, file, self._get, self._change)
        self._counting.note("ready")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _get(self, key: Key) -> TableEntry[bytes] | None:
        return self._peer.get(self._table, [key])[0]

    def _change(self, key: Key, value: bytes, version: Version, marker: Key) -> Version | None:
        found = self._peer.put_and_insert(self._table, key, value, version, marker)
        return found[1] if found else None

    def _run(self) -> None:
        try:
            self._counting.count()
        except (AssertionError, PeerError) as error:
            self._error = f"{type(error).__name__}: {error}"

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def kill(self) -> str:
        """Kill the JVM; return the proof."""
        assert not self.has_ended, f"the Java client ended before it was killed: {self._error}"
        os.kill(self._peer.pid, signal.SIGKILL)
        await_that("a JVM ends", lambda: stat_of(self._peer.pid)[:1] in ([], ["Z"]))
        self._thread.join()
        assert "has ended" in self._error, f"the killed JVM answered: {self._error}"
        self._peer.close()
        return "ended by signal 9"

    def succeeds(self) -> None:
        self._thread.join(_UPDATES_SECONDS)
        assert not self._error, self._error
        self._peer.close()

    def close(self) -> None:
        self._thread.join(_UPDATES_SECONDS)
        self._peer.close()


class PythonCounter(Process):
    """Our client in its own process, behind a proxy."""

    def __init__(self, controller: str, table: TableName, name: str, file: Path, endpoint: tuple[str, int]) -> None:
        command = [sys.executable, "-m", "tests.faults.tables.counting", controller, table, name, file]
        super().__init__([*command, *endpoint], file.with_suffix(".log"), {"PYTHONPATH": str(ROOT)})
        self._file = file

    def interrupt(self) -> str:
        """Interrupt it, and wait until it has noted that; return the proof."""

        def noted() -> int:
            return sum(note.kind == "interrupted" for note in notes_of(self._file))

        before = noted()
        os.kill(self.pid, signal.SIGINT)
        await_that("an interrupt is noted", lambda: noted() > before or self.has_ended)
        assert noted() > before, f"an interrupt has ended the process: {self.text()}"
        return "interrupted"

    def succeeds(self) -> None:
        code = self.wait()
        assert code == 0, f"a client ended with {code}: {self.text()}"


class Slot:
    """One client, and its successors after kills."""

    def __init__(self, trial: Trial, kind: str) -> None:
        self.kind, self._trial = kind, trial
        self.files: list[Path] = []
        self.start()

    def start(self) -> None:
        trial = self._trial
        name = f"{next(trial.names):02}"
        file = trial.folder / f"{self.kind}-{name}.notes"
        self.files.append(file)
        place = trial.controller, trial.table, name, file
        self.counter: JavaCounter | PythonCounter = (
            JavaCounter(*place) if self.kind == "java" else PythonCounter(*place, trial.proxy.endpoint)
        )

    @property
    def notes(self) -> list[Note]:
        return [note for file in self.files for note in notes_of(file)]

    @property
    def acknowledged(self) -> int:
        return sum(note.kind == "ack" for note in self.notes)

    @property
    def is_counting(self) -> bool:
        """True if the present process has begun to count."""
        return not self.counter.has_ended and any(note.kind == "ack" for note in notes_of(self.files[-1]))


class Trial:
    """A table with counters, and the clients that count in it. Context manager."""

    def __init__(self, client: PravegaClient, folder: Path, settings: TableSettings, seed: int) -> None:
        self.client, self.folder, self.settings, self._random = client, folder, settings, random.Random(seed)
        self.controller = client.config.controller
        self.table = TableName(f"faults{time.time_ns()}", "counters")
        self.names = itertools.count()
        self._slots: list[Slot] = []

    def __enter__(self) -> Trial:
        self.client.create_scope(self.table.scope)
        self.client.create_table(self.table, PRIMARY, SECONDARY, partitions=3)
        self._entries = self.client.table(self.table)
        for counter in COUNTERS:
            self._entries.insert(key_of(counter), b"0")
        stores = self.client.controller
        self.proxy = Proxy(stores.endpoint(self.table.segments, stores.table_segments(self.table)[0].id))
        try:
            for kind in _KINDS:
                self._slots.append(Slot(self, kind))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        (self.folder / STOP).touch()
        for slot in self._slots:
            with suppress(OSError):
                slot.counter.close()
        self.proxy.close()

    # ---- faults

    def run(self, verdict: Verdict) -> None:
        """Cause the faults at even distances, and wait until all clients have counted."""
        s, faults = self.settings, Counter[str]()
        agenda: list[tuple[str, Callable[[], str]]] = [
            *(("killed java", lambda: self._kill("java")) for _ in range(s.kills // 3)),
            *(("killed python", lambda: self._kill("python")) for _ in range(s.kills - s.kills // 3)),
            *(("interrupted", self._interrupt) for _ in range(s.interrupts)),
            *(("cut off", self._cut) for _ in range(s.cuts)),
        ]
        self._random.shuffle(agenda)
        for number, (name, cause) in enumerate(agenda, 1):
            due = s.updates * number // (len(agenda) + 1)
            self._await(due)
            assert cause(), name
            faults[name] += 1
        self._await(s.updates)
        (self.folder / STOP).touch()
        for slot in self._slots:
            slot.counter.succeeds()
        verdict.faults = dict(sorted(faults.items()))
        verdict.proofs = [f"{count} × {name}" for name, count in verdict.faults.items()]

    def _await(self, updates: int) -> None:
        """Wait until this number of updates is acknowledged."""

        def counted() -> bool:
            return sum(slot.acknowledged for slot in self._slots) >= updates

        await_that(f"{updates} updates are acknowledged", counted, _UPDATES_SECONDS, poll=0.3)

    def _counting(self, kind: str) -> Slot:
        """Return a client of a kind that is counting."""

        def found() -> list[Slot]:
            return [slot for slot in self._slots if slot.kind == kind and slot.is_counting]

        return self._random.choice(await_that(f"a client in {kind} counts", found))

    def _kill(self, kind: str) -> str:
        slot = self._counting(kind)
        time.sleep(self._random.uniform(0, 0.02))  # at any moment of a step
        proof = slot.counter.kill()
        slot.start()
        return proof

    def _interrupt(self) -> str:
        counter = self._counting("python").counter
        assert isinstance(counter, PythonCounter)
        time.sleep(self._random.uniform(0, 0.02))
        return counter.interrupt()

    def _cut(self) -> str:
        self._counting("python")
        cuts = self.proxy.cuts
        self.proxy.cut_after(self._random.randrange(1, 1000))
        await_that("the connections are cut", lambda: self.proxy.cuts > cuts)
        return "cut"

    # ---- the audit

    def audit(self, verdict: Verdict) -> None:
        """Compare the notes of all clients with the table. Each number of a counter must have one marker."""
        counters, markers = dict[str, int](), dict[str, TableEntry[bytes]]()
        for entry in self._entries.entries(batch_size=1000):
            primary, secondary = entry.key
            if entry.key == key_of(primary):
                counters[primary.decode()] = int(entry.value)
            else:
                markers[secondary.decode()] = entry
        notes = [note for slot in self._slots for note in slot.notes]
        kinds = defaultdict[str, list[Note]](list)
        for note in notes:
            kinds[note.kind].append(note)
        numbers = Counter((entry.key[0].decode(), int(entry.value)) for entry in markers.values())
        expected = {(counter, number) for counter, most in counters.items() for number in range(1, most + 1)}
        wrong = [note for note in kinds["ack"] if not _is_made(note, markers.get(note.marker))]
        verdict.counts["counters"] = {
            "events": len(markers),
            "lost": len(wrong) + len(expected - numbers.keys()),
            "duplicated": sum(count - 1 for count in numbers.values()) + len(numbers.keys() - expected),
            "out_of_order": 0,
        }
        for kind in ("java", "python"):
            refused = [n for slot in self._slots if slot.kind == kind for n in slot.notes if n.kind == "refused"]
            if made := [note.marker for note in refused if note.marker in markers]:
                verdict.failures.append(f"{kind}: {len(made)} refused updates have taken effect: {made[:5]}")
        doubt = [note.marker for kind in ("unknown", "interrupted") for note in kinds[kind] if note.marker]
        verdict.measures = {
            "acknowledged": len(kinds["ack"]),
            "by Java": sum(slot.acknowledged for slot in self._slots if slot.kind == "java"),
            "refused": len(kinds["refused"]),
            "unknown": len(doubt),
            "unknown and made": sum(marker in markers for marker in doubt),
            "kills": sum(count for name, count in verdict.faults.items() if name.startswith("killed")),
        }
        verdict.check_counts()


def _is_made(note: Note, entry: TableEntry[bytes] | None) -> bool:
    """Return True if an acknowledged step is in the table, as its answer has said."""
    return (
        entry is not None
        and (entry.key[0].decode(), int(entry.value)) == (note.counter, note.number)
        and str(entry.version) == note.version
    )


def kills(client: PravegaClient, folder: Path, settings: TableSettings, verdict: Verdict) -> None:
    """Play a trial with all faults."""
    with Trial(client, folder, settings, verdict.seed) as trial:
        trial.run(verdict)
        trial.audit(verdict)
    assert 0 < verdict.measures["by Java"] < verdict.measures["acknowledged"]


class TableSetup(Setup):
    """A server."""

    def open(self) -> None:
        self.client = self.stack.enter_context(PravegaClient(self.server(), timeout=60.0))

    def play(self, scenario: Scenario, verdict: Verdict) -> None:
        scenario.play(self.client, self.new_folder(scenario.name), self.settings, verdict)


def _columns() -> Iterator[Column]:
    for what in ("acknowledged", "by Java", "refused", "unknown", "unknown and made", "kills"):
        yield Column(what, measured(what))


TABLE: Final = Table(
    (
        Scenario(
            "kills", "`kill -9`, interrupts and cut connections while two Java and two Python clients count", kills
        ),
    ),
    TableSetup,
    TableSettings(),
    tuple(_columns()),
    "key-value-tables.md faults",
)
