"""Numbers in text that a double does not hold."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import msgspec
import numpy as np

from pravega_serde.columnar.arrays import Int64s
from pravega_serde.columnar.found import fits_double

_POINT: Final = 0x2E
_MARKS: Final = bytes(chr(byte) in "0123456789." for byte in range(256))
#: Doubles hold all numbers of 15 digits. This is the length of the next longer ones, with their point.
_RUN: Final = 17
_NUMBER: Final = re.compile(rb"[0-9]*\.[0-9]+([eE][-+]?[0-9]{1,3})?(?![0-9.])")
_floats: Final = msgspec.json.Decoder(list[float]).decode


def inexact_fractions(data: bytes) -> Int64s:
    """Return the positions of numbers with a point that are not the text of their double; perhaps of some others.

    The shortest text that a double is read from has up to 17 digits. Most long numbers in files are such texts, so all
    of them are read and written again at once, which is fast.
    """
    marked = data.translate(_MARKS)
    if b"\1" * _RUN not in marked:
        return np.empty(0, np.int64)
    run, length = np.frombuffer(b"\0" + marked + b"\0" * _RUN, np.bool_), 1
    while length < _RUN:
        step = min(length, _RUN - length)
        run, length = run[:-step] & run[step:], length + step
    starts = np.flatnonzero(run[1:] > run[:-1])
    ends = np.flatnonzero(run[1:] < run[:-1]) + _RUN - 1
    view = np.frombuffer(data + b"\n", np.uint8)
    points = np.flatnonzero(view == _POINT)
    with_point = np.searchsorted(points, starts) < np.searchsorted(points, ends)
    starts, ends = starts[with_point], ends[with_point]
    if not len(starts):
        return starts
    texts = [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    joined = b",".join(texts)
    doubtful = view[ends] | 0x20 == ord("e")
    try:
        written = msgspec.json.encode(_floats(b"[" + joined + b"]"))[1:-1]
    except msgspec.MsgspecError:  # points and zeros that are not a number
        doubtful[:] = True
    else:
        if written != joined:
            doubtful |= [one != other for one, other in zip(texts, written.split(b","), strict=True)]
    return np.array([start for start in starts[doubtful].tolist() if not _is_exact(data, start)], np.int64)


def _is_exact(data: bytes, start: int) -> bool:
    text = _NUMBER.match(data, start)
    return text is not None and fits_double(Decimal(text[0].decode()))
