"""UTF-8 text: nothing is bad there, but what replaces malformed bytes must be the same by row and by column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from pravega_serde.text import UTF8StringSerializer
from tests.fuzz._target import Format, Target

__all__ = ["FORMAT"]

_VECTORS: Final = Path(__file__).parents[2] / "tests/vectors/text_golden.jsonl"
_SIZE: Final = (1 << 20) - 1


def _events() -> list[bytes]:
    lines = map(json.loads, _VECTORS.read_text().splitlines())
    malformed = [bytes.fromhex(line["hex"]) for line in lines if line["kind"] == "utf8_decode"]
    return [*malformed[:300], *("sensor-1 ü € 😀".encode() * count for count in (0, 1, 2, 9)), bytes(range(256))]


_PIECES: Final = [b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xf0\x9f\x98\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]
_BOMBS: Final = {piece.hex(): lambda piece=piece: piece * (_SIZE // len(piece)) for piece in [*_PIECES, b"\xff", b"\0"]}

FORMAT: Final = Format(
    targets=[Target(name="text", serializer=UTF8StringSerializer(), corpus=_events(), bombs=_BOMBS, rewritten=True)],
    tokens=[*_PIECES, b"\xff", b"\0", b"\xef\xbb\xbf", b"\x80", b"\xc3", b"\xf8", b"\xfe"],
)
