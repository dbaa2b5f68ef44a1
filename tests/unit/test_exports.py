"""What packages export: every package with modules lists its public names, sorted, and all of them."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    str(init.parent.relative_to(ROOT)).replace("/", ".")
    for top in ("connector", "pravega_serde", "pyspark_pravega")
    for init in (ROOT / top).rglob("__init__.py")
    if any(module != init for module in init.parent.glob("*.py")) and not init.parent.name.startswith("_")
)


def imported_names(package: str) -> set[str]:
    """Public names that the package takes from its own modules."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}.")
        for alias in node.names
        if not (alias.asname or alias.name).startswith("_")
    }


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as ruff sorts them (RUF022)."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_there_are_packages_to_look_at():
    assert "connector.wire" in PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_and_complete(package):
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(set(module.__all__), key=order)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert imported_names(package) - set(module.__all__) == set()
