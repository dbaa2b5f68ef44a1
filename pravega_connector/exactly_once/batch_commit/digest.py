"""Order-independent total of rows: a hash of their routing keys and events, for any order and any tasks.

The total is a multiset hash: each row is hashed to two words of 64 bits, and these are added up, each modulo 2**64. So
equal rows have equal totals, however a replay divides them into partitions and batches. The totals of tasks add up to
the total of their batch, and a row that occurs twice counts twice. Different rows have the same total only with a
probability of about one in 2**128. It does not protect against deliberate collisions: the constants are public.

The ledger keeps totals permanently, so this must not change. The module's test has a second
implementation, row by row, and golden values. All arithmetic is modulo 2**64, ``gamma = 0x9E3779B97F4A7C15``,
``fmix`` and ``mix13`` are the finalizers of MurmurHash3 and of SplitMix64.

* A value (event or key) longer than 1,024 bytes is replaced by its MurmurHash3_x64_128 (seed 0, 16 bytes).
* Its words are little-endian, the last one filled with zeros; ``x(w) = w * gamma``, then ``x ^ x >> 32``.
* The constants of lane 0 and 1 are ``c(lane, n) = mix13((512 * lane + n + 1) * gamma) | 1``. Word i of an event is
  multiplied by the constant n = i, word i of a key by n = 128 + i. The length of an event + 1 is multiplied by
  n = 256, the length of a key + 1 by n = 257. Without a key the latter is 0.
* The lane of a row is ``fmix`` of the sum of these products.
"""

from __future__ import annotations

from typing import Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.exactly_once.batch_commit.entries import Content
from pravega_serde.columnar import ByteColumn, as_column

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

#: Longer values are hashed one by one. For them, this is faster than hashing their words in a matrix.
LONGEST: Final = 1024
#: Maximum rows, and maximum words, that are hashed at a time: the arrays stay in the processor's cache.
CHUNK: Final = 16_384
_WORDS: Final = 16_384
#: Number of sampled keys. If they have at most an eighth as many distinct values, each distinct key is hashed once.
_SAMPLE: Final = 1024
_LANES: Final = 2
_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_KEYS, _EVENT_LENGTH, _KEY_LENGTH = 128, 256, 257
# Mask of the bytes in a last word, by their number.
_KEEP: Final = np.array([0, *((1 << 8 * count) - 1 for count in range(1, 9))], np.uint64)


def _constants() -> UInt64s:
    """Return the constants ``c(lane, n)`` of the module docstring."""
    n = np.arange(512 * _LANES, dtype=np.uint64).reshape(_LANES, 512)[:, : _KEY_LENGTH + 1]
    z = (n + np.uint64(1)) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


_C: Final = _constants()


class RowTotal:
    """Total of rows; see the module docstring."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0
        self._lanes = [0] * _LANES

    def add(self, events: pa.Array, keys: pa.Array | None) -> None:
        """Add rows: serialized events without nulls, and their routing keys, null for rows without one."""
        events = as_column(events)
        keys = None if keys is None or keys.null_count == len(keys) else as_column(keys)
        self.rows += len(events)
        for start in range(0, len(events), CHUNK):
            self._add(events.slice(start, CHUNK), None if keys is None else keys.slice(start, CHUNK))

    def _add(self, events: pa.Array, keys: pa.Array | None) -> None:
        sizes = _sizes(events)
        self.bytes += int(sizes.sum())
        lanes = _C[:, _EVENT_LENGTH, None] * (sizes + 1).view(np.uint64)
        lanes += _products(events, sizes, _C[:, :_KEYS])
        if keys is not None:
            lanes += _of_keys(keys)
        for lane, total in enumerate(_finalized(lanes).sum(axis=1).tolist()):
            self._lanes[lane] = (self._lanes[lane] + total) % 2**64

    @property
    def content(self) -> Content:
        """Content of all rows so far."""
        return Content(self.rows, self.bytes, self._lanes[0] << 64 | self._lanes[1])


def _of_keys(keys: pa.Array) -> UInt64s:
    """Return the part of the lanes of rows that comes from their keys."""
    if len(keys) > _SAMPLE and pc.count_distinct(keys.slice(0, _SAMPLE)).as_py() <= _SAMPLE // 8:
        encoded = keys.dictionary_encode(null_encoding="encode")
        products: UInt64s = np.take(_of_keys(encoded.dictionary), encoded.indices.to_numpy(), axis=1)
        return products
    present = np.ones(len(keys), np.int64) if keys.null_count == 0 else pc.is_valid(keys).cast(pa.int64()).to_numpy()
    if keys.null_count:  # the bytes of a null are undefined
        keys = keys.fill_null(_empty(keys.type))
    sizes = _sizes(keys)
    lengths = _C[:, _KEY_LENGTH, None] * (sizes + present).view(np.uint64)
    return lengths + _products(keys, sizes, _C[:, _KEYS:_EVENT_LENGTH])


def _products(column: pa.Array, sizes: Int64s, constants: UInt64s) -> UInt64s:
    """Return the sum of the words of each value, mixed and multiplied by constants: shape (lanes, values)."""
    if len(sizes) and sizes.max() > LONGEST:
        column, sizes = _shortened(column, sizes)
    if len(sizes) and sizes.min() == sizes.max():
        return _side_by_side(column, int(sizes[0]), constants)
    return _by_rounds(column, sizes, constants)


def _shortened(column: pa.Array, sizes: Int64s) -> tuple[pa.Array, Int64s]:
    """Return a binary column with digests in place of the long values, and its sizes."""
    long = sizes > LONGEST
    data, ends = _bytes_of(column), np.cumsum(sizes)
    spans = zip((ends - sizes)[long].tolist(), ends[long].tolist(), strict=True)
    digests = pa.array([mmh3.mmh3_x64_128_digest(data[start:end]) for start, end in spans], pa.binary())
    if long.all():
        return digests, np.full(len(sizes), 16, np.int64)
    short = column.filter(pa.array(~long)).cast(pa.binary())
    places = np.empty(len(sizes), np.int64)
    places[~long], places[long] = np.arange(len(short)), np.arange(len(short), len(sizes))
    return pa.concat_arrays([short, digests]).take(pa.array(places)), np.where(long, 16, sizes)


def _side_by_side(column: pa.Array, size: int, constants: UInt64s) -> UInt64s:
    """Hash values of equal length as a matrix of words, with a row for each value."""
    sums = np.zeros((_LANES, len(column)), np.uint64)
    if not size:
        return sums
    data = np.frombuffer(_bytes_of(column), np.uint8).reshape(len(column), size)
    count = -(-size // 8)
    step = max(1, _WORDS // count)
    padded = np.zeros((step, 8 * count), np.uint8)
    mixed = np.empty((2, step, count), np.uint64)
    for start in range(0, len(column), step):
        rows = min(step, len(column) - start)
        padded[:rows, :size] = data[start : start + rows]
        words = _mixed(padded[:rows].view("<u8"), mixed[0, :rows], mixed[1, :rows])
        for lane in range(_LANES):
            np.einsum("ij,j->i", words, constants[lane, :count], out=sums[lane, start : start + rows])
    return sums


def _by_rounds(column: pa.Array, sizes: Int64s, constants: UInt64s) -> UInt64s:
    """Hash values of different lengths in rounds: round i uses word i of all values that have one.

    The longest values come first, so the values of a round are adjacent.
    """
    opened, counts = ByteColumn.of(column.cast(pa.binary())), (sizes + 7) >> 3
    having = len(sizes) - np.cumsum(np.bincount(counts, minlength=1))  # [i]: number of values with more than i words
    order = np.argsort(-counts.astype(np.int16), kind="stable")
    starts, sizes = opened.starts[order], sizes[order]
    sums = np.zeros((_LANES, len(sizes)), np.uint64)
    for i, many in enumerate(having[:-1].tolist()):
        words, more = opened.words[starts[:many] + 8 * i], int(having[i + 1])
        # For values that end in this word: the bytes after their end belong to other values.
        words[more:] &= _KEEP[sizes[more:many] - 8 * i]
        sums[:, :many] += constants[:, i, None] * _mixed(words)
    unsorted = np.empty_like(sums)
    unsorted[:, order] = sums
    return unsorted


def _mixed(words: UInt64s, mixed: UInt64s | None = None, high: UInt64s | None = None) -> UInt64s:
    """Return ``x(w)``: without it, high bits, which a product leaves at the upper end, could cancel out."""
    mixed = np.multiply(words, _GAMMA, out=mixed)
    mixed ^= np.right_shift(mixed, np.uint64(32), out=high)
    return mixed


def _finalized(lanes: UInt64s) -> UInt64s:
    """Apply ``fmix`` in place."""
    lanes ^= lanes >> np.uint64(33)
    lanes *= np.uint64(0xFF51AFD7ED558CCD)
    lanes ^= lanes >> np.uint64(33)
    lanes *= np.uint64(0xC4CEB9FE1A85EC53)
    lanes ^= lanes >> np.uint64(33)
    return lanes


def _sizes(column: pa.Array) -> Int64s:
    sizes: Int64s = pc.binary_length(column).to_numpy().astype(np.int64, copy=False)
    return sizes


def _bytes_of(column: pa.Array) -> memoryview:
    """Return the bytes of all values, one after the other, as they are in memory."""
    offsets, data = column.buffers()[1:]
    if data is None or not len(column):
        return memoryview(b"")
    width = np.int64 if column.type in (pa.large_binary(), pa.large_string()) else np.int32
    bounds = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    return memoryview(data)[int(bounds[0]) : int(bounds[-1])]


def _empty(kind: pa.DataType) -> str | bytes:
    return "" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else b""
