"""``python -m tools.packages``: see the package."""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tools.packages import _build, _release

_PACKAGES: Final = ("connector", "pravega_connector", "pravega_serde", "pyspark_pravega")
#: Extras of the checkout: their packages are looked up, for all together they are more than a GB.
_OF_THE_CHECKOUT: Final = ("demo", "dev", "docs", "rust", "test")
#: Packages that users have next to it.
_BESIDE: Final = ("pytest", "mypy", "pyright[nodejs]")
_PAGE: Final = _build.ROOT / "benchmarks/results/packaging.md"
_BEGIN: Final = "<!-- made by python -m tools.packages install --document -->\n\n"
_END: Final = "<!-- end -->"
_PYRIGHT: Final = {"typeCheckingMode": "standard", "reportUnnecessaryTypeIgnoreComment": "error"}
_USERS_TEST: Final = """\
def test_an_event_is_read(pravega_client, pravega_stream):
    pravega_client.write(pravega_stream, "tea", "string")
    assert list(pravega_client.read(pravega_stream, "string")) == ["tea"]
"""


class Failed(Exception):
    """Something is not as it should be: in one line."""


def run(*words: str, seconds: float = 900, **options: Any) -> str:
    """Standard output of a command. Raises Failed with the last line that says something."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds, **options)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{Path(words[0]).name} took more than {seconds:.0f} s") from error
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip() and "[notice]" not in line]
        raise Failed(lines[-1].strip() if lines else f"{words[0]} ended with {done.returncode}")
    return done.stdout


def pythons(given: list[str]) -> dict[str, str]:
    """Interpreters by minor version (``3.12``), from 3.11 on: those given, or all that PATH and pyenv have."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    candidates = given or [
        *(f"python3.{minor}" for minor in range(11, 20)),
        *sorted(glob.glob(f"{root}/versions/3.*/bin/python3")),
        sys.executable,
    ]
    found: dict[str, str] = {}
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is None:
            if given:
                raise Failed(f"there is no {candidate}")
            continue
        try:
            version = run(path, "-c", "import venv, sys; print('%d.%d' % sys.version_info[:2])").strip()
        except Failed:
            continue  # pyenv's shims of versions that are not chosen
        if int(version.partition(".")[2]) >= 11:
            found.setdefault(version, path)
    return dict(sorted(found.items(), key=lambda item: int(item[0].partition(".")[2])))


@dataclass
class Tried:
    """Result of an environment: how many packages it has, and what was wrong (nothing if empty)."""

    packages: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "; ".join(self.wrong) or f"yes ({self.packages})"


@dataclass(frozen=True)
class Trial:
    """The files of a release, at an index, and a checkout without the packages."""

    files: _build.Files
    index: str
    checkout: Path

    def requirement(self, extras: tuple[str, ...]) -> str:
        """Requirement that a user types, in the built version."""
        return f"pravega-serde{'[' + ','.join(extras) + ']' if extras else ''}=={self.files.values('Version')[0]}"

    def environment(self, python: str, folder: Path, extras: tuple[str, ...], *more: str, lookup: bool = False) -> int:
        """Make an environment and install what is asked for; the number of packages. ``lookup`` installs nothing."""
        run(python, "-m", "venv", "--without-pip", "--clear", str(folder))
        pip = (sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install")
        report = folder / "report.json"
        options = ("--quiet", "--no-compile", "--extra-index-url", self.index, "--report", str(report))
        dry = ("--dry-run",) if lookup else ()
        run(*pip, *options, *dry, self.requirement(extras), *more)
        installed = json.loads(report.read_text())["install"]
        (ours,) = [each for each in installed if each["metadata"]["name"] == "pravega-serde"]
        if not ours["download_info"]["url"].startswith(self.index.removesuffix("simple/")):
            raise Failed("pip took pravega-serde from another index")
        return len(installed)

    def installed(self, python: str, folder: Path, extras: tuple[str, ...]) -> Tried:
        """An environment with extras, and all that can be tried in it."""
        tried = Tried(self.environment(python, folder, extras))
        (version,) = self.files.values("Version")
        if "cli" in extras:
            said = run(str(folder / "bin" / "pravega-serde"), "--version")
            if version not in said:
                tried.wrong.append(f"pravega-serde --version says {said.strip()}")
        inside = json.loads(self._python(folder, "-m", "tools.packages.inside").splitlines()[-1])
        tried.wrong += [f"{name} is not that which was installed" for name in inside["not installed"]]
        there = set(extras)
        for name, reason in inside["unloadable"].items():
            named = re.search(r"pravega-serde\[([\w-]+)\]", reason)
            extra = named[1] if named else "spark" if "'pyspark'" in reason else None
            if extra is None or extra in there:
                tried.wrong.append(f"{name}: {reason}")
        for extra, result in inside["extras"].items():
            if result != "works" and (extra in there or result != "says so"):
                tried.wrong.append(f"[{extra}] {result}")
        if min(inside["blocks"].values()) < 1:
            tried.wrong.append("a page has no block that can be run")
        return tried

    def looked_up(self, python: str, folder: Path, extras: tuple[str, ...]) -> Tried:
        """Return True if pip finds a set of packages for extras."""
        return Tried(self.environment(python, folder, extras, lookup=True))

    def of_a_user(self, python: str, folder: Path, _: tuple[str, ...]) -> Tried:
        """A user's program checked by mypy and pyright, and a user's test with the fixtures of the pytest plugin."""
        tried = Tried(self.environment(python, folder, ("spark",), *_BESIDE))
        program = folder / "program"
        program.mkdir()
        shutil.copy(self.checkout / "tools" / "packages" / "typed_program.py", program / "user.py")
        (program / "test_user.py").write_text(_USERS_TEST)
        (program / "pyrightconfig.json").write_text(json.dumps(_PYRIGHT))
        inner = str(folder / "bin" / "python")
        for command in (
            ("mypy", "--strict", "--cache-dir", os.devnull, "user.py"),
            ("pyright", "--pythonpath", inner, "user.py"),
            ("pytest", "-q", "-p", "no:cacheprovider", "test_user.py"),
        ):
            try:
                run(inner, "-m", *command, cwd=program, env=_bare_environment())
            except Failed as error:
                tried.wrong.append(f"{command[0]}: {error}")
        return tried

    def _python(self, folder: Path, *words: str) -> str:
        environment = _bare_environment() | {"PYTHONPATH": str(self.checkout)}
        return run(str(folder / "bin" / "python"), *words, cwd=folder, env=environment)


def _bare_environment() -> dict[str, str]:
    """Environment of this process, without paths of modules and settings of Pravega."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PRAVEGA_", "MYPY"))}


def rows(extras: list[str]) -> dict[str, tuple[tuple[str, ...], Callable[..., Tried]]]:
    """Checks for each Python: its name in the table, extras, and how."""
    users = [extra for extra in extras if extra not in _OF_THE_CHECKOUT]
    return {
        "none": ((), Trial.installed),
        **{f"`{extra}`": ((extra,), Trial.installed) for extra in users},
        "all of these": (tuple(users), Trial.installed),
        "`spark`, with pytest, mypy and pyright": (("spark",), Trial.of_a_user),
        **{f"`{extra}`, looked up": ((extra,), Trial.looked_up) for extra in extras if extra in _OF_THE_CHECKOUT},
    }


Results = dict[tuple[str, str], Tried]


def table(results: Results, wanted: Iterable[str]) -> str:
    """Rows are extras, in the order of ``wanted``, columns are Pythons; a dash is what was not tried."""
    columns = sorted({python for python, _ in results}, key=lambda version: int(version.partition(".")[2]))
    lines = [f"| extras | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in wanted:
        cells = (str(results.get((python, row), "–")).replace("|", "\\|") for python in columns)
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def earlier(results: Path | None) -> Results:
    """Passed environments in a file: they need not be tried again."""
    if results is None or not results.exists():
        return {}
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    return {(each["python"], each["row"]): Tried(each["packages"]) for each in lines if not each["wrong"]}


def install(arguments: argparse.Namespace) -> int:
    """Try each Python with each extra; print and, if asked, document the table. 1 if something is wrong."""
    results = earlier(arguments.results)
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pravega-serde-packages-", dir=arguments.folder) as scratch:
        files = _build.Files.found_in(arguments.dist) if arguments.dist else _build.build(Path(scratch))
        checkout = files.unpack(Path(scratch) / "tried")
        for package in _PACKAGES:
            shutil.rmtree(checkout / package)
        wanted = rows(files.values("Provides-Extra"))
        with _build.index(files) as index:
            trial = Trial(files, index, checkout)
            for version, python in pythons(arguments.python).items():
                for name, (extras, how) in wanted.items():
                    if (version, name) in results or (arguments.only and name.replace("`", "") not in arguments.only):
                        continue
                    folder = Path(scratch) / "environment"
                    try:
                        tried = how(trial, python, folder, extras)
                    except Failed as error:
                        tried = Tried(wrong=[str(error)])
                    shutil.rmtree(folder, ignore_errors=True)
                    results[version, name] = tried
                    print(f"{version} {name}: {tried}", flush=True)
                    if arguments.results:
                        with arguments.results.open("a") as file:
                            file.write(json.dumps({"python": version, "row": name, **asdict(tried)}) + "\n")
    made = table(results, wanted)
    print(f"\n{made}")
    if arguments.document:
        page = _PAGE.read_text()
        start = page.index(_BEGIN) + len(_BEGIN)
        _PAGE.write_text(page[:start] + made + "\n" + page[page.index(_END, start) :])
    wrong = sum(bool(tried.wrong) for tried in results.values())
    print(f"{len(results) - wrong} environments as they should be, {wrong} not")
    return 1 if wrong or not results else 0


def release(arguments: argparse.Namespace) -> int:
    """Print what keeps a tag from being published; 1 if anything does."""
    found = _release.problems(arguments.tag, arguments.home)
    print("\n".join(found) or f"{arguments.tag} may be published")
    return 1 if found else 0


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    made = argparse.ArgumentParser(prog="python -m tools.packages", description=__doc__)
    commands = made.add_subparsers(required=True)
    one = commands.add_parser("install", help="install from an index on loopback, in fresh environments, and try")
    one.add_argument("--dist", type=Path, metavar="FOLDER", help="the files to try (default: they are built)")
    one.add_argument("--python", action="append", default=[], metavar="PROGRAM", help="again for each (default: all)")
    one.add_argument("--only", action="append", default=[], metavar="ROW", help="a row of the table, again for each")
    one.add_argument("--folder", type=Path, help="where environments are made (default: the temporary folder)")
    one.add_argument("--results", type=Path, metavar="FILE", help="keep results there, and continue a run")
    one.add_argument("--document", action="store_true", help=f"write the table into {_PAGE.name}")
    one.set_defaults(run=install)
    one = commands.add_parser("release", help="whether the checkout may be published under a tag")
    one.add_argument("--tag", required=True, help="vX.Y.Z")
    one.add_argument("--home", metavar="URL", help="where the release is made, which has to be the project's home")
    one.set_defaults(run=release)
    return made


if __name__ == "__main__":
    chosen = parser().parse_args()
    sys.exit(chosen.run(chosen))
