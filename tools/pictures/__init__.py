"""Pictures of the documentation: ``python -m tools.pictures`` writes them to ``docs/pictures``.

Each picture is SVG text from code. It needs nothing from another host, and follows the color scheme of the reader, on
the site and on a forge.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.pictures import exactly_once, lag, overview, packages, paths, reader_groups, scaling, tier

__all__ = ["FOLDER", "PICTURES"]

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
PICTURES: Final[dict[str, Callable[[], str]]] = {
    "exactly-once.svg": exactly_once.picture,
    "lag.svg": lag.picture,
    "overview.svg": overview.picture,
    "packages.svg": packages.picture,
    "paths.svg": paths.picture,
    "reader-groups.svg": reader_groups.picture,
    "scaling.svg": scaling.picture,
    "tier.svg": tier.picture,
}
