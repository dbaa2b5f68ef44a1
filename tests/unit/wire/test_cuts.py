"""Stream cuts as text and as bytes."""

import base64
import contextlib
import gzip
import json
import pickle
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import MalformedStreamCutError
from pravega_connector.wire import StreamCut, StreamName, segment_id
from pravega_connector.wire.cuts import MAX_CUT_BYTES

STREAM = StreamName("s", "t")
VECTORS = Path(__file__).parents[2] / "vectors" / "stream_cuts.jsonl"
JAVA_CUTS = [json.loads(line) for line in VECTORS.read_text().splitlines()]

names = st.from_regex(r"_?[A-Za-z0-9.\-]{1,20}", fullmatch=True)
ids = st.builds(segment_id, st.integers(0, 2**31 - 1), st.integers(0, 2**30 - 1))
# Borders of the compact numbers. The largest is not a compact long any more (COMPACT_LONG_MAX).
borders = st.sampled_from([2**n + d for n in (5, 6, 13, 14, 29, 30, 60) for d in (-1, 0, 1)])
offsets = st.one_of(st.integers(-1, 2**61 - 2), borders)
cuts = st.builds(
    StreamCut,
    st.builds(StreamName, names, names),
    st.dictionaries(ids.filter(lambda i: i < 2**62 - 1), offsets, max_size=20),
)


def packed(inner: str | bytes) -> str:
    """A cut's text that holds ``inner``."""
    return base64.b64encode(gzip.compress(inner.encode() if isinstance(inner, str) else inner, mtime=0)).decode()


def refused(decode, data, *words):
    """The refusal's text, which is one line and holds all words."""
    with pytest.raises(MalformedStreamCutError) as caught:
        decode(data)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.startswith("[PRAVEGA-MALFORMED-STREAM-CUT] ")
    assert len(text) < 300
    for word in words:
        assert word in text
    return text


# Text and bytes


@pytest.mark.parametrize("vector", JAVA_CUTS, ids=lambda vector: f"{vector['stream']}-{len(vector['positions'])}")
def test_java_cuts_are_read_and_written(vector):
    cut = StreamCut(StreamName.parse(vector["stream"]), {int(k): v for k, v in vector["positions"].items()})
    assert StreamCut.from_text(vector["text"]) == cut
    assert StreamCut.from_bytes(bytes.fromhex(vector["hex"])) == cut
    ours = gzip.decompress(base64.b64decode(cut.to_text())).decode().split(":")
    theirs = gzip.decompress(base64.b64decode(vector["text"])).decode().split(":")
    assert ours[:2] == theirs[:2]
    assert sorted(zip(*(f.split(",") for f in ours[2:]), strict=True)) == sorted(
        zip(*(f.split(",") for f in theirs[2:]), strict=True)
    )
    if list(map(int, vector["positions"])) == sorted(map(int, vector["positions"])):
        assert cut.to_bytes().hex() == vector["hex"]


@given(cuts)
def test_cuts_survive_text_bytes_and_pickling(cut):
    assert StreamCut.from_text(cut.to_text()) == cut
    assert StreamCut.from_text(cut.to_text(), cut.stream) == cut
    assert StreamCut.from_text(str(cut)) == cut
    assert StreamCut.from_bytes(cut.to_bytes()) == cut
    assert StreamCut.from_bytes(memoryview(bytearray(cut.to_bytes()))) == cut
    again = pickle.loads(pickle.dumps(cut))
    assert again == cut
    assert hash(again) == hash(cut)


def test_text_holds_the_epochs_and_offsets_that_bytes_have_no_room_for():
    cut = StreamCut(STREAM, {segment_id(1, 2**31 - 1): 5})
    assert StreamCut.from_text(cut.to_text()) == cut
    with pytest.raises(MalformedStreamCutError, match="s/t cannot be written"):
        cut.to_bytes()
    far = StreamCut(STREAM, {1: 2**61})
    assert StreamCut.from_text(far.to_text()) == far
    with pytest.raises(MalformedStreamCutError, match="s/t cannot be written"):
        far.to_bytes()


def test_cuts_are_equal_by_content_and_ordered_by_segment():
    one, other = StreamCut(STREAM, {2: 20, 1: 10}), StreamCut(STREAM, {1: 10, 2: 20})
    assert one == other
    assert hash(one) == hash(other)
    assert list(one.positions) == [1, 2]
    assert one.to_text() == other.to_text()
    assert one != StreamCut(STREAM, {1: 10, 2: 21})
    assert one != StreamCut(StreamName("s", "u"), {1: 10, 2: 20})


def test_a_cut_cannot_be_changed():
    positions = {1: 10}
    cut = StreamCut(STREAM, positions)
    positions[1] = 11
    assert cut.positions[1] == 10
    with pytest.raises(TypeError):
        cut.positions[1] = 12


def test_a_cut_prints_what_is_in_it():
    assert str(StreamCut(STREAM, {0: 5, segment_id(1, 2): -1})) == "s/t:0.#epoch.0=5, 1.#epoch.2=-1"


@pytest.mark.parametrize("positions", [{-1: 0}, {2**63: 0}, {2**31: 0}, {0: -2}, {0: 2**63}])
def test_positions_that_no_segment_has_are_refused(positions):
    with pytest.raises(MalformedStreamCutError, match="s/t"):
        StreamCut(STREAM, positions)


# Allowed differences of other writers


@pytest.mark.parametrize(
    "inner", ["0:s/t:1,0:0,0:7,-1", "0:s/t: 0 , 1 : 0,0 :-1,7", "0:s/t:+0,01:0,0:-1,7", "0:s/t:0,1:0,0:-1,+7"]
)
def test_order_blanks_and_signs_do_not_matter(inner):
    assert StreamCut.from_text(packed(inner)) == StreamCut(STREAM, {0: -1, 1: 7})


def test_blanks_around_the_text_and_missing_padding_do_not_matter():
    cut = StreamCut(STREAM, {0: 1})
    for level in range(10):
        text = base64.b64encode(gzip.compress(b"0:s/t:0:0:1", level, mtime=1_700_000_000)).decode()
        assert StreamCut.from_text(f" {text.rstrip('=')}\n") == cut


def test_a_cut_without_segments_is_read():
    # The Java client writes this for a sealed stream, and cannot read it itself.
    assert StreamCut.from_text(packed("0:s/t:::")) == StreamCut(STREAM, {})


def test_bytes_of_version_0_are_read():
    # StreamCutSerializer.write00 wrote offsets as compact longs without a sign: 0x4141 is 0x141.
    body = bytes.fromhex("0003") + b"s/t" + bytes.fromhex("01 05 4141")
    assert StreamCut.from_bytes(b"\0\0\1\0" + len(body).to_bytes(4, "big") + body) == StreamCut(STREAM, {5: 0x141})


def test_revisions_of_later_writers_are_skipped():
    data = bytearray(StreamCut(STREAM, {5: 6}).to_bytes())
    data[2] = 2
    assert StreamCut.from_bytes(data + b"\1\0\0\0\3abc") == StreamCut(STREAM, {5: 6})
    length = int.from_bytes(data[4:8], "big") + 2
    data[4:8] = length.to_bytes(4, "big")
    assert StreamCut.from_bytes(data + b"xx" + b"\1\0\0\0\0") == StreamCut(STREAM, {5: 6})


def test_wider_numbers_than_needed_are_read():
    body = bytes.fromhex("0003") + b"s/t" + bytes.fromhex("c0000001 c000000000000005 6000000000000006")
    assert StreamCut.from_bytes(b"\0\1\1\0" + len(body).to_bytes(4, "big") + body) == StreamCut(STREAM, {5: 6})


# Refused input


def test_unbounded_is_not_a_cut():
    refused(StreamCut.from_text, "UNBOUNDED", "None")
    refused(StreamCut.from_text, " UNBOUNDED\n", "None")
    refused(StreamCut.from_bytes, b"", "None")


def test_a_cut_of_another_stream_is_refused():
    text = StreamCut(STREAM, {0: 1}).to_text()
    with pytest.raises(MalformedStreamCutError, match=r"of s/t, not of s/u$"):
        StreamCut.from_text(text, StreamName("s", "u"))


@pytest.mark.parametrize(
    ("inner", "word"),
    [
        ("", "1 fields"),
        ("0:s/t:0:0", "4 fields"),
        ("0:s/t:0:0:0:0", "6 fields"),
        ("1:s/t:0:0:0", "version '1'"),
        ("0:st:0:0:0", "'st'"),
        ("0:s/t/u:0:0:0", "'t/u'"),
        ("0:s/t:0,1:0:0,1", "2 segment numbers, 1 epochs and 2 offsets"),
        ("0:s/t:0:0:", "0 offsets"),
        ("0:s/t:x:0:0", "'x'"),
        ("0:s/t:0:0:1.5", "'1.5'"),
        ("0:s/t:0,:0,0:0,0", "''"),
        ("0:s/t:٣:0:0", "invalid number"),
        ("0:s/t:-1:0:0", "number -1"),
        ("0:s/t:0:2147483648:0", "epoch 2147483648"),
        ("0:s/t:0:0:-2", "offset -2"),
        ("0:s/t:0:0:9223372036854775808", "offset 9223372036854775808"),
        ("0:s/t:0:0:" + "9" * 5000, "invalid number"),
        ("0:s/t:0,0:0,0:1,2", "twice"),
        (b"0:s/t\xff:0:0:0", "stream"),
        ("0:s/t:0:0:0\n\n" + "y" * 900, "invalid number"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_text_that_holds_something_else_is_refused(inner, word):
    refused(StreamCut.from_text, packed(inner), word)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("ä", "is not the text of a cut"),
        ("ab!=", "is not the text of a cut"),
        ("a", "is not the text of a cut"),
        ("earliest", "'earliest' is not the text of a cut"),
        (base64.b64encode(zlib.compress(b"0:s/t:0:0:0")).decode(), "is not the text of a cut"),
        (base64.b64encode(gzip.compress(b"0:s/t:0:0:0", mtime=0) + b"more").decode(), "follows"),
    ],
)
def test_text_that_is_not_packed_is_refused(text, word):
    refused(StreamCut.from_text, text, word)


@pytest.mark.parametrize("offset", ["9" * 19, "9" * 5000, "", "x", "1, 0.#epoch.0=2"])
def test_what_str_never_makes_of_a_cut_is_refused(offset):
    assert StreamCut.from_text("s/t:0.#epoch.0=1") == StreamCut(STREAM, {0: 1})
    with pytest.raises(MalformedStreamCutError):
        StreamCut.from_text(f"s/t:0.#epoch.0={offset}")


def test_text_cut_short_anywhere_is_refused():
    raw = gzip.compress(b"0:s/t:0,1,2:0,0,1:123,456,789")
    for end in range(1, len(raw)):
        refused(StreamCut.from_text, base64.b64encode(raw[:end]).decode(), "cut short")
    text = base64.b64encode(raw).decode().rstrip("=")
    for end in range(len(text)):
        refused(StreamCut.from_text, text[:end])


def test_damaged_text_is_refused():
    raw = bytearray(gzip.compress(b"0:s/t:0,1,2:0,0,1:123,456,789"))
    raw[-6] ^= 1  # the check sum
    refused(StreamCut.from_text, base64.b64encode(raw).decode(), "is damaged")


def test_a_text_that_unpacks_to_too_much_is_refused_without_unpacking_it():
    bomb = packed(b"0" * (64 * MAX_CUT_BYTES))
    tracemalloc.start()
    refused(StreamCut.from_text, bomb, str(MAX_CUT_BYTES))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MAX_CUT_BYTES
    refused(StreamCut.from_text, "A" * (MAX_CUT_BYTES + 1), "characters")


def test_the_largest_cuts_fit():
    cut = StreamCut(StreamName("s" * 255, "t" * 250), {segment_id(i, i): 2**40 + i for i in range(100_000)})
    assert StreamCut.from_text(cut.to_text()) == cut


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ("01010100", "format 1"),
        ("00020100", "version 2"),
        ("00010000", "0 revisions"),
        ("0001ff00", "255 revisions"),
        ("00010101 00000000", "found revision 1, expected revision 0"),
        ("00010100 00000001 00", "missing at its end"),
        ("00010100 00000008 0003732f74010000 00", "1 bytes follow"),
        ("00010100 00000008 0003732f74050000", "missing at its end"),
        ("00010100 00000008 0003732f74 ff0000", "missing at its end"),
        ("00010100 7fffffff 0003732f74010000", "missing at its end"),
        ("00010100 ffffffff 0003732f74010000", "missing at its end"),
        ("00010100 00000008 0003730074010000", "stream"),
        ("00010100 00000008 0003ff2f74010000", "utf-8"),
        ("00010100 00000008 0003732f74010081", "offset -2"),
        ("00010100 0000000a 0003732f740200000000", "twice"),
        ("00010100 0000000f 0003732f7401007fffffffffffffff", "range"),
    ],
)
def test_bytes_that_are_something_else_are_refused(data, word):
    refused(StreamCut.from_bytes, bytes.fromhex(data), word)


def test_bytes_cut_short_anywhere_are_refused():
    for vector in JAVA_CUTS[:-1]:
        data = bytes.fromhex(vector["hex"])
        for end in range(len(data)):
            refused(StreamCut.from_bytes, data[:end])


@given(st.one_of(st.binary(max_size=80), st.binary(max_size=60).map(lambda tail: b"\0\1\1\0\0\0\0" + tail)))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(MalformedStreamCutError):
        cut = StreamCut.from_bytes(data)
        assert StreamCut.from_bytes(cut.to_bytes()) == cut


@given(st.one_of(st.text(max_size=60), st.text("0123456789:,/-st", max_size=40).map(packed), st.binary().map(packed)))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(MalformedStreamCutError):
        cut = StreamCut.from_text(text)
        assert StreamCut.from_text(cut.to_text()) == cut
