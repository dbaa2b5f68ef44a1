"""Suites of tests/integration that pass on real servers and on pravega_connector.testing."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

__all__ = ["ON_BOTH", "files_on_kit"]

_INTEGRATION: Final = Path(__file__).parents[1] / "integration"

#: Name -> minimum number of its tests that pass on the kit.
ON_BOTH: Final = {
    "client": 195,
    "exactly_once": 51,
    "ingest": 34,
    "ingest_and_export": 43,
    "mirror": 22,
    "monitoring": 8,
    "registry": 259,
    "spark": 230,
    "test_controller.py": 32,
    "test_pages.py": 16,
}
_PATHS: Final = frozenset(_INTEGRATION / name for name in ON_BOTH)


def files_on_kit(items: Iterable[pytest.Item]) -> set[Path]:
    """Return the files of ``ON_BOTH`` that have no ``real_servers`` test: ``--pravega=mixed`` runs them on the kit."""
    items = list(items)
    real = {item.path for item in items if item.get_closest_marker("real_servers") is not None}
    return {item.path for item in items if not _PATHS.isdisjoint((item.path, *item.path.parents))} - real
