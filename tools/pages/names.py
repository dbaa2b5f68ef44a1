"""Tables of names in other clients, for ``docs/reference/names.md`` and the guides of migration."""

from __future__ import annotations

from collections.abc import Callable

from pravega_serde.foreign_names import ELSEWHERE
from tools.pages._between import between


def tables(*origins: str) -> str:
    """A table for each place that names come from; with a heading, if there are several."""
    sections = []
    for origin in origins:
        rows = [
            f"| {', '.join(f'`{name}`' for name in there.split())} | {here} |"
            for there, here in ELSEWHERE[origin].items()
        ]
        heading = ["", f"### {origin}"] if len(origins) > 1 else []
        sections.append("\n".join((*heading, "", "| there | here |", "|---|---|", *rows, "")))
    return "".join(sections) + "\n"


def page(*origins: str) -> Callable[[str], str]:
    """Builder of the page with these tables."""

    def made(text: str) -> str:
        return between(text, "<!-- names -->\n", "<!-- end of names -->", tables(*origins))

    return made
