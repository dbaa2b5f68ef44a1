"""The runs: every input as a row and in columns, by the fast path and the plain one, with its cost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pyarrow as pa

from pravega_serde import DeserializationError
from pravega_serde.columnar import bad_rows, base
from tests.fuzz._measure import HangError, Meter, settle, watched
from tests.fuzz._mutate import inflate, mutate
from tests.fuzz._target import Format, Target

__all__ = ["Finding", "Totals", "explode", "fuzz"]

LONGEST_SECONDS = 1.0
"""Of CPU time, for an input."""
MOST_MEBIBYTES = 64.0
"""Of memory, for an input below one mebibyte."""

BATCH = 1000
LARGE_EVERY = 4000
"""One input in so many is inflated to up to a mebibyte."""
PATIENCE = 120.0
"""CPU seconds after which a batch is given up."""

_decode = bad_rows._decode


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that breaks a promise."""

    target: str
    what: str
    """Findings that agree in this are told once."""
    event: bytes
    detail: str = ""


@dataclass(slots=True)
class Totals:
    """Counts of the run so far."""

    longest: float = LONGEST_SECONDS
    """What an input may take; more on machines that do much else."""
    measured: bool = True
    """Whether cost is looked at, or only what rows and columns answer, which is some ten times as fast."""
    inputs: int = 0
    good: int = 0
    seconds: float = 0.0
    """The slowest single input's."""
    mebibytes: float = 0.0
    """The highest peak of a single input, or of a batch of small ones."""
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)

    def time(self, meter: Meter) -> float:
        seconds = meter.seconds()
        self.seconds = max(self.seconds, seconds)
        return seconds

    def peak(self, meter: Meter) -> float:
        mebibytes = meter.mebibytes()
        self.mebibytes = max(self.mebibytes, mebibytes)
        return mebibytes

    def found(self, finding: Finding) -> None:
        """Keep the shortest event of each kind."""
        kind = finding.target, finding.what
        known = self.findings.get(kind)
        if known is None or len(finding.event) < len(known.event):
            self.findings[kind] = finding


def fuzz(form: Format, inputs: int, seed: int, totals: Totals) -> Iterator[Totals]:
    """Mutated inputs for all targets of a format, in turn; returns the totals after each batch."""
    source = random.Random(seed)
    shares = [_Share(form, target, source, totals) for target in form.targets if target.corpus]
    while totals.inputs < inputs:
        for share in shares:
            share.batch(min(BATCH, inputs - totals.inputs))
            yield totals


def explode(target: Target, totals: Totals) -> None:
    """Every bomb of a target, each measured by itself."""
    for event in target.corpus:  # objects that are created on first use are not the bomb's
        _rows(target, [event], Totals())
    for name, make in target.bombs.items():
        event = make()
        assert len(event) < 1 << 20, name
        _one(target, event, totals, label=name)


class _Share:
    """One target's part of a run."""

    def __init__(self, form: Format, target: Target, source: random.Random, totals: Totals) -> None:
        self._form, self._target, self._source, self._totals = form, target, source, totals
        self._until_large = LARGE_EVERY // 2

    def batch(self, count: int) -> None:
        corpus, source, form = self._target.corpus, self._source, self._form
        choose = source.choice
        events = [mutate(choose(corpus), choose(corpus), form.tokens, source, keep=form.keep) for _ in range(count)]
        _several(self._target, events, source, self._totals)
        self._until_large -= count
        if self._until_large <= 0 and self._totals.measured:
            self._until_large += LARGE_EVERY
            _one(self._target, inflate(choose(corpus), source, keep=form.keep), self._totals, label="inflated")
            count += 1
        self._totals.inputs += count


def _several(target: Target, events: Sequence[bytes], source: random.Random, totals: Totals) -> None:
    """Small inputs: measured together, and one by one where they take too much together."""
    if not totals.measured:
        refused: dict[int, str] = {}
        values = _rows(target, events, totals, refused)
        totals.good += len(values)
        if target.columns:
            _columns(target, events, totals, values, refused)
        return
    settle()
    meter = Meter()
    try:
        with watched(PATIENCE):
            refused = {}
            values = _rows(target, events, totals, refused)
            totals.good += len(values)
            start = meter.seconds()
            if target.columns:
                _columns(target, events, totals, values, refused)
                _columns(target, _among_good_ones(target, events, source), totals)
    except HangError:
        pass
    else:
        if meter.seconds() - start < 4 * totals.longest and totals.peak(meter) < MOST_MEBIBYTES:
            return
    for event in events:
        _one(target, event, totals, label="mutated")


def _among_good_ones(target: Target, events: Sequence[bytes], source: random.Random) -> list[bytes]:
    """A column as they come: most events are good, so the fast path takes them."""
    mixed = [*source.choices(target.corpus, k=240), *events[:16]]
    source.shuffle(mixed)
    return mixed


def _one(target: Target, event: bytes, totals: Totals, *, label: str) -> None:
    """One input by itself: as a row, in a column of one, and in one of two, by either path."""
    column = pa.array([event], pa.binary())
    ways: dict[str, Callable[[], object]] = {"as a row": lambda: target.serializer.deserialize(event)}
    if target.columns:
        ways["as a column"] = lambda: _by_column(target, column)
        ways["as a column, plainly"] = lambda: _plainly(target, column)
    for way, read in ways.items():
        settle()
        meter = Meter()
        try:
            with watched(20 * totals.longest):
                read()
        except DeserializationError:
            pass
        except (Exception, HangError) as error:
            totals.found(Finding(target.name, f"{label} {way}: {type(error).__name__}", event, str(error)))
        seconds, mebibytes = totals.time(meter), totals.peak(meter)
        if seconds > totals.longest:
            totals.found(Finding(target.name, f"{label} {way} takes too long", event, f"{seconds:.1f} s"))
        if mebibytes > MOST_MEBIBYTES:
            totals.found(Finding(target.name, f"{label} {way} takes too much", event, f"{mebibytes:.0f} MiB"))


def _rows(
    target: Target, events: Sequence[bytes], totals: Totals, refused: dict[int, str] | None = None
) -> dict[int, Any]:
    """The values of the events that are good; ``refused`` is filled with the reasons of the others."""
    values = {}
    before = time.process_time()
    for row, event in enumerate(events):
        try:
            values[row] = target.serializer.deserialize(event)
        except DeserializationError as error:
            if refused is not None:
                refused[row] = error.reason
        except Exception as error:
            totals.found(Finding(target.name, f"as a row: {type(error).__name__}", event, str(error)))
        after = time.process_time()
        totals.seconds = max(totals.seconds, after - before)
        if after - before > totals.longest and totals.measured:
            totals.found(Finding(target.name, "as a row: takes too long", event, f"{after - before:.1f} s"))
        before = after
    return values


def _columns(
    target: Target,
    events: Sequence[bytes],
    totals: Totals,
    values: Mapping[int, Any] | None = None,
    refused: Mapping[int, str] | None = None,
) -> None:
    """Read as a column by both paths, and compared: with each other, and with the rows' values."""
    column = pa.array(events, pa.binary())
    try:
        fast, wrong = _read(target, column)
        plain, plainly_wrong = _plainly(target, column)
        fast.validate(full=True)
    except Exception as error:
        culprit = _culprit(target, events, error)
        totals.found(Finding(target.name, f"as a column: {type(error).__name__}", culprit, str(error)))
        return
    for row in _differences(fast, plain):
        detail = f"fast {_text(fast, row):.300}, plain {_text(plain, row):.300}"
        totals.found(Finding(target.name, "paths differ", events[row], detail))
    for row in wrong ^ plainly_wrong:
        totals.found(Finding(target.name, f"only {'fast' if row in wrong else 'plain'} path says no", events[row]))
    if values is not None and refused is not None:
        for what, row, detail in _compared(target, values, refused, fast, wrong):
            totals.found(Finding(target.name, what, events[row], detail))


def _compared(
    target: Target, values: Mapping[int, Any], refused: Mapping[int, str], column: pa.Array, wrong: set[int]
) -> Iterator[tuple[str, int, str]]:
    """First difference of a column from the rows, its row, and details."""
    good = set(range(len(column))) - wrong
    for row in good & refused.keys():
        if not target.smaller_in_python or target.smaller_in_python not in refused[row]:
            yield "a good value in a column, but a bad row", row, refused[row]
    if not target.rows_take_more:
        yield from (("a good row, but a bad value in a column", row, "") for row in wrong & values.keys())
    if target.rewritten:
        both = sorted(good & values.keys())
        with mock.patch.object(base, "FEW_ROWS", 0):
            written = target.serializer.encode_column(column.take(pa.array(both, pa.int64()))).to_pylist()
        for row, by_column in zip(both, written, strict=True):
            by_row = target.serializer.serialize(values[row])
            if by_row != by_column:
                yield "row and column are written differently", row, f"{by_row.hex()}, {by_column.hex()}"


def _by_column(target: Target, column: pa.Array) -> pa.Array:
    """Read as a long column is, however short it is."""
    with mock.patch.object(base, "FEW_ROWS", 0):
        return target.serializer.decode_column(column)


def _read(target: Target, column: pa.Array) -> tuple[pa.Array, set[int]]:
    errors: list[DeserializationError] = []
    with mock.patch.object(base, "FEW_ROWS", 0):
        values = target.serializer.decode_column(column, on_error=errors.append)
    rows = [error.row for error in errors]
    assert rows == sorted(set(rows)), "errors come once for each row, in order"
    return values, set(rows)


def _plainly(target: Target, column: pa.Array) -> tuple[pa.Array, set[int]]:
    with _without_fast_path():
        return _read(target, column)


def _without_fast_path() -> AbstractContextManager[Any]:
    def plain_only(column: Any, rows: Any, plain: Any, fast: Any, on_error: Any) -> Any:
        return _decode(column, rows, plain, None, on_error)

    return mock.patch.object(bad_rows, "_decode", plain_only)


def _differences(one: pa.Array, other: pa.Array) -> list[int]:
    """Rows that differ; NaN is NaN here."""
    if one.equals(other):
        return []
    rows = [row for row in range(len(one)) if not one.slice(row, 1).equals(other.slice(row, 1))]
    return [row for row in rows if _text(one, row) != _text(other, row)]


def _text(column: pa.Array, row: int) -> str:
    try:
        return repr(column[row].as_py())
    except (OverflowError, ValueError):  # a time for which Python has no value
        return str(column.slice(row, 1).to_string(window=1_000_000))


def _culprit(target: Target, events: Sequence[bytes], error: Exception) -> bytes:
    """The event that makes a column raise; all of them, if none does by itself."""
    for event in events:
        try:
            _read(target, pa.array([event], pa.binary()))[0].validate(full=True)
        except type(error):
            return event
        except Exception:
            continue
    return b"".join(events)
