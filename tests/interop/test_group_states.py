"""States of reader groups as the Java client's own classes make, read and change them; no server is needed.

Maps of bytes that one side wrote and the other read are compared as values: Java's come in the order of their hashes.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pravega_connector.errors import ConfigError
from pravega_connector.reader_groups.protocol import (
    AcquireSegment,
    AddReader,
    Bound,
    GroupConfig,
    GroupState,
    Init,
    InitSerializer,
    KeyRange,
    Ranged,
    Segment,
    SegmentCompleted,
    StateUpdate,
    apply,
    by_stream,
    create,
    decode_checkpoint,
    decode_config,
    decode_position,
    decode_update,
    encode_checkpoint,
    encode_config,
    encode_position,
    encode_update,
)
from pravega_connector.reader_groups.protocol.balance import relative_sizes
from pravega_connector.reader_groups.protocol.serialization import TYPES
from pravega_connector.wire import StreamCut, StreamName
from tests.interop._java_groups import JavaGroupStates
from tests.support.each import each_case
from tests.support.group_runs import any_run, any_values, lived_run
from tests.support.group_values import plain, plain_checkpoint

TOGETHER = 200  # runs in one request
#: Numbers of lives and of random runs in ./run test; each kind of update and of refusal is among them.
LIVES, RUNS = 400, 800

Read = Callable[[bytes], Any]
Write = Callable[[Any], bytes]
CODECS: dict[str, tuple[Read, Write]] = {
    "update": (decode_update, encode_update),
    "init": (InitSerializer().deserialize, InitSerializer().serialize),
    "entry": (lambda data: InitSerializer().deserialize(data[4:]), lambda value: b"\0\0\0\1" + encode_update(value)),
    "config": (decode_config, encode_config),
    "position": (decode_position, encode_position),
    "checkpoint": (decode_checkpoint, lambda checkpoint: encode_checkpoint(*checkpoint)),
}


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGroupStates]:
    with JavaGroupStates() as java:
        yield java


def known_ranges(state: GroupState) -> GroupState:
    """The state with the ranges of the segments that it has: all that Java keeps."""
    owned = [segment for positions in state.assigned.values() for segment in positions]
    segments = (*state.future, *owned, *state.unassigned, *state.last_read)
    return replace(state, ranges={segment: state.ranges.get(segment) for segment in segments})


def values_of(kind: str, value: Any) -> Any:
    if kind == "checkpoint":
        return plain_checkpoint(*value)
    return plain(known_ranges(value) if isinstance(value, GroupState) else value)


def test_what_java_writes_is_read_and_written_again(java: JavaGroupStates) -> None:
    def check(made: dict[str, Any]) -> None:
        read, write = CODECS[made["kind"]]
        data = bytes.fromhex(made["hex"])
        value = read(data)
        assert values_of(made["kind"], value) == made["value"]
        again = write(value)
        if made["kind"] == "checkpoint":  # its cuts come in the order of the ids, Java's in the order of the hashes
            assert (len(again), read(again)) == (len(data), value)
            return
        assert again == data[: len(again)]
        assert not data[len(again) :] or (made["kind"] == "entry" and not data[len(again) :].strip(b"\0"))

    cases = [(f"{seed}, {at}", made) for seed in range(5) for at, made in enumerate(java.make(seed, 440))]
    each_case(cases, check)


def both_read(java: JavaGroupStates, kind: str, values: Sequence[Any]) -> None:
    """Java reads our states, and we read Java's: the same value."""
    read, write = CODECS[kind]
    answers = java.read(kind, map(write, values))

    def check(case: tuple[Any, dict[str, Any]]) -> None:
        value, answer = case
        assert answer["value"] == values_of(kind, value)
        assert values_of(kind, read(bytes.fromhex(answer["hex"]))) == values_of(kind, value)

    each_case(((f"{kind} {at}", case) for at, case in enumerate(zip(values, answers, strict=True))), check)


def test_java_reads_what_ours_writes(java: JavaGroupStates) -> None:
    values = any_values(seed=7, count=1600)
    both_read(java, "update", values)
    both_read(java, "init", [value for value in values if isinstance(value, Init | GroupState)])
    both_read(java, "config", [value.config for value in values if isinstance(value, Init)])


def test_java_reads_what_the_languages_hand_each_other(java: JavaGroupStates) -> None:
    draw = random.Random(3)
    stream, other = StreamName("a", "b"), StreamName("scope.1", "c-d")
    offsets = [0, -1, 63, 64, 2**14, 2**30, 2**61 - 3]
    positions = [
        {
            Segment(draw.choice([stream, other]), draw.randrange(3) << 32 | draw.randrange(9)): draw.choice(offsets)
            for _ in range(draw.randrange(6))
        }
        for _ in range(100)
    ]
    ranges = [None, KeyRange(0.0, 1.0), KeyRange(0.25, 1 / 3)]
    both_read(java, "position", [Ranged(at, {s: draw.choice(ranges) for s in at}) for at in positions])
    both_read(java, "position", [Ranged(at, {}) for at in positions[:5]])
    names = ["", "c", "nul\0", "日本", "\ud800", str(uuid.UUID(int=5))]
    cuts = [(draw.choice(names), by_stream(at)) for at in positions]
    both_read(java, "checkpoint", cuts)


def test_both_refuse_the_same_configurations(java: JavaGroupStates, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(5)
    streams = [StreamName("a", "b"), StreamName("a", "c")]

    def bound(stream: StreamName) -> Bound:
        at = {draw.randrange(4): draw.choice([-1, 0, 3, 5]) for _ in range(draw.randrange(4))}
        return Bound(draw.choice([None, StreamCut(draw.choices([stream, streams[0]], [9, 1])[0], at)]))

    def bounds() -> dict[StreamName, Bound]:
        return {stream: bound(stream) for stream in draw.sample(streams, draw.choice([0, 1, 1, 2]))}

    configs = [GroupConfig(start=bounds(), end=bounds(), max_outstanding=draw.choice([0, 1, 3])) for _ in range(2000)]
    refused = [refuses(config) for config in configs]
    monkeypatch.setattr(GroupConfig, "check", lambda self: None)
    answers = java.read("config", map(encode_config, configs))
    assert {True, False} == set(refused)
    each_case(
        (
            (str(config), (ours, "why" in answer))
            for config, ours, answer in zip(configs, refused, answers, strict=True)
        ),
        lambda both: equal(*both),
    )


def refuses(config: GroupConfig) -> bool:
    try:
        config.check()
    except ConfigError:
        return True
    return False


def equal(ours: Any, theirs: Any) -> None:
    assert ours == theirs


# ---- what updates do -------------------------------------------------------------------------------------------------

Run = tuple[list[StateUpdate], GroupState | None]


def applied(java: JavaGroupStates, runs: Sequence[Run]) -> Iterator[tuple[Run, dict[str, Any]]]:
    for at in range(0, len(runs), TOGETHER):
        some = runs[at : at + TOGETHER]
        yield from zip(some, java.apply([encode_update(update) for update in run] for run, _ in some), strict=True)


def agree(case: tuple[Run, dict[str, Any]]) -> None:
    """Java comes to the same state by the same updates, and refuses the same one."""
    (run, state), answer = case
    if state is None:
        assert answer.get("refused") == len(run) - 1, f"{run[-1]} is refused, but not by Java: {answer}"
        return
    assert "state" in answer, f"Java refuses {run[answer['refused']]}: {answer['why']}"
    theirs = InitSerializer().deserialize(bytes.fromhex(answer["state"]))
    assert theirs == state
    assert answer["end"] == state.is_end_of_data
    # Java's number runs over where a reader owns several segments and has not told its distance, which never happens.
    if all(len(owned) * state.distances[r] < 2**63 for r, owned in state.assigned.items()):
        assert answer["sizes"] == relative_sizes(state)


@pytest.mark.parametrize("seeds", [range(LIVES), pytest.param(range(LIVES, 2000), marks=pytest.mark.long)], ids=str)
def test_lives_of_groups_are_what_java_makes_of_them(java: JavaGroupStates, seeds: range) -> None:
    runs = [lived_run(seed) for seed in seeds]
    seen = {type(update) for run, _ in runs for update in run}
    assert seen == set(TYPES), f"never written: {set(TYPES) - seen}"

    def check(case: tuple[Run, dict[str, Any]]) -> None:
        agree(case)
        (_, state), answer = case
        assert state is not None
        theirs = InitSerializer().deserialize(bytes.fromhex(answer["state"]))
        assert plain(theirs) == plain(known_ranges(state)), "and the ranges are the same"

    each_case(((f"life {seed}", case) for seed, case in zip(seeds, applied(java, runs), strict=True)), check)


@pytest.mark.parametrize("seeds", [range(RUNS), pytest.param(range(RUNS, 4000), marks=pytest.mark.long)], ids=str)
def test_any_updates_are_taken_and_refused_as_by_java(java: JavaGroupStates, seeds: range) -> None:
    runs = [any_run(seed) for seed in seeds]
    refused = {type(run[-1]).__name__ for run, state in runs if state is None}
    assert refused == {"AcquireSegment", "AddReader", "CheckpointReader", "Init", "ReleaseSegment", "SegmentCompleted"}
    each_case(((f"run {seed}", case) for seed, case in zip(seeds, applied(java, runs), strict=True)), agree)


def test_in_java_too_a_segment_is_owned_twice_by_ids_of_another_stream(java: JavaGroupStates) -> None:
    """Only the id completes a segment: streams that are scaled alike let each other's successors out.

    Two streams have segments 0 and 1, which are merged to 2. All members of a group make the same of it, so ours must.
    """
    b, c = (StreamName("a", name) for name in "bc")
    first = {Segment(stream, number): 0 for stream in (b, c) for number in (0, 1)}
    merged = {stream: Segment(stream, 1 << 32 | 2) for stream in (b, c)}

    def completed(stream: StreamName, number: int) -> SegmentCompleted:
        return SegmentCompleted("r1", Segment(stream, number), {merged[stream]: (0, 1)})

    run: list[StateUpdate] = [
        Init(GroupConfig(start={b: Bound(), c: Bound()}), Ranged.of(first)),
        AddReader("r1"),
        AddReader("r2"),
        *(AcquireSegment("r1", segment) for segment in first),
        completed(b, 0),
        completed(c, 1),
    ]
    early = states(java, run)
    assert merged[b] in early.unassigned, "it can be had"
    assert Segment(b, 1) in early.assigned["r1"], "before its predecessor is done"
    run += [AcquireSegment("r2", merged[b]), completed(b, 1), completed(c, 0)]
    late = states(java, run)
    assert merged[b] in late.assigned["r2"]
    assert merged[b] in late.unassigned, "and it is to be read from its beginning once more"


def states(java: JavaGroupStates, run: list[StateUpdate]) -> GroupState:
    """The state after a run, equal in both."""
    state = create(run[0])  # type: ignore[arg-type]
    for update in run[1:]:
        state = apply(state, update)
    [case] = applied(java, [(run, state)])
    agree(case)
    return state
