"""Java's ``.properties`` files, as ``java.util.Properties.load`` reads them.

(But a backslash alone on the last line makes no entry; in Java it makes one with an empty key.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|$)")
# The key ends at the first '=', ':' or blank that no backslash precedes.
_ENTRY: Final = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)")


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a ``.properties`` file; of a key that stands twice, the last value."""
    entries = {}
    for line in _logical_lines(text):
        match = _ENTRY.fullmatch(line)
        if match is not None:
            entries[_unescape(match[1])] = _unescape(match[2])
    return entries


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without blanks before them and without comments; one that ends in an odd backslash takes in the next."""
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = pending + natural.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = ""
        yield line
    if pending:
        yield pending


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2] or ""), text)
