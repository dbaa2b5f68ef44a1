"""Check of the imports among the project's modules: no circle, and no way from the serializers to the connector.

``python -m tools.imports`` prints every circle and exits with 1 if there is one. It reads the source, and counts four
kinds of imports. An import of a submodule also loads the packages that contain it. That is not counted.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("connector", "pravega_connector", "pravega_serde", "pyspark_pravega")


class Kind(StrEnum):
    """Kind of an import."""

    LOAD = "load"
    """It runs when the module is loaded."""
    CALL = "call"
    """It runs in a function."""
    TYPES = "types"
    """It is under ``if TYPE_CHECKING``."""
    NAME = "name"
    """A string names the module: in a table of ``public_names``, in ``import_module``, or in another constant."""


class Edge(NamedTuple):
    """Import of ``target`` in ``source``."""

    source: str
    target: str
    kind: Kind
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line} -> {self.target} ({self.kind})"


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Files of the project's packages by module."""
    found = {}
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def edges(files: dict[str, Path]) -> Iterator[Edge]:
    """Imports between the modules ``files``."""
    for module, file in files.items():
        yield from _edges(ast.parse(file.read_text()), module, files)


def circles(found: Iterable[Edge]) -> list[list[str]]:
    """Groups of modules that reach each other, the largest first."""
    targets: dict[str, set[str]] = {}
    sources: dict[str, set[str]] = {}
    for edge in found:
        targets.setdefault(edge.source, set()).add(edge.target)
        sources.setdefault(edge.target, set()).add(edge.source)
    left = {*targets, *sources}
    groups = []
    while left:
        module = min(left)
        group = _reached(module, targets) & _reached(module, sources)
        left -= group
        if len(group) > 1:
            groups.append(sorted(group))
    return sorted(groups, key=len, reverse=True)


def upward(found: Iterable[Edge]) -> list[Edge]:
    """Imports of the serializers that leave ``pravega_serde``, which must work without the other packages."""
    own = "pravega_serde"
    return [edge for edge in found if edge.source.startswith(own) and not edge.target.startswith(own)]


def faults(found: Collection[Edge]) -> Iterator[str]:
    """Describe each circle, and the imports of the serializers that leave them."""
    for group in circles(found):
        inside = [edge for edge in found if edge.source in group and edge.target in group]
        yield "\n  ".join((f"{len(group)} modules import each other:", *map(str, inside)))
    if leaving := upward(found):
        yield "\n  ".join(("pravega_serde imports another package:", *map(str, leaving)))


def _reached(start: str, targets: dict[str, set[str]]) -> set[str]:
    seen = {start}
    todo = [start]
    while todo:
        new = targets.get(todo.pop(), set()) - seen
        seen |= new
        todo.extend(new)
    return seen


def _edges(tree: ast.Module, module: str, files: dict[str, Path]) -> Iterator[Edge]:
    package = module if files[module].name == "__init__.py" else module.rpartition(".")[0]
    for node, kind in _nodes(tree, Kind.LOAD):
        for target in _targets(node, package, files):
            named = not isinstance(node, ast.Import | ast.ImportFrom)
            if target != module:
                yield Edge(module, target, Kind.NAME if named else kind, node.lineno)


def _nodes(node: ast.AST, kind: Kind) -> Iterator[tuple[ast.stmt | ast.expr, Kind]]:
    """Statements and expressions below ``node`` with the kind that an import there has; no docstrings."""
    for child in ast.iter_child_nodes(node):
        inner = kind
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.stmt | ast.expr):
            yield child, kind
        if isinstance(child, ast.JoinedStr):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = Kind.CALL if kind is Kind.LOAD else kind
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from _nodes(ast.Module(child.body, []), Kind.TYPES)
            yield from _nodes(ast.Module(child.orelse, []), kind)
            continue
        yield from _nodes(child, inner)


def _targets(node: ast.AST, package: str, files: Collection[str]) -> Iterator[str]:
    match node:
        case ast.Import(names):
            yield from (alias.name for alias in names if alias.name in files)
        case ast.ImportFrom(module, names, level):
            above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*above, module] if module else above)
            # A name is a submodule, or the package has it.
            whole = (f"{base}.{alias.name}" for alias in names)
            yield from {name if name in files else base for name in whole if name in files or base in files}
        case ast.Call(ast.Name("public_names"), [_, ast.Dict(keys), *_]):
            yield from (f"{package}.{key.value}" for key in keys if isinstance(key, ast.Constant))
        case ast.Call(_, [ast.JoinedStr([ast.FormattedValue(ast.Name("__package__")), *_]), *_]):
            yield from (name for name in files if name.startswith(f"{package}."))
        case ast.JoinedStr([ast.Constant(str(prefix)), *_]) if prefix.startswith(PACKAGES) and prefix.endswith("."):
            yield from (name for name in files if name.startswith(prefix))
        case ast.Constant(str(text)) if text.startswith(PACKAGES) and "." in text:
            name = text.partition(":")[0]
            found = name if name in files else name.rpartition(".")[0]
            if found in files and found not in PACKAGES:
                yield found
        case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts) | ast.Call(ast.Name("import_module"), parts):
            # Elsewhere a bare name is rather a distribution, a logger or a meter.
            yield from (each.value for each in parts if isinstance(each, ast.Constant) and each.value in PACKAGES)


if __name__ == "__main__":
    sys.exit("\n".join(faults(list(edges(modules())))) or None)
