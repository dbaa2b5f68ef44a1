"""Links in the texts of generated pages."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["to_pages"]

_PAGE: Final = re.compile(r"\bdocs/((?:[a-z-]+/)+)([a-z-]+)\.md(#[a-z0-9-]+)?")


def to_pages(text: str, up: str = "../") -> str:
    """Return a text with links in place of the paths of pages; ``up`` leads from the page to the folder docs."""
    return _PAGE.sub(lambda page: f"[{page[2].replace('-', ' ')}]({up}{page[1]}{page[2]}.md{page[3] or ''})", text)
