"""Records that name their stream in a column: each transaction is in all of its streams, or in none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import (
    BadRecordError,
    ColumnTypeError,
    ConfigError,
    InvalidNameError,
    SourceChangedError,
    StepsStateError,
    StepUndecidedError,
    StreamNotFoundError,
    TransactionUnknownError,
)
from pravega_connector.exactly_once.steps import StepLog
from pravega_connector.exactly_once.steps.takeover import Resolution
from pravega_connector.operations.ingest import IngestSummary, Settings, Sizes, ingest, plan

_SIZES: Final = {
    "file": Sizes(variant="file", files=2),
    "count": Sizes(variant="count", records=7),
    "length": Sizes(variant="length", bytes=200),
}
_CALLS: Final = ("create_transaction", "commit_transaction", "abort_transaction")
_SAMPLES: Final = 20


class Killed(BaseException):
    """The process has ended: no later call reaches a server."""


class Kill:
    """Fault before or after a numbered call to the controller, and in all calls after it until :meth:`revive`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.at, self.late = -1, False
        self.open: list[tuple[StreamName, Any]] = []
        for name in _CALLS:
            monkeypatch.setattr(ControllerClient, name, self._wrapped(name, getattr(ControllerClient, name)))

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(controller: ControllerClient, *args: Any, **options: Any) -> Any:
            number = len(self.calls)
            self.calls.append(name)
            if 0 <= self.at < number or (self.at == number and not self.late):
                raise Killed
            result = call(controller, *args, **options)
            if name == "create_transaction":
                self.open.append((args[0], result.id))
            if self.at == number:
                raise Killed
            return result

        return wrapped

    def arm(self, at: int, *, late: bool) -> None:
        self.calls, self.at, self.late, self.open = [], at, late, []

    def revive(self) -> None:
        self.at = -1


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Kill:
    return Kill(monkeypatch)


@pytest.fixture
def tenants(client: PravegaClient, target: StreamName) -> list[StreamName]:
    """The target, and two more streams."""
    more = [StreamName(target.scope, f"{target.stream}-{name}") for name in ("b", "c")]
    for stream in more:
        client.create_stream(stream, 2)
    return [target, *more]


@pytest.fixture
def data(folder: Path, tenants: list[StreamName]) -> Path:
    """Three files whose samples go to the streams in turn: without a value, by name, and by name with the scope."""
    names = ["", tenants[1].stream, str(tenants[2])]
    for file in range(3):
        lines = "".join(f"{file},{sample},{names[sample % 3]}\n" for sample in range(_SAMPLES))
        (folder / f"{file:03}.csv").write_text("file,sample,tenant\n" + lines)
    return folder


def found(client: PravegaClient, stream: StreamName) -> list[tuple[int, int]]:
    """Return (file, sample) of all events that readers see, file by file in the order of the stream."""
    events = [json.loads(event) for event in client.read(stream)]
    assert all(set(event) == {"file", "sample"} for event in events)
    return sorted(((event["file"], event["sample"]) for event in events), key=lambda pair: pair[0])


def expected(number: int, files: int = 3) -> list[tuple[int, int]]:
    return [(file, sample) for file in range(files) for sample in range(number, _SAMPLES, 3)]


def assert_exact(client: PravegaClient, tenants: list[StreamName]) -> None:
    for number, stream in enumerate(tenants):
        assert found(client, stream) == expected(number), stream


@pytest.mark.parametrize("variant", _SIZES)
def test_each_record_is_in_its_stream(client, target, tenants, data, variant):
    summary = ingest(data, target, client=client, target_column="tenant", sizes=_SIZES[variant])
    assert (summary.counts.events, summary.counts.rewritten) == (3 * _SAMPLES, 0)
    assert_exact(client, tenants)
    again = ingest(data, target, client=client, target_column="tenant", sizes=_SIZES[variant])
    assert again.counts.events == 0


#: A run that is killed leaves what only the end of a process cleans up.
_killed = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning", "ignore::ResourceWarning")


@_killed
@pytest.mark.parametrize(
    "ended", [pytest.param(False, id="leases run", marks=pytest.mark.long), pytest.param(True, id="leases ended")]
)
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_kill_at_any_call_leaves_all_streams_of_a_step_or_none(client, tenants, data, kill, late, ended):
    """In each round, a run is killed at one of its calls, and another one continues."""
    kills = rewritten = missing = 0
    while True:
        first = StreamName(tenants[0].scope, f"{tenants[0].stream}-{kills}")
        client.create_stream(first, 2)
        before = [found(client, stream) for stream in tenants[1:]]
        kill.arm(kills, late=late)
        try:
            ingest(data, first, client=client, target_column="tenant", sizes=_SIZES["file"])
        except Killed:
            kills += 1
        else:
            break
        finally:
            kill.revive()
        statuses = [client.controller.transaction_status(*each) for each in kill.open]
        steps = [statuses[index : index + 3] for index in range(0, len(statuses), 3)]  # what decides is the first one
        missing += sum(step.count(TransactionStatus.OPEN) for step in steps if step[0].is_committed)
        for each, status in zip(kill.open, statuses, strict=True):
            if ended and status is TransactionStatus.OPEN:
                client.controller.abort_transaction(*each)
        counts = ingest(data, first, client=client, target_column="tenant", sizes=_SIZES["file"]).counts
        rewritten += counts.rewritten
        assert found(client, first) == expected(0)
        for number, (stream, old) in enumerate(zip(tenants[1:], before, strict=True), 1):
            assert found(client, stream) == sorted([*old, *expected(number)], key=lambda pair: pair[0]), stream
    assert kills == 2 * 6, "two steps, each with three transactions that begin and three that are committed"
    assert missing == 2 * (2 + 1), "in each step, a kill before the second and before the third commit"
    assert rewritten == (missing if ended else 0)


@pytest.mark.parametrize("variant", _SIZES)
def test_a_run_that_wakes_after_another_one_has_continued_repeats_nothing(
    client, target, tenants, data, monkeypatch, variant
):
    """The first run stops between the commit that decides its step and the next one, until another run has ended."""
    commit, summaries = ControllerClient.commit_transaction, list[IngestSummary]()
    options: dict[str, Any] = {"client": client, "target_column": "tenant", "sizes": _SIZES[variant]}

    def commit_late(controller: ControllerClient, stream: StreamName, *args: Any, **more: Any) -> Any:
        if stream != target:
            monkeypatch.setattr(ControllerClient, "commit_transaction", commit)
            controller.abort_transaction(stream, args[0])  # its lease ends
            summaries.append(ingest(data, target, takeover_after=0.0, **options))
        return commit(controller, stream, *args, **more)

    monkeypatch.setattr(ControllerClient, "commit_transaction", commit_late)
    ingest(data, target, **options)
    assert [summary.counts.rewritten for summary in summaries] == [1], "the other run has completed the step"
    assert_exact(client, tenants)


@pytest.mark.usefixtures("soon_sure")
@_killed
def test_each_forgotten_transaction_is_named_and_resolved(client, target, tenants, data, kill, monkeypatch):
    """The first transaction was committed and the others were not, and the servers have forgotten all of them."""
    kill.arm(4, late=False)
    with pytest.raises(Killed):
        ingest(data, target, client=client, target_column="tenant")
    kill.revive()
    for stream, transaction in kill.open:
        if client.controller.transaction_status(stream, transaction) is TransactionStatus.OPEN:
            client.controller.abort_transaction(stream, transaction)
    forgotten = {transaction for _, transaction in kill.open}
    status = StepLog.status

    def forgetful(log: StepLog, stream: StreamName, transaction: UUID) -> TransactionStatus:
        return TransactionStatus.UNKNOWN if transaction in forgotten else status(log, stream, transaction)

    def refused(call: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(controller: ControllerClient, stream: StreamName, transaction: UUID, *args: Any) -> Any:
            if transaction in forgotten:
                raise TransactionUnknownError("forgotten")
            return call(controller, stream, transaction, *args)

        return refuse

    monkeypatch.setattr(StepLog, "status", forgetful)
    for name in ("commit_transaction", "abort_transaction"):
        monkeypatch.setattr(ControllerClient, name, refused(getattr(ControllerClient, name)))
    with pytest.raises(StepUndecidedError) as found:
        ingest(data, target, client=client, target_column="tenant")
    for stream, transaction in kill.open:
        assert f"transaction {transaction} of stream {stream}" in str(found.value)
    first, *others = kill.open
    decisions: dict[str, Resolution] = {str(first[1]): "committed"}
    with pytest.raises(StepUndecidedError) as found:
        ingest(data, target, client=client, target_column="tenant", resolve=decisions)
    assert str(first[1]) not in str(found.value)
    decisions |= {str(transaction): "aborted" for _, transaction in others}
    summary = ingest(data, target, client=client, target_column="tenant", resolve=decisions)
    assert summary.counts.rewritten == 2
    assert_exact(client, tenants)


def test_a_part_whose_lease_ends_after_the_decision_is_written_again(client, target, tenants, data, monkeypatch):
    commit, ended = ControllerClient.commit_transaction, set[StreamName]()

    def commit_late(controller: ControllerClient, stream: StreamName, *args: Any, **options: Any) -> Any:
        if stream != target and stream not in ended:
            ended.add(stream)
            controller.abort_transaction(stream, args[0])
        return commit(controller, stream, *args, **options)

    monkeypatch.setattr(ControllerClient, "commit_transaction", commit_late)
    summary = ingest(data, target, client=client, target_column="tenant", sizes=_SIZES["count"])
    assert ended == set(tenants[1:])
    assert (summary.counts.rewritten, summary.counts.events) == (2, 3 * _SAMPLES)
    assert_exact(client, tenants)


@_killed
def test_what_a_part_needs_to_be_written_again_is_named(client, target, tenants, data, kill):
    kill.arm(4, late=False)  # three transactions, the commit that decides, and no other
    with pytest.raises(Killed):
        ingest(data, target, client=client, target_column="tenant")
    kill.revive()
    for stream, transaction in kill.open:
        if client.controller.transaction_status(stream, transaction) is TransactionStatus.OPEN:
            client.controller.abort_transaction(stream, transaction)
    first = data / "000.csv"
    content = first.read_text()
    first.write_text(content.replace("0,19", "0,99"))
    # An operator's decision is only about transactions that the servers have forgotten.
    decisions: dict[UUID, Resolution] = {transaction: "committed" for _, transaction in kill.open}
    with pytest.raises(SourceChangedError, match=r"000\.csv"):
        ingest(data, target, client=client, target_column="tenant", resolve=decisions)
    first.write_text(content)
    with pytest.raises(StepsStateError, match="column 'tenant'"):
        ingest(data, target, client=client)
    summary = ingest(data, target, client=client, target_column="tenant")
    assert summary.counts.rewritten == 2
    assert_exact(client, tenants)


def test_a_stream_that_does_not_exist_is_an_error_and_nothing_is_written(client, target, folder):
    (folder / "a.csv").write_text("file,sample,tenant\n0,0,\n0,1,missing\n")
    with pytest.raises(StreamNotFoundError, match="missing"):
        ingest(folder, target, client=client, target_column="tenant")
    assert found(client, target) == []
    created = {"allow_create_stream": "true"}
    ingest(folder, target, client=client, target_column="tenant", options=created)
    assert (found(client, target), found(client, StreamName(target.scope, "missing"))) == ([(0, 0)], [(0, 1)])


def test_the_file_with_an_invalid_name_is_left_out(client, target, folder):
    """Small files are encoded together."""
    for file, tenant in enumerate(["", "not a name", ""]):
        (folder / f"{file}.csv").write_text(f"file,sample,tenant\n{file},0,{tenant}\n{file},1,{target.stream}\n")
    settings = Settings(keep_going=True)
    sizes = Sizes(variant="file", files=3)
    summary = ingest(folder, target, client=client, target_column="tenant", sizes=sizes, settings=settings)
    assert [Path(source).name for source in summary.failed] == ["1.csv"]
    assert found(client, target) == [(0, 0), (0, 1), (2, 0), (2, 1)]


def test_a_record_for_a_stream_without_events_is_refused(client, target, folder):
    names = [f"{target.stream}-ingest", f"_MARK{target.stream}", "decisions"]
    client.create_stream(f"{target.scope}/decisions", 1, tags=[STATE_TAG])
    for name in names:
        (folder / "a.csv").write_text(f"file,sample,tenant\n0,0,\n0,1,{name}\n")
        with pytest.raises(BadRecordError, match=rf"a\.csv.*row 1 of column 'tenant': stream {target.scope}/{name} "):
            ingest(folder, target, client=client, target_column="tenant")
    with pytest.raises(InvalidNameError, match="has the state of exactly-once writes"):
        ingest(folder, StreamName(target.scope, names[0]), client=client)
    with pytest.raises(InvalidNameError, match="has the state of exactly-once writes"):
        ingest(folder, target, client=client, state=target.stream)
    assert found(client, target) == []
    (folder / "a.csv").write_text("file,sample,tenant\n0,0,\n")
    ingest(folder, target, client=client, target_column="tenant")
    assert found(client, target) == [(0, 0)]


def test_an_invalid_column_or_name_is_an_error(client, target, folder):
    (folder / "a.csv").write_text("file,sample,tenant\n0,0,not a name\n")
    with pytest.raises(BadRecordError, match=r"a\.csv.*invalid stream"):
        ingest(folder, target, client=client, target_column="tenant")
    with pytest.raises(ColumnTypeError, match="no column 'customer'"):
        ingest(folder, target, client=client, target_column="customer")
    with pytest.raises(ColumnTypeError, match="not a string"):
        plan(folder, target, client=client, target_column="file")
    registry = {"registry": "http://localhost:1", "format": "json"}
    with pytest.raises(ConfigError, match="option 'group'"):
        plan(folder, target, client=client, target_column="tenant", options=registry)
    assert found(client, target) == []
