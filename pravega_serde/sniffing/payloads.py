"""Format of one event or payload, as far as its own bytes show it. No event is executed, loaded or imported."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from pravega_serde.cbor import scan
from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError, MissingExtraError
from pravega_serde.json.rows import parse as parse_json
from pravega_serde.sniffing import avro_container, compression, java_classes, messagepack
from pravega_serde.sniffing.evidence import text_bits

#: Format of an event that its own bytes do not show.
UNKNOWN: Final = "unknown"
EMPTY: Final = "empty"

#: Formats that Pravega's clients read, and those that sniffing only names -> the format to read them with.
READ_AS: Final = {
    "avro": "avro",
    "cbor": "cbor",
    "csv": "string",
    "java": "java",
    "json": "json",
    "protobuf": "protobuf",
    "string": "string",
    "xml": "string",
}


@dataclass(frozen=True, slots=True)
class Guess:
    """Format of one payload and the bits of evidence for it."""

    format: str
    bits: float = 0.0
    weak: bool = False
    """True if other events must confirm it: JSON of scalars only, or text with control characters."""


_NOTHING: Final = Guess(UNKNOWN)

#: First bytes of other formats. Each has at least four.
_SIGNATURES: Final = {
    b"PAR1": "parquet",
    b"ORC\x0a": "orc",
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh91AY&SY": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xff\x06\x00\x00sNaPpY": "framed snappy",
    b"\x82SNAPPY\x00": "framed snappy",
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff\xe0": "jpeg",
    b"\xff\xd8\xff\xe1": "jpeg",
    b"GIF89a": "gif",
    b"%PDF-": "pdf",
    b"\xca\xfe\xba\xbe": "java class file",
    b"ARROW1": "arrow file",
    b"\xe0\x01\x00\xea": "ion",
}

_BYTE_ORDER_MARK: Final = 0xFEFF
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
#: Characters of a text that are searched for control characters, after the first one.
_EXAMINED: Final = 10_000
_XML: Final = re.compile(r"\s*(?:<\?xml\s[^>]*>\s*)?<([A-Za-z_][\w.:-]*)(?:\s[^<>]*)?(?:/>\s*\Z|>)")


def detect(data: bytes) -> Guess:
    """Return the format of one payload, or unknown. Large or malformed payloads raise no error."""
    if not data:
        return Guess(EMPTY)
    for known in (_by_signature, _text, _cbor, _messagepack, _utf32, _utf16):
        guess = known(data)
        if guess is not None:
            return guess
    return _NOTHING


def _by_signature(data: bytes) -> Guess | None:
    for is_it, name, bits in _CHECKED:
        if is_it(data):
            return Guess(name, bits)
    for first, name in _SIGNATURES.items():
        if data.startswith(first) and not data.isascii():
            return Guess(name, 8.0 * len(first))
    return None


def _is_pickle(data: bytes) -> bool:
    # PROTO 4 or 5, then FRAME with the size of the rest, as each pickler writes it. It is never loaded.
    is_framed = len(data) > 12 and data[0] == 0x80 and data[1] in (4, 5) and data[2] == 0x95
    return is_framed and data.endswith(b".") and int.from_bytes(data[3:11], "little") == len(data) - 11


def _is_bson(data: bytes) -> bool:
    if len(data) < 8 or int.from_bytes(data[:4], "little") != len(data) or data[-1] != 0:
        return False
    name = data[5 : data.find(b"\0", 5)]
    return data[4] in range(1, 20) and len(name) > 0 and name.isascii() and name.decode().isprintable()


def _is_smile(data: bytes) -> bool:
    # A smiley, the version 0 with three flags, and a token that text lacks.
    return len(data) > 4 and data.startswith(b":)\n") and data[3] < 8 and not data.isascii()


#: Formats with a check of the whole event, and the bits of evidence of each.
_CHECKED: Final[tuple[tuple[Callable[[bytes], bool], str, float], ...]] = (
    (java_classes.is_java, "java", 64.0),
    (lambda data: avro_container.schema_of(data) is not None, "avro container", 64.0),
    (lambda data: compression.gunzipped(data) is not None, "gzip", 56.0),
    # A check of the header and 32 bits of the checksum.
    (lambda data: compression.inflated(data) is not None, "zlib", 40.0),
    (_is_smile, "smile", 32.0),
    (_is_pickle, "pickle", 40.0),
    (_is_bson, "bson", 48.0),
)


# ---- text ----


def _text(data: bytes) -> Guess | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    json = _json(data)
    if json is not None:
        return json
    found = _CONTROL.search(text)
    if found is not None:
        return None if "\0" in text[1::2] and len(text) > 3 and _utf16(data) else _weak_text(text)
    if _is_xml(text):
        return Guess("xml", text_bits(text))
    return Guess("string", text_bits(text) if len(data) > 1 else 0.0)


def _weak_text(text: str) -> Guess | None:
    """Return text with few control characters, which only other texts can confirm."""
    start = text[:_EXAMINED]
    return Guess("string", 0.0, weak=True) if len(_CONTROL.findall(start)) * 4 <= len(start) else None


def _json(data: bytes) -> Guess | None:
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start not in (b"{", b"["):
        return None
    try:
        value = parse_json(data)
    except DeserializationError:
        return None
    strong = bool(value) and (isinstance(value, dict) or any(isinstance(each, dict | list) for each in value))
    return Guess("json", 12.0 + 2.0 * len(data) if strong else 4.0, weak=not strong)


def _is_xml(text: str) -> bool:
    """True for one element that ends where the text ends. No XML parser is used, so no entity is expanded."""
    found = _XML.match(text)
    if found is None:
        return False
    return found[0].rstrip().endswith("/>") or text.rstrip().endswith(f"</{found[1]}>")


def _utf16(data: bytes) -> Guess | None:
    """Return UTF-16 of mostly Latin text, with or without a byte order mark."""
    if len(data) < 8 or len(data) % 2:
        return None
    for first in (0, 1):
        zeros, letters = data[first::2], data[1 - first :: 2]
        if zeros.count(0) * 10 >= len(zeros) * 9 and sum(32 <= each < 127 for each in letters) * 10 >= len(letters) * 9:
            return Guess("utf-16", 4.0 * len(data))
    return None


def _utf32(data: bytes) -> Guess | None:
    """Return UTF-32 of mostly Latin text, with or without a byte order mark."""
    if len(data) < 12 or len(data) % 4:
        return None
    orders: tuple[Literal["little", "big"], ...] = ("little", "big")
    for order in orders:
        codes = [int.from_bytes(data[at : at + 4], order) for at in range(0, min(len(data), 4 * _EXAMINED), 4)]
        codes = codes[1:] if codes[0] == _BYTE_ORDER_MARK else codes
        if sum(32 <= each < 127 for each in codes) * 10 >= len(codes) * 9:
            return Guess("utf-32", 4.0 * len(data))
    return None


# ---- maps in binary ----


def _cbor(data: bytes) -> Guess | None:
    """Return CBOR of a map with texts for keys, or of an array of such maps, or with CBOR's own tag."""
    tagged = data.startswith(b"\xd9\xd9\xf7")
    body = data[3:] if tagged else data
    if not tagged and not (0x81 <= body[0] <= 0x9F or 0xA1 <= body[0] <= 0xBF):
        return None
    value = _parsed_cbor(body)
    if value is _NOTHING:
        return None
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value[:20]):
        keys = [key for each in value[:20] for key in each]
    else:
        keys = list(value) if isinstance(value, dict) else []
    if not keys or not all(type(key) is str and key.isprintable() for key in keys):
        return Guess("cbor", 24.0) if tagged else None
    return Guess("cbor", 4.0 + 24.0 * tagged + sum(6.0 + text_bits(key) for key in keys))


def _parsed_cbor(data: bytes) -> Any:
    try:
        # The check is without values and fails early, so that cbor2 reads well-formed events only.
        scan.check(data)
        return cbor_parser()(data)
    except (MalformedError, DeserializationError, MissingExtraError):
        return _NOTHING


def cbor_parser() -> Callable[[bytes], Any]:
    """Return the reader of CBOR events. Raises :class:`MissingExtraError` without cbor2."""
    try:
        from pravega_serde.cbor.rows import parse  # noqa: PLC0415 - needs the extra cbor
    except ModuleNotFoundError as error:
        raise MissingExtraError("cbor2", "cbor", purpose="reading CBOR") from error
    return parse


def _messagepack(data: bytes) -> Guess | None:
    keys = messagepack.text_keys(data)
    if keys is None:
        return None
    try:
        texts = [key.decode() for key in keys]
    except UnicodeDecodeError:
        return None
    if not all(text.isprintable() for text in texts):
        return None
    return Guess("messagepack", 4.0 + sum(6.0 + text_bits(text) for text in texts))
