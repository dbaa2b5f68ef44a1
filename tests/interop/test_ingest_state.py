"""The state of an ingestion, shared with a StateSynchronizer of the Java client."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.client import PravegaClient
from connector.ingest import IngestState, Sizes, ingest
from connector.ingest.journal import Journal, state_name
from connector.local import LocalPravega
from connector.wire import StreamName
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


def fold(words: list[str]) -> IngestState:
    """The state that an initial value and updates make, each a JSON text."""
    first, *updates = map(json.loads, words)
    state = IngestState.from_json(first)
    for update in updates:
        state.apply(update)
    return state


def test_java_reads_our_state(
    client: PravegaClient, java: JavaStatePeer, stream_name: StreamName, folder: Path
) -> None:
    client.create_stream(stream_name, 2)
    ingest(folder, stream_name, client=client, sizes=Sizes(variant="count", records=5))
    words = java.words("state", state_name(stream_name))
    with Journal(client, stream_name, state_name(stream_name)) as journal:
        ours = journal.fetch()
    assert fold(words).to_json() == ours.to_json()
    assert json.loads(words[0]) | {"sources": {}} == {
        "version": 1,
        "target": str(stream_name),
        "number": 0,
        "schema": None,
        "step": None,
        "sources": {},
    }
    first = json.loads(words[1])
    assert (first["number"], first["previous"]) == (1, "aborted")
    (piece,) = first["step"]["pieces"]
    assert (piece["source"], piece["offset"], piece["end"]) == (str(folder / "ä0.csv"), 0, 5)
    assert java.finish("status", stream_name, uuid.UUID(first["step"]["transaction"])) == "COMMITTED"


@pytest.mark.parametrize("committed", [True, False])
def test_ours_follows_what_java_wrote(
    client: PravegaClient, java: JavaStatePeer, stream_name: StreamName, folder: Path, committed: bool
) -> None:
    """A Java ingester makes the state, does a step, and is gone, before or after its commit."""
    client.create_stream(stream_name, 2)
    client.create_stream(state := state_name(stream_name))
    empty = {"version": 1, "target": str(stream_name), "number": 0, "schema": None, "step": None, "sources": {}}
    java.words("initialize", state, word=json.dumps(empty))
    events = [("ä0", json.dumps({"file": 0, "sample": sample, "by": "java"})) for sample in range(9)]
    transaction = java.begin(stream_name, events)
    from connector.ingest import FileSource

    source = FileSource([folder])
    id_ = source.ids()[0]
    piece = {"source": id_, "offset": 0, "end": None, "mark": source.mark(id_)}
    step = {"transaction": str(transaction), "owner": {"run": "java"}, "lease": 10.0, "pieces": [piece]}
    java.words("update", state, words=[json.dumps({"number": 1, "previous": "aborted", "step": step})])
    if committed:
        java.finish("commit", stream_name, transaction)
    summary = ingest(folder, stream_name, client=client, takeover_after=0.1)
    assert summary.counts.recovered == 1
    found = [json.loads(event) for event in client.read(stream_name)]
    assert sorted((each["file"], each["sample"]) for each in found) == [(f, s) for f in range(3) for s in range(9)]
    assert sum("by" in each for each in found) == (9 if committed else 0)
    # And Java goes on with what ours wrote.
    words = java.words("state", state)
    assert all(progress.finished for progress in fold(words).sources.values())
    last = fold(words).number
    java.words("update", state, words=[json.dumps({"number": last + 1, "previous": "aborted", "step": None})])
    with Journal(client, stream_name, state) as journal:
        assert journal.fetch().number == last + 1
