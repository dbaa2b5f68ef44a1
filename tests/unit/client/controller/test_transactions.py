"""Results for the controller's answers about transactions: a decision, a refusal, or neither."""

import threading
import time
import uuid
from collections.abc import Callable

import pytest

from pravega_connector import metrics
from pravega_connector.client import TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.controller import rpc, transactions
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.controller.transactions import CommitWatch
from pravega_connector.core import retry
from pravega_connector.errors import (
    AuthenticationError,
    ConfigError,
    ControllerError,
    ControllerFailureError,
    ControllerUnavailableError,
    LeaseRangeError,
    OutcomeUnknownError,
    StreamNotFoundError,
    StreamSealedError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionUnknownError,
)
from pravega_connector.wire import SegmentRange
from tests.support.fakes import FakeController
from tests.support.stopwatch import Stopwatch
from tests.unit.client.controller._answers import STREAM, Code

ID = uuid.UUID("80000001-0000-0002-ffff-ffff00000003")  # both halves are negative as Java's longs
Status = TransactionStatus
SUCCESS, FAILURE = (pb.TxnStatus(status=s) for s in (pb.TxnStatus.SUCCESS, pb.TxnStatus.FAILURE))
Action = Callable[..., TransactionStatus]


def state(name: str) -> pb.TxnState:
    return pb.TxnState(state=pb.TxnState.State.Value(name))


def ping(name: str) -> pb.PingTxnStatus:
    return pb.PingTxnStatus(status=pb.PingTxnStatus.Status.Value(name))


@pytest.fixture(params=["commit", "abort"])
def wish(request: pytest.FixtureRequest, client: ControllerClient) -> tuple[str, Action, Status]:
    """The controller's method, the client's method, and the wanted status."""
    if request.param == "commit":
        return "commitTransaction", client.commit_transaction, Status.COMMITTING
    return "abortTransaction", client.abort_transaction, Status.ABORTING


# ---------------------------------------------------------------- beginning


def test_a_transaction_is_begun_with_its_id_and_the_parents_of_its_segments(fake, client):
    segment = pb.SegmentRange(segmentId=pb.SegmentId(segmentId=1 << 32 | 1), minKey=0, maxKey=1)
    txn_id = pb.TxnId(highBits=-(2**63) + (1 << 32) + 2, lowBits=-(1 << 32) + 3)
    fake.on("createTransaction", pb.CreateTxnResponse(txnId=txn_id, activeSegments=[segment]))
    created = client.create_transaction(STREAM, 30_000)
    assert created.id == ID
    assert created.segments == [SegmentRange(1 << 32 | 1, 0, 1)]
    request = fake.calls[0].request
    assert (request.streamInfo.scope, request.streamInfo.stream, request.lease) == ("scope", "stream", 30_000)


@pytest.mark.parametrize(
    ("said", "longest", "told"),
    [
        ("lease value too large, max value is 120000", 120.0, "longer than 120 s"),
        ("lease should be greater than minimum lease", None, "10 s by default"),
    ],
)
def test_a_lease_that_the_server_refuses_is_reported_with_its_bounds(said, longest, told):
    with FakeController(details=said) as fake, ControllerClient(PravegaConfig(controller=fake.uri)) as client:
        fake.on("createTransaction", Code.UNKNOWN)
        with pytest.raises(LeaseRangeError, match=told) as caught:
            client.create_transaction(STREAM, 1)
    assert (caught.value.longest, caught.value.fault) == (longest, "local")


@pytest.mark.usefixtures("five_failures")
def test_another_failure_at_the_beginning_is_not_treated_as_the_lease(fake, client):
    fake.on("createTransaction", Code.UNKNOWN).on("getCurrentSegments", pb.SegmentRanges(segmentRanges=[{}]))
    with pytest.raises(ControllerError, match="said the fake") as caught:
        client.create_transaction(STREAM, 30_000)
    assert type(caught.value) is ControllerFailureError


def test_a_sealed_stream_takes_no_transactions(fake, client):
    fake.on("createTransaction", Code.INTERNAL).on("getCurrentSegments", pb.SegmentRanges())
    with pytest.raises(StreamSealedError):
        client.create_transaction(STREAM, 30_000)


def test_a_missing_stream_takes_no_transactions(fake, client):
    exists = pb.ExistsResponse(exists=True)
    fake.on("createTransaction", Code.NOT_FOUND).on("checkStreamExists", pb.ExistsResponse())
    fake.on("checkScopeExists", exists).on("getCurrentSegments", Code.NOT_FOUND)
    with pytest.raises(StreamNotFoundError):
        client.create_transaction(STREAM, 30_000)


@pytest.mark.parametrize("lease", [0, -1, 2**63])
def test_a_lease_that_is_not_a_java_long_is_refused_here(client, lease):
    with pytest.raises(ConfigError, match="positive number of milliseconds"):
        client.create_transaction(STREAM, lease)
    with pytest.raises(ConfigError, match="positive number of milliseconds"):
        client.ping_transaction(STREAM, ID, lease)


# ---------------------------------------------------------------- commit and abort


def test_an_id_goes_to_the_controller_as_two_longs(fake, wish):
    method, act, _ = wish
    fake.on(method, SUCCESS)
    act(STREAM, ID)
    request = fake.calls[0].request
    assert (request.streamInfo.scope, request.streamInfo.stream) == ("scope", "stream")
    assert uuid.UUID(int=(request.txnId.highBits % 2**64) << 64 | request.txnId.lowBits % 2**64) == ID


def test_success_is_a_decision(fake, wish):
    method, act, decided = wish
    fake.on(method, SUCCESS)
    assert act(STREAM, ID) is decided
    assert fake.count("checkTransactionState") == 0


@pytest.mark.usefixtures("five_failures")
@pytest.mark.parametrize("answer", [FAILURE, Code.INTERNAL, pb.TxnStatus(status=pb.TxnStatus.TRANSACTION_NOT_FOUND)])
@pytest.mark.parametrize("now", ["COMMITTING", "COMMITTED", "ABORTING", "ABORTED", "UNKNOWN"])
def test_any_other_answer_is_settled_by_the_state(fake, wish, monkeypatch, answer, now):
    monkeypatch.setattr(transactions, "_UNKNOWN_PAUSE", 0.0)
    method, act, decided = wish
    fake.on(method, answer).on("checkTransactionState", state(now))
    reached = Status[now]
    if (reached.is_committed, reached.is_aborted) == (decided.is_committed, decided.is_aborted):
        assert act(STREAM, ID) is reached
        return
    errors = {"C": TransactionCommittedError, "A": TransactionAbortedError, "U": TransactionUnknownError}
    with pytest.raises(errors[now[0]], match=str(ID)):
        act(STREAM, ID)


def test_while_it_is_open_it_is_asked_for_again(fake, wish):
    method, act, decided = wish
    fake.on(method, FAILURE, FAILURE, SUCCESS).on("checkTransactionState", state("OPEN"))
    assert act(STREAM, ID) is decided
    assert (fake.count(method), fake.count("checkTransactionState")) == (3, 2)


@pytest.mark.usefixtures("five_failures")
def test_nothing_learned_in_time_is_its_own_error(fake, wish):
    method, act, _ = wish
    fake.on(method, FAILURE).on("checkTransactionState", state("OPEN"))
    with pytest.raises(OutcomeUnknownError, match=r"unknown after 60 s \(the controller answered with a failure\)"):
        act(STREAM, ID, timeout=60)


def test_a_controller_that_goes_away_leaves_the_outcome_unknown(fake, wish):
    _, act, _ = wish
    fake.close()
    begin = Stopwatch()
    with pytest.raises(OutcomeUnknownError, match="could not be reached"):
        act(STREAM, ID, timeout=1)
    assert begin.within(10)


def test_an_answer_that_never_comes_leaves_time_to_ask_for_the_state(fake, wish):
    method, act, decided = wish
    released = threading.Event()

    def hang(request: pb.TxnRequest) -> pb.TxnStatus:
        released.wait(20)
        return SUCCESS

    fake.on(method, hang).on("checkTransactionState", state(decided.name))
    begin = Stopwatch()
    assert act(STREAM, ID, timeout=2) is decided
    assert begin.within(2)
    released.set()


LOST = [Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.INTERNAL, FAILURE]


@pytest.mark.parametrize("lost", LOST)
def test_a_commit_whose_answer_is_lost_is_asked_about_at_once_and_sent_once(fake, client, monkeypatch, lost):
    """A second one, while the first is at work, would stay in the controller's order of commits."""
    monkeypatch.setattr(retry, "_FIRST_PAUSE", 1000.0)  # more than there is: any pause would be the end
    monkeypatch.setattr(retry, "_LONGEST_PAUSE", 1000.0)
    fake.on("commitTransaction", lost, SUCCESS).on("checkTransactionState", state("COMMITTING"))
    assert client.commit_transaction(STREAM, ID) is Status.COMMITTING
    assert [call.name for call in fake.calls] == ["commitTransaction", "checkTransactionState"]


@pytest.mark.parametrize("lost", LOST)
def test_a_commit_is_sent_again_only_when_the_controller_says_that_it_is_open(fake, client, monkeypatch, lost):
    monkeypatch.setattr(rpc, "PASSING_SECONDS", 0.2)  # so the call that asks gives up, and is made again
    dumb = [Code.UNAVAILABLE, *[Code.INTERNAL] * 20]
    fake.on("commitTransaction", lost, lost, SUCCESS)
    fake.on("checkTransactionState", *dumb, state("OPEN"))
    assert client.commit_transaction(STREAM, ID) is Status.COMMITTING
    asked = ["checkTransactionState"] * (len(dumb) + 1)
    again = ["commitTransaction", "checkTransactionState", "commitTransaction"]
    assert [call.name for call in fake.calls] == ["commitTransaction", *asked, *again]


def test_amid_a_failover_an_unknown_transaction_is_asked_for_again(fake, client, monkeypatch):
    """The records may be asked for at a store that has lost them."""
    monkeypatch.setattr(transactions, "_UNKNOWN_PAUSE", 0.0)
    fake.on("commitTransaction", Code.UNAVAILABLE)
    fake.on("checkTransactionState", *[state("UNKNOWN")] * 3, state("COMMITTED"))
    assert client.commit_transaction(STREAM, ID) is Status.COMMITTED
    fake.on("checkTransactionState", state("UNKNOWN"))
    with pytest.raises(TransactionUnknownError):
        client.commit_transaction(STREAM, ID)
    assert (fake.count("commitTransaction"), fake.count("checkTransactionState")) == (2, 8)


def test_a_controller_that_reports_no_state_leaves_the_outcome_unknown(fake, client):
    """It may have taken the commit, and be at work: a second one does not exist."""
    fake.on("commitTransaction", Code.UNAVAILABLE, SUCCESS).on("checkTransactionState", Code.UNAVAILABLE)
    with pytest.raises(OutcomeUnknownError, match=r"could not be reached for [1-9].*query its status"):
        client.commit_transaction(STREAM, ID, timeout=1.5)
    assert fake.count("commitTransaction") == 1


def test_a_state_that_cannot_be_had_is_asked_for_again(fake, client):
    fake.on("commitTransaction", FAILURE)
    fake.on("checkTransactionState", Code.INTERNAL, Code.INTERNAL, Code.INTERNAL, state("COMMITTED"))
    assert client.commit_transaction(STREAM, ID) is Status.COMMITTED


def test_missing_permission_is_reported_at_once(fake, wish):
    method, act, _ = wish
    fake.on(method, Code.PERMISSION_DENIED)
    with pytest.raises(AuthenticationError):
        act(STREAM, ID)
    fake.on(method, FAILURE).on("checkTransactionState", Code.UNAUTHENTICATED)
    with pytest.raises(AuthenticationError):
        act(STREAM, ID)


def test_a_commit_can_wait_until_readers_see_it(fake, client):
    fake.on("commitTransaction", SUCCESS)
    fake.on("checkTransactionState", state("COMMITTING"), Code.ABORTED, state("COMMITTED"))
    assert client.commit_transaction(STREAM, ID, wait=True) is Status.COMMITTED


def test_a_commit_that_is_decided_is_one_also_when_the_wait_is_too_short(fake, client):
    fake.on("commitTransaction", SUCCESS).on("checkTransactionState", state("COMMITTING"))
    assert client.commit_transaction(STREAM, ID, wait=True, timeout=0.5) is Status.COMMITTING


def test_a_commit_that_does_not_become_visible_is_asked_for_again(fake, client, monkeypatch):
    """The server has decided it, and then lost the entry in its list of work."""
    monkeypatch.setattr(transactions, "_ASK_AGAIN", 0.5)
    fake.on("commitTransaction", SUCCESS)
    visible = lambda request: state("COMMITTED" if fake.count("commitTransaction") > 1 else "COMMITTING")
    fake.on("checkTransactionState", visible)
    assert client.commit_transaction(STREAM, ID, wait=True, timeout=20) is Status.COMMITTED
    assert fake.count("commitTransaction") == 2
    assert client.health.counters.as_dict()["repeated_commits"] == 1


def test_a_commit_that_is_asked_for_again_counts_once(fake, client):
    """Found by the waiting call, and by calls that check its visibility."""
    counted = lambda: dict(metrics.TRANSACTIONS.series()).get(("committed", str(STREAM)), 0)
    before = counted()
    fake.on("commitTransaction", SUCCESS).on("checkTransactionState", state("COMMITTING"))
    client.commit_transaction(STREAM, ID)
    watch = CommitWatch(client, STREAM, ask_again=0.0)
    assert [watch.status(ID) for _ in range(3)] == [Status.COMMITTING] * 3
    assert fake.count("commitTransaction") > 2
    assert counted() == before + 1


def test_several_may_not_be_committed_at_once_in_a_new_process_and_after_a_slow_commit(fake, client, monkeypatch):
    monkeypatch.setattr(transactions, "_SLOW_COMMIT", 0.5)
    fake.on("commitTransaction", SUCCESS)
    assert not client.commits_in_order(STREAM)
    client.note_order(STREAM)
    assert client.commits_in_order(STREAM)
    client.commit_transaction(STREAM, ID)
    assert client.commits_in_order(STREAM)

    def late(request: pb.TxnRequest) -> pb.TxnStatus:
        time.sleep(0.6)
        return SUCCESS

    fake.on("commitTransaction", late)
    client.commit_transaction(STREAM, ID)
    assert not client.commits_in_order(STREAM)


@pytest.mark.parametrize("refusal", [FAILURE, Code.PERMISSION_DENIED])
def test_who_may_only_look_continues_looking(fake, client, monkeypatch, refusal):
    monkeypatch.setattr(transactions, "_ASK_AGAIN", 0.0)
    fake.on("commitTransaction", refusal).on("checkTransactionState", state("COMMITTING"))
    watch = CommitWatch(client, STREAM)
    assert [watch.status(ID) for _ in range(3)] == [Status.COMMITTING] * 3
    fake.on("checkTransactionState", state("COMMITTED"))
    assert watch.status(ID) is Status.COMMITTED


@pytest.mark.parametrize("now", ["OPEN", "ABORTING", "ABORTED", "UNKNOWN"])
def test_only_a_commit_that_is_decided_is_asked_for_again(fake, client, monkeypatch, now):
    monkeypatch.setattr(transactions, "_ASK_AGAIN", 0.0)
    fake.on("checkTransactionState", state(now))
    watch = CommitWatch(client, STREAM)
    assert [watch.status(ID) for _ in range(3)] == [Status[now]] * 3
    assert fake.count("commitTransaction") == 0


def test_a_state_of_a_newer_server_is_an_error(fake, client):
    fake.on("checkTransactionState", pb.TxnState(state=77))  # type: ignore[arg-type]
    with pytest.raises(ControllerError, match="unknown transaction state 77"):
        client.transaction_status(STREAM, ID)


# ---------------------------------------------------------------- pings


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("COMMITTED", TransactionCommittedError),
        ("ABORTED", TransactionAbortedError),
        ("UNKNOWN", TransactionUnknownError),
        ("LEASE_TOO_LARGE", LeaseRangeError),
        ("MAX_EXECUTION_TIME_EXCEEDED", LeaseRangeError),
        ("SCALE_GRACE_TIME_EXCEEDED", LeaseRangeError),
    ],
)
def test_a_ping_that_does_not_help_says_why(fake, client, answer, error):
    fake.on("pingTransaction", ping(answer))
    with pytest.raises(error, match=f"cannot ping transaction {ID} of stream scope/stream"):
        client.ping_transaction(STREAM, ID, 30_000)


def test_a_ping_is_repeated_while_the_controller_comes_and_goes(fake, client):
    fake.on("pingTransaction", ping("DISCONNECTED"), Code.ABORTED, ping("DISCONNECTED"), ping("OK"))
    client.ping_transaction(STREAM, ID, 30_000)
    assert fake.calls[-1].request.lease == 30_000


@pytest.mark.usefixtures("five_failures")
def test_a_ping_that_nobody_takes_is_a_controller_that_is_unavailable(fake):
    fake.on("pingTransaction", ping("DISCONNECTED"))
    other = ControllerClient(PravegaConfig(controller=fake.uri), timeout=60)
    with other, pytest.raises(ControllerUnavailableError, match="kept transaction"):
        other.ping_transaction(STREAM, ID, 30_000)


def test_a_ping_answer_of_a_newer_server_is_an_error(fake, client):
    fake.on("pingTransaction", pb.PingTxnStatus(status=77))  # type: ignore[arg-type]
    with pytest.raises(ControllerError, match="status 77"):
        client.ping_transaction(STREAM, ID, 30_000)
