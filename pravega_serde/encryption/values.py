"""Encrypted values of one field: bytes, and the same as Base64 text.

| bytes | content |
|---|---|
| 1 | form: 1, or 2 with a nonce |
| 4 | number of the data key, big-endian |
| 16 | only form 2: a random nonce |
| 16 | tag of AES-SIV |
| rest | the encrypted value |

The associated data is the stream, a zero byte and the field, in UTF-8. In form 2, the nonce is a second item of
associated data. Empty values and nulls are not encrypted.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import ByteColumn, bounds_of, cut, expand, select, valid_rows, word_view
from pravega_serde.columnar.arrays import Bools, Int64s, UInt8s, as_text, offsets_of
from pravega_serde.encryption.keys import DataKeys, invalid_tag, primitives
from pravega_serde.errors import DecryptionError, MissingKeyError, SerializationError

if TYPE_CHECKING:
    from pravega_serde.encryption.siv import Blocks, Header, Siv

_log: Final = logging.getLogger(__name__)

_FIXED, _RANDOM = 1, 2  # forms
_HEADER: Final = 5
_BLOCK: Final = 16
#: Bytes before the encrypted value, by form.
_PREFIX: Final = {_FIXED: _HEADER + _BLOCK, _RANDOM: _HEADER + 2 * _BLOCK}
#: Rows whose temporaries still fit the processor's cache.
_ROWS: Final = 8_192
#: Number of rows below which encrypting row by row is faster.
_FEW: Final = 32


class FieldCipher:
    """Cipher of the values of one field of one stream."""

    def __init__(self, keys: DataKeys, stream: str, field: str, *, deterministic: bool, missing_key: str) -> None:
        primitives()
        self._keys, self._field = keys, field
        self._context = f"{stream}\0{field}".encode()
        self._form, self._missing_key = (_FIXED if deterministic else _RANDOM), missing_key
        self._headers: dict[int, Header] = {}
        self._warned: set[int] = set()

    # ---- values ----

    def seal(self, value: bytes) -> bytes:
        """Return the encrypted bytes of a value. An empty value stays empty."""
        if not value:
            return value
        number = self._keys.newest
        nonce = os.urandom(_BLOCK) if self._form == _RANDOM else b""
        sealed = self._keys.cipher(number).of_value.encrypt(value, [self._context, nonce] if nonce else [self._context])
        return b"".join((bytes((self._form,)), number.to_bytes(4), nonce, sealed))

    def seal_text(self, value: str) -> str:
        """Return the encrypted text of a text."""
        try:
            return base64.b64encode(self.seal(value.encode())).decode()
        except UnicodeEncodeError:
            raise SerializationError("an unpaired surrogate cannot be written as UTF-8") from None

    def open(self, sealed: bytes) -> bytes | None:
        """Return the value of encrypted bytes; None if its key is missing and that is allowed.

        Raises :class:`DecryptionError`, :class:`MissingKeyError`, EncryptionKeyError.
        """
        if not sealed:
            return sealed
        start = _PREFIX.get(sealed[0], 0) - _BLOCK
        if start < 0 or len(sealed) <= start + _BLOCK:
            raise DecryptionError("the value is not encrypted: write it with Encrypted, or read it without")
        number = int.from_bytes(sealed[1:_HEADER])
        if number not in self._keys:
            self._miss(number)
            return None
        nonce = sealed[_HEADER:start]
        try:
            plain: bytes = self._keys.cipher(number).of_value.decrypt(
                sealed[start:], [self._context, nonce] if nonce else [self._context]
            )
        except invalid_tag():
            raise DecryptionError(
                f"the value cannot be decrypted with data key {number}: it was changed, or encrypted with another key, "
                "for another stream or for another field"
            ) from None
        return plain

    def open_text(self, sealed: str) -> str | None:
        """Return the text of an encrypted text; see :meth:`open`."""
        try:
            data = base64.b64decode(sealed, validate=True)
            if base64.b64encode(data).decode() != sealed:
                raise ValueError
        except ValueError:
            raise DecryptionError("the value is not encrypted: it is not Base64") from None
        plain = self.open(data)
        try:
            return None if plain is None else plain.decode()
        except UnicodeDecodeError:
            raise DecryptionError("the decrypted value is not text in UTF-8") from None

    def _miss(self, number: int) -> None:
        """Raise or log that a key is missing."""
        known = ", ".join(map(str, self._keys.entries))
        reason = f"data key {number} is not in the set of keys (it has: {known}): use the set of the writer"
        if self._missing_key == "error":
            raise MissingKeyError(reason)
        if number not in self._warned:
            self._warned.add(number)
            _log.warning("values of the field %r are null: %s", self._field, reason)

    def _header(self, number: int, cipher: Siv) -> Header:
        made = self._headers.get(number)
        if made is None:
            made = self._headers[number] = cipher.header(self._context)
        return made

    # ---- columns ----

    def seal_column(self, column: pa.Array) -> pa.Array:
        """Return the encrypted values of a string or binary column."""
        if len(column) < _FEW:
            seal = self.seal_text if pa.types.is_string(column.type) else self.seal
            return pa.array([None if each is None else seal(each) for each in column.to_pylist()], column.type)
        return _of_present(column, lambda part: (self._sealed(part), None))[0]

    def open_column(self, column: pa.Array) -> tuple[pa.Array, Int64s]:
        """Return the values of a column of encrypted ones, and the rows that :meth:`open` must decide."""
        if len(column) < _FEW:
            return pa.nulls(len(column), column.type), np.flatnonzero(valid_rows(column))
        return _of_present(column, self._opened)

    def _sealed(self, column: pa.Array) -> pa.Array:
        siv = primitives()
        number = self._keys.newest
        cipher: Siv = self._keys.cipher(number)
        opened, count = ByteColumn.of(column), len(column)
        values = siv.Values.gather(opened.words, opened.starts, opened.ends - opened.starts)
        nonces = None
        if self._form == _RANDOM:
            nonces = np.frombuffer(os.urandom(_BLOCK * count), np.uint64).reshape(-1, 2)
        tags, sealed = cipher.encrypt(values, self._header(number, cipher), nonces)
        # Each value in whole blocks: the header at the end of the first one, then nonce, tag and the encrypted bytes.
        before = [tags] if nonces is None else [nonces, tags]
        lead = 1 + len(before)
        firsts = sealed.firsts + lead * np.arange(count)
        blocks = np.zeros((len(sealed.blocks) + lead * count + 1, 2), np.uint64)
        header = np.frombuffer(bytes(_BLOCK - _HEADER) + bytes((self._form,)) + number.to_bytes(4), np.uint64)
        if sealed.single:
            table = blocks[:-1].reshape(count, lead + 1, 2)
            table[:, 0] = header
            for place, each in enumerate((*before, sealed.blocks), 1):
                table[:, place] = each
        else:
            blocks[firsts] = header
            for place, each in enumerate(before, 1):
                blocks[firsts + place] = each
            blocks[np.arange(len(sealed.blocks)) + np.repeat(lead * np.arange(1, count + 1), sealed.counts)] = (
                sealed.blocks
            )
        data, starts = blocks.reshape(-1).view(np.uint8), _BLOCK * firsts + (_BLOCK - _HEADER)
        lengths = _PREFIX[self._form] + sealed.lengths
        if pa.types.is_binary(column.type):
            return cut(data, starts, starts + lengths)
        return _to_base64(data, starts, lengths)

    def _opened(self, column: pa.Array) -> tuple[pa.Array, Bools | None]:
        """Return the values, and a mask of the rows to be decided one by one; None if there are none."""
        is_text = pa.types.is_string(column.type)
        found = _from_base64(column) if is_text else _of_bytes(column)
        if found is None:
            return pa.nulls(len(column), column.type), np.ones(len(column), np.bool_)
        words, starts, lengths = found
        form, number = _headers_of(words, starts)
        least = np.where(form == _FIXED, _PREFIX[_FIXED], _PREFIX[_RANDOM])
        bad = (lengths <= least) | ((form != _FIXED) & (form != _RANDOM))
        groups = set(zip(form[~bad].tolist(), number[~bad].tolist(), strict=True))
        if not bad.any() and len(groups) == 1:
            values, wrong = self._group(words, starts, lengths, *groups.pop())
        else:  # several keys
            pieces, order = [], []
            wrong = bad.copy()
            for each in groups:
                rows = np.flatnonzero(~bad & (form == each[0]) & (number == each[1]))
                piece, mask = self._group(words, starts[rows], lengths[rows], *each)
                pieces.append(piece)
                order.append(rows)
                wrong[rows] = mask
            places = np.zeros(len(column), np.int64)
            places[np.concatenate(order) if order else []] = np.arange(sum(map(len, order)))
            values = select(pa.concat_arrays(pieces), places, valid=~bad) if pieces else pa.nulls(len(bad), pa.binary())
        if is_text:
            values, broken = as_text(values)
            wrong = wrong if broken is None else wrong | broken
        return values, wrong if wrong.any() else None

    def _group(self, words: Blocks, starts: Int64s, lengths: Int64s, form: int, number: int) -> tuple[pa.Array, Bools]:
        """Return the values of one form and key, and a mask of those that cannot be decrypted."""
        count = len(starts)
        if number not in self._keys:
            if self._missing_key == "null":
                self._miss(number)
            return pa.nulls(count, pa.binary()), np.full(count, self._missing_key == "error")
        siv, cipher = primitives(), self._keys.cipher(number)
        prefix = _PREFIX[form]
        values = siv.Values.gather(words, starts + prefix, lengths - prefix)
        nonces = None if form == _FIXED else siv.pairs(words, starts + _HEADER)
        plain, right = cipher.decrypt(
            values, siv.pairs(words, starts + prefix - _BLOCK), self._header(number, cipher), nonces
        )
        first = _BLOCK * plain.firsts
        return cut(plain.blocks.reshape(-1).view(np.uint8), first, first + plain.lengths), ~right


def _of_present(
    column: pa.Array, convert: Callable[[pa.Array], tuple[pa.Array, Bools | None]]
) -> tuple[pa.Array, Int64s]:
    """Convert the values that are neither null nor empty, some at a time.

    Returns the column, and the rows that ``convert`` masks.
    """
    lengths = np.diff(offsets_of(column))
    present = (lengths > 0) & valid_rows(column)
    whole = bool(present.all())
    values = column if whole else column.filter(pa.array(present))
    pieces, suspects = [], [np.empty(0, np.int64)]
    for start in range(0, len(values), _ROWS):
        piece, wrong = convert(values.slice(start, _ROWS))
        pieces.append(piece)
        if wrong is not None:
            suspects.append(start + np.flatnonzero(wrong))
    made = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces) if pieces else values
    rows = np.concatenate(suspects)
    if whole:
        return made, rows
    spread = expand(made, present)
    empty = pa.scalar("" if pa.types.is_string(column.type) else b"", column.type)
    spread = pc.if_else(pa.array((lengths == 0) & valid_rows(column)), empty, spread)
    return spread, np.flatnonzero(present)[rows]


def _to_base64(data: UInt8s, starts: Int64s, lengths: Int64s) -> pa.StringArray:
    """Return slices as Base64. There are two zeros after each slice, which do not belong to another."""
    thirds = (lengths + 2) // 3
    whole = cut(data, starts, starts + 3 * thirds)
    text = np.frombuffer(
        bytearray(binascii.b2a_base64(whole.buffers()[2][: 3 * int(thirds.sum())], newline=False)), np.uint8
    )
    offsets = bounds_of(4 * thirds)
    pads = 3 * thirds - lengths
    text[offsets[1:][pads > 0] - 1] = _PAD
    text[offsets[1:][pads > 1] - 2] = _PAD
    return pa.Array.from_buffers(
        pa.string(), len(starts), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text)]
    )


_PAD, _ZERO = ord("="), ord("A")


def _from_base64(column: pa.StringArray) -> tuple[Blocks, Int64s, Int64s] | None:
    """Return the words, starts and lengths of the decoded texts. None if some text is not plain Base64."""
    offsets = offsets_of(column).astype(np.int64)
    text = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].copy()
    offsets -= offsets[0]
    sizes = np.diff(offsets)
    if (sizes & 3).any():
        return None
    ends = offsets[1:]
    last = text[ends - 1] == _PAD
    pads = last + (last & (text[ends - 2] == _PAD)).astype(np.int64)
    text[ends[pads > 0] - 1] = _ZERO
    text[ends[pads > 1] - 2] = _ZERO
    try:
        decoded = binascii.a2b_base64(text.data, strict_mode=True)
    except binascii.Error:
        return None
    data = np.frombuffer(decoded + bytes(_BLOCK), np.uint8)
    starts, ends = offsets[:-1] // 4 * 3, ends // 4 * 3
    if data[ends[pads > 0] - 1].any() or data[ends[pads > 1] - 2].any():
        return None
    return word_view(data), starts, ends - starts - pads


def _of_bytes(column: pa.BinaryArray) -> tuple[Blocks, Int64s, Int64s]:
    opened = ByteColumn.of(column)
    return opened.words, opened.starts, opened.ends - opened.starts


def _headers_of(words: Blocks, starts: Int64s) -> tuple[Int64s, Int64s]:
    """Return the forms and the numbers of the keys. For shorter values they are of other bytes."""
    first = words[starts]
    form = (first & np.uint64(0xFF)).astype(np.int64)
    number = (first >> np.uint64(8)).astype(np.uint32).byteswap().astype(np.int64)
    return form, number
