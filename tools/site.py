"""Build the documentation site: ``python -m tools.site`` writes it to ``build/site/<version>``.

The pages stay where a forge shows them: in ``docs``, next to examples and benchmarks, and at the top. The build copies
each page to the same path under ``build/pages``, with a description from its first sentence, and copies each file that
a page links to. Relative links work there as on the forge. Zensical builds the copies strictly, with ``zensical.toml``
and the theme's changes in ``tools/theme``. A link to a missing page, anchor or file fails the build, as does a page
outside the navigation.

``build/site`` holds one folder for each version, ``versions.json`` for the version menu, and an ``index.html`` that
leads to the newest version. To publish a version next to earlier ones, build into a copy of the published site.
``--url`` is the address of ``build/site`` on its server; by default, it is the project's home.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["CONFIG", "ROOT", "build", "describe", "home", "lay_out", "linked", "main", "navigation", "pages", "version"]

ROOT: Final = Path(__file__).parents[1]
CONFIG: Final = ROOT / "zensical.toml"
THEME: Final = ROOT / "tools" / "theme"
_BESIDE: Final = ("benchmarks", "deploy", "examples")
_LINK: Final = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
_NO_PARAGRAPH: Final = ("#", "|", "- ", "* ", "!", "<", ">")  # headings, tables, lists, pictures, quotes
_SHORT_DESCRIPTION: Final = 60
_LONG_DESCRIPTION: Final = 220


def pages() -> list[Path]:
    """Return every page of the site, relative to the checkout."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *(ROOT / name / "README.md" for name in _BESIDE)]
    return sorted(page.relative_to(ROOT) for page in found)


def navigation() -> list[str]:
    """Return the paths of the pages in the navigation, in order."""
    return [path for _, path in _entries(tomllib.loads(CONFIG.read_text())["project"]["nav"])]


def _entries(entry: object, section: str = "") -> Iterator[tuple[str, str]]:
    """Yield section and path of each page of a part of the navigation."""
    if isinstance(entry, str):
        yield section, entry
    elif isinstance(entry, dict):
        for title, below in entry.items():
            yield from _entries(below, title if isinstance(below, list) else section)
    elif isinstance(entry, list):
        for below in entry:
            yield from _entries(below, section)


def linked(page: Path) -> Iterator[Path]:
    """Yield the files that a page links to, relative to the checkout. Raise FileNotFoundError for a missing one."""
    for target in _LINK.findall((ROOT / page).read_text()):
        file = (ROOT / page.parent / target).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"{page} links to {target}, which is not a file of the checkout")
        yield file.relative_to(ROOT)


def home() -> str:
    """Return the address of the project on its forge, without a slash at the end."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return str(tool["hatch"]["metadata"]["hooks"]["custom"]["home"]).rstrip("/")


def version() -> str:
    """Return the version of the project."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def title(text: str) -> str:
    """Return the title of a page."""
    return _plain(next(line for line in text.splitlines() if line.startswith("# ")))


def describe(text: str) -> str:
    """Return the first sentences of a page as plain text, one or two lines long. Without any, name its title."""
    opening = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE).partition("\n## ")[0]
    for block in re.split(r"\n\s*\n", opening):
        if block.lstrip().startswith(_NO_PARAGRAPH) or "python -m tools.pages" in block:
            continue
        described = ""
        for sentence in re.findall(r"\S.*?(?:[.:?](?=\s|$)|$)", _plain(block)):
            if len(described) + len(sentence) > _LONG_DESCRIPTION and described:
                break
            described = f"{described} {sentence}".lstrip()
            if len(described) > _SHORT_DESCRIPTION:
                break
        if described:
            return re.sub(":$", ".", described)
    return f"pravega-serde: {title(text)}."


def _plain(text: str) -> str:
    """Return Markdown as plain text in one line: without marks, links and images."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"^#+ |(?<!\w)[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}(?!\w)|`", "", text).split())


def lay_out(folder: Path) -> None:
    """Create the folder: all pages, the files that they link to, and the theme's style sheet and script."""
    shutil.rmtree(folder, ignore_errors=True)
    every = pages()
    for result in ROOT.glob("benchmarks/results/*.md"):  # on the forge, where the site links to
        list(linked(result.relative_to(ROOT)))
    for file in {*every, *(file for page in every for file in linked(page) if file in every or file.suffix != ".md")}:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if file in every:
            text = (ROOT / file).read_text()
            description = json.dumps(describe(text), ensure_ascii=False)
            target.write_text(f"---\ndescription: {description}\n---\n{_without_escapes(_on_the_forge(file, text))}")
        else:
            shutil.copyfile(ROOT / file, target)
    for name in ("site.css", "site.js"):
        shutil.copyfile(THEME / name, folder / name)


def _on_the_forge(page: Path, text: str) -> str:
    """Return a page whose links to Markdown outside the site lead to the forge."""

    def address(link: re.Match[str]) -> str:
        target, rest = re.fullmatch(r"\]\(([^#)]+)(.*\))", link[0]).groups()  # type: ignore[union-attr]
        file = Path(os.path.normpath(page.parent / target))
        return link[0] if file.suffix != ".md" or file in every else f"]({home()}/blob/main/{file.as_posix()}{rest}"

    every = set(pages())
    return _LINK.sub(address, text)


def _without_escapes(text: str) -> str:
    r"""Return a page with `a|b` for `a\|b` in tables: forges need the escape in code, and the site would show it."""
    return re.sub(
        r"^\|.*", lambda row: re.sub("`[^`]+`", lambda code: code[0].replace(r"\|", "|"), row[0]), text, flags=re.M
    )


def _configuration(address: str, number: str) -> str:
    """Return the configuration of a build: the checkout's, with the addresses and folders of the build."""
    project = home()
    added = {
        "[project]": {
            "site_url": f"{address}/{number}/",
            "repo_url": project,
            "repo_name": project.rpartition("/")[2],
            "docs_dir": "pages",
            "site_dir": f"site/{number}",
        },
        "[project.theme]": {"custom_dir": str(THEME)},
    }
    text = CONFIG.read_text()
    for table, values in added.items():
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        text = text.replace(f"{table}\n", f"{table}\n{lines}", 1)
    return text


def build(folder: Path, *, address: str = "", number: str = "") -> int:
    """Build the site in ``folder / "site"``, and return the exit code of the build."""
    address, number = address.rstrip("/") or home(), number or version()
    lay_out(folder / "pages")
    config = folder / "zensical.toml"
    config.write_text(_configuration(address, number))
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(config)]
    code = subprocess.run(command, cwd=folder, env={**os.environ, "NO_COLOR": "1"}, check=False).returncode
    if code == 0:
        site = folder / "site"
        (site / number / "llms.txt").write_text(_page_list(f"{address}/{number}/"))
        _join_versions(site, address)
    return code


def _page_list(address: str) -> str:
    """Return ``llms.txt``: each page with its address and description, in the order of the navigation."""
    project = tomllib.loads(CONFIG.read_text())["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}"]
    last = None
    for section, path in _entries(project["nav"]):
        if section != last:
            lines += ["", f"## {section}" if section else "## Overview", ""]
            last = section
        text = (ROOT / path).read_text()
        lines.append(f"- [{title(text)}]({address}{_route(path)}): {describe(text)}")
    return "\n".join(lines) + "\n"


def _route(path: str) -> str:
    """Return the address of a page within its version of the site."""
    page = Path(path)
    folder = page.parent if page.name in ("README.md", "index.md") else page.with_suffix("")
    return "" if folder == Path() else f"{folder.as_posix()}/"


def _join_versions(site: Path, address: str) -> None:
    """Write the list of versions, and the pages of the whole site that lead to the newest version."""
    found = [folder.name for folder in site.iterdir() if (folder / "sitemap.xml").is_file()]
    found.sort(key=lambda name: [int(part) if part.isdigit() else -1 for part in re.split(r"\W", name)], reverse=True)
    listed = [{"version": name, "title": name, "aliases": []} for name in found]
    (site / "versions.json").write_text(json.dumps(listed, indent=2) + "\n")
    newest = html.escape(found[0])
    (site / "index.html").write_text(
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>pravega-serde {newest}</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}/">\n'
        f'<link rel="canonical" href="{html.escape(address)}/{newest}/">\n'
        f'<p><a href="{newest}/">Documentation of version {newest}</a></p>\n</html>\n'
    )
    # A server shows one page for all missing addresses.
    shutil.copyfile(site / found[0] / "404.html", site / "404.html")


def main(arguments: list[str] | None = None) -> int:
    """Build the site, and return 1 if something is wrong with it."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="Build the documentation site.")
    parser.add_argument("--url", default="", help="address of build/site on its server; default: the project's home")
    options = parser.parse_args(arguments)
    missing = sorted({str(page) for page in pages()} ^ set(navigation()))
    if missing:
        print(f"pages that are in {CONFIG.name} but do not exist, or the other way round: {', '.join(missing)}")
        return 1
    try:
        code = build(ROOT / "build", address=options.url)
    except FileNotFoundError as error:
        print(error)
        return 1
    if code == 0:
        print("To read it, run: python3 -m http.server --directory build/site")
    return code


if __name__ == "__main__":
    sys.exit(main())
