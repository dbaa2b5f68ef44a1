"""Arrays of primitives in bulk: ``byte[]`` is ``bytes``, the others are NumPy arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pravega_serde.java._plans import MalformedError

__all__ = ["array_class", "read_primitives", "wire_bytes"]

_WIRE: Final[dict[str, np.dtype[Any]]] = {
    "[C": np.dtype(">u2"),
    "[D": np.dtype(">f8"),
    "[F": np.dtype(">f4"),
    "[I": np.dtype(">i4"),
    "[J": np.dtype(">i8"),
    "[S": np.dtype(">i2"),
    "[Z": np.dtype("?"),
}
_NATIVE: Final = {name: dtype.newbyteorder("=") for name, dtype in _WIRE.items()}
_CLASS_OF: Final = {dtype: name for name, dtype in _NATIVE.items()} | {np.dtype("i1"): "[B", np.dtype("u1"): "[B"}


def read_primitives(name: str, data: bytes, pos: int, count: int) -> tuple[Any, int]:
    """The array of ``count`` elements at ``pos`` and the position after it."""
    if name == "[B":
        return data[pos : pos + count], pos + count
    wire = _WIRE.get(name)
    # Any other class name that begins with "[" has been taken for an array of objects already.
    if wire is None:
        msg = f"unknown array class {name!r}"
        raise MalformedError(msg)
    end = pos + count * wire.itemsize
    if end > len(data):
        msg = f"the bytes end inside an array of {count} elements at byte {pos}"
        raise MalformedError(msg)
    if wire.itemsize == 1:  # any byte but 0 is true, and NumPy must only ever see 0 and 1
        return np.frombuffer(data, np.uint8, count, pos) != 0, end
    return np.frombuffer(data, wire, count, pos).astype(_NATIVE[name]), end


def array_class(array: np.ndarray[Any, Any]) -> str | None:
    """Java class of a one-dimensional array, None if Java has none (unsigned integers, objects)."""
    return _CLASS_OF.get(array.dtype.newbyteorder("=")) if array.ndim == 1 else None


def wire_bytes(array: np.ndarray[Any, Any], name: str) -> bytes:
    """The elements as Java writes them."""
    return array.tobytes() if name == "[B" else array.astype(_WIRE[name]).tobytes()
