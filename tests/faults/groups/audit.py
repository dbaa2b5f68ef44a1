"""Audit of a trial from its files: readers' notes, the history of the group's state, and ``trial.json``.

The measures of the verdict are listed at ``_MEASURES``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from pravega_connector.errors import GroupStateError
from pravega_connector.reader_groups.protocol import (
    SILENT,
    AcquireSegment,
    CheckpointReader,
    GroupState,
    Init,
    Positions,
    ReleaseSegment,
    RemoveReader,
    Segment,
    SegmentCompleted,
    apply,
    create,
    decode_position,
)
from pravega_connector.wire import EVENT_HEADER_SIZE, StreamCut, StreamName
from tests.faults.groups.history import entries_of
from tests.faults.groups.readers import KINDS, Note, notes_of
from tests.faults.verdict import Verdict

#: Seconds that a busy machine may add to the bounds.
_SLACK: Final = 10.0
#: After an attempt to acquire that failed, a reader tries again after as many seconds (UPDATE_WINDOW).
_WINDOW: Final = 30.0
_SHOWN: Final = 12
_MEASURES: Final = {
    "written": 0,
    "repeats": 0,
    # Events that were delivered after the offsets where the successors of lost readers began: the most repeats.
    "allowed": 0,
    # Seconds for which a reader still delivered after it was removed, or resumed after that.
    "longest_late": 0.0,
    "segments": 0,
    "possessions": 0,
    # Seconds for which a free segment had no reader.
    "longest_unowned": 0.0,
    # Checkpoints that all readers took, automatic ones included; and complete ones of those that Java began.
    "checkpoints": 0,
    "java_checkpoints": "",
    "compactions": 0,
}
_OUT: Final = frozenset({"ReaderOfflineError", "ReinitializationRequiredException", "ReaderNotInReaderGroupException"})


@dataclass
class _Possession:
    """Time in which a reader owns a segment, according to the state."""

    reader: str
    segment: Segment
    start: int
    taken: int
    """Position in the last checkpoint of the reader, or the start."""
    ended: str = ""
    """completed, released, removed, reset; empty if it has not ended."""
    end: int = 0
    """Offset at which the next reader begins."""
    first_ms: int = 0
    last_ms: int = 0
    reached: int = 0
    offsets: list[int] = field(default_factory=list)

    def takes(self, read: _Read) -> bool:
        """Return True, and note the event, if it is the next one."""
        at = self.reached or max(self.start, 0)
        is_over = self.ended in ("completed", "released") and at == self.end  # the reader may have acquired it again
        if read.offset != at or is_over:
            return False
        self.reached, self.last_ms, self.first_ms = read.end, read.ms, self.first_ms or read.ms
        self.offsets.append(read.offset)
        return True


class _Read(NamedTuple):
    reader: str
    ms: int
    segment: Segment
    offset: int
    end: int
    key: str
    number: int


@dataclass
class _Phase:
    """State of the group between two resets."""

    chains: dict[Segment, list[_Possession]] = field(default_factory=lambda: defaultdict(list))
    completed: set[Segment] = field(default_factory=set)
    predecessors: dict[Segment, set[Segment]] = field(default_factory=dict)
    free_since: dict[Segment, int] = field(default_factory=dict)
    reads: list[_Read] = field(default_factory=list)


def audit(folder: Path) -> Verdict:
    """Return the verdict on a trial."""
    return _Audit(folder, json.loads((folder / "trial.json").read_text())).verdict


class _Audit:
    def __init__(self, folder: Path, trial: Mapping[str, Any]) -> None:
        self._folder, self._trial = folder, trial
        self._measures = {**_MEASURES, "written": sum(trial["written"].values()), "resets": trial["resets"]}
        self._counts = dict.fromkeys(("events", "lost", "duplicated", "out_of_order"), 0)
        self.verdict = Verdict("mixed", trial["seed"], {"readers": self._counts}, self._measures)
        self.verdict.faults, self.verdict.proofs = trial["faults"], trial["proofs"]
        self._phases: list[_Phase] = []
        self._owned: dict[tuple[str, Segment], list[_Possession]] = defaultdict(list)
        self._taken: list[tuple[str, str, dict[Segment, tuple[int, int]]]] = []  # checkpoint, reader, (position, start)
        self._complete: dict[str, Positions] = {}
        self._takers: dict[str, set[str]] = defaultdict(set)
        self._removed: set[str] = set()
        self._lengths: dict[Segment, int] = {}
        self._at_checkpoint: dict[tuple[str, str], dict[Segment, int]] = {}
        self._positions: list[tuple[str, Segment, int, int | None]] = []
        self._follow_history()
        self._read_notes()
        self._check_possessions()
        self._check_positions()
        self._check_deliveries()
        self._check_faults()
        self.verdict.check_counts()
        if len(self.verdict.failures) > _SHOWN:
            more = len(self.verdict.failures) - _SHOWN
            self.verdict.failures[_SHOWN:] = [f"and {more} more"]

    def _fail(self, text: str) -> None:
        self.verdict.failures.append(text)

    # ---- the history of the state

    def _follow_history(self) -> None:
        state: GroupState | None = None
        try:
            for entry in entries_of(self._folder / "history.jsonl"):
                for init in entry.init:
                    value = create(init)
                    if state is None:
                        self._begin_phase(value)
                    else:
                        self._measures["compactions"] += 1
                        if value != state:
                            self._fail(f"a compaction is another state than ours at {entry.ms}")
                    state = value
                for update in entry.updates:
                    assert state is not None
                    before, state = state, apply(state, update)
                    self._note(entry.ms, update, before, state)
                if state is not None:
                    self._check_state(state, entry.ms)
        except GroupStateError as error:
            self._fail(f"the history has an update that does not fit: {error}")

    def _begin_phase(self, state: GroupState) -> None:
        for chain in self._phases[-1].chains.values() if self._phases else ():
            if not chain[-1].ended:
                chain[-1].ended = "reset"
        self._phases.append(_Phase(predecessors={segment: set() for segment in state.unassigned}))

    def _note(self, ms: int, update: object, before: GroupState, state: GroupState) -> None:
        if isinstance(update, Init):
            # A reader that finds a reset half done ends it; then Java's own reset writes the same beginning once more.
            if before.config.generation == state.config.generation and not self._phases[-1].chains:
                self._phases.pop()
            self._begin_phase(state)
        phase = self._phases[-1]
        match update:
            case AcquireSegment(reader=reader, segment=segment):
                taken = _Possession(reader, segment, before.unassigned[segment], before.unassigned[segment])
                phase.chains[segment].append(taken)
                self._owned[reader, segment].append(taken)
            case ReleaseSegment(segment=segment, offset=offset):
                self._end(segment, "released", offset)
            case SegmentCompleted(segment=segment, successors=successors):
                self._end(segment, "completed", -1)
                phase.completed.add(segment)
                for successor, ids in successors.items():
                    phase.predecessors.setdefault(successor, {Segment(successor.stream, one) for one in ids})
            case RemoveReader(reader=reader, owned=owned):
                self._removed.add(reader)
                for segment in before.assigned.get(reader, ()):
                    begin, last = state.unassigned[segment], phase.chains[segment][-1].taken
                    if begin != owned.get(segment, last):
                        self._fail(f"{segment} of {reader} goes on at {begin}, and its last checkpoint is at {last}")
                    self._end(segment, "removed", begin)
            case CheckpointReader(checkpoint=name, reader=reader, positions=positions):
                starts = {segment: phase.chains[segment][-1].start for segment in positions}
                self._taken.append((name, reader, {s: (at, starts[s]) for s, at in positions.items()}))
                self._takers[name].add(reader)
                if SILENT not in name:
                    for segment, at in positions.items():
                        phase.chains[segment][-1].taken = at
        for name in before.checkpoints.waiting.keys() - state.checkpoints.waiting.keys():
            if name in state.checkpoints.positions and SILENT not in name:
                self._complete[name] = state.checkpoints.positions[name]
                self._measures["checkpoints"] += 1
        self._note_free(ms, state)

    def _end(self, segment: Segment, how: str, at: int) -> None:
        possession = self._phases[-1].chains[segment][-1]
        possession.ended, possession.end = how, at

    def _note_free(self, ms: int, state: GroupState) -> None:
        since = self._phases[-1].free_since
        for segment in [one for one in since if one not in state.unassigned]:
            seconds = (ms - since.pop(segment)) / 1000
            self._measures["longest_unowned"] = max(self._measures["longest_unowned"], round(seconds, 1))
            bound = state.config.refresh_ms / 1000 + state.readers + _WINDOW + _SLACK
            if seconds > bound:
                self._fail(f"{segment} had no reader for {seconds:.1f} s, more than {bound:g} s")
        if state.readers:
            for segment in state.unassigned:
                since.setdefault(segment, ms)
        else:
            since.clear()

    def _check_state(self, state: GroupState, ms: int) -> None:
        phase = self._phases[-1]
        places: list[Segment] = [*state.unassigned, *state.future, *phase.completed]
        for owned in state.assigned.values():
            places += owned
        if len(places) != len(set(places)):
            self._fail(
                f"a segment is in two places at {ms}: {sorted({one for one in places if places.count(one) > 1})}"
            )
        if missing := phase.predecessors.keys() - set(places):
            self._fail(f"segments are in no place at {ms}: {sorted(missing)}")
        for segment in (*state.unassigned, *(one for owned in state.assigned.values() for one in owned)):
            if early := phase.predecessors.get(segment, set()) - phase.completed:
                self._fail(f"{segment} can be read at {ms} before {sorted(early)}")

    # ---- what the readers have noted

    def _read_notes(self) -> None:
        for reader, about in self._trial["readers"].items():
            if about["phase"] >= len(self._phases):
                self._fail(f"{reader} is of a phase that the history has not")
                continue
            file = self._folder / f"{reader}.notes"
            notes = notes_of(file.read_bytes() if file.exists() else b"")
            self._phases[about["phase"]].reads += self._reads(reader, notes)
        for read in self._phases[0].reads:
            self._lengths[read.segment] = max(read.end, self._lengths.get(read.segment, 0))

    def _reads(self, reader: str, notes: list[Note]) -> Iterator[_Read]:
        at: dict[Segment, int] = {}
        for kind, ms, fields in notes:
            if kind == "event":
                segment, offset = Segment.parse(fields[0]), int(fields[1])
                key, _, number = fields[2].partition(":")
                at[segment] = offset + EVENT_HEADER_SIZE + len(fields[2])
                yield _Read(reader, ms, segment, offset, at[segment], key, int(number))
            elif kind == "checkpoint":
                self._at_checkpoint[fields[0], reader] = dict(at)
            elif kind == "position":
                found = decode_position(bytes.fromhex(fields[0])).positions
                self._positions += [(reader, segment, offset, at.get(segment)) for segment, offset in found.items()]
            elif kind == "out" and (fields[0] not in _OUT or reader not in self._may_be_out):
                self._fail(f"{reader} was out by {fields[0]}")

    @property
    def _may_be_out(self) -> set[str]:
        last = len(self._trial["phases"]) - 1
        return {*self._trial["offline"], *(r for r, about in self._trial["readers"].items() if about["phase"] < last)}

    # ---- what must hold

    def _check_possessions(self) -> None:
        """Check that a reader receives a segment without a gap, from where it acquired it to where it released it."""
        for phase in self._phases:
            left: dict[tuple[str, Segment], list[_Possession]] = {}
            for read in phase.reads:
                owned = left.setdefault((read.reader, read.segment), list(self._owned[read.reader, read.segment]))
                while owned and not owned[0].takes(read):
                    owned.pop(0)
                if not owned:
                    self._fail(f"{read.reader} was given {read.segment}:{read.offset}, which did not follow")
            for segment, chain in phase.chains.items():
                self._measures["possessions"] += len(chain)
                for at, own in enumerate(chain):
                    self._check_end(segment, own)
                    self._check_next(own, chain[at + 1 :])
        self._measures["segments"] = len(self._phases[0].predecessors)

    def _check_end(self, segment: Segment, own: _Possession) -> None:
        length = self._lengths.get(segment, 0)
        start = length if own.start < 0 else own.start
        reached, end = max(own.reached, start), length if own.end < 0 else own.end
        if own.ended == "removed" and own.reader in self._trial["offline"]:
            self._measures["allowed"] += sum(offset >= end for offset in own.offsets)
            if reached < end:
                self._fail(f"{own.reader} was given {segment} up to {reached}, and the next one begins at {end}")
        elif own.ended in ("released", "completed", "removed") and reached != end:
            self._fail(f"{own.reader} was given {segment} up to {reached}, and {own.ended} it at {end}")

    def _check_next(self, own: _Possession, later: list[_Possession]) -> None:
        offline = self._trial["offline"].get(own.reader)
        following = min((one.first_ms for one in later if one.first_ms), default=None)
        if offline is None or own.ended != "removed":
            if following is not None and own.last_ms > following and own.ended != "reset":
                self._fail(f"{own.segment} was read by {own.reader} and the next reader at the same time")
            return
        from_ms = max(offline["done"], offline.get("resumed", 0))
        late = (own.last_ms - from_ms) / 1000
        self._measures["longest_late"] = max(self._measures["longest_late"], round(late, 2))
        bound = self._trial["settings"]["refresh_ms"] / 1000 + _SLACK
        if late > bound:
            self._fail(f"{own.reader} was given {own.segment} for {late:.1f} s after it was taken offline")

    def _check_positions(self) -> None:
        """Check that each position of a reader is the end of the events that it has received."""
        for name, reader, positions in self._taken:
            if SILENT in name:
                continue
            noted = self._at_checkpoint.get((name, reader))
            if noted is None:
                self._fail(f"{reader} has taken checkpoint {name} without a word")
                continue
            for segment, (position, start) in positions.items():
                length = self._lengths.get(segment, 0)
                given = max(noted.get(segment, 0), length if start < 0 else start)
                if given != (length if position < 0 else position):
                    self._fail(f"{reader} was given {segment} up to {given}, and says {position} in {name}")
        for reader, segment, position, given in self._positions:
            starts = [_length_of(own.start, self._lengths.get(segment, 0)) for own in self._owned[reader, segment]]
            if not starts:
                self._fail(f"{reader} has a position in {segment}, which was never its own")
            elif _length_of(position, self._lengths.get(segment, 0)) not in (given, *starts):
                self._fail(f"{reader} was given {segment} up to {given}, and its position is {position}")

    def _check_deliveries(self) -> None:
        for number, phase in enumerate(self._phases):
            expected = self._expected(number)
            first: dict[tuple[Segment, int], _Read] = {}
            for read in sorted(phase.reads, key=lambda one: one.ms):
                first.setdefault((read.segment, read.offset), read)
            self._counts["events"] += len(phase.reads)
            self._measures["repeats"] += len(phase.reads) - len(first)
            self._counts["lost"] += len(expected - {(one.key, one.number) for one in first.values()})
            if strange := {(one.key, one.number) for one in first.values()} - expected:
                self._fail(f"phase {number} has {len(strange)} events that lie before its beginning, or never were")
            by_key: dict[str, list[_Read]] = defaultdict(list)
            for read in first.values():
                by_key[read.key].append(read)
            for reads in by_key.values():
                reads.sort(key=lambda one: one.number)
                self._counts["out_of_order"] += sum(one.ms > after.ms for one, after in pairwise(reads))
        self._counts["duplicated"] = max(0, self._measures["repeats"] - self._measures["allowed"])

    def _expected(self, number: int) -> set[tuple[str, int]]:
        """Return keys and numbers of the events after the start of a phase."""
        if not number:
            return {(key, one) for key, count in self._trial["written"].items() for one in range(count)}
        cuts = {stream: StreamCut.from_text(text) for stream, text in self._trial["phases"][number].items()}
        begin = {
            Segment(StreamName.parse(stream), one): at
            for stream, cut in cuts.items()
            for one, at in cut.positions.items()
        }
        before: dict[Segment, set[Segment]] = defaultdict(set)
        for phase in self._phases:
            for segment, predecessors in phase.predecessors.items():
                before[segment] |= predecessors
        after: set[Segment] = set()
        for segment in sorted(before, key=lambda one: one.id):
            if segment not in begin and before[segment] & (begin.keys() | after):
                after.add(segment)
        return {
            (one.key, one.number)
            for one in self._phases[0].reads
            if one.segment in after or (one.segment in begin and 0 <= begin[one.segment] <= one.offset)
        }

    def _check_faults(self) -> None:
        faults = self._trial["faults"]
        wanted = {f"{kind} {what}" for kind in KINDS for what in ("killed", "taken offline", "left")}
        if missing := wanted - faults.keys():
            self._fail(f"it has not happened: {', '.join(sorted(missing))}")
        if sum(count for fault, count in faults.items() if " paused" in fault) != len(KINDS):
            self._fail(f"not one reader of each kind has stood still: {faults}")
        if faults.get("scaled") != 2 * len(self._trial["phases"][0]):
            self._fail(f"not every stream was scaled up and down: {faults}")
        for reader in self._trial["offline"]:
            if reader not in self._removed:
                self._fail(f"{reader} was taken offline, and the history does not show it")
        complete = {
            name: found["cuts"] for name, found in self._trial["checkpoints"].items() if found and "cuts" in found
        }
        self._measures["java_checkpoints"] = f"{len(complete)} of {len(self._trial['checkpoints'])}"
        with_both = 0
        for name, cuts in complete.items():
            kinds = {self._trial["readers"][reader]["kind"] for reader in self._takers[name]}
            with_both += len(kinds) == 2
            positions = self._complete.get(name)
            if positions is None or _by_stream(positions) != {
                stream: dict(StreamCut.from_text(text).positions) for stream, text in cuts.items()
            }:
                self._fail(f"Java's checkpoint {name} is not what the readers have said")
        if not with_both:
            self._fail("no checkpoint that Java began had readers of both kinds in it")


def _length_of(position: int, length: int) -> int:
    """Return an offset, or the length of a segment that was read to its end."""
    return length if position < 0 else position


def _by_stream(positions: Positions) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for segment, at in positions.items():
        found[str(segment.stream)][segment.id] = at
    return dict(found)
