"""Drawing of the imports between packages in ``docs/project/architecture.md``.

A solid arrow is an import that runs when a module is loaded, a dotted one an import in a function. Annotations, tables
of names and the short names of ``connector`` are not drawn. Arrows that others imply are left out.
"""

from __future__ import annotations

from tools.imports import Kind, edges, modules
from tools.pages._between import between

Edges = dict[tuple[str, str], bool]  # (from, to): whether it is needed to load the module


def _package(module: str) -> str:
    """Return the first two levels of a module's name."""
    return ".".join(module.split(".")[:2])


def between_packages() -> Edges:
    """Imports between packages."""
    found: Edges = {}
    for edge in edges(modules()):
        pair = _package(edge.source), _package(edge.target)
        drawn = edge.kind in (Kind.LOAD, Kind.CALL) and not pair[0].startswith("connector")
        if drawn and pair[0] != pair[1]:
            found[pair] = found.get(pair, False) or edge.kind is Kind.LOAD
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
    drawn = sorted(_without_implied(between_packages()).items())
    return "".join(f"    {source} {'-->' if eager else '-.->'} {target}\n" for (source, target), eager in drawn)


def page(text: str) -> str:
    """The page with its drawing."""
    return between(text, "```mermaid\nflowchart TD\n", "```\n", arrows())
