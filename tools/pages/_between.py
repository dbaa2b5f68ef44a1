"""The generated part of a page."""

from __future__ import annotations


def between(page: str, begin: str, end: str, text: str) -> str:
    """Return the page with ``text`` between two marks. Raises ValueError for a missing mark."""
    start = page.index(begin) + len(begin)
    return page[:start] + text + page[page.index(end, start) :]
