"""Checks of credentials before they are sent. Their errors never contain a credential."""

from __future__ import annotations

import re
from typing import Any, Final

_PLAIN: Final = re.compile(r"[!-~]+(?: +[!-~]+)*")  # what a header of HTTP and gRPC carries


def fault_of(text: Any, *, encoded: bool = False) -> str | None:
    """Return the reason why a header cannot carry a text, as a clause without the text, or None if it can.

    ``encoded`` texts are sent as base64 of their UTF-8.
    """
    if not isinstance(text, str):
        return f"must be a str, not {type(text).__name__}"
    if encoded:
        return None if _is_utf8(text) else "has a character that UTF-8 cannot encode"
    if _PLAIN.fullmatch(text):
        return None
    if text != text.strip():
        return "begins or ends with a blank or a line end: remove it, for example with strip()"
    return "is empty" if not text else "has characters that a header cannot contain: use visible ASCII characters"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, as the environment has them for bytes that are not UTF-8
        return False
    return True
