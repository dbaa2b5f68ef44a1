"""A cluster's Python without this project, and the two ways in which an application brings it along.

Everything is built from the running environment, without a download; real artefacts can be given instead.
"""

from __future__ import annotations

import re
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from tests.faults.processes import ROOT

WAYS: Final = ("py-files", "archives")
_PACKAGES: Final = ("pravega_serde", "connector", "pravega_connector", "pyspark_pravega")
#: Entries of site-packages that belong to this project, or add folders to the path.
_OURS: Final = re.compile(rf"({'|'.join(_PACKAGES)})([-.].*)?|.*\.pth|__pycache__")


@dataclass(frozen=True)
class Shipment:
    """Options of ``spark-submit`` with which the application's Python processes have this project."""

    options: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    """Variables on the machine that submits, and runs the driver."""


def bare_python(folder: Path) -> tuple[Path, Path]:
    """Create a Python with all packages of this one except the project; return it and the folder of its Spark."""
    packages = _new_environment(folder)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not _OURS.fullmatch(entry.name):
            (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python", packages / "pyspark"


def ship(way: str, folder: Path, python: Path, artefact: Path | None = None) -> Shipment:
    """Build a shipment, or use the ``artefact``; ``python`` is the cluster's, on all machines."""
    if way == "py-files":
        file = artefact or _zip(folder / "pravega-serde.zip")
        # The processes on the driver's side that look up and plan data sources do not see --py-files.
        return Shipment(("--py-files", str(file)), {"PYTHONPATH": str(file), "PYSPARK_PYTHON": str(python)})
    file = artefact or _archive(folder / "environment.tar.gz", folder / "packed")
    # Executors unpack it in their folder; the driver's machine does not.
    unpacked = folder / "environment"
    with tarfile.open(file) as archive:
        archive.extractall(unpacked, filter="fully_trusted")
    pythons = {"PYSPARK_PYTHON": "./environment/bin/python", "PYSPARK_DRIVER_PYTHON": str(unpacked / "bin" / "python")}
    return Shipment(("--archives", f"{file}#environment"), {"PYTHONPATH": "", **pythons})


def _new_environment(folder: Path) -> Path:
    """Create an environment without packages; return its folder for packages."""
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    return packages


def _zip(file: Path) -> Path:
    """Pack the packages as in the wheel, under a name that Spark adds to the path."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _PACKAGES:
            for path in _files(ROOT / package):
                archive.write(path, path.relative_to(ROOT))
    return file


def _archive(file: Path, folder: Path) -> Path:
    """Pack an environment with the project and its dependencies, as ``venv-pack`` does, without Spark."""
    packages = _new_environment(folder).relative_to(folder)
    # Spark unpacks a .tar by Java, which refuses the link to the interpreter, and a .tar.gz by tar.
    with tarfile.open(file, "w:gz", compresslevel=1) as archive:
        archive.add(folder, ".")
        for package in _PACKAGES:
            for path in _files(ROOT / package):
                archive.add(path, packages / path.relative_to(ROOT))
        for needed in _closure("pravega-serde", "pandas"):
            for entry in needed.files or ():
                if entry.parts[0] != ".." and entry.suffix != ".pyc":
                    archive.add(str(needed.locate_file(entry)), str(packages / entry))
    return file


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def _closure(*names: str) -> list[Distribution]:
    """Return these distributions and their dependencies, without the project."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        found[name] = distribution(name)
        needs = map(Requirement, found[name].requires or ())
        waiting += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return [known for name, known in found.items() if name != "pravega-serde"]
