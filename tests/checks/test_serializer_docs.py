"""docs/serialization/serializers.md has a line for each format, and for the limits of each format that has any."""

import re
from pathlib import Path

from pravega_serde import formats

PAGE = (Path(__file__).parents[2] / "docs" / "serialization/serializers.md").read_text()


def _names_under(heading: str) -> list[str]:
    """Return the first cells of the tables in a section."""
    section = PAGE[PAGE.index(f"## {heading}\n") :].split("\n## ")[0]
    return sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_format_has_its_line() -> None:
    assert _names_under("Formats") == list(formats())


def test_every_format_with_values_inside_values_has_its_limits() -> None:
    assert _names_under("Limits") == sorted(set(formats()) - {"bytes", "string"})
