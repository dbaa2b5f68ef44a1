"""AES-SIV (RFC 5297) of one value, and of all values of a column with a few calls of AES.

For one value, ``cryptography`` has the cipher. A call takes some microseconds, more than the writing of a whole event.
AES-SIV needs only AES of single blocks, so a column is encrypted with numpy and one call of AES for each round:
all blocks of the key stream at once, and block i of the MAC of all values at once. The bytes are the same.

A block is a pair of words, as they are in memory. Values are not empty, so each has a last block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from pravega_serde.columnar import bounds_of, word_view
from pravega_serde.columnar.arrays import Bools, Int64s

#: Blocks: shape (n, 2).
Blocks = npt.NDArray[np.uint64]

#: Bytes of a block, of a nonce and of a tag.
BLOCK: Final = 16
_R: Final = 0x87  # the polynomial of the field
# Bits that a counter begins without, in the second word as it is in memory.
_COUNTER: Final = np.uint64(~(1 << 63 | 1 << 31) & (1 << 64) - 1).byteswap()


def _masks() -> tuple[Blocks, Blocks]:
    """Return the bytes of a block that belong to a value, and its padding, by the number of those bytes."""
    keep, pad = np.zeros((2, BLOCK + 1, BLOCK + 1), np.uint8)
    for count in range(BLOCK + 1):
        keep[count, :count] = 0xFF
        pad[count, count] = 0x80
    return _words(keep[:, :BLOCK]), _words(pad[:, :BLOCK])


def _words(data: npt.NDArray[np.uint8]) -> Blocks:
    return np.ascontiguousarray(data).view(np.uint64)


_KEEP, _PAD = _masks()


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a column as whole blocks, one value after the other. The bytes after the end of a value are zeros."""

    blocks: Blocks
    lengths: Int64s
    counts: Int64s
    firsts: Int64s
    rest: Int64s
    """Number of the bytes of each value in its last block, from 1 to 16."""
    single: bool
    """True if each value has one block."""

    @classmethod
    def gather(cls, words: Blocks, starts: Int64s, lengths: Int64s) -> Self:
        """Copy values out of bytes; ``words[i]`` is the word at byte i."""
        counts = (lengths + (BLOCK - 1)) >> 4
        single = not len(counts) or int(counts.max()) == 1
        firsts = np.arange(len(counts)) if single else bounds_of(counts)[:-1]
        if not single:
            starts = np.repeat(starts - BLOCK * firsts, counts) + BLOCK * np.arange(counts.sum())
        return cls(
            pairs(words, starts), lengths, counts, firsts, lengths - BLOCK * (counts - 1), single
        )._without_ends()

    def replaced(self, blocks: Blocks) -> Self:
        """Return values of the same lengths, with other bytes."""
        return replace(self, blocks=blocks)._without_ends()

    def _without_ends(self) -> Self:
        """Set the bytes after the end of each value to zero, and return the values."""
        keep = _KEEP.take(self.rest, axis=0)
        if self.single:
            np.bitwise_and(self.blocks, keep, out=self.blocks)
        else:
            lasts = self.firsts + self.counts - 1
            self.blocks[lasts] = self.blocks.take(lasts, axis=0) & keep
        return self


@dataclass(frozen=True, slots=True)
class Header:
    """State of the MAC after the associated data, as a block."""

    state: Blocks
    ends: tuple[Blocks, Blocks]
    """For each number of bytes in the last block of a value, see :meth:`Siv._ends`; those of single blocks first."""


class Siv:
    """AES-SIV with one key: its first half is of the MAC, its second half of the key stream."""

    def __init__(self, key: bytes) -> None:
        self.of_value: Final = AESSIV(key)
        self._mac, self._stream = (algorithms.AES(half) for half in (key[: len(key) // 2], key[len(key) // 2 :]))
        self._subkeys = np.zeros((2, 2), np.uint64)
        first = _doubled(_encrypted(self._mac, np.zeros((1, 2), np.uint64)))
        self._subkeys[0], self._subkeys[1] = first, _doubled(first)

    def header(self, data: bytes) -> Header:
        """Return the state of the MAC after associated data, for any number of columns."""
        state = _doubled(self._mac_of(bytes(BLOCK))) ^ self._mac_of(data)
        lengths = np.tile(np.arange(BLOCK + 1), 2)
        single = np.arange(len(lengths)) <= BLOCK
        return Header(state, self._ends(np.repeat(state, len(lengths), axis=0), lengths, single))

    def encrypt(self, values: Values, header: Header, nonces: Blocks | None = None) -> tuple[Blocks, Values]:
        """Return the tag and the encrypted bytes of each value. With ``nonces``, each value also has its own."""
        tags = self._tags(values, header, nonces)
        return tags, values.replaced(values.blocks ^ self._key_stream(tags, values))

    def decrypt(
        self, values: Values, tags: Blocks, header: Header, nonces: Blocks | None = None
    ) -> tuple[Values, Bools]:
        """Return the decrypted values, and a mask of those whose tag is right."""
        plain = values.replaced(values.blocks ^ self._key_stream(tags, values))
        found = self._tags(plain, header, nonces)
        return plain, (found[:, 0] == tags[:, 0]) & (found[:, 1] == tags[:, 1])

    def _key_stream(self, tags: Blocks, values: Values) -> Blocks:
        low = tags[:, 1] & _COUNTER
        if values.single:
            return _encrypted(self._stream, np.stack((tags[:, 0], low), axis=1))
        within = np.arange(len(values.blocks)) - np.repeat(values.firsts, values.counts)
        low = (np.repeat(low.byteswap(), values.counts) + within.view(np.uint64)).byteswap()
        return _encrypted(self._stream, np.stack((np.repeat(tags[:, 0], values.counts), low), axis=1))

    def _tags(self, values: Values, header: Header, nonces: Blocks | None) -> Blocks:
        """Return S2V of the header, the nonce and the value."""
        one = values.counts == 1
        if nonces is None:
            of = values.rest + np.where(one, 0, BLOCK + 1)
            before, last = (each.take(of, axis=0) for each in header.ends)
        else:
            state = _doubled(header.state) ^ _encrypted(self._mac, nonces ^ self._subkeys[0])
            before, last = self._ends(state, values.rest, one)
        return self._macs(values, before, last)

    def _ends(self, state: Blocks, rest: Int64s, single: Bools) -> tuple[Blocks, Blocks]:
        """Return the blocks to add to the last two blocks of values for the MAC, with their padding and the subkey.

        A value of at least 16 bytes has the state added at its end, the last two blocks. A shorter one has the doubled
        state.
        """
        padded = np.zeros((len(state), 6), np.uint64)
        padded[:, 2:4] = state
        words = word_view(padded.reshape(-1).view(np.uint8))
        place = np.arange(len(state)) * 3 * BLOCK + 2 * BLOCK - rest
        before, last = pairs(words, place - BLOCK), pairs(words, place)
        short = single & (rest < BLOCK)
        last[short] = _doubled(state[short])
        subkeys = np.where(short | (rest == BLOCK), 0, 1)
        return before, last ^ _PAD.take(rest, axis=0) ^ self._subkeys.take(subkeys, axis=0)

    def _macs(self, values: Values, before: Blocks, last: Blocks) -> Blocks:
        """Return the CMAC of each value, with blocks to add to its last two."""
        if values.single:
            return _encrypted(self._mac, values.blocks ^ last)
        order = np.argsort(-values.counts, kind="stable")  # the longest first, so the values of a round are adjacent
        firsts, before, last = values.firsts[order], before.take(order, axis=0), last.take(order, axis=0)
        # [i]: number of values with more than i blocks
        having = [*(len(order) - np.cumsum(np.bincount(values.counts))).tolist(), 0]
        state = np.zeros((len(order), 2), np.uint64)
        for round_, count in enumerate(having[:-2]):
            blocks = state[:count] ^ values.blocks.take(firsts[:count] + round_, axis=0)
            more, most = having[round_ + 1 : round_ + 3]
            blocks[more:] ^= last[more:count]
            blocks[most:more] ^= before[most:more]
            state[:count] = _encrypted(self._mac, blocks)
        unsorted = np.empty_like(state)
        unsorted[order] = state
        return unsorted

    def _mac_of(self, data: bytes) -> Blocks:
        """Return the CMAC of associated data, which is not empty."""
        words = word_view(np.frombuffer(data + bytes(BLOCK), np.uint8))
        values = Values.gather(words, np.zeros(1, np.int64), np.array([len(data)]))
        subkey = self._subkeys[[0 if values.rest[0] == BLOCK else 1]]
        return self._macs(values, np.zeros((1, 2), np.uint64), _PAD[values.rest] ^ subkey)


def pairs(words: Blocks, starts: Int64s) -> Blocks:
    """Return the blocks that begin at bytes."""
    made = np.empty((len(starts), 2), np.uint64)
    made[:, 0], made[:, 1] = words[starts], words[starts + 8]
    return made


def _encrypted(key: algorithms.AES, blocks: Blocks) -> Blocks:
    """Return AES of each block."""
    # ECB is AES of single blocks, a part of each mode. It encrypts no value by itself.
    encryptor = Cipher(key, modes.ECB()).encryptor()  # noqa: S305
    made = encryptor.update(np.ascontiguousarray(blocks).data.cast("B"))
    return np.frombuffer(made, np.uint64).reshape(-1, 2)


def _doubled(blocks: Blocks) -> Blocks:
    """Return each block times x, in the field of CMAC."""
    high, low = blocks[:, 0].byteswap(), blocks[:, 1].byteswap()
    one, top = np.uint64(1), np.uint64(63)
    made = np.empty((len(blocks), 2), np.uint64)
    made[:, 0] = (high << one | low >> top).byteswap()
    made[:, 1] = (low << one ^ (high >> top) * np.uint64(_R)).byteswap()
    return made
