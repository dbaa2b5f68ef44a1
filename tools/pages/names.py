"""What names are called here: the tables in ``docs/names.md``."""

from __future__ import annotations

from pravega_serde.elsewhere import ELSEWHERE
from tools.pages._between import between


def tables() -> str:
    """A section for each place that names come from."""
    sections = []
    for origin, names in ELSEWHERE.items():
        rows = (f"| {', '.join(f'`{name}`' for name in there.split())} | {here} |" for there, here in names.items())
        sections.append("\n".join(("", f"### {origin}", "", "| there | here |", "|---|---|", *rows, "")))
    return "".join(sections) + "\n"


def page(text: str) -> str:
    """The page with its tables."""
    return between(text, "<!-- names -->\n", "<!-- end of names -->", tables())
