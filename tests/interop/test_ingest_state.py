"""The state of an ingestion, shared with a StateSynchronizer of the Java client."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pravega_connector.exactly_once.steps import StepsState, Update
from pravega_connector.local import LocalPravega
from pravega_connector.operations.ingest import FileSource, Sizes, ingest
from pravega_connector.operations.ingest.run import open_steps, state_name
from pravega_connector.wire import StreamName
from tests.interop._java_state import JavaStatePeer


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaStatePeer]:
    with JavaStatePeer(pravega.config.controller) as java:
        yield java


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in range(3):
        (tmp_path / f"ä{file}.csv").write_text("file,sample\n" + "".join(f"{file},{sample}\n" for sample in range(9)))
    return tmp_path


def fold(words: list[str]) -> StepsState:
    """Return the state that an initial value and updates make, each a JSON text."""
    first, *updates = map(json.loads, words)
    state = StepsState.from_json(first)
    for update in updates:
        state.apply(Update.from_json(update))
    return state


def empty_state(target: StreamName) -> dict[str, object]:
    """Return the initial value of a log that has no update yet."""
    life = {"version": 1, "life": [str(target), 0], "former": []}
    return life | {"positions": {}, "owners": {}, "steps": {}, "note": {}}


def test_java_reads_our_state(client, java, stream_name, folder):
    client.create_stream(stream_name, 2)
    ingest(folder, stream_name, client=client, sizes=Sizes(variant="count", records=5))
    words = java.words("state", state_name(stream_name))
    with open_steps(client, stream_name, state_name(stream_name)) as steps:
        ours = steps.read()
    assert fold(words).to_json() == ours.to_json()
    assert json.loads(words[0]) == empty_state(stream_name)
    first = json.loads(words[1])
    assert (first["life"], first["claim"]) == ([str(stream_name), 0], {"*": None})
    ((source, (before, after)),) = first["step"]["moves"].items()
    assert (source, before, after[1:]) == (str(folder / "ä0.csv"), None, [5, False])
    assert java.finish("status", stream_name, uuid.UUID(first["step"]["transaction"])) == "COMMITTED"


@pytest.mark.parametrize("committed", [True, False])
def test_ours_follows_what_java_wrote(client, java, stream_name, folder, committed):
    """A Java ingester makes the state, does a step, and ends before or after its commit."""
    client.create_stream(stream_name, 2)
    client.create_stream(state := state_name(stream_name))
    java.words("initialize", state, word=json.dumps(empty_state(stream_name)))
    events = [("ä0", json.dumps({"file": 0, "sample": sample, "by": "java"})) for sample in range(9)]
    transaction = java.begin(stream_name, events)
    source = FileSource([folder])
    id_ = source.ids()[0]
    moves = {id_: [None, [source.mark(id_), -1, True]]}
    step = {"transaction": str(transaction), "stream": str(stream_name), "moves": moves}
    update = {"run": "java", "life": [str(stream_name), 0], "claim": {"*": None}, "step": step}
    java.words("update", state, words=[json.dumps(update)])
    if committed:
        java.finish("commit", stream_name, transaction)
    summary = ingest(folder, stream_name, client=client, takeover_after=0.1)
    assert summary.counts.recovered == 1
    found = [json.loads(event) for event in client.read(stream_name)]
    assert sorted((each["file"], each["sample"]) for each in found) == [(f, s) for f in range(3) for s in range(9)]
    assert sum("by" in each for each in found) == (9 if committed else 0)
    # And Java continues with what ours wrote.
    words = java.words("state", state)
    assert all(finished for _, _, finished in fold(words).positions.values())
    java.words(
        "update", state, words=[json.dumps({"run": "java", "life": [str(stream_name), 0], "claim": {"*": None}})]
    )
    with open_steps(client, stream_name, state) as steps:
        assert steps.read().owners == {"*": "java"}
