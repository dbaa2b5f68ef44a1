"""The part of a page that is made."""

from __future__ import annotations


def between(page: str, begin: str, end: str, text: str) -> str:
    """The page with ``text`` between two marks. Raises ValueError for a mark that is not there."""
    start = page.index(begin) + len(begin)
    return page[:start] + text + page[page.index(end, start) :]
