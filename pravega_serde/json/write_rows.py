"""Events written one at a time, byte for byte as Jackson's ``ObjectMapper`` writes them by default.

| Python | JSON |
|---|---|
| None, bool, int, str, list, tuple | null, true or false, number, string, array |
| float | as ``Double.toString``; NaN and infinities as the strings "NaN", "Infinity", "-Infinity" |
| Decimal | a number, as ``BigDecimal.toString`` |
| bytes | a Base64 string |
| mapping, dataclass | an object; a key that is a number or boolean becomes text |
| Enum | its name |
| UUID | its text |
| date, time, datetime | ISO 8601, microseconds always in six digits, an instant in UTC with Z |
| timedelta | ISO 8601, which Java's ``Duration.parse`` reads |

Jackson without further modules writes a ``java.util.Date`` as a number of milliseconds. It reads one from ISO 8601 text
too, which is also what Spark writes.
"""

from __future__ import annotations

import binascii
import dataclasses
import enum
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec
import numpy as np

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.bad_rows import has_surrogate, in_utc

#: Characters that Jackson escapes: controls, quotes, backslashes, and characters above 16 bits.
_SPECIAL: Final = re.compile('["\\\\\x00-\x1f\U00010000-\U0010ffff\ud800-\udfff]')

_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


#: Reason for refusing a value that refers to itself, or nearly.
TOO_DEEP: Final = "the value is nested too deeply, or contains itself"


def to_json(value: Any) -> bytes:
    """Return the text of a value in UTF-8.

    Raises :class:`SerializationError`, with the path of the part without a JSON form.
    """
    parts: list[str] = []
    try:
        try:
            _write(value, parts.append)
        except RecursionError:
            parts.clear()
            _write_deep(value, parts.append)
        return "".join(parts).encode()
    except MalformedError as error:
        raise error.in_value("JSON") from error


def quoted(text: str) -> str:
    """Return the JSON string of a text."""
    if _SPECIAL.search(text) is None:
        return f'"{text}"'
    if has_surrogate(text):
        text = _paired(text)
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _paired(text: str) -> str:
    """Join each pair of surrogates into one character.

    Python keeps the two apart, but Java sees one character.
    """
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise MalformedError("an unpaired surrogate") from None


def _escape(match: re.Match[str]) -> str:
    letter = match.group()
    if letter in _SHORT:
        return _SHORT[letter]
    code = ord(letter)
    if code < 0x10000:
        return f"\\u{code:04X}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"


Out = Callable[[str], None]


def _write(value: Any, out: Out) -> None:
    write = _WRITERS.get(type(value))
    if write is not None:
        write(value, out)
    else:
        _write_other(value, out)


def _write_str(value: str, out: Out) -> None:
    out(quoted(value))


def _write_float(value: Any, out: Out) -> None:
    out(java_float(value) if math.isfinite(value) else NOT_FINITE[str(float(value))])


def _write_dict(value: Mapping[Any, Any], out: Out) -> None:
    before = "{"
    for key, inner in value.items():
        try:
            out(f"{before}{quoted(key if type(key) is str else _key(key))}:")
            _write(inner, out)
        except MalformedError as error:
            raise error.within(f".{key}") from error
        before = ","
    out("}" if before == "," else "{}")


def _key(key: Any) -> str:
    """Return a key as text: the JSON of the value, without quotes."""
    if isinstance(key, enum.Enum):
        return key.name
    if isinstance(key, str | uuid.UUID):
        return str(key)
    if isinstance(key, float | np.floating):
        return java_float(key) if math.isfinite(key) else NOT_FINITE[str(float(key))][1:-1]
    if isinstance(key, bool | int | np.integer):
        return str(key).lower()
    raise MalformedError(f"{key!r} ({type(key).__name__}) cannot be a key")


def _write_list(value: Any, out: Out) -> None:
    before = "["
    for index, inner in enumerate(value):
        out(before)
        try:
            _write(inner, out)
        except MalformedError as error:
            raise error.within(f"[{index}]") from error
        before = ","
    out("]" if before == "," else "[]")


def _write_decimal(value: Decimal, out: Out) -> None:
    if not value.is_finite():
        raise MalformedError(f"invalid number {value}")
    out(str(value))


def _write_bytes(value: Any, out: Out) -> None:
    out(f'"{binascii.b2a_base64(value, newline=False).decode()}"')


def _write_datetime(value: datetime, out: Out) -> None:
    if value.tzinfo is None:
        out(f'"{value.isoformat(timespec="microseconds")}"')
    else:
        out(f'"{in_utc(value).isoformat(timespec="microseconds")}Z"')


def _write_deep(value: Any, out: Out) -> None:
    """Write without recursion, so that every value read within the interpreter's recursion limit can be written."""
    # For each open value: its remaining parts (text before, step of the path, value), and the text that ends it.
    stack: list[tuple[Iterator[tuple[str, str, Any]], str]] = []
    path: list[str] = []
    try:
        opened = _open(value, out)
        while opened is not None or stack:
            if opened is not None:
                if len(stack) == _DEEPEST:
                    raise MalformedError(TOO_DEEP)
                stack.append(opened)
                path.append("")
            parts, end = stack[-1]
            opened = None
            for before, path[-1], inner in parts:
                out(before)
                opened = _open(inner, out)
                if opened is not None:
                    break
            else:
                out(end)
                stack.pop()
                path.pop()
    except MalformedError as error:
        for step in reversed(path[:_SHOWN]):
            error.within(step)
        raise


#: Maximum depth of lists and objects; far more than any reader accepts.
_DEEPEST: Final = 100_000
#: Steps of the path in an error.
_SHOWN: Final = 20


def _open(value: Any, out: Out) -> tuple[Iterator[tuple[str, str, Any]], str] | None:
    """Write a scalar and return None; of a list or object, write the start and return its parts and its end."""
    if isinstance(value, list | tuple):
        out("[")
        return (("," if index else "", f"[{index}]", inner) for index, inner in enumerate(value)), "]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}
    if not isinstance(value, Mapping):
        _write(value, out)
        return None
    out("{")
    entries = enumerate(value.items())
    return (
        (f"{',' if index else ''}{quoted(key if type(key) is str else _key(key))}:", f".{key}", inner)
        for index, (key, inner) in entries
    ), "}"


_WRITERS: Final[Mapping[type, Callable[[Any, Out], None]]] = {
    bool: lambda value, out: out("true" if value else "false"),
    bytes: _write_bytes,
    bytearray: _write_bytes,
    date: lambda value, out: out(f'"{value.isoformat()}"'),
    datetime: _write_datetime,
    Decimal: _write_decimal,
    dict: _write_dict,
    float: _write_float,
    int: lambda value, out: out(str(value)),
    list: _write_list,
    memoryview: _write_bytes,
    np.bool_: lambda value, out: out("true" if value else "false"),
    np.float32: _write_float,
    str: _write_str,
    time: lambda value, out: out(f'"{value.isoformat(timespec="microseconds")}"'),
    timedelta: lambda value, out: out(f'"{msgspec.to_builtins(value)}"'),
    tuple: _write_list,
    type(None): lambda value, out: out("null"),
    uuid.UUID: lambda value, out: out(f'"{value}"'),
}


def _write_other(value: Any, out: Out) -> None:
    """Write subclasses and duck-typed values."""
    if isinstance(value, enum.Enum):
        out(quoted(value.name))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _write_dict({entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}, out)
    elif isinstance(value, Mapping):
        _write_dict(value, out)
    elif isinstance(value, np.integer | np.floating):
        _write(value.item(), out)
    else:
        known = next((write for base, write in _WRITERS.items() if isinstance(value, base)), None)
        if known is None:
            frame = hasattr(value, "__arrow_c_stream__")
            hint = ": write the record batches of a frame with write_batch" if frame else ""
            raise MalformedError(f"a {type(value).__name__} is not supported by JSON{hint}")
        known(value, out)


# Numbers

#: Jackson's texts of numbers that JSON does not have, with Python's texts as keys.
NOT_FINITE: Final = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}

#: Sizes from and below which Java writes a number without an exponent.
PLAIN_FROM: Final = 1e-3
PLAIN_BELOW: Final = 1e7


def java_float(value: float | np.float32) -> str:
    """Return the text of a finite double as Java's ``Double.toString`` writes it.

    A numpy float32 is written as ``Float.toString`` writes it. Numbers between 10^-3 and 10^7 have no exponent; others
    are written as ``1.5E10``. There is always a digit after the point, and the text has the fewest digits that read
    back as the same number.

    Java does the same since version 19. Before, a bug (JDK-4511638) let it write some numbers in more digits than
    needed, such as 2.0E-3 for 0.002 or 1.9999999999999998E23 for 2.0E23. They are read back as the same numbers.
    """
    shortest = str(value) if isinstance(value, np.float32) else float.__repr__(value)
    size = abs(float(value))
    if (PLAIN_FROM <= size < PLAIN_BELOW and "e" not in shortest) or size == 0:
        return shortest
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # Position of the point, counted from the first digit that is not zero.
    point = int(exponent or 0) + (len(whole) if whole.strip("0") else len(digits) - len(fraction))
    digits = digits.rstrip("0")
    if len(digits) < 2:
        # Java always writes two digits, and the second is not always a zero: the smallest double is 4.9E-324.
        digits = f"{size:.1e}"[:3].replace(".", "")
    sign = "-" if value < 0 else ""
    if PLAIN_FROM <= size < PLAIN_BELOW:
        return sign + _plain(digits, point)
    return f"{sign}{digits[0]}.{digits[1:]}E{point - 1}"


def _plain(digits: str, point: int) -> str:
    """Return digits with a point among them, or with zeros before or after them."""
    digits = digits.rstrip("0") or "0"
    if point <= 0:
        return "0." + "0" * -point + digits
    return f"{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
