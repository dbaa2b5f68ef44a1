"""Event times of recorded batches, noted by the process that finishes them."""

import dataclasses

from pravega_connector.exactly_once.batch_commit import Outcome, Phase, Recovery, latest_of, note_batch, writer_of
from tests.integration.exactly_once.conftest import Target


def test_the_operator_notes_the_time_of_a_batch_that_it_commits(target: Target, eventually) -> None:
    parts = [dataclasses.replace(target.write(event), event_time=time) for event, time in ((b"a", 1000), (b"b", 3000))]
    target.crash(Phase.COMMIT_REST, 0, *parts)
    recovery = Recovery(target.client.stores, target.stream, target.ledger)
    assert recovery.finish("query") is Outcome.COMMITTED
    eventually(lambda: target.client.watermarks(target.stream))
    [mark] = target.client.watermarks(target.stream)
    assert (mark.low, mark.high, mark.cut) == (3000, 3000, target.client.tail(target.stream))
    assert target.events() == [b"a", b"b"]
    assert target.client.controller.remove_writer(target.stream, writer_of("query"))


def test_noting_a_time_commits_nothing_and_fails_nothing(target: Target) -> None:
    part = target.write(b"a")
    note_batch(target.client.stores, target.stream, "writer", latest_of([part]), [part.transaction])
    note_batch(target.client.stores, target.stream, "writer", 1000, [part.transaction])
    assert target.status(part).value == "open"
    note_batch(target.client.stores, dataclasses.replace(target.stream, stream="nothing-here"), "writer", 1000)
