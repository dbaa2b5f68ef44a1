"""Rows of the Spark benchmark: the work of each, and the aimed ratio to the Scala connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

__all__ = ["FAR", "JVM", "MARGINAL_AIM", "NEAR", "NOTHING", "PLAIN", "PLAIN_AIM", "ROWS", "Row", "Work"]

#: Side with a source and a sink that do nothing. Its rate is the maximum of any source and sink in Python.
NOTHING: Final = "does nothing"
#: Our reader inside Spark's JVM.
JVM: Final = "ours, JVM reader"
#: Our source and sink in a session for which ``configure`` was not called.
PLAIN: Final = "ours, plain"


class Work(StrEnum):
    """Timed work."""

    READ = "a batch read into Spark's empty sink"
    COUNT = "count() of a batch read"
    AVAILABLE_NOW = "a query with Trigger.AvailableNow into Spark's empty sink, from its start to its end"
    WRITE = "a batch write from Parquet"
    WRITE_STREAM = "a query with Trigger.AvailableNow from Parquet, from its start to its end"
    LATENCY = "the micro-batches of a query from stream to stream, ten events each"
    OWN_WRITE = "a batch write from Parquet, beside our own at least once"
    OWN_LATENCY = "micro-batches of 1,000 rows, beside our own at least once"
    STREAMS_WRITE = "an exactly-once batch write to three streams, compared with one stream"
    STREAMS_LATENCY = "exactly-once micro-batches of 1,000 rows to three streams, compared with one stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Line of the table."""

    name: str
    work: Work
    events: int
    """Number in a timed run. For queries of micro-batches, the number of batches that count."""
    kind: str = "100 B"
    """Name in ``KINDS`` of the events that are read."""
    ours: Mapping[str, str] = field(default_factory=dict)
    """Our options, in addition to those of the kind."""
    theirs: Mapping[str, str] = field(default_factory=dict)
    """Options of the Scala connector."""
    only: str | None = None
    """The one column that the query selects. Without it, the query reads all that the read has."""
    segments: int = 3
    aim: float | None = None
    """Smallest ratio of rates. Larger is faster, also for the times of micro-batches."""
    jvm_aim: float | None = None
    """The same for the reader inside the JVM, which takes part in the row if it has this aim."""

    @property
    def has_plain(self) -> bool:
        """True if a session without ``configure`` takes part in the row."""
        return self.jvm_aim is not None

    @property
    def in_batches(self) -> bool:
        """True if the rate is in batches. The time of a batch is then of interest."""
        return self.work is Work.LATENCY

    @property
    def is_own(self) -> bool:
        """True if only our own modes are compared."""
        return self.work in (Work.OWN_WRITE, Work.OWN_LATENCY, Work.STREAMS_WRITE, Work.STREAMS_LATENCY)


_EXACTLY_ONCE: Final = ({"writer_mode": "exactly_once"}, {"exactly_once": "true", "transaction_timeout_ms": "120000"})
_AT_LEAST_ONCE: Final = ({"writer_mode": "at_least_once"}, {"exactly_once": "false"})
_MODES: Final = {"exactly once": _EXACTLY_ONCE, "at least once": _AT_LEAST_ONCE}
#: Pair of rows. Their difference is the cost of an event without the cost of a query.
NEAR: Final = "AvailableNow 4 M, only event"
FAR: Final = "AvailableNow 16 M, only event"
MARGINAL_AIM: Final = 1.4
#: Smallest ratio of each row of a session without ``configure``.
PLAIN_AIM: Final = 1.2


def _reads() -> Iterator[Row]:
    event = {"columns": "event"}
    # Each aim is a pair: in Python, and inside the JVM.
    for kind, events, alone, five, count in (
        ("100 B", 4_000_000, (1.3, 2.6), (0.95, 2.5), (0.95, 2.5)),
        ("10–200 B", 4_000_000, (1.1, 2.6), (0.9, 2.5), (0.85, 3.0)),
        ("1 KiB", 1_000_000, (0.9, 2.5), (0.75, 2.5), (0.75, 2.5)),
    ):
        for what, work, ours, (aim, jvm_aim) in (
            ("only event", Work.READ, event, alone),
            ("five columns", Work.READ, {}, five),
            ("count", Work.COUNT, {}, count),
        ):
            name = f"read {kind.replace('–', '-')}, {what}"
            yield Row(name=name, work=work, kind=kind, events=events, ours=ours, aim=aim, jvm_aim=jvm_aim)
    for name, events, aim, jvm_aim in (
        (NEAR, 4_000_000, 1.2, 2.5),
        (FAR, 16_000_000, 1.1, 2.6),
        ("AvailableNow 3,000, only event", 3_000, 1.2, 2.2),
    ):
        yield Row(name=name, work=Work.AVAILABLE_NOW, events=events, ours=event, aim=aim, jvm_aim=jvm_aim)


_ONE_COLUMN: Final = ("flat Avro", "nested Avro", "nested Protobuf", "nested JSON")


def _decodes() -> Iterator[Row]:
    for kind, events, aim, jvm_aim in (
        ("flat Avro", 4_000_000, 1.9, 2.6),
        ("nested Avro", 1_000_000, 2.0, 2.6),
        ("flat Protobuf", 4_000_000, 2.4, 5.0),
        ("nested Protobuf", 1_000_000, 2.2, 5.0),
        ("flat JSON", 4_000_000, 2.0, 4.5),
        ("nested JSON", 1_000_000, 1.8, 4.5),
        ("Java strings", 4_000_000, None, 2.5),
        ("Java objects", 1_000_000, None, None),
        ("registry's Avro", 4_000_000, 1.5, 2.6),
    ):
        yield Row(name=f"decode {kind}", work=Work.READ, kind=kind, events=events, aim=aim, jvm_aim=jvm_aim)
        if kind in _ONE_COLUMN:
            name = f"one column of {kind}"
            yield Row(name=name, work=Work.READ, kind=kind, events=events, only="id", jvm_aim=3.5)
    far = "registry's Avro"
    yield Row(name=f"decode {far}, 16 M", work=Work.READ, kind=far, events=16_000_000, aim=1.5, jvm_aim=2.6)


def _writes() -> Iterator[Row]:
    for work, name, once, least in (
        (Work.WRITE, "batch write", 2.2, 3.0),
        (Work.WRITE_STREAM, "stream write", 2.5, 3.0),
    ):
        for mode, aim, jvm_aim in (("exactly once", once, 2.6), ("at least once", least, 3.5)):
            ours, theirs = _MODES[mode]
            yield Row(
                name=f"{name}, {mode}",
                work=work,
                events=1_000_000,
                ours=ours,
                theirs=theirs,
                aim=aim,
                jvm_aim=jvm_aim,
            )


def _latencies() -> Iterator[Row]:
    for mode, aims in (("exactly once", ((1.7, 2.2), (2.3, 2.3))), ("at least once", ((1.5, 2.2), (1.5, 2.2)))):
        for segments, (aim, jvm_aim) in zip((1, 3), aims, strict=True):
            ours, theirs = _MODES[mode]
            yield Row(
                name=f"micro-batch, {segments} segment{'s' * (segments > 1)}, {mode}",
                work=Work.LATENCY,
                events=24,
                segments=segments,
                ours=ours,
                theirs=theirs,
                aim=aim,
                jvm_aim=jvm_aim,
            )


def _own() -> Iterator[Row]:
    yield Row(name="own batch write, exactly once", work=Work.OWN_WRITE, events=1_000_000, aim=0.92)
    yield Row(name="own micro-batches, exactly once", work=Work.OWN_LATENCY, events=40)
    yield Row(name="own batch write, three streams", work=Work.STREAMS_WRITE, events=1_000_000, aim=0.67)
    yield Row(name="own micro-batches, three streams", work=Work.STREAMS_LATENCY, events=40)


#: In the order of measurement. Rows that read the same stream are adjacent.
ROWS: Final[tuple[Row, ...]] = (*_reads(), *_decodes(), *_writes(), *_latencies(), *_own())
