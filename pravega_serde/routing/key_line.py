"""Position of a routing key on the key line [0, 1), equal to Java's ``io.pravega.common.hash.HashHelper``.

Java hashes the UTF-16 code units of the key with Guava's ``murmur3_128`` and converts the top 52 bits to a double. The
scalar version uses mmh3. The columnar version computes the same hash for all keys at once, block by block: see
:func:`murmur3_low64`.
"""

from __future__ import annotations

from typing import Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import ByteColumn, as_column, is_text, word_view
from pravega_serde.columnar.arrays import SLACK, Int64s, UInt8s, UInt64s, dictionary_values
from pravega_serde.columnar.checks import first_not_utf8
from pravega_serde.errors import SchemaError, SerializationError

#: ``"EventRouter".hashCode()``: seed of the hash in Java's EventStreamWriter.
SEED: Final = 1741865571

#: Longer keys (in bytes) are hashed one by one: a block round costs the same for one key as for a thousand.
_LONGEST_IN_ROUNDS: Final = 1024

#: Sample size. If at most an eighth of the sampled keys are distinct, only the distinct keys are hashed.
_SAMPLE: Final = 2048

_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_MIX1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIX2: Final = np.uint64(0xC4CEB9FE1A85EC53)
#: ``_KEEP[n]`` keeps the low n bytes of a word.
_KEEP: Final = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)


def segment_key(routing_key: str) -> float:
    """Return the position of one key. The segment whose range contains it receives the event."""
    low = mmh3.hash64(routing_key.encode("utf-16-le", "surrogatepass"), SEED, signed=False)[0]
    # The upper 52 bits, the size of a double's fraction, scaled to [0, 1).
    return float(low >> 12) * 2.0**-52


def segment_keys(column: pa.StringArray) -> npt.NDArray[np.float64]:
    """Return the positions of a column of keys.

    A null key gets a random position, so events without keys spread evenly. Raises :class:`SchemaError` if the column
    does not contain strings, and :class:`SerializationError` for a key that is not UTF-8.
    """
    if pa.types.is_dictionary(column.type):
        encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        try:
            return _by_dictionary(encoded)
        except SerializationError:  # of a value, which may be the key of no row
            return segment_keys(dictionary_values(encoded))
    column = as_column(column)
    if not is_text(column.type):
        if not pa.types.is_null(column.type):
            raise SchemaError(f"routing keys must be strings, not {column.type}; cast the column to string")
        return np.random.default_rng().random(len(column))
    column = column.cast(pa.string())
    if (row := first_not_utf8(column)) is not None:
        raise not_utf8(row)
    if len(column) > _SAMPLE and pc.count_distinct(column.slice(0, _SAMPLE)).as_py() <= _SAMPLE // 8:
        return _by_dictionary(column.dictionary_encode())
    if column.null_count == 0:
        return _places(column)
    result = np.random.default_rng().random(len(column))
    result[column.is_valid().to_numpy(zero_copy_only=False)] = _places(column.drop_null())
    return result


def not_utf8(row: int) -> SerializationError:
    """Error of the routing key in a row of a column."""
    return SerializationError("the routing key is not UTF-8: write such bytes as text, with hex or base64", row=row)


def _by_dictionary(encoded: pa.DictionaryArray) -> npt.NDArray[np.float64]:
    places = segment_keys(encoded.dictionary)
    if encoded.null_count == 0:
        chosen: npt.NDArray[np.float64] = places[encoded.indices.to_numpy()]
        return chosen
    result = np.random.default_rng().random(len(encoded))
    known = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    result[known] = places[encoded.indices.drop_null().to_numpy()]
    return result


def _places(column: pa.StringArray) -> npt.NDArray[np.float64]:
    hashes = murmur3_low64(*utf16(column))
    scaled: npt.NDArray[np.float64] = (hashes >> np.uint64(12)).astype(np.float64) * 2.0**-52
    return scaled


def utf16(column: pa.StringArray) -> tuple[UInt8s, Int64s, Int64s]:
    """Return the padded UTF-16LE bytes of a column without nulls, and the start and length of each key."""
    text = ByteColumn.of(column)
    used = text.data[:-SLACK]
    if len(used) == 0 or used.max() < 0x80:
        data = np.zeros(2 * len(used) + SLACK, np.uint8)
        data[0 : 2 * len(used) : 2] = used
        return data, text.starts * 2, (text.ends - text.starts) * 2
    data = np.frombuffer(used.tobytes().decode().encode("utf-16-le") + bytes(SLACK), np.uint8)
    # A UTF-8 byte begins a code unit unless it continues a character. A start byte of four bytes begins two units.
    units = ((used & 0xC0) != 0x80).astype(np.int64) + (used >= 0xF0)
    before = np.zeros(len(used) + 1, np.int64)
    np.cumsum(units, out=before[1:])
    starts = before[text.starts]
    return data, starts * 2, (before[text.ends] - starts) * 2


def murmur3_low64(data: UInt8s, starts: Int64s, lengths: Int64s) -> UInt64s:
    """Return the first half of murmur3_x64_128 of each slice of ``data``, which is padded at the end."""
    long = np.flatnonzero(lengths > _LONGEST_IN_ROUNDS)
    if len(long):
        lengths = lengths.copy()
        whole = lengths[long]
        lengths[long] = 0
    low = _murmur3_rounds(word_view(data), starts, lengths)
    if len(long):
        spans = zip(starts[long].tolist(), whole.tolist(), strict=True)
        low[long] = [mmh3.hash64(data[start : start + size].tobytes(), SEED, signed=False)[0] for start, size in spans]
    return low


def _murmur3_rounds(words: UInt64s, starts: Int64s, lengths: Int64s) -> UInt64s:
    """Hash all slices block by block.

    Round k hashes block k of all slices that have one, and skips shorter slices. Then all tails are hashed, and then
    all results are mixed.
    """
    h1 = np.full(len(starts), SEED, np.uint64)
    h2 = h1.copy()
    blocks = lengths >> 4  # of 16 bytes; up to 15 are left for the tail
    shortest, longest = (int(blocks.min()), int(blocks.max())) if len(blocks) else (0, 0)
    for block in range(longest):
        if block < shortest:
            at = starts + 16 * block
            _body(h1, h2, words[at], words[at + 8])
        else:
            rows = np.flatnonzero(blocks > block)
            at = starts[rows] + 16 * block
            part1, part2 = h1[rows], h2[rows]
            _body(part1, part2, words[at], words[at + 8])
            h1[rows], h2[rows] = part1, part2
    at = starts + (blocks << 4)
    rest = lengths & 15
    # An empty tail is a word of zero, and mixing zero in has no effect.
    h1 ^= _mix_k1(words[at] & _KEEP[np.minimum(rest, 8)])
    if len(rest) and rest.max() > 8:
        h2 ^= _mix_k2(words[at + 8] & _KEEP[np.maximum(rest - 8, 0)])
    size = lengths.astype(np.uint64)
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    return _final(h1) + _final(h2)


def _body(h1: UInt64s, h2: UInt64s, k1: UInt64s, k2: UInt64s) -> None:
    """Mix one 16-byte block into both halves in place."""
    h1 ^= _mix_k1(k1)
    h1[:] = _rotate(h1, 27)
    h1 += h2
    h1 *= np.uint64(5)
    h1 += np.uint64(0x52DCE729)
    h2 ^= _mix_k2(k2)
    h2[:] = _rotate(h2, 31)
    h2 += h1
    h2 *= np.uint64(5)
    h2 += np.uint64(0x38495AB5)


def _mix_k1(k1: UInt64s) -> UInt64s:
    k1 *= _C1
    k1 = _rotate(k1, 31)
    k1 *= _C2
    return k1


def _mix_k2(k2: UInt64s) -> UInt64s:
    k2 *= _C2
    k2 = _rotate(k2, 33)
    k2 *= _C1
    return k2


def _rotate(x: UInt64s, by: int) -> UInt64s:
    left = x << np.uint64(by)
    left |= x >> np.uint64(64 - by)
    return left


def _final(k: UInt64s) -> UInt64s:
    k = k ^ (k >> np.uint64(33))
    k *= _MIX1
    k ^= k >> np.uint64(33)
    k *= _MIX2
    k ^= k >> np.uint64(33)
    return k
