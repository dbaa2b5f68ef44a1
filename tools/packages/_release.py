"""Check of the checkout against a tag."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

__all__ = ["PLACEHOLDER", "problems"]

ROOT: Final = Path(__file__).parents[2]
#: Reserved hosts (RFC 2606).
PLACEHOLDER: Final = re.compile(r"https?://([\w-]+\.)*example\.(com|net|org)(/|$)")


def problems(tag: str, home: str | None = None) -> list[str]:
    """Reasons against publishing the checkout under a tag, at a home; empty without any."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    version = project["project"]["version"]
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, the version in pyproject.toml is {version}: they have to agree")
    if re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", _text("CHANGELOG.md"), re.MULTILINE) is None:
        found.append(f"CHANGELOG.md has no heading with the date of the release: ## {version} (YYYY-MM-DD)")
    if f"\nversion: {version}\n" not in _text("CITATION.cff"):
        found.append(f"CITATION.cff has another version than {version}")
    said = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"]
    if PLACEHOLDER.match(said):
        found.append(f"the home in pyproject.toml, {said}, is a placeholder: name the project's own")
    elif home is not None and said != home:
        found.append(f"the home in pyproject.toml is {said}, and the release is made at {home}: they have to agree")
    return found


def _text(name: str) -> str:
    return (ROOT / name).read_text()
