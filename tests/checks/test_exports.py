"""Exports: a package lists its public names, sorted, each once, and all that it takes from its modules."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    str(init.parent.relative_to(ROOT)).replace("/", ".")
    for top in ("pravega_connector", "pravega_serde", "pyspark_pravega")
    for init in (ROOT / top).rglob("__init__.py")
    if "__all__" in init.read_text() and not init.parent.name.startswith("_")
)


def parsed(package: str) -> list[ast.stmt]:
    return ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text()).body


def imported_names(package: str) -> set[str]:
    """Public names that the package takes from its own modules."""
    found = set()
    for node in parsed(package):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        module = f"{package}.{node.module}" if node.level == 1 else node.module
        if module.startswith(f"{package}."):
            star = any(alias.name == "*" for alias in node.names)
            names = importlib.import_module(module).__all__ if star else [a.asname or a.name for a in node.names]
            found |= {name for name in names if not name.startswith("_")}
    return found


def listed(package: str) -> list[str]:
    """The names that the package itself lists; the lists that it takes over from modules are added."""
    if package in LAZY:
        return importlib.import_module(package).__all__
    (names,) = (
        [element.value for element in node.value.elts]
        for node in parsed(package)
        if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node).split("=")[0]
    )
    return names


def seen_by_type_checkers(package: str) -> dict[str, object]:
    """Public names that the package imports, most of them only for type checkers, with their objects."""
    (block,) = (node for node in parsed(package) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    always = [node for node in parsed(package) if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    found = {}
    for node in always + block.body:
        module = importlib.import_module(f"{package}.{node.module}" if node.level else node.module)
        for alias in node.names:
            names = module.__all__ if alias.name == "*" else [alias.name]
            found |= {alias.asname or name: getattr(module, name) for name in names}
    return found


#: Packages whose names are loaded when they are asked for.
LAZY = [
    package for package in PACKAGES if "public_names(" in (ROOT / package.replace(".", "/") / "__init__.py").read_text()
]


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as ruff sorts them (RUF022)."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_there_are_packages_to_look_at():
    assert "pravega_connector.wire" in PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_and_complete(package):
    module = importlib.import_module(package)
    names = list(module.__all__)
    assert listed(package) == sorted(listed(package), key=order)
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(module, name)] == []
    assert imported_names(package) - set(names) == set()


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_what_exists(package):
    module = importlib.import_module(package)
    assert {name: getattr(module, name) for name in module.__all__} == seen_by_type_checkers(package)
    assert set(module.__all__) <= set(dir(module))
    assert not {"Final", "TYPE_CHECKING", "annotations", "sys"} & set(dir(module))  # what completion would offer


#: Modules whose names are public: the short package's, the ones that pages import from, and message classes.
PUBLIC_MODULES = {
    *(f"pravega_connector/{path.name}" for path in (ROOT / "connector").glob("*.py")),
    *(f"pravega_connector/operations/{path.name}" for path in (ROOT / "connector").glob("*.py")),
    "pravega_connector/aio/client.py",
    "pravega_connector/spark/versions.py",
    "pravega_connector/wire/messages.py",
    "pravega_serde/errors.py",
    "pravega_serde/format_table.py",
    "pravega_serde/text.py",
    "pyspark_pravega/dataframes.py",
    "pyspark_pravega/functions.py",
    "pyspark_pravega/session.py",
}


def test_other_modules_list_no_names():
    files = [
        path for top in ("pravega_connector", "pravega_serde", "pyspark_pravega") for path in (ROOT / top).rglob("*.py")
    ]
    with_list = {
        str(path.relative_to(ROOT)) for path in files if re.search("^__all__", path.read_text(), re.MULTILINE)
    } - {str(path.relative_to(ROOT)) for path in files if path.name == "__init__.py"}
    assert with_list - PUBLIC_MODULES == set()
