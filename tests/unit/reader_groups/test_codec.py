"""Bytes of a group's state: those that Java's classes wrote (client 0.13.0), and the same values built here."""

import uuid
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_connector.errors import ConfigError
from pravega_connector.reader_groups.protocol import serialization
from pravega_connector.reader_groups.protocol.serialization import (
    decode_config,
    decode_update,
    encode_config,
    encode_update,
)
from pravega_connector.reader_groups.protocol.state import (
    Bound,
    Checkpoints,
    GroupConfig,
    GroupState,
    KeyRange,
    Ranged,
    Retention,
    Segment,
    ordered_set,
)
from pravega_connector.reader_groups.protocol.updates import (
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    Init,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    SegmentCompleted,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
)
from pravega_connector.wire import StreamCut, StreamName
from pravega_connector.wire.names import group_stream
from pravega_serde.errors import DeserializationError

STREAM, OTHER = StreamName("a", "b"), StreamName("a", "c")
FIRST = Segment(STREAM, 0)
SECOND = Segment(STREAM, 1 << 32 | 1)
HALF = KeyRange(0.0, 0.5)


def raw(*parts):
    return bytes.fromhex("".join(parts).replace(" ", "").replace("|", ""))


# Segment a/b/0 at 5, its successor a/b/1.#epoch.1 with half of the keys, reader r1, checkpoint c.
NAME = "000e 612f622f302e2365706f63682e30"
SUCCESSOR = "000e 612f622f312e2365706f63682e31"
NOWHERE = "bff0000000000000 bff0000000000000"
SETTINGS = "0000000000007530 0000000000000bb8 01 0003612f62 10 00010100000000080003612f62010005 01 0003612f62 00"
CONFIG_BYTES = raw(
    f"000003|00 0000002e {SETTINGS}|01 00000032 {SETTINGS} 00000003"
    "|02 00000019 00 0000000000000007 00000000000000010000000000000002"
)
CONFIG = GroupConfig(
    start={STREAM: Bound(StreamCut(STREAM, {0: 5}))}, end={STREAM: Bound()}, generation=7, id=uuid.UUID(int=1 << 64 | 2)
)
EMPTY_CHECKPOINTS = "000002 00 00000004 00000000 01 00000001 01"

JAVAS = {
    "add a reader": (raw("00020001 00 00000004 00027231"), AddReader("r1")),
    "give up checkpoints": (raw("000d0001 00 00000000"), RemoveOutstandingCheckpoints()),
    "distance": (
        raw(f"00060002 00 0000000c 00027231 0000000000000009 01 00000029 01 {NAME} {NOWHERE} 0000000000000005"),
        UpdateDistanceToTail("r1", 9, Ranged({FIRST: 5}, {FIRST: None})),
    ),
    "completed": (
        raw(
            f"00070002 00 0000002e 00027231 {NAME} 01 {SUCCESSOR} 01 0000000000000000"
            f"01 00000041 02 {NAME} {NOWHERE} {SUCCESSOR} 0000000000000000 3fe0000000000000"
        ),
        SegmentCompleted("r1", FIRST, {SECOND: (0,)}, {FIRST: None, SECOND: HALF}),
    ),
    "checkpoint": (
        raw(f"00080001 00 00000020 000163 00027231 01 {NAME} 0000000000000005"),
        CheckpointReader("c", "r1", {FIRST: 5}),
    ),
    # createReaderGroup of Java's manager, with MANUAL_RELEASE_AT_USER_STREAMCUT.
    "begin": (
        raw(
            "0000000300000000be8097000003000000003400000000000075300000000000000bb801000e73636f7065312f73747265616d32",
            "0001000e73636f7065312f73747265616d3200010000003800000000000075300000000000000bb801000e73636f7065312f7374",
            "7265616d320001000e73636f7065312f73747265616d320000000003020000001901000000000000000034f0b56ab02e4b9eb295",
            "77e5db5075df01001973636f7065312f73747265616d322f302e2365706f63682e30000000000000000000010000003401001973",
            "636f7065312f73747265616d322f302e2365706f63682e30bff0000000000000bff0000000000000000000000000000002000000",
            "0100",
        ),
        Init(
            GroupConfig(
                start={StreamName("scope1", "stream2"): Bound()},
                end={StreamName("scope1", "stream2"): Bound()},
                retention=Retention.MANUAL,
                generation=0,
                id=uuid.UUID("34f0b56a-b02e-4b9e-b295-77e5db5075df"),
            ),
            Ranged.of({Segment(StreamName("scope1", "stream2"), 0): 0}),
        ),
    ),
}


@pytest.mark.parametrize("case", JAVAS)
def test_what_java_wrote_is_read_and_written_again(case):
    data, value = JAVAS[case]
    assert decode_update(data) == value
    assert encode_update(decode_update(data)) == data
    assert encode_update(value) == data


def test_the_configuration_is_javas():
    assert decode_config(CONFIG_BYTES) == CONFIG
    assert encode_config(decode_config(CONFIG_BYTES)) == encode_config(CONFIG) == CONFIG_BYTES
    assert encode_update(Init(CONFIG, Ranged.of({FIRST: 5}))).startswith(
        raw("00000003 00 000000a7 808b") + CONFIG_BYTES
    )


ENDED = {STREAM: Bound(StreamCut(STREAM, {0: 5, 3: -1}))}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"start": {}}, "name the streams"),
        ({"max_outstanding": 0}, "not 0"),
        ({"start": {OTHER: Bound(StreamCut(STREAM, {0: 5}))}}, "a stream cut of a/b for a/c"),
        ({"end": {OTHER: Bound(StreamCut(OTHER, {0: 5}))}}, "ends in a/c, which it does not read"),
        ({"start": {STREAM: Bound(StreamCut(STREAM, {0: 6, 3: 9}))}, "end": ENDED}, "before it begins"),
        ({"start": {STREAM: Bound(StreamCut(STREAM, {0: -1, 3: 9}))}, "end": ENDED}, "before it begins"),
        ({"start": {STREAM: Bound(StreamCut(STREAM, {1: 0}))}, "end": ENDED}, "before it begins"),
        ({"start": {STREAM: Bound(StreamCut(STREAM, {0: 0, 4: 0}))}, "end": ENDED}, "before it begins"),
        ({"end": {STREAM: Bound(StreamCut(STREAM, {}))}}, "before it begins"),
    ],
)
def test_what_would_stop_javas_clients_is_not_written(settings, said):
    with pytest.raises(ConfigError, match=said):
        encode_update(Init(replace(CONFIG, **settings), Ranged.of({FIRST: 5})))


@pytest.mark.parametrize(
    "settings",
    [
        {"start": {STREAM: Bound(StreamCut(STREAM, {0: 5, 3: 9}))}, "end": ENDED},
        {"start": {STREAM: Bound()}, "end": ENDED},
        {"start": {STREAM: Bound()}, "end": {OTHER: Bound()}},
    ],
)
def test_what_java_takes_is_written(settings):
    assert decode_config(encode_config(replace(CONFIG, **settings))) == replace(CONFIG, **settings)


def test_a_state_without_checkpoints_is_javas():
    state = encode_update(GroupState(config=CONFIG))
    assert state.startswith(raw("00010003"))
    assert raw("808b") + CONFIG_BYTES + raw("12" + EMPTY_CHECKPOINTS) in state


def test_the_stream_of_a_group_has_its_name():
    assert group_stream("scope1", "sales.stream2") == StreamName("scope1", "_RGsales.stream2")


# ---- values of any content -------------------------------------------------------------------------------------------

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=6)
STREAMS = st.builds(StreamName, st.sampled_from(["a", "scope.1"]), st.sampled_from(["b", "_RGx", "c-d"]))
SEGMENTS = st.builds(Segment, STREAMS, st.builds(lambda e, n: e << 32 | n, st.integers(0, 3), st.integers(0, 5)))
RANGES = st.none() | st.builds(KeyRange, st.floats(0, 0.5), st.floats(0.5, 1))
POSITIONS = st.dictionaries(SEGMENTS, LONGS, max_size=4)
RANGED = st.dictionaries(SEGMENTS, st.tuples(LONGS, RANGES), max_size=4).map(
    lambda items: Ranged({s: at for s, (at, _) in items.items()}, {s: keys for s, (_, keys) in items.items()})
)


def cuts(stream):
    return st.dictionaries(st.integers(0, 9), st.integers(-1, 2**40), max_size=3).map(lambda at: StreamCut(stream, at))


def config(streams, **settings):
    """A configuration that Java takes: of what begins somewhere it says nothing of the end."""
    start = {stream: Bound(cut) for stream, (cut, _) in streams.items()}
    end = {stream: Bound(cut if start[stream].cut is None else None) for stream, (_, cut) in streams.items()}
    return GroupConfig(start=start, end=end if len(streams) > 1 else {}, **settings)


BOUNDS = st.dictionaries(STREAMS, st.none(), min_size=1, max_size=3).flatmap(
    lambda streams: st.fixed_dictionaries({s: st.tuples(st.none() | cuts(s), st.none() | cuts(s)) for s in streams})
)
CONFIGS = st.builds(
    config,
    BOUNDS,
    checkpoint_ms=LONGS,
    refresh_ms=LONGS,
    max_outstanding=st.integers(1, 2**31 - 1),
    retention=st.sampled_from(Retention),
    generation=LONGS,
    id=st.uuids(),
)
READERS = st.lists(TEXTS, max_size=3).map(ordered_set)
CHECKPOINTS = st.builds(
    Checkpoints,
    names=st.lists(TEXTS, max_size=3).map(tuple),
    waiting=st.dictionaries(TEXTS, READERS, max_size=3),
    positions=st.dictionaries(TEXTS, POSITIONS, max_size=3),
    last=POSITIONS,
    published=st.booleans(),
)
VALUES = st.one_of(
    st.builds(Init, CONFIGS, RANGED, POSITIONS, st.booleans()),
    st.builds(
        GroupState,
        config=CONFIGS,
        checkpoints=CHECKPOINTS,
        distances=st.dictionaries(TEXTS, LONGS, max_size=3),
        future=st.dictionaries(SEGMENTS, st.lists(LONGS, max_size=3).map(ordered_set), max_size=3),
        assigned=st.dictionaries(TEXTS, POSITIONS, max_size=3),
        unassigned=POSITIONS,
        last_read=POSITIONS,
        end=POSITIONS,
        ranges=st.dictionaries(SEGMENTS, RANGES, max_size=4),
        updating=st.booleans(),
    ),
    st.builds(AddReader, TEXTS),
    st.builds(RemoveReader, TEXTS, POSITIONS),
    st.builds(ReleaseSegment, TEXTS, SEGMENTS, LONGS),
    st.builds(AcquireSegment, TEXTS, SEGMENTS),
    st.builds(UpdateDistanceToTail, TEXTS, LONGS, RANGED),
    st.builds(
        SegmentCompleted,
        TEXTS,
        SEGMENTS,
        st.dictionaries(SEGMENTS, st.lists(LONGS, max_size=3).map(tuple), max_size=3),
        st.dictionaries(SEGMENTS, RANGES, max_size=3),
    ),
    st.builds(CheckpointReader, TEXTS, TEXTS, POSITIONS),
    st.builds(CreateCheckpoint, TEXTS),
    st.builds(ClearCheckpointsBefore, TEXTS),
    st.builds(UpdateCheckpointPublished, st.booleans()),
    st.builds(UpdatingConfig, st.booleans()),
    st.builds(RemoveOutstandingCheckpoints),
)


@settings(max_examples=40)
@given(VALUES)
def test_values_survive_and_keep_their_order(value):
    data = encode_update(value)
    again = decode_update(data)
    assert again == value
    assert getattr(again, "ranges", None) == getattr(value, "ranges", None)
    assert encode_update(again) == data


@settings(max_examples=40)
@given(VALUES, st.binary(max_size=5), st.binary(max_size=5))
def test_revisions_of_later_versions_survive(value, one, other):
    known = len(serialization.LAYOUTS[type(value)])
    data = encode_update(replace(value, later=(one, other)))
    assert data[3] == known + 2
    again = decode_update(data)
    assert again == value
    assert again.later == (one, other)
    assert encode_update(again) == data


def test_revisions_of_later_versions_survive_inside_others():
    config = replace(CONFIG, later=(b"new",))
    state = GroupState(config=config, checkpoints=Checkpoints(later=(b"newer",)))
    again = decode_update(encode_update(state))
    assert (again.config.later, again.checkpoints.later) == ((b"new",), (b"newer",))


@settings(max_examples=40)
@given(VALUES)
def test_bytes_that_are_cut_short_are_refused(value):
    data = encode_update(value)
    with pytest.raises(DeserializationError, match="invalid update of a reader group"):
        decode_update(data[:-1])
    with pytest.raises(DeserializationError, match="follow"):
        decode_update(data + b"\0")


@given(st.binary(max_size=60))
def test_no_bytes_are_worse_than_an_error(data):
    for decode in (decode_update, decode_config, serialization.decode_position, serialization.decode_checkpoint):
        try:
            decode(data)
        except DeserializationError:
            pass


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("000e0001 00 00000000", "type 14"),
        ("01020001 00 00000004 00027231", "format 1"),
        ("00020101 00 00000004 00027231", "version 1"),
        ("00020001 00 00000005 0002723100", "1 bytes follow revision 0"),
        ("00050001 00 0000000a 00027231 0004 612f6230", "segment name"),
        ("00010001 00 00000000", "missing at its end"),
        ("000b0001 00 00000000", "missing at its end"),
    ],
)
def test_other_bytes_are_refused_with_the_reason(data, said):
    with pytest.raises(DeserializationError, match=said):
        decode_update(raw(data))


def test_old_entries_lack_revisions():
    assert decode_update(raw("00060001 00 0000000c 00027231 0000000000000009")) == UpdateDistanceToTail("r1", 9)
    completed = decode_update(raw(f"00070001 00 0000002e 00027231 {NAME} 01 {SUCCESSOR} 01 0000000000000000"))
    assert completed == SegmentCompleted("r1", FIRST, {SECOND: (0,)})
    begin = decode_update(raw("00000001 00 000000a7 808b") + CONFIG_BYTES + raw(f"01 {NAME} 0000000000000005 00"))
    assert begin == Init(CONFIG, Ranged.of({FIRST: 5}))
    assert decode_config(raw(f"000001|00 0000002e {SETTINGS}")) == replace(CONFIG, generation=-1, id=uuid.UUID(int=0))


def test_the_order_of_segments_inside_a_cut_is_kept():
    """Java orders them by their hashes."""
    cut = raw("000101 00 0000000c 0003612f62 03 02 05 00 06 01 07")
    config = replace(CONFIG, start={STREAM: Bound(StreamCut(STREAM, {0: 6, 1: 7, 2: 5}), cut)})
    data = encode_config(config)
    assert cut in data
    assert decode_config(data) == config
    assert encode_config(decode_config(data)) == data
    assert decode_config(data) == replace(config, start={STREAM: Bound(StreamCut(STREAM, {2: 5, 1: 7, 0: 6}))})


def test_every_field_of_a_value_has_its_bytes():
    assert {number: cls.__name__ for number, cls in enumerate(serialization.TYPES)}[
        13
    ] == "RemoveOutstandingCheckpoints"
    for cls, layout in serialization.LAYOUTS.items():
        assert {name for revision in layout for name, _ in revision} == {f.name for f in fields(cls)} - {"later"}


# ---- what the languages hand each other ------------------------------------------------------------------------------


@given(st.dictionaries(SEGMENTS, st.tuples(st.integers(-1, 2**61), RANGES), max_size=4))
def test_positions_survive(items):
    position = Ranged({s: at for s, (at, _) in items.items()}, {s: keys for s, (_, keys) in items.items()})
    assert serialization.decode_position(serialization.encode_position(position)) == position


def test_a_position_is_javas():
    ended = serialization.encode_position(Ranged({FIRST: -1}, {FIRST: HALF}))
    greatest = "fffffffffffffffe"  # RevisionDataOutput.COMPACT_LONG_MAX behind its two bits
    keys = "0000000000000000 3fe0000000000000"
    assert ended == raw(f"000002 00 00000019 01 {NAME} {greatest} 01 00000021 01 {NAME} {keys}")


@given(TEXTS, STREAMS.flatmap(cuts))
def test_checkpoints_survive(name, cut):
    assert serialization.decode_checkpoint(serialization.encode_checkpoint(name, {cut.stream: cut})) == (
        name,
        {cut.stream: cut},
    )
