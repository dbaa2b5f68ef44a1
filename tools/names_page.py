"""What names are called here: ``python -m tools.names_page`` writes the tables in ``docs/names.md`` anew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pravega_serde.elsewhere import ELSEWHERE

PAGE: Final = Path(__file__).parents[1] / "docs" / "names.md"
_TABLES: Final = re.compile(r"(?<=<!-- names -->\n).*?(?=<!-- end of names -->)", re.DOTALL)


def tables() -> str:
    """A section for each place that names come from."""
    sections = []
    for origin, names in ELSEWHERE.items():
        rows = (f"| {', '.join(f'`{name}`' for name in there.split())} | {here} |" for there, here in names.items())
        sections.append("\n".join(("", f"### {origin}", "", "| there | here |", "|---|---|", *rows, "")))
    return "".join(sections) + "\n"


def page() -> str:
    """``docs/names.md`` with the tables made from the code."""
    return _TABLES.sub(lambda _: tables(), PAGE.read_text(), count=1)


if __name__ == "__main__":
    PAGE.write_text(page())
