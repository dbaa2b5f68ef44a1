"""Totals of rows: a multiset hash that is written down in the module, and here once more, row by row."""

import random
from itertools import pairwise

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.exactly_once.batch_commit import Content, digest
from pravega_connector.exactly_once.batch_commit.digest import LONGEST, RowTotal

Row = tuple[bytes, str | None]
BINARY, M = pa.binary(), 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
rows = st.lists(
    st.tuples(
        st.binary(max_size=20) | st.binary(min_size=LONGEST - 2, max_size=LONGEST + 2), st.none() | st.text(max_size=9)
    ),
    max_size=12,
)


# ---- the definition, row by row --------------------------------------------------------------------------------------


def fmix(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & M
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & M
    return h ^ h >> 33


def constant(lane: int, n: int) -> int:
    z = (512 * lane + n + 1) * GAMMA & M
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31 | 1


def products(lane: int, first: int, value: bytes) -> int:
    if len(value) > 1024:
        value = mmh3.mmh3_x64_128_digest(value)
    total = 0
    for i in range(0, len(value), 8):
        x = int.from_bytes(value[i : i + 8], "little") * GAMMA & M
        total += constant(lane, first + i // 8) * (x ^ x >> 32)
    return total


def lane_of(lane: int, event: bytes, key: str | None) -> int:
    data = b"" if key is None else key.encode()
    lengths = constant(lane, 256) * (len(event) + 1) + constant(lane, 257) * (0 if key is None else len(data) + 1)
    return fmix(lengths + products(lane, 0, event) + products(lane, 128, data) & M)


def defined(data: list[Row]) -> Content:
    high, low = (sum(lane_of(lane, *row) for row in data) & M for lane in (0, 1))
    return Content(len(data), sum(len(event) for event, _ in data), high << 64 | low)


# ---- what the sink computes ------------------------------------------------------------------------------------------


def content(*batches: list[Row], kind: pa.DataType = BINARY) -> Content:
    result = RowTotal()
    for batch in batches:
        events = pa.array([event for event, _ in batch], pa.binary()).cast(kind)
        result.add(events, pa.array([key for _, key in batch], pa.string()))
    return result.content


@given(rows)
def test_it_is_what_it_is_defined_to_be(data: list[Row]):
    assert content(data) == defined(data) == content(data, kind=pa.large_binary())


@pytest.mark.parametrize(
    ("data", "total"),
    [
        ([], 0),
        ([(b"", None)], 0xE79486936A7132AF5DB349DAFD026060),
        ([(b"", "")], 0x98A54160F93ED9DF7B34F393A06B9520),
        ([(b"hello", "key")], 0x0F378B5A0FAB6FFE915AA38A1ACB45BA),
        ([(b"y" * 100, "17")] * 3, 0xC1C941BF3A6F1671302116A16DD1E628),
        ([(bytes(range(256)) * 5, "k" * 2000), (b"a", None)], 0x394D0792764F32A338E00DD2D2D9A527),
    ],
)
def test_totals_stay_what_they_are(data: list[Row], total: int):
    """Ledgers outlive versions of this project."""
    assert content(data).total == total


@given(rows, st.randoms(use_true_random=False), st.lists(st.integers(0, 12), max_size=3))
def test_order_and_partitions_make_no_difference(data: list[Row], chance: random.Random, cuts: list[int]):
    shuffled = chance.sample(data, len(data))
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parts = [shuffled[low:high] for low, high in pairwise(bounds)]
    assert content(data) == content(*parts) == sum((content(part) for part in parts), Content())


@given(rows, rows)
def test_other_rows_have_another_total(one: list[Row], other: list[Row]):
    assert (content(one).total == content(other).total) is (sorted(one, key=repr) == sorted(other, key=repr))


@given(rows.filter(bool), st.data())
def test_every_bit_counts(data: list[Row], draw: st.DataObject):
    event, key = data[0]
    changed = [(event + b"\0", key), (b"\0" + event, key), (event, (key or "") + "\0")]
    if event:
        bit = draw.draw(st.integers(0, 8 * len(event) - 1))
        flipped = (int.from_bytes(event, "little") ^ 1 << bit).to_bytes(len(event), "little")
        changed.append((flipped, key))
    for row in changed:
        assert content([row, *data[1:]]).total != content(data).total
    assert content([data[0], *data]).total != content(data).total


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(b"ab", None), (b"c", None)], [(b"a", None), (b"bc", None)]),
        ([(b"a", "")], [(b"a", None)]),
        ([(b"a", "k")], [(b"ak", None)]),
        ([(b"k", "a")], [(b"a", "k")]),
        ([(b"a", "1"), (b"b", "2")], [(b"a", "2"), (b"b", "1")]),
        ([(b"a", None)] * 2, []),
        # As two doubles whose signs are exchanged: the upper bits of two words.
        ([(b"\0" * 7 + b"\x80" + b"\0" * 8, None)], [(b"\0" * 15 + b"\x80", None)]),
        ([(b"\0" * 7 + b"\x80" + b"\0" * 7 + b"\x80", None)], [(b"\0" * 16, None)]),
    ],
)
def test_what_looks_alike_is_not(one: list[Row], other: list[Row]):
    assert content(one).total != content(other).total


def test_a_slice_is_its_rows():
    events, keys = pa.array([b"a", b"bb", b"ccc"], pa.binary()), pa.array(["x", None, "z"])
    sliced = RowTotal()
    sliced.add(events[1:], keys[1:])
    assert sliced.content == defined([(b"bb", None), (b"ccc", "z")])


def test_no_keys_are_null_keys():
    without = RowTotal()
    without.add(pa.array([b"a", b"b"], pa.binary()), None)
    assert without.content == defined([(b"a", None), (b"b", None)])


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "CHUNK", 100)
    monkeypatch.setattr(digest, "_WORDS", 300)
    monkeypatch.setattr(digest, "_SAMPLE", 80)


@pytest.mark.parametrize("size", [0, 7, 8, 100, LONGEST, LONGEST + 1])
@pytest.mark.usefixtures("small_chunks")
def test_many_rows_of_one_length_are_hashed_side_by_side(size: int):
    chance = random.Random(size)
    data: list[Row] = [(chance.randbytes(size), str(n)) for n in range(250)]
    assert content(data) == defined(data)


@pytest.mark.usefixtures("small_chunks")
def test_many_rows_of_all_lengths_are_hashed_in_rounds():
    chance = random.Random(1)
    data: list[Row] = [(chance.randbytes(chance.choice([0, 3, 8, 90, 100, 110, 2000])), None) for _ in range(250)]
    assert content(data) == defined(data)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
@pytest.mark.usefixtures("small_chunks")
def test_keys_that_come_often_are_hashed_once(kind: pa.DataType):
    data: list[Row] = [(b"event %d" % n, (None, "", "k", "key 3", "k" * 1500)[n % 5]) for n in range(250)]
    total = RowTotal()
    total.add(pa.array([event for event, _ in data]), pa.array([key for _, key in data]).cast(kind))
    assert total.content == defined(data)


def test_what_lies_behind_a_null_key_does_not_count():
    text, offsets = pa.py_buffer(b"a" * 2000 + b"??" + b"e" * 2000), pa.array([0, 2000, 2002, 4002], pa.int32())
    keys = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), offsets.buffers()[1], text])
    assert keys.to_pylist() == ["a" * 2000, None, "e" * 2000]
    total = RowTotal()
    total.add(pa.array([b"1", b"2", b"3"]), keys)
    assert total.content == defined([(b"1", "a" * 2000), (b"2", None), (b"3", "e" * 2000)])


def test_numbers_that_differ_in_few_bits_do_not_collide():
    """Rows as alike as counters are: among them both lanes must tell all apart."""
    words = pa.array([n.to_bytes(16, "little") for n in range(100_000)], pa.binary())
    lanes = digest._products(words, digest._sizes(words), digest._C[:, :128])
    assert [len(set(lane.tolist())) for lane in digest._finalized(lanes)] == [100_000] * 2
