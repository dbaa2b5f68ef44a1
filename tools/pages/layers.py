"""Who imports whom, among the packages: the drawing in ``docs/architecture.md``.

An arrow says that a module of one package imports one of the other when it is loaded; a dotted one, that it does so in
a function, so that whoever does not call it does not pay for it. Arrows that others imply are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.pages._between import between

ROOT: Final = Path(__file__).parents[2]
_TOPS: Final = ("pyspark_pravega", "pravega_connector", "pravega_serde")

Edges = dict[tuple[str, str], bool]  # (from, to): whether it is needed to load the module


def _room(module: str) -> str:
    """Package of a module: two levels of names, ``errors`` and the like apart."""
    return ".".join(module.split(".")[:2])


def _imports(tree: ast.AST, package: list[str], *, eager: bool = True) -> Iterator[tuple[str, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            # Without a module between, the names are modules of the package.
            modules = [node.module] if node.module else [name.name for name in node.names]
            yield from ((".".join([*base, module]), eager) for module in modules)
        elif isinstance(node, ast.Import):
            yield from ((name.name, eager) for name in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for other in node.orelse:
                yield from _imports(ast.Module([other], []), package, eager=eager)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(node, package, eager=eager and not inside)


def edges() -> Edges:
    """Imports between packages."""
    found: Edges = {}
    for top in _TOPS:
        for file in sorted((ROOT / top).rglob("*.py")):
            parts = list(file.relative_to(ROOT).with_suffix("").parts)
            package = parts[:-1]
            here = _room(".".join(package if parts[-1] == "__init__" else parts))
            for target, eager in _imports(ast.parse(file.read_text()), package):
                there = _room(target)
                if there.split(".")[0] in _TOPS and there != here:
                    found[here, there] = found.get((here, there), False) or eager
    return found


def _without_implied(found: Edges) -> Edges:
    """Edges that no path of others implies."""
    targets: dict[str, set[str]] = {}
    for source, target in found:
        targets.setdefault(source, set()).add(target)

    def reach(start: str, avoid: tuple[str, str]) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            node = todo.pop()
            for target in targets.get(node, ()):
                if (node, target) != avoid and target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    return {edge: eager for edge, eager in found.items() if edge[1] not in reach(edge[0], edge)}


def arrows() -> str:
    """The arrows of a Mermaid flow chart."""
    drawn = sorted(_without_implied(edges()).items())
    return "".join(f"    {source} {'-->' if eager else '-.->'} {target}\n" for (source, target), eager in drawn)


def page(text: str) -> str:
    """The page with its drawing."""
    return between(text, "```mermaid\nflowchart TD\n", "```\n", arrows())
