"""Cases of all formats, one after the other."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer
from benchmarks._stats import Result
from benchmarks.serde import avro, java, json, protobuf
from benchmarks.serde._peers import JavaPeer, plain_peer
from benchmarks.serde._subject import OURS, WAYS, Subject, Work, ours, timed, version

__all__ = ["all_subjects", "run_serde"]

COUNT: Final = 40_000
QUICK_COUNT: Final = 4_000
WARM_UPS: Final = 2
_FORMATS: Final = (java, avro, protobuf, json)
_VERBS: Final = {"decode rows": "read", "encode rows": "write", "decode columns": "read", "encode columns": "write"}


def all_subjects(count: int) -> Iterator[Subject]:
    """Return all subjects. Nested ones have fewer events."""
    for module in _FORMATS:
        yield from module.subjects(count)


def run_serde(*, rounds: int, quick: bool, only: str, note: Callable[[str], None]) -> Iterator[Result]:
    """Measure reading and writing of each format, by row and by column.

    Only cases whose name contains `only` are run.
    """
    count = QUICK_COUNT if quick else COUNT
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        jvm = stack.enter_context(JavaPeer(folder))
        plain = stack.enter_context(plain_peer(count))
        note("; ".join([jvm.peer.version, plain.version, *(version(each) for m in _FORMATS for each in m.PACKAGES)]))
        for subject in all_subjects(count):
            if not any(only in f"{subject.name}, {way}" for way in WAYS):
                continue
            for case in _cases(subject, jvm, plain):
                if only in case.name:
                    yield _compared(run_case(case, rounds=rounds, warm_ups=WARM_UPS, note=note), subject)


def _cases(subject: Subject, jvm: JavaPeer, plain: Peer) -> Iterator[Case]:
    mine, count = ours(subject), len(subject.events)
    for way in WAYS:
        works: dict[str, Work] = dict(subject.libraries.get(way, {}))
        peers = {name: timed(work, count) for name, work in works.items()}
        if way in subject.slow:
            some, make = subject.slow[way]
            events = subject.events[:some]
            peers[subject.slow_name] = timed(make(events), len(events))
        if subject.java and (way.endswith("rows") or "Java" in subject.aims.get(way, ())):
            schema = getattr(subject.serializer, "_text", "")
            peers["Java"] = partial(jvm.runs(subject.name, subject.java, subject.events, schema), _VERBS[way])
        peers[OURS] = timed(mine[way], count)
        if subject.extras:
            peers[plain.name] = partial(plain.ask, "run", subject=subject.name, way=way)
        size = sum(map(len, subject.events)) // count
        yield Case(name=f"{subject.name}, {way}", event_size=size, baseline="", peers=peers)


def _compared(result: Result, subject: Subject) -> Result:
    """Return the result with its baseline: the peer that the aim names, or the fastest library."""
    way = result.case.rpartition(", ")[2]
    peer, least = subject.aims.get(way, ("", 0.0))
    others = [name for name in result.runs if not name.startswith(OURS)]
    baseline = peer if peer in result.runs else max(others, key=lambda name: result.runs[name].median, default="")
    return dataclasses.replace(result, baseline=baseline, aims={OURS: least} if least and baseline else {})
