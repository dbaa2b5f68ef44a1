"""The documentation site: ``python -m tools.site`` builds it in ``build/site``.

The pages lie where a forge shows them: in ``docs``, beside examples and benchmarks, at the top. So they are laid out
anew in ``build/pages``, each at its own path, with every file that one of them links to; relative links hold there
as they do on the forge. Zensical builds from that folder by ``zensical.toml``, strictly: a link to a page, an anchor
or a file that is not there ends the build, as does a page that the navigation leaves out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["CONFIG", "ROOT", "lay_out", "linked", "main", "navigation", "pages"]

ROOT: Final = Path(__file__).parents[1]
CONFIG: Final = ROOT / "zensical.toml"
_BESIDE: Final = ("benchmarks", "deploy", "examples")
_LINK: Final = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)\s]*)?\)")


def pages() -> list[Path]:
    """Every page of the site, relative to the checkout."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *(ROOT / name / "README.md" for name in _BESIDE)]
    return sorted(page.relative_to(ROOT) for page in found)


def navigation() -> list[str]:
    """Paths of the pages that the navigation has, in its order."""
    return list(_paths(tomllib.loads(CONFIG.read_text())["project"]["nav"]))


def _paths(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for below in entry.values():
            yield from _paths(below)
    elif isinstance(entry, list):
        for below in entry:
            yield from _paths(below)


def linked(page: Path) -> Iterator[Path]:
    """Files that a page links to, relative to the checkout. Raises FileNotFoundError for one that is not there."""
    for target in _LINK.findall((ROOT / page).read_text()):
        file = (ROOT / page.parent / target).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"{page} links to {target}, which is no file of the checkout")
        yield file.relative_to(ROOT)


def lay_out(folder: Path) -> None:
    """Make the folder anew with all pages and what they link to."""
    shutil.rmtree(folder, ignore_errors=True)
    every = pages()
    for file in {*every, *(file for page in every for file in linked(page))}:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)


def main() -> int:
    """Build the site; 1 if something is wrong with it."""
    missing = sorted({str(page) for page in pages()} ^ set(navigation()))
    if missing:
        print(f"pages that are not in the navigation of {CONFIG.name}, or the other way round: {', '.join(missing)}")
        return 1
    try:
        lay_out(ROOT / "build" / "pages")
    except FileNotFoundError as error:
        print(error)
        return 1
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(CONFIG)]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
