"""The examples on the pages of docs/."""

import re
from pathlib import Path

__all__ = ["sections"]

_DOCS = Path(__file__).parents[3] / "docs"


def sections(page: str) -> dict[str, list[tuple[str, str]]]:
    """(language, text) of each example, by section."""
    parts = re.split(r"^## (.*)$", (_DOCS / page).read_text(), flags=re.MULTILINE)
    return {
        name: re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
