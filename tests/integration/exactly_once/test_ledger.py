"""The commit table on real servers: what the model explores, with transactions that are real."""

import dataclasses
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector.client import RetentionPolicy, ScalingPolicy, TransactionStatus
from pravega_connector.controller.targets import target_of
from pravega_connector.errors import (
    AppIdReusedError,
    ConfigError,
    DuplicateWriteError,
    FencedError,
    LeaseExpiredError,
    LedgerFormatError,
    LedgerMissingError,
    LedgerTruncatedError,
    ReplayDiffersError,
    TornBatchError,
    UnfinishedBatchError,
)
from pravega_connector.exactly_once.batch_commit import (
    AppState,
    Commit,
    Entry,
    Key,
    Ledger,
    LedgerState,
    Outcome,
    Phase,
    Recovery,
    Role,
    Snapshot,
    carry_out,
    check,
    content_of,
    fold,
)
from pravega_connector.operations.cli import main
from tests.integration.exactly_once.conftest import Target

Sees = Callable[..., None]


def test_a_batch_becomes_visible_with_its_commit(target: Target, sees: Sees):
    parts = [target.write(b"a"), target.write(b"b"), target.write(b"c", b"d")]
    assert target.events() == []
    machine = target.commit(0, *parts)
    assert machine.outcome is Outcome.COMMITTED
    sees(b"a", b"b", b"c", b"d")
    _, state = target.ledger.read()
    assert (state[target.key].last, state[target.key].open) == (0, None)
    assert state[target.key].recent == ((0, content_of(parts)),)


@pytest.mark.parametrize("at", [Phase.RECORD, Phase.COMMIT_REST, Phase.COMMIT_PILOT, Phase.PING_RECORDED])
def test_what_was_recorded_is_finished_by_the_next_run(target: Target, sees: Sees, at: Phase):
    first = [target.write(b"a"), target.write(b"b")]
    target.crash(at, 0, *first)
    again = [target.write(b"a", b"b")]  # another number of partitions
    assert target.commit(0, *again, run="run-2").outcome is Outcome.COMMITTED
    sees(b"a", b"b")
    assert target.status(again[0]) in (TransactionStatus.ABORTING, TransactionStatus.ABORTED)


def test_what_was_not_recorded_is_written_by_the_next_run(target: Target, sees: Sees):
    target.crash(Phase.PREPARE, 0, target.write(b"a"))
    target.commit(0, target.write(b"a"), run="run-2")
    sees(b"a")


def test_a_batch_that_is_committed_is_not_written_again(target: Target, sees: Sees):
    target.commit(0, target.write(b"a"))
    assert target.commit(0, target.write(b"a"), run="run-2").outcome is Outcome.SKIPPED
    sees(b"a")


def test_two_writes_of_one_batch_by_one_run_are_an_error(target: Target, sees: Sees):
    target.commit(0, target.write(b"a"))
    with pytest.raises(DuplicateWriteError, match="txn_app_id"):
        target.commit(0, target.write(b"b"))
    sees(b"a")


def test_a_run_that_was_followed_by_another_is_fenced(target: Target, sees: Sees):
    target.commit(0, target.write(b"a"), run="run-1")
    target.commit(1, target.write(b"b"), run="run-2")
    with pytest.raises(FencedError, match="checkpoint"):
        target.commit(2, target.write(b"c"), run="run-1")
    sees(b"a", b"b")


def test_a_lost_transaction_fails_the_batch_and_the_next_run_writes_it(target: Target, sees: Sees):
    lost, other = target.write(b"a"), target.write(b"b")
    target.abort(lost)
    with pytest.raises(LeaseExpiredError, match="transaction_timeout_ms"):
        target.commit(0, other, lost)
    assert target.events() == []
    target.commit(0, target.write(b"a", b"b"), run="run-2")
    sees(b"a", b"b")


def test_a_set_whose_pilot_is_lost_is_replaced(target: Target, sees: Sees):
    pilot, other = target.write(b"a"), target.write(b"b")
    target.crash(Phase.COMMIT_PILOT, 0, pilot, other)
    target.abort(pilot)
    target.commit(0, target.write(b"b"), target.write(b"a"), run="run-2")
    sees(b"a", b"b")
    assert target.status(other).is_aborted


def test_lost_rows_that_come_again_repair_a_torn_batch(target: Target, sees: Sees):
    pilot, other = target.write(b"a"), target.write(b"b")
    target.crash(Phase.COMMIT_REST, 0, pilot, other)
    target.abort(other)
    target.commit(0, target.write(b"a"), target.write(b"b"), run="run-2")
    sees(b"a", b"b")


def test_a_torn_batch_is_reported_and_an_operator_accepts_it(target: Target, sees: Sees):
    pilot, other = target.write(b"a"), target.write(b"b")
    target.crash(Phase.COMMIT_REST, 0, pilot, other)
    target.abort(other)
    with pytest.raises(TornBatchError, match=str(other.transaction)):
        target.commit(0, target.write(b"a", b"b"), run="run-2")
    recovery = Recovery(target.client.stores, target.stream, target.ledger)
    assert recovery.finish("query") is Outcome.TORN
    recovery.resolve("query", "accept")
    assert target.commit(0, target.write(b"a", b"b"), run="run-3").outcome is Outcome.SKIPPED
    sees(b"a")


def test_an_operator_discards_a_torn_batch_and_it_is_written_again(target: Target, sees: Sees):
    pilot, other = target.write(b"a"), target.write(b"b")
    target.crash(Phase.COMMIT_REST, 0, pilot, other)
    target.abort(other)
    Recovery(target.client.stores, target.stream, target.ledger).resolve("query", "discard")
    target.commit(0, target.write(b"a", b"b"), run="run-2")
    sees(b"a", b"a", b"b")


def test_a_batch_that_is_visible_as_a_whole_is_not_discarded(target: Target, sees: Sees):
    target.crash(Phase.RECORD, 0, target.write(b"a"), target.write(b"b"))
    recovery = Recovery(target.client.stores, target.stream, target.ledger)
    for choice in ("discard", "accept"):
        with pytest.raises(ConfigError, match=r"completely visible: finish it instead\. .* would write it twice"):
            recovery.resolve("query", choice)
    assert recovery.finish("query") is Outcome.COMMITTED
    assert target.commit(0, target.write(b"a", b"b"), run="run-2").outcome is Outcome.SKIPPED
    sees(b"a", b"b")


def test_a_batch_without_a_visible_row_is_not_accepted(target: Target, sees: Sees):
    pilot, other = target.write(b"a"), target.write(b"b")
    target.crash(Phase.COMMIT_PILOT, 0, pilot, other)
    target.abort(pilot)
    recovery = Recovery(target.client.stores, target.stream, target.ledger)
    with pytest.raises(ConfigError, match="still has open transactions"):
        recovery.resolve("query", "accept")
    target.abort(other)
    with pytest.raises(ConfigError, match="no row of batch 0 of query is visible, so accepting it would lose all rows"):
        recovery.resolve("query", "accept")
    assert recovery.finish("query") is Outcome.UNFINISHED
    target.commit(0, target.write(b"a", b"b"), run="run-2")
    sees(b"a", b"b")


@pytest.mark.parametrize("lost", [False, True])
def test_an_older_checkpoint_continues_after_the_later_batch_is_finished(target: Target, sees: Sees, lost: bool):
    """Batch 2 is prepared when the checkpoint is put back to batch 1."""
    for batch in range(2):
        target.commit(batch, target.write(b"%d" % batch))
    later = target.write(b"2")
    target.crash(Phase.COMMIT_PILOT, 2, later)
    if lost:
        target.abort(later)
    for _ in range(2):
        with pytest.raises(FencedError, match=rf"batch 2 .*only at batch 1.*recover {target.stream} --finish"):
            target.commit(1, target.write(b"1"), run="run-2")
    finished = Recovery(target.client.stores, target.stream, target.ledger).finish("query")
    assert finished is (Outcome.UNFINISHED if lost else Outcome.COMMITTED)
    for batch in range(1, 3):
        target.commit(batch, target.write(b"%d" % batch), run="run-3")
    sees(b"0", b"1", b"2")


def test_an_operator_forgets_an_application(target: Target, sees: Sees):
    recovery = Recovery(target.client.stores, target.stream, target.ledger)
    target.commit(5, target.write(b"a"))
    with pytest.raises(ConfigError, match=r"knows no 'other'.*it knows: query"):
        recovery.forget("query", "other")
    target.crash(Phase.RECORD, 6, target.write(b"b"))
    with pytest.raises(ConfigError, match="batch 6 of query is open: finish it before"):
        recovery.forget("query")
    assert recovery.forget_older(0) == []
    recovery.finish("query")
    recovery.forget("query")
    assert (recovery.survey(), target.ledger.read()[1]) == ([], {})
    with pytest.raises(LedgerMissingError):
        target.commit(7, target.write(b"c"), run="run-2", adopt=False)
    assert target.commit(5, target.write(b"a"), run="run-2").outcome is Outcome.COMMITTED, "it is new"
    sees(b"a", b"a", b"b")


def test_an_operator_forgets_by_age_what_is_not_open(target: Target):
    now = time.time_ns() // 1_000_000
    ages = {"old": 90 * 86_400, "recent": 60, "open": 90 * 86_400}
    for app, age in ages.items():
        job = dataclasses.replace(target.job(0), app=app, time=now - 1000 * age)
        carry_out(Commit(job), target.servers())
    at = Commit(dataclasses.replace(target.job(1, target.write(b"x")), app="open", time=now - 90 * 86_400_000))
    while at.phase is not Phase.COMMIT_PILOT:
        at = at.answered(target.servers().answer(at.request()))
    carry_out(Commit(dataclasses.replace(target.job(0), app="gone", target=f"{target.stream}#77")), target.servers())
    carry_out(Commit(dataclasses.replace(target.job(0), app="elsewhere", target="s/other#0")), target.servers())
    recovery = Recovery(target.client.stores, target.stream, target.ledger)
    assert recovery.forget_older(30 * 86_400) == ["gone", "old"]
    assert [finding.app.app for finding in recovery.survey()] == ["open", "recent"]
    with Ledger(target.client.stores, target.ledger.name) as fresh:
        assert {key.app for key in fresh.read()[1]} == {"elsewhere", "open", "recent"}


def test_what_was_forgotten_is_in_no_snapshot(target: Target, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pravega_connector.exactly_once.batch_commit.state.COMPACT_AFTER", 8)
    monkeypatch.setattr("pravega_connector.exactly_once.batch_commit.state.SNAPSHOT_BYTES", 2000)
    for app in range(20):
        carry_out(Commit(dataclasses.replace(target.job(app), app=f"app {app:02}")), target.servers())
    assert target.ledger.compact()
    before = list(target.ledger.history())
    assert sum(isinstance(entry, Snapshot) for _, entry in before) > 2
    Recovery(target.client.stores, target.stream, target.ledger).forget(*(f"app {app:02}" for app in range(0, 20, 2)))
    expected = {f"app {app:02}": app for app in range(1, 20, 2)}
    for first in (20, 30):
        for ledger in (target.ledger, Ledger(target.client.stores, target.ledger.name)):
            assert {key.app: app.last for key, app in ledger.read()[1].items()} == expected
        for batch in range(first, first + 9):
            target.commit(batch)
        target.ledger.read()
        assert target.ledger.compact()
        expected["query"] = first + 8


def test_a_ledger_is_folded_once_however_many_entries_it_has(target: Target, monkeypatch: pytest.MonkeyPatch):
    for app in range(30):
        carry_out(Commit(dataclasses.replace(target.job(0), app=f"app {app}")), target.servers())
    folded: list[int] = []

    def counting(entries: list[Entry], state: LedgerState | None = None) -> dict[Key, AppState]:
        folded.append(len(entries))
        return fold(entries, state)

    monkeypatch.setattr("pravega_connector.exactly_once.batch_commit.state.fold", counting)
    with Ledger(target.client.stores, target.ledger.name) as fresh:
        for _ in range(2):
            assert len(fresh.read()[1]) == 30
    assert folded == [30]


def test_recover_forgets(target: Target, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", target.client.config.controller)
    for app in ("one", "two", "three"):
        carry_out(Commit(dataclasses.replace(target.job(0), app=app)), target.servers())

    def left(*options: str) -> set[str]:
        with pytest.raises(SystemExit) as ended:
            main(["recover", str(target.stream), "--json", *options])
        assert not ended.value.code
        return {each["application"] for each in json.loads(capsys.readouterr().out)["applications"]}

    assert left("--forget", "one", "--forget", "two") == {"three"}
    assert left("--forget-older", "90d") == set()


def test_an_operator_finishes_a_batch_without_spark(target: Target, sees: Sees):
    target.crash(Phase.COMMIT_PILOT, 0, target.write(b"a"), target.write(b"b"))
    recovery = Recovery(target.client.stores, target.stream, target.ledger)
    assert [finding.verdict for finding in recovery.survey()] == ["all live"]
    assert recovery.finish("query") is Outcome.COMMITTED
    sees(b"a", b"b")
    assert [finding.verdict for finding in recovery.survey()] == ["nothing to do"]
    target.commit(1, target.write(b"c"), run="run-1")  # an operator is not a run that would fence the query's
    sees(b"a", b"b", b"c")


def test_a_batch_without_tasks_finishes_what_was_recorded_of_it(target: Target, sees: Sees):
    target.crash(Phase.COMMIT_PILOT, 0, target.write(b"a"))
    target.commit(0, role=Role.BYSTANDER, run="")
    sees(b"a")


def test_a_batch_without_tasks_cannot_replace_what_is_lost(target: Target):
    part = target.write(b"a")
    target.crash(Phase.COMMIT_PILOT, 0, part)
    target.abort(part)
    with pytest.raises(UnfinishedBatchError, match="recover"):
        target.commit(0, role=Role.BYSTANDER, run="")


def test_a_batch_without_tasks_stops_what_was_on_its_way(target: Target):
    """A driver that read the ledger before, and appends after, is refused: it starts again and sees the truth."""
    slow = target.crash(Phase.PREPARE, 0, target.write(b"a"))
    target.commit(0, role=Role.BYSTANDER, run="")
    assert slow.answered(target.servers().answer(slow.request())).phase is Phase.READ


def test_an_empty_batch_has_no_transaction_and_is_remembered(target: Target):
    target.commit(0)
    assert target.commit(0, run="run-2").outcome is Outcome.SKIPPED
    late = target.write(b"a")
    with pytest.raises(ReplayDiffersError, match=r"committed with 0 rows, 0 bytes.*1 rows, 1 bytes"):
        target.commit(0, late, run="run-3")
    assert target.status(late).is_aborted
    assert target.events() == []


def test_a_batch_that_is_repeated_with_other_rows_is_not_skipped(target: Target, sees: Sees):
    target.commit(0, target.write(b"a", b"b"))
    before = target.ledger.read()
    for others in ((b"a", b"c"), (b"a", b"b", b"b"), (b"a",), ()):
        parts = [target.write(*others)] if others else []
        with pytest.raises(ReplayDiffersError, match="accept_recorded_batch to 0"):
            target.commit(0, *parts, run=f"run {others}")
        assert all(target.status(part).is_aborted for part in parts)
    assert target.ledger.read() == before, "nothing was recorded"
    sees(b"a", b"b")
    assert target.commit(0, target.write(b"b"), target.write(b"a"), run="another").outcome is Outcome.SKIPPED


@pytest.mark.parametrize("at", [Phase.RECORD, Phase.COMMIT_REST, Phase.PING_RECORDED])
def test_a_recorded_batch_is_finished_and_other_rows_are_refused(target: Target, sees: Sees, at: Phase):
    target.crash(at, 0, target.write(b"a"), target.write(b"b"))
    other = target.write(b"c")
    with pytest.raises(ReplayDiffersError, match=r"committed with 2 rows, 2 bytes.*other rows \(1 rows, 1 bytes\)"):
        target.commit(0, other, run="run-2")
    assert target.status(other).is_aborted
    sees(b"a", b"b")
    assert target.commit(0, target.write(b"a", b"b"), run="run-3").outcome is Outcome.SKIPPED


def test_two_drivers_with_other_rows_for_one_batch(target: Target, sees: Sees):
    """Both read the ledger before either appended; the second gets an error, and its rows are not lost."""
    slow = target.crash(Phase.PREPARE, 0, target.write(b"a", b"b"), run="slow")
    target.commit(0, target.write(b"a"), run="fast")
    with pytest.raises(ReplayDiffersError, match="committed with 1 rows"):
        check(carry_out(slow, target.servers()), target.stream)
    sees(b"a")


def test_a_recorded_batch_is_accepted_once(target: Target, sees: Sees, caplog: pytest.LogCaptureFixture):
    target.commit(0, target.write(b"a"))
    with pytest.raises(ReplayDiffersError):
        target.commit(0, target.write(b"x"), run="run-2", accept=1)
    assert target.commit(0, target.write(b"x", b"y"), run="run-3", accept=0).outcome is Outcome.SKIPPED
    assert "stays as recorded, with 1 rows, 1 bytes; the other rows" in caplog.text
    target.crash(Phase.COMMIT_PILOT, 1, target.write(b"b"), run="run-3")
    assert target.commit(1, target.write(b"z"), run="run-4", accept=1).outcome is Outcome.COMMITTED
    sees(b"a", b"b")


def test_a_number_that_nothing_is_known_of_is_not_passed_over(
    target: Target, sees: Sees, caplog: pytest.LogCaptureFixture
):
    target.commit(1, target.write(b"a"))
    target.commit(3, target.write(b"b"))
    assert target.commit(1, target.write(b"a"), run="run-2").outcome is Outcome.SKIPPED
    late = target.write(b"c")
    with pytest.raises(ReplayDiffersError, match="batch 3 is committed, and this earlier batch is not in the ledger"):
        target.commit(2, late, run="run-2")
    assert target.status(late).is_aborted
    assert target.commit(2, target.write(b"c"), run="run-2", accept=2).outcome is Outcome.SKIPPED
    assert "the ledger does not have it, and batch 3 is committed" in caplog.text
    sees(b"a", b"b")


def test_nothing_is_recorded_before_the_last_batch_is_visible(target: Target, sees: Sees):
    first, second = [target.write(b"a"), target.write(b"b")], target.write(b"c")
    target.commit(0, *first)
    machine = target.crash(Phase.PREPARE, 1, second)
    statuses = {target.status(part) for part in first}
    assert statuses == {TransactionStatus.COMMITTED}
    assert carry_out(machine, target.servers()).outcome is Outcome.COMMITTED
    sees(b"a", b"b", b"c")


def test_a_query_that_the_ledger_should_know_is_not_adopted_in_silence(target: Target, sees: Sees):
    with pytest.raises(LedgerMissingError, match="ledger_adopt"):
        target.commit(7, target.write(b"a"), adopt=False)
    target.commit(7, target.write(b"a"), run="run-2", adopt=True)
    sees(b"a")


def test_an_application_id_belongs_to_one_query(target: Target):
    target.commit(5, target.write(b"a"))
    job = dataclasses.replace(target.job(0, target.write(b"b"), run="other"), query="another query")
    with pytest.raises(AppIdReusedError, match="txn_app_id"):
        check(carry_out(Commit(job), target.servers()), target.stream)


def test_many_drivers_at_once_make_a_batch_visible_once(target: Target, sees: Sees):
    """Each has separate rows for each batch, and its own view of the ledger; any of them may win."""

    def drive(run: str) -> None:
        with Ledger(target.client.stores, target.ledger.name) as ledger:
            for batch in range(3):
                own = [target.write(b"%d-a" % batch), target.write(b"%d-b" % batch)]
                try:
                    target.commit(batch, *own, run=run, ledger=ledger)
                except (FencedError, LeaseExpiredError):
                    return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(drive, [f"run-{number}" for number in range(4)]))  # raises what any of them raised
    _, state = target.ledger.read()
    visible = state[target.key].last + 1
    for batch in range(visible, 3):  # those that fenced each other off leave the rest to a last run
        target.commit(batch, target.write(b"%d-a" % batch), target.write(b"%d-b" % batch), run="last")
    sees(*(b"%d-%s" % (batch, row) for batch in range(3) for row in (b"a", b"b")))


def test_a_compacted_ledger_says_the_same(target: Target, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pravega_connector.exactly_once.batch_commit.state.COMPACT_AFTER", 4)
    behind, beside, fresh = (Ledger(target.client.stores, target.ledger.name) for _ in range(3))
    behind.read()
    compactions = 0
    for batch in range(8):
        target.commit(batch)
        beside.read()
        if target.ledger.compact():
            compactions += 1
            again = [each.compact() for each in (target.ledger, beside)]
            assert again == [False, False], "entries are kept until the next time, for those who are reading them"
    assert compactions >= 2, "the ledger was not compacted"
    assert fresh.read() == target.ledger.read() == behind.read()
    assert fresh.read()[1][target.key].last == 7
    assert len(list(fresh.history())) < 12


def test_a_driver_that_slept_over_compactions_is_fenced(target: Target, sees: Sees, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pravega_connector.exactly_once.batch_commit.state.COMPACT_AFTER", 4)
    target.commit(0, target.write(b"0"), run="run-1")
    asleep = target.crash(Phase.PREPARE, 1, target.write(b"1"), run="run-1")
    with Ledger(target.client.stores, target.ledger.name) as another:
        another.read()
        compactions = 0
        for batch in range(1, 9):
            target.commit(batch, target.write(b"%d" % batch), run="run-2", ledger=another)
            another.read()
            compactions += another.compact()
        assert compactions > 2, "nothing was truncated"
    with pytest.raises(FencedError, match="another run of this query has taken over"):
        check(carry_out(asleep, target.servers()), target.stream)
    sees(*(b"%d" % batch for batch in range(9)))


def test_a_ledger_with_a_retention_policy_is_refused(target: Target):
    controller, name = target.client.controller, target.ledger.name
    config = controller.stream_config(name)
    controller.update_stream(name, dataclasses.replace(config, retention=RetentionPolicy.by_time(60_000)))
    with pytest.raises(ConfigError, match=f"ledger {name} has a retention policy.*update_stream"):
        Ledger(target.client.stores, name)
    controller.update_stream(name, config)
    Ledger(target.client.stores, name).close()


@pytest.mark.parametrize("compactions", [0, 2])
def test_a_ledger_that_was_truncated_says_what_to_do(target: Target, compactions: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pravega_connector.exactly_once.batch_commit.state.COMPACT_AFTER", 4 if compactions else 1000)
    done = 0
    for batch in range(8):
        target.commit(batch, target.write(b"%d" % batch))
        target.ledger.read()
        done += target.ledger.compact()
    assert done >= compactions
    target.client.controller.truncate_stream(target.client.tail(target.ledger.name))
    with Ledger(target.client.stores, target.ledger.name) as fresh:
        for ledger in (fresh, fresh):
            with pytest.raises(LedgerTruncatedError, match="delete the ledger, and set ledger_adopt"):
                target.commit(8, target.write(b"8"), ledger=ledger)


def test_a_stream_that_is_not_a_ledger_is_refused(target: Target):
    with target.client.revisioned(target.ledger.name) as stream:
        stream.write_unconditionally(b"hello")
    with pytest.raises(LedgerFormatError, match="another program"):
        target.commit(0, target.write(b"a"))


def test_a_target_has_one_name_until_it_is_created_again(target: Target):
    client, stream = target.client, target.stream
    late = target.write(b"a")
    client.controller.scale_stream(stream, [0], [(0.0, 0.25), (0.25, 0.5)])
    target.commit(0, late)  # across a scaling, which gives all segments other ids
    client.controller.truncate_stream(client.tail(stream))
    assert target_of(client.controller, stream) == target.creation
    names = {target.creation}
    for _ in range(2):
        client.delete_stream(stream)
        client.create_stream(stream, ScalingPolicy.fixed(2))
        names.add(target_of(client.controller, stream))
    assert len(names) == 3
